"""How a run becomes a request to a launcher: its action and inputs come from the revision that it names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable

from sqlalchemy import Connection, and_, or_, select

from horarium.ids import id_text
from horarium.instant import SECOND
from horarium.launchers.launcher import LaunchRequest
from horarium.policy.rotation import inputs_for
from horarium.schedule.definition import Definition
from horarium.schedule.document import from_canonical
from horarium.schedule.envelope import decode_input
from horarium.schedule.run import Origin, delivery_key, instance_id, occurrence_key
from horarium.store.runs import Work
from horarium.store.tables import schedule_revisions

_MAX_REMEMBERED = 4_096
_OCCURRENCES = (Origin.SCHEDULED.value, Origin.BACKFILL.value)
RevisionKey = tuple[bytes, int]


class Definitions:
    """Parsed definitions by schedule and revision; revisions never change, so none is ever stale."""

    def __init__(self) -> None:
        self._known: dict[RevisionKey, Definition | Exception] = {}

    def load(self, connection: Connection, works: Iterable[Work]) -> None:
        keys = {revision_key(work) for work in works if work.schedule_uid is not None}
        unknown = [key for key in keys if key not in self._known]
        if len(self._known) + len(unknown) > _MAX_REMEMBERED:
            self._known.clear()
            unknown = list(keys)
        if not unknown:
            return
        revisions = schedule_revisions.c
        wanted = or_(*(and_(revisions.schedule_uid == uid, revisions.revision == number) for uid, number in unknown))
        for uid, number, document in connection.execute(
            select(revisions.schedule_uid, revisions.revision, revisions.document).where(wanted)
        ):
            self._known[uid, number] = _parsed(document)

    def of(self, work: Work) -> Definition | Exception:
        return self._known.get(revision_key(work), LookupError("the revision that this run names is gone"))


def revision_key(work: Work) -> RevisionKey:
    return work.schedule_uid or b"", work.revision or 0


def key_of(work: Work) -> str:
    """An occurrence is named by its schedule and time; a run that nobody scheduled by itself."""
    if work.schedule_uid is not None and work.origin in _OCCURRENCES:
        return occurrence_key(id_text(work.schedule_uid), work.nominal)
    return occurrence_key(id_text(work.run_id), work.nominal)


def build_request(work: Work, definition: Definition, cancelled: asyncio.Event | None = None) -> LaunchRequest:
    run_id = id_text(work.run_id)
    if work.inputs is not None:
        inputs = json.loads(work.inputs)
    else:
        inputs = inputs_for(definition.action.input, definition.inputs_rotation, work.rotation_index or 0)
    return LaunchRequest(
        run_id=run_id,
        namespace=work.namespace,
        key=delivery_key(key_of(work), work.attempt),
        nominal=work.nominal,
        due=work.due,
        origin=work.origin,
        action=definition.action,
        deadline=work.deadline if work.deadline is not None else work.due + work.timeout_seconds * SECOND,
        instance_id=instance_id(definition.schedule_id, Origin(work.origin), work.nominal, run_id),
        schedule_id=definition.schedule_id,
        attempt=work.attempt,
        inputs=decode_input(inputs),
        trigger_number=work.trigger_number,
        labels=definition.labels,
        memo=definition.memo,
        cancelled=cancelled,
    )


def _parsed(document: str) -> Definition | Exception:
    try:
        return from_canonical(json.loads(document))
    except Exception as wrong:  # one corrupt document is one run's trouble
        return wrong
