"""What runs are: the definitions that they name, read once and remembered, since a revision never changes."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeAlias

from sqlalchemy import Connection, select, tuple_

from horarium.schedule.definition import Definition
from horarium.schedule.document import from_canonical
from horarium.store.tables import run_definitions, schedule_revisions

_MAX_REMEMBERED = 4_096
_AT_ONCE = 400
RevisionKey: TypeAlias = tuple[bytes, int]
_OWN = 0  # the number of the only revision that a run without a schedule has


class NamesRevision(Protocol):
    @property
    def run_id(self) -> bytes: ...
    @property
    def schedule_uid(self) -> bytes | None: ...
    @property
    def revision(self) -> int | None: ...


class Definitions:
    """The newest few thousand. What a caller needs for longer than a moment it keeps itself."""

    def __init__(self) -> None:
        self._known: OrderedDict[RevisionKey, Definition | Exception] = OrderedDict()

    def load(self, connection: Connection, runs: Iterable[NamesRevision]) -> Mapping[bytes, Definition | Exception]:
        """By run; what cannot be read is the reason why."""
        keys = {run.run_id: revision_key(run) for run in runs}
        found: dict[RevisionKey, Definition | Exception] = {}
        for key in set(keys.values()):
            if (known := self._known.get(key)) is not None:
                found[key] = known
        unknown = [key for key in set(keys.values()) if key not in found]
        for start in range(0, len(unknown), _AT_ONCE):
            found.update(_read(connection, unknown[start : start + _AT_ONCE]))
        self._remember(found)
        gone = LookupError("the revision that this run names is gone")
        return {run_id: found.get(key, gone) for run_id, key in keys.items()}

    def of(self, connection: Connection, run: NamesRevision) -> Definition | Exception:
        return self.load(connection, [run])[run.run_id]

    def _remember(self, found: Mapping[RevisionKey, Definition | Exception]) -> None:
        for key, definition in found.items():
            self._known[key] = definition
        while len(self._known) > _MAX_REMEMBERED:
            self._known.popitem(last=False)


def revision_key(run: NamesRevision) -> RevisionKey:
    """A run that no schedule asked for has its definition under its own id."""
    if run.schedule_uid is None or run.revision is None:
        return run.run_id, _OWN
    return run.schedule_uid, run.revision


def _read(connection: Connection, keys: Sequence[RevisionKey]) -> dict[RevisionKey, Definition | Exception]:
    found: dict[RevisionKey, Definition | Exception] = {}
    scheduled = [key for key in keys if key[1] != _OWN]
    if scheduled:
        columns = schedule_revisions.c
        named = tuple_(columns.schedule_uid, columns.revision).in_(scheduled)
        rows = connection.execute(select(columns.schedule_uid, columns.revision, columns.document).where(named))
        found |= {(row.schedule_uid, row.revision): _parsed(row.document) for row in rows}
    own = [run_id for run_id, number in keys if number == _OWN]
    if own:
        rows = connection.execute(select(run_definitions).where(run_definitions.c.run_id.in_(own)))
        found |= {(row.run_id, _OWN): _parsed(row.document) for row in rows}
    return found


def _parsed(document: str) -> Definition | Exception:
    try:
        return from_canonical(json.loads(document))
    except Exception as wrong:  # one corrupt document is one run's trouble
        return wrong


def insert_own(connection: Connection, run_id: bytes, document: str) -> None:
    connection.execute(run_definitions.insert().values(run_id=run_id, document=document))
