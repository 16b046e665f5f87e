"""A schedule, its facts and a small pure world: what the tests of this room are made of.

`World` plays the store and the engine for one schedule: runs are a dict, the clock is a number, a poll
ends what has ended, ticks until nothing is due, and releases what is held.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import takewhile
from typing import Any, assert_never

from horarium.core.decision import decide
from horarium.core.decision.decide import ActiveRun, BufferedRun, plan_release
from horarium.core.decision.facts import (
    NO_FACTS,
    Decision,
    Facts,
    Fire,
    Hold,
    Missed,
    Plan,
    RunTally,
    SharedFacts,
    Skip,
)
from horarium.core.decision.guards import GuardQuestion
from horarium.core.decision.presence import Break
from horarium.core.decision.tick import Due, PlanTime, plan_tick
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position, Status
from horarium.core.policy.queue import Catchup, CatchupPolicy, Overlap, OverlapPolicy
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import DAY, SECOND, Instant, from_rfc3339

UID = b"0123456789abcdef"
NOON = from_rfc3339("2026-05-04T12:00:00Z")  # a Monday


def clock(text: str, day: str = "2026-05-04") -> Instant:
    """`12:34` or `12:34:56` of the day of these tests, in UTC."""
    return from_rfc3339(f"{day}T{text if text.count(':') == 2 else text + ':00'}Z")


def make_spec(*crons: str, **rest: Any) -> Spec:
    return compile_spec(cron_expressions=crons, **rest)


def make_planning(*crons: str, spec: Spec | None = None, **rest: Any) -> Planning:
    """Every minute unless told otherwise; `overlap` and `catchup` may be policies without numbers."""
    if isinstance(rest.get("overlap"), OverlapPolicy):
        rest["overlap"] = Overlap(rest["overlap"])
    if isinstance(rest.get("catchup"), CatchupPolicy):
        rest["catchup"] = Catchup(rest["catchup"])
    return Planning(spec=spec or make_spec(*(crons or ("* * * * *",))), **rest)


def make_position(decided_until: Instant = NOON - 1, **rest: Any) -> Position:
    return Position(**{"decided_until": decided_until, "next_due": NOON, **rest})


def make_question(
    planning: Planning,
    facts: Facts = NO_FACTS,
    nominal: Instant = NOON,
    shared: SharedFacts | None = None,
    **position: Any,
) -> GuardQuestion:
    tally = RunTally(planning, make_position(**position), facts, SharedFacts() if shared is None else shared)
    return GuardQuestion(planning, facts, tally, nominal)


def tick(
    planning: Planning,
    decided_until: Instant = NOON - 1,
    now: Instant = NOON,
    *,
    facts: Facts = NO_FACTS,
    shared: SharedFacts | None = None,
    alive_since: Instant | None = None,
    breaks: tuple[Break, ...] = (),
    limit: int = 100,
    **position: Any,
) -> Plan:
    due = Due(UID, planning, make_position(decided_until, **position))
    moment = PlanTime(now, alive_since, limit, breaks=breaks)
    return plan_tick(due, facts, SharedFacts() if shared is None else shared, moment)


def tick_to_the_end(
    planning: Planning, decided_until: Instant, now: Instant, *, limit: int = 100, facts: Facts = NO_FACTS
) -> list[Plan]:
    """One plan after the other at the same moment, until nothing due is left."""
    plans = [tick(planning, decided_until, now, limit=limit, facts=facts)]
    while plans[-1].more:
        due = Due(UID, planning, plans[-1].position)
        plans.append(plan_tick(due, facts, SharedFacts(), PlanTime(now, limit=limit)))
    return plans


def enumerate_spec(spec: Spec, after: Instant, until: Instant) -> list[Instant]:
    """What lies in (after, until], one by one."""
    return list(takewhile(lambda nominal: nominal <= until, spec.occurrences(after)))


def expand(decisions: Iterable[Decision], spec: Spec) -> list[Instant]:
    """Every nominal time that the decisions speak of; a range must have told the truth about its count."""
    found: list[Instant] = []
    for decision in decisions:
        match decision:
            case Missed(first, last, count):
                inside = enumerate_spec(spec, first - 1, last)
            case (Fire(covers=None) | Hold(covers=None) | Skip()) as one:
                found.append(one.nominal)
                continue
            case (Fire() | Hold()) as birth:
                assert birth.covers is not None
                first, last, count = birth.covers.first, birth.covers.last, birth.covers.count
                assert first == birth.nominal
                inside = enumerate_spec(spec, first - 1, last)
            case _:
                assert_never(decision)
        assert (inside[0], inside[-1], len(inside)) == (first, last, count)
        found += inside
    return found


@dataclass(slots=True, eq=False)
class SimRun:
    """`started` None = held; `ended` None = not yet."""

    nominal: Instant
    due: Instant
    born: Instant
    release_at: Instant | None = None
    started: Instant | None = None
    ended: Instant | None = None
    asked_to_stop_at: Instant | None = None


@dataclass(slots=True)
class Era:
    """A stretch in which one spec was in force and the clock ran: (after, until]."""

    spec: Spec
    after: Instant
    until: Instant
    decisions: list[Decision] = field(default_factory=list)


class World:
    """One schedule on a fake clock. `duration` is how long its runs last."""

    def __init__(
        self,
        planning: Planning,
        start: Instant,
        *,
        duration: int = 5 * SECOND,
        limit: int = 100,
        keep_alive: bool = True,
    ) -> None:
        self.planning, self.now, self.duration, self.limit = planning, start, duration, limit
        self.position = decide.begin_position(planning, UID, now=start)
        self.keep_alive = keep_alive
        self.alive_since: Instant | None = start if keep_alive else None
        self.runs: dict[str, SimRun] = {}
        self.open: dict[str, SimRun] = {}
        self.eras = [Era(planning.spec, start, start)]
        self.plans: list[Plan] = []
        self.peak_active = 0
        self.peak_held = 0

    # ── what the engine does ─────────────────────────────────────────────────────────────────────

    def poll(self, now: Instant) -> None:
        self.now = now
        if self.keep_alive and self.alive_since is None:
            self.alive_since = now
        for run in self.active():
            assert run.started is not None
            if run.started + self.duration <= now:
                run.ended = now
        self._look()
        self.release()
        # As the store claims: only a schedule whose next_due has come is looked at.
        while self.position.next_due is not None and self.position.next_due <= now:
            due = Due(UID, self.planning, self.position)
            plan = plan_tick(due, self.facts(), self.shared(), PlanTime(now, self.alive_since, self.limit))
            self.write(plan)
            if not plan.more:
                break
        self.release()

    def poll_until(self, until: Instant, every: int = SECOND) -> World:
        while self.now < until:
            self.poll(min(self.now + every, until))
        return self

    def drain(self) -> World:
        """Let everything that was born start and end."""
        while self.held() or self.active():
            self.poll(self.now + SECOND)
        return self

    def outage(self, until: Instant) -> World:
        """Nobody is there; the next poll is after `until`."""
        self.now, self.alive_since = until, None
        return self

    def write(self, plan: Plan) -> None:
        self.plans.append(plan)
        self.position = plan.position
        era = self.eras[-1]
        era.decisions += plan.decisions
        era.until = max(era.until, plan.position.decided_until)
        for decision in plan.decisions:
            if isinstance(decision, Fire | Hold):
                self._bear(decision)
        self._look()

    def _bear(self, birth: Fire | Hold) -> None:
        if isinstance(birth, Fire) and birth.terminate_active:
            for run in self.active():
                run.ended = self.now
        if isinstance(birth, Hold) and birth.cancel_active:
            for run in self.active():
                run.asked_to_stop_at = run.asked_to_stop_at or self.now
        born = SimRun(birth.nominal, birth.due, self.now)
        if isinstance(birth, Fire):
            born.started = self.now
        else:
            born.release_at = birth.release_at
        name = f"run-{len(self.runs)}"
        self.runs[name] = self.open[name] = born

    def release(self) -> None:
        if not self.held():
            return
        held = [
            BufferedRun(name, run.nominal, run.release_at) for name, run in self.open.items() if run.started is None
        ]
        active = [ActiveRun(name, run.asked_to_stop_at) for name, run in self.open.items() if run.started is not None]
        found = plan_release(self.planning, self.position.status, held, active, self.shared(), self.now)
        for name in found.terminate:
            self.runs[name].ended = self.now
        for name in found.release:
            self.runs[name].started = self.now
        self._look()

    def _look(self) -> None:
        self.open = {name: run for name, run in self.open.items() if run.ended is None}
        self.peak_active = max(self.peak_active, len(self.active()))
        self.peak_held = max(self.peak_held, len(self.held()))

    # ── what people do ───────────────────────────────────────────────────────────────────────────

    def pause(self) -> None:
        self._change(decide.pause_position(self.planning, self.position, now=self.now))

    def resume(self) -> None:
        self._change(decide.resume_position(self.planning, UID, self.position, now=self.now))
        self.eras.append(Era(self.planning.spec, self.position.decided_until, self.position.decided_until))

    def edit(self, new: Planning, *, spec_changed: bool = True) -> None:
        old, self.planning = self.planning, new
        self._change(decide.edit_position(old, new, UID, self.position, now=self.now, spec_changed=spec_changed))
        if spec_changed:
            self.eras.append(Era(new.spec, self.position.decided_until, self.position.decided_until))

    def _change(self, change: decide.PositionEdit) -> None:
        was_active = self.position.status is Status.ACTIVE
        self.position = change.position
        if change.superseded is not None:
            self.eras[-1].decisions.append(change.superseded)
        if was_active:
            self.eras[-1].until = change.position.decided_until

    # ── what can be seen ─────────────────────────────────────────────────────────────────────────

    def active(self) -> list[SimRun]:
        return [run for run in self.open.values() if run.started is not None and run.ended is None]

    def held(self) -> list[SimRun]:
        return [run for run in self.open.values() if run.started is None]

    def started(self) -> list[SimRun]:
        return [run for run in self.runs.values() if run.started is not None]

    def facts(self) -> Facts:
        today = sum(run.born // DAY == self.now // DAY for run in self.runs.values())
        spent = today * self.planning.reserve
        return Facts(len(self.active()), len(self.held()), spent_today=Decimal(spent), runs_today=today)

    def shared(self) -> SharedFacts:
        key = self.planning.concurrency_key
        return SharedFacts() if key is None else SharedFacts(active_by_key={key: len(self.active())})

    def decisions(self) -> list[Decision]:
        return [decision for era in self.eras for decision in era.decisions]

    def summary(self) -> dict[str, int]:
        """Occurrences by what became of them: `started`, and reasons of skips and ranges."""
        found: dict[str, int] = {"started": len(self.started())}
        for decision in self.decisions():
            if isinstance(decision, Skip):
                found[decision.reason] = found.get(decision.reason, 0) + 1
            elif isinstance(decision, Missed):
                found[decision.reason] = found.get(decision.reason, 0) + decision.count
        return found

    def check_every_occurrence_has_one_decision(self) -> None:
        for era in self.eras:
            decided = expand(era.decisions, era.spec)
            assert decided == enumerate_spec(era.spec, era.after, era.until)
