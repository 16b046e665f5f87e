"""Trigger a schedule by hand, and set or clear its calendars, condition and input rotation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from horarium.core.decision.decide import decide_trigger
from horarium.core.decision.facts import NO_FACTS, Birth, Facts, Fire, Hold, Skip
from horarium.core.document.canonical import UpdateMode
from horarium.core.document.checks import SECRET_KINDS, check_value
from horarium.core.document.json_values import DocumentProblems
from horarium.core.document.rendering import TemplateUse
from horarium.core.document.states import EventType, Origin, Position, Reason, RunState, Status, instance_id
from horarium.core.policy.queue import OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.features.history.rows import Journal
from horarium.features.resources import Opened, Resources, open_exhausted, open_schedule
from horarium.features.runs import rows as runs_read
from horarium.features.runs.rows import RunRow
from horarium.features.schedules.creation import ScheduleChange
from horarium.features.schedules.decisions import (
    bypass_on_record,
    gather_facts,
    policy_of,
    refuse_beyond_quota,
    refuse_skipping_again,
    under_policies,
    write_decisions,
)
from horarium.features.schedules.drafts import check_input
from horarium.features.schedules.service import update_opened
from horarium.features.schedules.write_rows import save_position
from horarium.instant import Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.errors import KeyReused, ScheduleNotFound
from horarium.platform.ids import id_text
from horarium.platform.wire import Permission, TriggerOutcome, WriteOutcome

MAX_KEY_LENGTH = 255


@dataclass(frozen=True, slots=True)
class TriggerResult:
    """`repeated`: the key has been used before, and this is the run that it started then."""

    schedule_id: str
    outcome: TriggerOutcome
    run_id: bytes | None = None
    instance_id: str | None = None
    state: RunState | None = None
    reason: Reason | None = None
    detail: object = None
    buffer_depth: int | None = None
    repeated: bool = False


def trigger(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    *,
    overlap_policy: OverlapPolicy | None = None,
    even_if_paused: bool = False,
    key: str | None = None,
    inputs: object = None,
) -> TriggerResult:
    """With a `key` a repeated trigger is the same trigger; without one each request counts.

    Whoever operates starts what somebody wrote; `inputs` in place of those of the schedule are a write. A trigger
    after the last run that `max_runs` allows is a skip, and counts as one.
    """
    caller.require(Permission.OPERATE)
    if inputs is not None:
        caller.require(Permission.WRITE)
    check_key(key)
    if problems := check_input("inputs", inputs):
        raise InvalidDefinition(problems)
    wish = _TriggerRequest(resources, caller, schedule_id, overlap_policy, even_if_paused, key, inputs)
    try:
        with bypass_on_record(resources, caller, schedule_id):
            answer, decided = resources.database.write(wish.fire)
    except UniqueConflict as taken:
        if taken.constraint == "runs_by_callers_key":
            raise KeyReused("this idempotency key was used to start another run") from None
        raise
    if decided is not None:
        resources.telemetry.decided(caller.namespace, schedule_id, [decided[0]], decided[1], Origin.MANUAL)
    return answer


@dataclass(frozen=True, slots=True)
class _TriggerRequest:
    resources: Resources
    caller: Caller
    schedule_id: str
    overlap_policy: OverlapPolicy | None
    even_if_paused: bool
    key: str | None
    inputs: object

    def fire(self, connection: Connection) -> tuple[TriggerResult, tuple[Birth | Skip, Instant] | None]:
        """The answer, and what was decided when; nothing was where the key has been used before."""
        opened = self._open(connection)
        check_secrets(self.inputs, opened)
        namespace = self.caller.namespace
        earlier = None if self.key is None else runs_read.find_by_callers_key(connection, namespace, self.key)
        if earlier is not None:
            refuse_skipping_again(connection, self.caller, earlier, policy_of(connection, opened))
            return _again(opened, earlier), None
        opened, decision, known = self._decide(connection, opened)
        refuse_beyond_quota(namespace, [decision], opened.now)
        entry = write_decisions(
            self.resources,
            connection,
            self.caller,
            opened,
            [decision],
            position_after(opened, decision, takes_turn=True),
            Origin.MANUAL,
            overlap_policy=self.overlap_policy,
            external_key=self.key,
            inputs=own_inputs(opened, self.inputs),
            values=self.inputs,
            known=known,
        )
        run = entry.runs[0] if entry.runs else None
        answer = _answer(opened, decision, None if run is None else (run.run_id, run.state), entry.counts.held)
        return answer, (decision, opened.now)

    def _open(self, connection: Connection) -> Opened:
        try:
            return open_schedule(self.resources, connection, self.caller, self.schedule_id)
        except ScheduleNotFound:
            exhausted = open_exhausted(self.resources, connection, self.caller, self.schedule_id)
            if exhausted is None:
                raise
            return exhausted

    def _decide(self, connection: Connection, opened: Opened) -> tuple[Opened, Birth | Skip, Facts]:
        if opened.row.status is Status.DELETED:
            return opened, Skip(opened.now, Reason.REMAINING_ACTIONS_EXHAUSTED), NO_FACTS
        known, shared = gather_facts(connection, opened, Origin.MANUAL, quotas=self.resources.quotas)
        opened = under_policies(opened, known)
        decision = decide_trigger(
            opened.sound,
            opened.row.position(),
            known,
            shared,
            now=opened.now,
            overlap_policy=self.overlap_policy,
            even_if_paused=self.even_if_paused,
        )
        return opened, decision, known


def check_secrets(inputs: object, opened: Opened) -> None:
    """Inputs of one run may name secrets where those of the schedule may."""
    if inputs is not None:
        problems = DocumentProblems()
        check_value(inputs, "inputs", problems, allowed=opened.sound.kind in SECRET_KINDS)
        problems.raise_any()


def own_inputs(opened: Opened, given: object) -> object:
    """The inputs of a run for which a caller gave some: where a template is filled in with them, it is rendered."""
    return None if opened.sound.template is TemplateUse.FILLS_IN else given


def check_key(key: str | None) -> None:
    if key is not None and not (1 <= len(key) <= MAX_KEY_LENGTH and key.isprintable() and key.isascii()):
        raise InvalidDefinition({"idempotency_key": [f"must be 1 to {MAX_KEY_LENGTH} printable ASCII characters"]})


def position_after(opened: Opened, decision: Birth | Skip, *, takes_turn: bool) -> Position:
    """Position after a manual run: it never moves the plan, but counts as a run and may use a turn of the rotation."""
    position, planning = opened.row.position(), opened.sound
    if isinstance(decision, Skip):
        return position
    turn = 1 if planning.rotation and takes_turn else 0
    moved = position._replace(runs_born=position.runs_born + 1, rotation_index=position.rotation_index + turn)
    if planning.max_runs is not None and moved.runs_born >= planning.max_runs:
        return moved._replace(status=Status.DELETED, next_due=None)
    return moved


def _answer(opened: Opened, decision: Birth | Skip, run: tuple[bytes, RunState] | None, held: int) -> TriggerResult:
    schedule_id = opened.row.schedule_id
    if isinstance(decision, Skip):
        full = decision.reason is Reason.BUFFER_FULL
        outcome = TriggerOutcome.BUFFER_FULL if full else TriggerOutcome.SKIPPED
        return TriggerResult(schedule_id, outcome, reason=decision.reason, detail=decision.detail)
    assert run is not None  # a birth has one
    run_id, state = run
    named = instance_id(schedule_id, Origin.MANUAL, decision.nominal, id_text(run_id))
    match decision:
        case Fire():
            return TriggerResult(schedule_id, TriggerOutcome.TRIGGERED, run_id, named, state)
        case Hold():
            return TriggerResult(schedule_id, TriggerOutcome.BUFFERED, run_id, named, state, buffer_depth=held)


def _again(opened: Opened, run: RunRow) -> TriggerResult:
    if run.schedule_uid != opened.row.schedule_uid:
        raise KeyReused("this idempotency key was used to start another run")
    held = run.state is RunState.HELD
    return TriggerResult(
        opened.row.schedule_id,
        TriggerOutcome.BUFFERED if held else TriggerOutcome.TRIGGERED,
        run.run_id,
        instance_id(opened.row.schedule_id, run.origin, run.nominal, id_text(run.run_id)),
        run.state,
        buffer_depth=opened.row.held if held else None,
        repeated=True,
    )


class Guarded(StrEnum):
    """The part of a definition, by its name in the document."""

    CALENDARS = "calendars"
    CONDITION = "pre_dispatch_condition"
    ROTATION = "inputs_rotation"


def put(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    part: Guarded,
    value: object,
    *,
    if_version: int | None = None,
) -> ScheduleChange:
    """In place of the old one, whole: a condition is not merged with the one before."""
    return _change(resources, caller, schedule_id, part, {part.value: value}, UpdateMode.PARTS, if_version)


def clear(
    resources: Resources, caller: Caller, schedule_id: str, part: Guarded, *, if_version: int | None = None
) -> ScheduleChange:
    return _change(resources, caller, schedule_id, part, {part.value: None}, UpdateMode.MERGE, if_version)


def _change(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    part: Guarded,
    document: dict[str, object],
    how: UpdateMode,
    if_version: int | None,
) -> ScheduleChange:
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> ScheduleChange:
        opened = open_schedule(resources, connection, caller, schedule_id, if_version=if_version)
        written = update_opened(resources, connection, caller, opened, document, how, obey_pause=False)
        if part is Guarded.ROTATION and written.outcome is WriteOutcome.UNCHANGED and opened.row.rotation_index:
            return _begin_again(resources, connection, caller, written, ["rotation_index"])
        return written

    return resources.database.write(work)


def _begin_again(
    resources: Resources, connection: Connection, caller: Caller, written: ScheduleChange, changed: Sequence[str]
) -> ScheduleChange:
    """Setting the rotation that it has already is how one starts it from its first inputs."""
    opened = open_schedule(resources, connection, caller, written.schedule_id)
    row, now = opened.row, opened.now
    journal = Journal(row.next_sequence, now, caller.context())
    journal.add(EventType.UPDATED, changed_fields=list(changed), revision=row.revision, generation=row.generation)
    version = save_position(
        connection,
        row.schedule_uid,
        {"rotation_index": 0, "next_sequence": journal.write(connection, row.schedule_uid, row.namespace)},
        expected_version=row.version,
        now=now,
    )
    return replace(written, outcome=WriteOutcome.UPDATED, version=version, changed=tuple(changed))
