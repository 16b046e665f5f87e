"""Writes down what became of runs: many answers in one transaction, each under its own fence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from sqlalchemy import Connection

from horarium.engine.settlement import Again, Settlement, Waits
from horarium.instant import Instant
from horarium.schedule.event import RunEventType
from horarium.store import ends, runs
from horarium.store.due import Plannings
from horarium.store.ends import End
from horarium.store.jsontext import kept_text
from horarium.store.runs import MAX_ERROR, Work


def settle_all(
    connection: Connection, known: Plannings, answers: Sequence[tuple[Work, Settlement]], now: Instant
) -> list[tuple[Work, Settlement]]:
    """Those that counted; an answer from a lost lease changes nothing. Ordered, so that two never deadlock."""
    ends.lock_positions(
        connection,
        [work.schedule_uid for work, settled in answers if isinstance(settled, End) and work.schedule_uid is not None],
    )
    ordered = sorted(answers, key=lambda answer: (answer[0].schedule_uid or b"", answer[0].run_id))
    return [(work, settled) for work, settled in ordered if settle_one(connection, known, work, settled, now)]


def settle_one(connection: Connection, known: Plannings, work: Work, settled: Settlement, now: Instant) -> bool:
    match settled:
        case End():
            return ends.end_run(connection, known, work.run_id, settled, now=now, epoch=work.lease_epoch)
        case Waits(reference, queued):
            return runs.wait_for_report(connection, work, reference=reference, queued=queued, now=now)
        case Again():
            return _again(connection, work, settled, now)
        case _:
            assert_never(settled)


def _again(connection: Connection, work: Work, again: Again, now: Instant) -> bool:
    done = runs.try_again(
        connection,
        work,
        ready_at=again.ready_at,
        attempt=again.attempt,
        launches=again.launches,
        busy_since=again.busy_since,
        error=again.error,
    )
    if done and again.attempt != work.attempt:
        payload = {
            "attempt": again.attempt,
            "error": None if again.error is None else kept_text(again.error, MAX_ERROR),
        }
        runs.add_event(connection, work.run_id, RunEventType.RUN_RETRIED, now, payload)
    return done
