"""Writes down what became of runs: many answers in one transaction, each under its own fence."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection

from horarium.engine.settlement import Again, Settlement, Waits
from horarium.instant import Instant
from horarium.schedule.event import RunEventType
from horarium.store import ends, runs
from horarium.store.closing import End
from horarium.store.due import Plannings
from horarium.store.ends import Asked
from horarium.store.jsontext import kept_text
from horarium.store.runs import MAX_ERROR, Work


def settle_all(
    connection: Connection, known: Plannings, answers: Sequence[tuple[Work, Settlement]], now: Instant
) -> list[tuple[Work, Settlement]]:
    """Those that counted; an answer from a lost lease changes nothing.

    Ends come first, because they lock positions, which everybody locks before runs.
    """
    ended = [Asked(work.run_id, settled, work.lease_epoch) for work, settled in answers if isinstance(settled, End)]
    waiting = [(work, settled.reference, settled.queued) for work, settled in answers if isinstance(settled, Waits)]
    counted = {(each.run_id, each.epoch) for each in ends.end_runs(connection, known, ended, now=now)}
    counted |= {(work.run_id, work.lease_epoch) for work in runs.wait_for_reports(connection, waiting, now)}
    for work, settled in answers:
        if isinstance(settled, Again) and _again(connection, work, settled, now):
            counted.add((work.run_id, work.lease_epoch))
    return [answer for answer in answers if (answer[0].run_id, answer[0].lease_epoch) in counted]


def settle_one(connection: Connection, known: Plannings, work: Work, settled: Settlement, now: Instant) -> bool:
    return bool(settle_all(connection, known, [(work, settled)], now))


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
