"""SQL that updates runs: one UPDATE for each kind of change, its events, and what ends release.

The caller holds the lock on the rows. `transition_rows.py` updates the schedule.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection

from horarium.core.decision.run_policies import payers
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import agent_in, connection_in
from horarium.core.document.event import CommandContext, NoticeType, RunEventType, final_event
from horarium.core.document.kinds import CELERY
from horarium.core.document.states import RunState
from horarium.core.lifecycle.event import Admit, Begin, Block, Change, End, Nothing, Progress, RetryLater, WaitForTarget
from horarium.core.lifecycle.live_run import is_left_behind, is_to_be_ended
from horarium.features.agents import task_rows
from horarium.features.agents.task_rows import UnwantedTask
from horarium.features.approvals import rows as approval_rows
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.runs import event_rows
from horarium.features.runs.event_rows import NewRunEvent
from horarium.features.runs.work_rows import RunWork
from horarium.instant import DAY, SECOND, Instant, rfc3339_or_none, to_rfc3339
from horarium.platform.database import counters
from horarium.platform.database.columns import event_text, kept_text
from horarium.platform.database.statements import RowUpdate
from horarium.platform.database.tables import runs
from horarium.platform.ids import id_text

# Of what a target said, characters: on the run, and in the feed.
MAX_ERROR = 4_000
_MAX_TOLD_ERROR = 1_000

BY_ITSELF: Mapping[bytes, CommandContext] = MappingProxyType({})
_UNAPPROVED = frozenset({RunState.REJECTED, RunState.EXPIRED})
_LEASE = "lease_epoch lease_owner lease_until"
_USED = "cost tokens tool_calls"
_EARLIER = "earlier_cost earlier_tokens earlier_tool_calls"


def _update(names: str) -> RowUpdate:
    return RowUpdate(runs, ["run_id", "state", *names.split(), "next_event"])


# What each kind of change may touch.
_UPDATES: dict[type[Change], RowUpdate] = {
    End: _update(f"{_LEASE} attempt started_at finished_at result error error_class cause {_USED}"),
    WaitForTarget: _update(f"{_LEASE} reference queue started_at"),
    RetryLater: _update(
        f"{_LEASE} ready_at deadline ends_by attempt launches busy_since reference heard started_at error error_class "
        f"{_USED} {_EARLIER}"
    ),
    Begin: _update("reference started_at"),
    Progress: _update(f"started_at {_USED}"),
    Block: _update(f"{_LEASE} deadline needs_approval approval_id reference"),
    Admit: _update("ready_at approval_id inputs gates_passed launches busy_since heard"),
}


def kept_error(error: str | None) -> str | None:
    return None if error is None else kept_text(error, MAX_ERROR)


def write_changes(
    connection: Connection,
    changed: Sequence[tuple[RunWork, Change]],
    now: Instant,
    by: Mapping[bytes, CommandContext] = BY_ITSELF,
) -> None:
    """Each with its run as it was. `by` are those who asked for it, by run; what happens by itself has nobody."""
    by_kind: defaultdict[type[Change], list[tuple[Any, ...]]] = defaultdict(list)
    told: list[NewRunEvent] = []
    finished: list[tuple[RunWork, End]] = []
    freed = Counter[counters.Counter]()
    for run, change in changed:
        said = _events(run, change, by.get(run.run_id))
        values = _after(run, change, now)
        named = {**values, "run_id": run.run_id, "next_event": run.next_event + len(said)}
        by_kind[type(change)].append(tuple(named[name] for name in _UPDATES[type(change)].columns))
        told += [(run.run_id, run.next_event + place, *event) for place, event in enumerate(said)]
        if isinstance(change, End):
            freed.update(_freed(run, change))
            if run.parent_run_id is None:
                finished.append((run, change))
    for change_kind, rows in by_kind.items():
        _UPDATES[change_kind].run(connection, rows)
    event_rows.append_events(connection, told, now=now)
    approval_rows.close_unanswered(connection, changed, now)
    history_rows.append_notices(connection, _finished_runs(connection, finished, now), now=now)
    counters.add_to_counters(connection, freed)
    task_rows.add_unwanted(connection, [task for each in changed if (task := _left_behind(*each)) is not None], now)


def _left_behind(run: RunWork, change: Change) -> UnwantedTask | None:
    """Work that an agent, or a worker behind a broker, still does for a run that has ended here."""
    if run.reference is None:
        return None
    if connection_in(run.target) is not None:
        ended = is_to_be_ended(change, running=run.state == RunState.RUNNING)
        return UnwantedTask(run.run_id, run.reference, run.namespace, run.target) if ended else None
    agent_id = agent_in(run.target)
    if agent_id is None or not is_left_behind(change):
        return None
    return UnwantedTask(run.run_id, run.reference, run.namespace, agent_id)


def _after(run: RunWork, change: Change, now: Instant) -> dict[str, Any]:
    """The columns that the change touches, as they will be."""
    match change:
        case End():
            return _ended(run, change, now)
        case RetryLater():
            return _again(run, change)
        case WaitForTarget(reference, queued):
            return {
                "state": (RunState.QUEUED if queued else RunState.RUNNING).value,
                **_released(run.lease_epoch),
                "reference": reference,
                "queue": reference if queued and run.queue is None and run.kind != CELERY.name else run.queue,
                "started_at": None if queued else run.started_at or now,
            }
        case Begin(reference, held):
            state = RunState.RUNNING if held else RunState.READY
            return {"state": state.value, "started_at": run.started_at or now, "reference": reference}
        case Progress(used):
            return {"state": RunState.RUNNING.value, "started_at": run.started_at or now, **used._asdict()}
        case Block():
            return {
                "state": RunState.AWAITING_APPROVAL.value,
                **_released(run.lease_epoch + 1),
                "deadline": None,
                "needs_approval": True,
                "approval_id": None,
                "reference": change.reference or run.reference,
            }
        case Admit():
            return _admitted(run, change)
        case Nothing():
            raise AssertionError("nothing has changed")


def _admitted(run: RunWork, admit: Admit) -> dict[str, Any]:
    begun = run.started_at is not None or run.launches > 0
    return {
        "state": RunState.READY.value,
        "ready_at": max(admit.ready_at, run.due) if not begun else admit.ready_at,
        "approval_id": admit.approval_id,
        "inputs": run.inputs if admit.inputs is None else event_text(admit.inputs),
        # What comes after a gate is another delivery than what came before it, and has a key of its own.
        "gates_passed": run.gates_passed + begun,
        "launches": 0,
        "busy_since": None,
        "heard": False,
    }


def _released(epoch: int) -> dict[str, Any]:
    return {"lease_epoch": epoch, "lease_owner": None, "lease_until": None}


def _ended(run: RunWork, end: End, now: Instant) -> dict[str, Any]:
    return {
        "state": end.state.value,
        # Whoever still works on it has lost its lease and may not answer any more.
        **_released(run.lease_epoch + 1),
        "attempt": run.attempt if end.attempt is None else end.attempt,
        "started_at": run.started_at,
        "finished_at": now,
        "result": None if end.result is None else event_text(end.result),
        "error": kept_error(end.error),
        "error_class": end.error_class,
        "cause": end.cause,
        **(end.used or run.used)._asdict(),
    }


def _again(run: RunWork, again: RetryLater) -> dict[str, Any]:
    used, earlier = again.used or run.used, run.earlier
    if again.known:
        earlier = used
    # What has not begun yet has neither a start nor an end of its time.
    unbegun = again.untouched and run.attempt == 0
    timed = again.timed or not unbegun
    # What was begun is gone on with, under its name and within its time, unless it is known to be over or lost.
    reference = run.reference if again.follows or again.untouched else None
    return {
        "state": RunState.READY.value,
        # After a known failure whoever still speaks for the attempt speaks of the past; while the outcome is
        # unknown the answer of the last holder would still be welcome.
        **_released(run.lease_epoch + 1 if again.known else run.lease_epoch),
        "ready_at": again.ready_at,
        "deadline": run.deadline if reference is not None or again.timed else None,
        "ends_by": run.ends_by if timed else None,
        "attempt": again.attempt,
        "launches": again.launches,
        "busy_since": again.busy_since,
        "reference": reference,
        # A later attempt is news to the target; one of which nobody knows whether it arrived may be not.
        "heard": not again.known and (run.heard or not again.untouched),
        "started_at": None if unbegun else run.started_at,
        "error": kept_error(again.error),
        "error_class": again.error_class,
        **used._asdict(),
        "earlier_cost": earlier.cost,
        "earlier_tokens": earlier.tokens,
        "earlier_tool_calls": earlier.tool_calls,
    }


def _events(run: RunWork, change: Change, by: CommandContext | None) -> list[tuple[RunEventType, dict[str, Any]]]:
    """Events for the run's stream; a step whose target replied at once has also started."""
    found = [] if (event := _event(run, change)) is None else [event]
    if by is not None:
        found = [(kind, said | by.to_payload()) for kind, said in found]
    if run.parent_run_id is None:
        return found
    if _began_unseen(run, change):
        found.insert(0, (RunEventType.NODE_STARTED, {}))
    step = _said({"node_id": run.node_id, "attempt": run.attempt, "assignee": run.assignee, "member": run.member})
    return [(kind, {**step, **said}) for kind, said in found]


def _began_unseen(run: RunWork, change: Change) -> bool:
    over = (isinstance(change, End) and change.state in _DONE) or (isinstance(change, RetryLater) and change.known)
    return over and run.state == RunState.LAUNCHING


_DONE = (RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT)


def _event(run: RunWork, change: Change) -> tuple[RunEventType, dict[str, Any]] | None:
    """Event of the run's stream for a change; most changes have one."""
    match change:
        case End():
            kind = final_event(change.state, is_step=run.parent_run_id is not None)
            return kind, _said({**_went_wrong(change), "cause": change.cause, **change.detail})
        case RetryLater() if change.known:
            return _kind(run, RunEventType.RUN_RETRIED), _said({"attempt": change.attempt, **_went_wrong(change)})
        case RetryLater() if change.told:
            return RunEventType.RUN_REDELIVERED, _said({"launches": change.launches, **_went_wrong(change)})
        case Block(gate):
            return _kind(run, RunEventType.RUN_BLOCKED), {"gate": gate}
        case Admit(approval_id, modified=modified):
            kind = RunEventType.RUN_MODIFIED if modified else RunEventType.RUN_APPROVED
            return kind, {"approval_id": id_text(approval_id)}
        case Progress(begins=True) | WaitForTarget(queued=False):
            return _kind(run, RunEventType.RUN_STARTED), {}
        case Begin(held=True) if run.state != RunState.RUNNING:
            return _kind(run, RunEventType.RUN_STARTED), {}
        case _:
            return None


_OF_STEPS = {
    RunEventType.RUN_STARTED: RunEventType.NODE_STARTED,
    RunEventType.RUN_RETRIED: RunEventType.NODE_RETRIED,
    RunEventType.RUN_BLOCKED: RunEventType.NODE_BLOCKED,
}


def _kind(run: RunWork, event: RunEventType) -> RunEventType:
    return event if run.parent_run_id is None else _OF_STEPS[event]


def _went_wrong(change: End | RetryLater) -> dict[str, Any]:
    return {"error": kept_error(change.error), "error_class": change.error_class}


def _said(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _finished_runs(connection: Connection, finished: Sequence[tuple[RunWork, End]], now: Instant) -> list[Notice]:
    asked = [run.approval_id for run, _ in finished if run.approval_id is not None]
    answers = approval_rows.outcomes(connection, asked)
    return [_finished(run, end, answers, now) for run, end in finished]


def _approval(run: RunWork, end: End, answers: Mapping[bytes, str]) -> str | None:
    """Outcome of the approval request; None = there was no request, or no decision yet."""
    if end.state in _UNAPPROVED:
        return end.state.value
    return None if run.approval_id is None else answers.get(run.approval_id)


def _finished(run: RunWork, end: End, answers: Mapping[bytes, str], now: Instant) -> Notice:
    """Notice about the end of a root run, whatever ended it."""
    started, error = run.started_at, end.error
    values = {
        "state": end.state.value,
        "error": None if error is None else kept_text(error, _MAX_TOLD_ERROR),
        "error_class": end.error_class,
        "cause": end.cause,
        "attempt": run.attempt if end.attempt is None else end.attempt,
        "origin": run.origin,
        "occurrence_time": to_rfc3339(run.nominal),
        "started_at": rfc3339_or_none(started),
        "finished_at": to_rfc3339(now),
        # A clock that was set back while it ran must not make it end before it began.
        "duration_seconds": None if started is None else max(0, now - started) / SECOND,
        "workflow": run.workflow,
        "version": run.workflow_version,
        "approval": _approval(run, end, answers),
    }
    return Notice(NoticeType.RUN_FINISHED, run.namespace, run.schedule_uid, run.run_id, values)


def _freed(run: RunWork, end: End) -> dict[counters.Counter, int]:
    """A step counts with its root, and a run of no schedule with whoever works."""
    if run.parent_run_id is not None:
        return {}
    changes: dict[counters.Counter, int] = {}
    if run.concurrency_key is not None and run.state != RunState.HELD:
        changes["key", counters.key_owner(run.namespace, run.concurrency_key), 0] = -1
    # What a run cost takes the place of what was reserved for it on the day of its birth.
    spent = (run.used if end.used is None else end.used).cost - run.reserved
    if spent:
        day = run.created_at // DAY
        if run.schedule_uid is not None:
            changes["spent", counters.schedule_owner(run.schedule_uid), day] = spent
        for who in _payers(run):
            changes["spent", counters.assignee_owner(run.namespace, who), day] = spent
    return changes


def _payers(run: RunWork) -> tuple[str, ...]:
    if run.assignee is None:
        return ()
    return payers(Assignee(AssigneeType(run.assignee_type or AssigneeType.AGENT), run.assignee), run.member)
