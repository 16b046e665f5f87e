"""What runs are: the definitions that they name, read once and remembered, since a revision never changes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from sqlalchemy import Connection

from horarium.store.database.json_text import from_text
from horarium.store.database.set_wise import select_by_ids
from horarium.store.tables import run_definitions

D = TypeVar("D")

_MAX_REMEMBERED = 4_096
# Of texts: what is read of them takes several times as much, and one may be a megabyte.
_MAX_REMEMBERED_BYTES = 16 * 1_024 * 1_024
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


class Definitions(Generic[D]):
    """The newest few thousand, whole or in part, as `read` makes them of a document.

    What a caller needs for longer than a moment it keeps itself.
    """

    def __init__(self, read: Callable[[object], D]) -> None:
        self._read = read
        self._known: OrderedDict[RevisionKey, D | Exception] = OrderedDict()
        self._sizes: dict[RevisionKey, int] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def load(self, connection: Connection, runs: Iterable[NamesRevision]) -> Mapping[bytes, D | Exception]:
        """By run; what cannot be read is the reason why."""
        keys = {run.run_id: revision_key(run) for run in runs}
        found: dict[RevisionKey, D | Exception] = {}
        for key in set(keys.values()):
            if (known := self._known.get(key)) is not None:
                found[key] = known
        unknown = [key for key in set(keys.values()) if key not in found]
        for start in range(0, len(unknown), _AT_ONCE):
            texts = _texts(connection, unknown[start : start + _AT_ONCE])
            read = {key: self._parsed(text) for key, text in texts.items()}
            self._remember(read, {key: len(text) for key, text in texts.items()})
            found |= read
        gone = LookupError("the revision that this run names is gone")
        return {run_id: found.get(key, gone) for run_id, key in keys.items()}

    def of(self, connection: Connection, run: NamesRevision) -> D | Exception:
        return self.load(connection, [run])[run.run_id]

    def _remember(self, read: Mapping[RevisionKey, D | Exception], sizes: Mapping[RevisionKey, int]) -> None:
        """Threads share this: what one forgets meanwhile another has in hand."""
        with self._lock:
            for key, definition in read.items():
                self._known[key] = definition
                self._bytes += sizes[key] - self._sizes.get(key, 0)
                self._sizes[key] = sizes[key]
            while len(self._known) > _MAX_REMEMBERED or self._bytes > _MAX_REMEMBERED_BYTES:
                key, _ = self._known.popitem(last=False)
                self._bytes -= self._sizes.pop(key)

    def _parsed(self, document: str) -> D | Exception:
        try:
            return self._read(from_text(document))
        except Exception as wrong:  # one corrupt document is one run's trouble
            return wrong


def revision_key(run: NamesRevision) -> RevisionKey:
    """A run that no schedule asked for has its definition under its own id."""
    if run.schedule_uid is None or run.revision is None:
        return run.run_id, _OWN
    return run.schedule_uid, run.revision


_OF_SCHEDULES = (
    "WITH wanted (uid, number) AS ({wanted}) SELECT schedule_uid, revision, document FROM wanted "
    "JOIN schedule_revisions ON schedule_uid = uid AND revision = number"
)
_POSTGRES = _OF_SCHEDULES.format(wanted="SELECT * FROM unnest(%s::bytea[], %s::int4[])")
_OWN_TEXTS = "SELECT run_id, document FROM run_definitions WHERE run_id"


def _texts(connection: Connection, keys: Sequence[RevisionKey]) -> dict[RevisionKey, str]:
    """By plain statements: a claim asks this, and to build so many conditions took longer than the answer."""
    scheduled = [key for key in keys if key[1] != _OWN]
    own = [run_id for run_id, number in keys if number == _OWN]
    found = {(uid, number): text for uid, number, text in _of_schedules(connection, scheduled)} if scheduled else {}
    if own:
        found |= {(run_id, _OWN): text for run_id, text in select_by_ids(connection, _OWN_TEXTS, own)}
    return found


def _of_schedules(connection: Connection, keys: Sequence[RevisionKey]) -> Iterable[Sequence[Any]]:
    if connection.dialect.name == "postgresql":
        return connection.exec_driver_sql(_POSTGRES, ([uid for uid, _ in keys], [number for _, number in keys]))
    return connection.exec_driver_sql(_sqlite(len(keys)), tuple(part for key in keys for part in key))


@lru_cache(maxsize=_AT_ONCE)
def _sqlite(count: int) -> str:
    return _OF_SCHEDULES.format(wanted=f"VALUES {', '.join(['(?, ?)'] * count)}")


def insert_own(connection: Connection, run_id: bytes, document: str) -> None:
    connection.execute(run_definitions.insert().values(run_id=run_id, document=document))
