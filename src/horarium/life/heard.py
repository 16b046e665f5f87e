"""Who is heard about a run: the holder of its lease, whoever shows the token of an attempt, and nobody too late."""

from __future__ import annotations

from horarium.instant import Instant
from horarium.life.change import Nothing, Why
from horarium.life.event import Reported
from horarium.life.live_run import LiveRun
from horarium.schedule.run import FINAL, HANDED_OUT, RunState

# A lease that ran out while nobody else had begun: its holder's answer still counts, and spares a second delivery.
_OPEN_TO_HOLDER = HANDED_OUT | {RunState.READY}


def of_holder(run: LiveRun, epoch: int) -> Nothing | None:
    if run.state in FINAL:
        return Nothing(Why.TOO_LATE)
    if run.lease_epoch != epoch or run.state not in _OPEN_TO_HOLDER:
        return Nothing(Why.NOT_HELD)
    return None


def lost(run: LiveRun, epoch: int, now: Instant) -> Nothing | None:
    lost = run.lease_epoch == epoch and run.lease_until is not None and run.lease_until < now
    return None if lost and run.state in HANDED_OUT else Nothing(Why.NOT_SO)


def in_one_of(run: LiveRun, states: frozenset[RunState]) -> Nothing | None:
    return None if run.state in states else Nothing(Why.NOT_SO)


def heard(run: LiveRun, report: Reported) -> Nothing | None:
    """A run listens to its holder, who names the lease, and to whoever shows the token of an attempt.

    The number of a lease can be guessed, so it is good for whoever claimed the run and for nobody else.
    """
    if report.epoch is None and not report.proven:
        return Nothing(Why.UNPROVEN)
    if not report.proven and (report.by is None or report.by != run.claimed_by):
        return Nothing(Why.NOT_HELD)
    if run.state in FINAL:
        return Nothing(Why.SAID_BEFORE if report.state == run.state else Why.TOO_LATE)
    if report.epoch is not None and report.epoch != run.lease_epoch:
        return Nothing(Why.NOT_HELD)
    if report.attempt is not None and report.attempt != run.attempt:
        return Nothing(Why.TOO_LATE if report.attempt < run.attempt else Why.NOT_HELD)
    if report.gates_passed is not None and report.gates_passed != run.gates_passed:
        return Nothing(Why.TOO_LATE if report.gates_passed < run.gates_passed else Why.NOT_HELD)
    return None
