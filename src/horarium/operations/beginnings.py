"""How a schedule begins: checked, planned from now, and ready to be written with its first events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from horarium.decision import lifecycle
from horarium.ids import new_id
from horarium.instant import Instant, rfc3339_or_none, to_rfc3339
from horarium.operations.bypasses import refuse_skipping_in
from horarium.operations.caller import Caller
from horarium.operations.changes import ScheduleChange
from horarium.operations.credentials import keep_credentials
from horarium.operations.drafts import check_draft, signed
from horarium.operations.lookups import Lookups
from horarium.operations.resources import Resources, wake_tickers
from horarium.schedule.bundle_kind import BundleKind
from horarium.schedule.canonical import action_document, spec_document
from horarium.schedule.definition import Definition
from horarium.schedule.document import Parsed
from horarium.schedule.event import MAX_RUNS_EXHAUSTED, EventType
from horarium.schedule.planning import Planning
from horarium.schedule.position import Position, Status
from horarium.store.database import Connection
from horarium.store.history.append import Journal
from horarium.store.schedules.write import NewSchedule
from horarium.wire.outcomes import WriteOutcome

_KIND = BundleKind.SCHEDULE.value


@dataclass(frozen=True, slots=True)
class Begun:
    """`journal` goes to history together with `new`."""

    definition: Definition
    planning: Planning
    new: NewSchedule
    journal: Journal
    warnings: tuple[str, ...]
    retries: int | None = None

    @property
    def change(self) -> ScheduleChange:
        new = self.new
        return ScheduleChange(
            new.schedule_uid,
            new.namespace,
            new.schedule_id,
            WriteOutcome.CREATED,
            version=1,
            status=new.position.status,
            next_due=new.position.next_due,
            warnings=self.warnings,
            retries=self.retries,
        )

    def wake(self, resources: Resources, connection: Connection) -> None:
        if self.new.position.status is Status.ACTIVE:
            wake_tickers(resources, connection, self.new.position.next_due)


def begin_schedule(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    parsed: Parsed,
    *,
    lookups: Lookups | None = None,
    bundle: str | None = None,
    exhausted: bool = False,
    paused_until: Instant | None = None,
) -> Begun:
    """Raises what is wrong with it. `exhausted`: its runs were used up elsewhere, and it is only to be known here.

    A pause whose end has passed is over.
    """
    keep_credentials(resources, connection, caller, parsed)
    draft = check_draft(resources, connection, caller, signed(parsed.definition, caller), lookups=lookups)
    resources.name_addresses(_KIND, draft.definition.schedule_id, draft.addresses)
    refuse_skipping_in(connection, parsed.skipping, draft.definition, needs_approval=draft.planning.needs_approval)
    definition, now, uid = draft.definition, resources.clock.now(), new_id()
    paused = parsed.paused is True and not exhausted and (paused_until is None or paused_until > now)
    position = lifecycle.begin(draft.planning, uid, now=now, paused=paused)
    journal = Journal(1, now, caller.context())
    journal.add(EventType.CREATED, **told(definition, 1, position))
    if paused:
        journal.add(
            EventType.PAUSED, reason=caller.reason, paused_at=to_rfc3339(now), until=rfc3339_or_none(paused_until)
        )
    revision = draft.revision(position.generation)
    if exhausted:
        journal.add(EventType.DELETED, reason=MAX_RUNS_EXHAUSTED, deleted_at=rfc3339_or_none(now))
        position = position._replace(status=Status.DELETED, next_due=None, runs_born=definition.max_runs or 0)
        revision = replace(revision, attributes=frozenset())  # which end with their schedule
    new = NewSchedule(
        schedule_uid=uid,
        namespace=definition.namespace,
        schedule_id=definition.schedule_id,
        revision=revision,
        position=position,
        source=definition.source.value,
        owner=definition.owner,
        paused_at=now if paused else None,
        pause_reason=caller.reason if paused else None,
        paused_by=caller.principal if paused else None,
        paused_until=paused_until if paused else None,
        next_sequence=journal.next_sequence,
        bundle=bundle,
        deleted_at=now if exhausted else None,
        created_by=caller.principal,
    )
    warnings = (*parsed.warnings, *draft.warnings, *draft.calendar_warnings)
    return Begun(definition, draft.planning, new, journal, warnings, draft.retries)


def told(definition: Definition, revision: int, position: Position) -> dict[str, Any]:
    """Payload about a definition in its events."""
    return {
        "spec": spec_document(definition.spec),
        "action": action_document(definition.action),
        "overlap_policy": definition.overlap.policy.value,
        "next_fire_at": rfc3339_or_none(position.next_due),
        "revision": revision,
        "generation": position.generation,
    }
