"""The forecast decides coming occurrences as the engine will, says how certain that is, and changes nothing."""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest
from unit.decision.builders import NOON, UID, World, clock, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.core.decision import evaluator
from horarium.core.decision.decide import decide
from horarium.core.decision.evaluator import MAX_STEPS, Forecaster
from horarium.core.decision.facts import NO_FACTS, Facts, Fire, Hold, OpenRunFacts, RunTimes, SharedFacts
from horarium.core.decision.forecast import SKIPPED, ForecastRow
from horarium.core.decision.run_policies import CreationPolicies, PolicyBundle
from horarium.core.decision.statuses import Certainty, Forecast, MoveKind
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.effective_policies import Effective
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason, Status
from horarium.core.policy.approval import NEVER, NEVER_SECONDS, ApprovalPolicy
from horarium.core.policy.limits import Budget, Quota, QuotaRoom
from horarium.core.policy.queue import CatchupPolicy, Overlap, OverlapPolicy, QueuePolicy
from horarium.core.recurrence.spec import Spec, compile_spec
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_rfc3339, to_rfc3339

GO, SKIP = Forecast.DISPATCH, Forecast.SKIP
CERTAIN, LIKELY, UNKNOWN = Certainty.CERTAIN, Certainty.LIKELY, Certainty.UNKNOWN
BRIEF = RunTimes((), 8 * SECOND)
"""The history of a schedule whose runs take eight seconds."""


def forecaster(planning: Planning, facts: Facts = NO_FACTS, **rest: Any) -> Forecaster:
    options = {"now": NOON, "position": make_position(NOON), **rest}
    return Forecaster(planning, UID, options.pop("position"), facts, **options)


def look(
    planning: Planning, facts: Facts = NO_FACTS, *, after: Instant = NOON, rows: int = 5, **rest: Any
) -> list[ForecastRow]:
    return list(islice(forecaster(planning, facts, **rest).rows(after), rows))


def said(rows: list[ForecastRow]) -> list[tuple[Forecast, Certainty]]:
    return [(row.decision, row.certainty) for row in rows]


# ── what is decided ───────────────────────────────────────────────────────────────────────────────────


def test_rows_are_the_next_occurrences() -> None:
    rows = look(make_planning("0 * * * *", overlap=OverlapPolicy.ALLOW_ALL), rows=2)
    assert rows == [ForecastRow(clock("13:00"), clock("13:00"), GO), ForecastRow(clock("14:00"), clock("14:00"), GO)]


def test_the_forecast_ends_with_the_spec() -> None:
    ending = make_planning(spec=make_spec("0 * * * *", end_at=clock("15:00")))
    assert [row.tick_at for row in look(ending)] == [clock("13:00"), clock("14:00"), clock("15:00")]
    assert look(make_planning(spec=compile_spec(at=["2026-05-04T09:00:00Z"]))) == []


def test_a_row_shows_when_to_act_beside_its_name() -> None:
    spec = make_spec("0 * * * *", jitter_ms=600_000)
    [row] = look(make_planning(spec=spec), rows=1)
    assert (row.tick_at, row.due) == (clock("13:00"), spec.due(UID, clock("13:00")))
    assert row.due > row.tick_at


def test_a_skip_says_why() -> None:
    holiday = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 6)}))
    planning = make_planning("0 9 * * *", calendars=("c",), rotation=3)
    rows = look(planning, Facts(calendars={"c": holiday}), rows=3)
    assert [row.decision for row in rows] == [GO, SKIP, GO]
    assert rows[1].reason is Reason.CALENDAR
    assert rows[1].detail is not None
    assert rows[1].detail["date"] == "2026-05-06"


def test_the_rotation_counts_predicted_dispatches_only() -> None:
    weekdays = CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 6)}))
    planning = make_planning("0 9 * * *", calendars=("c",), rotation=3)
    position = make_position(NOON, rotation_index=2)
    rows = look(planning, Facts(calendars={"c": weekdays}), position=position)
    assert [row.rotation_index for row in rows] == [2, None, 0, 1, 2]


def test_what_counts_by_the_day_starts_again_each_utc_day() -> None:
    planning = make_planning("0 */6 * * *", budget=Budget(None, 2))
    rows = look(planning, Facts(runs_today=1), rows=9)
    words = [(row.decision, row.reason) for row in rows]
    full = (SKIP, Reason.DAILY_LIMIT_REACHED)
    free = (GO, None)
    # 18:00 today takes the one that is left; then 00:00 and 06:00 of each day.
    assert words == [free, free, free, full, full, free, free, full, full]


def test_credits_are_reserved_by_predicted_dispatches_and_come_back_at_midnight() -> None:
    planning = make_planning("0 */6 * * *", budget=Budget(10), reserve=Decimal(4))
    rows = look(planning, Facts(spent_today=Decimal(7)), rows=6)
    assert [row.decision for row in rows] == [SKIP, GO, GO, SKIP, SKIP, GO]


def test_the_runs_that_are_left_run_out() -> None:
    rows = look(make_planning(max_runs=5), Facts(times=BRIEF), position=make_position(NOON, runs_born=3), rows=4)
    assert [row.reason for row in rows] == [None, None, *[Reason.REMAINING_ACTIONS_EXHAUSTED] * 2]


def test_facts_are_a_snapshot() -> None:
    planning = make_planning(condition=compile_condition({"/last_24h_stats/total": {"lt": 3}}))
    facts = Facts(context={"last_24h_stats": {"total": 2}}, times=BRIEF)
    assert {row.decision for row in look(planning, facts)} == {GO}


@pytest.mark.parametrize("status", [Status.PAUSED, Status.BROKEN])
def test_a_schedule_that_cannot_fire_is_predicted_to_skip(status: Status) -> None:
    rows = look(make_planning(), position=make_position(NOON, status=status))
    assert {row.reason for row in rows} == {Reason.STATUS_NOT_TRIGGERABLE}


def test_a_deleted_schedule_has_no_coming_occurrences() -> None:
    assert look(make_planning(), position=make_position(NOON, status=Status.DELETED)) == []


def test_what_the_assignee_has_spent_today_counts_until_midnight() -> None:
    planning = make_planning("0 */6 * * *", assignee="ada", reserve=Decimal(1))
    facts = Facts(assignee_budget=Budget(3, 100))
    shared = SharedFacts(spent_by_assignee={"ada": Decimal(3)}, runs_by_assignee={"ada": 7})
    rows = look(planning, facts, rows=5, shared=shared)
    assert [row.decision for row in rows] == [SKIP, GO, GO, GO, SKIP]
    assert shared == SharedFacts(spent_by_assignee={"ada": Decimal(3)}, runs_by_assignee={"ada": 7})


def test_an_assignee_who_has_run_today_is_counted_from_nothing_tomorrow() -> None:
    planning = make_planning("0 0 * * *", assignee="ada")
    rows = look(planning, Facts(assignee_budget=Budget(None, 1)), rows=3)
    assert [row.decision for row in rows] == [GO, GO, GO]


def test_the_same_question_has_the_same_answer() -> None:
    planning = make_planning(rotation=2, spec=make_spec("* * * * *", jitter_ms=5_000))
    assert look(planning) == look(planning)
    assert look(planning, after=NOON + MINUTE)[0].tick_at == look(planning)[1].tick_at
    assert look(planning, after=NOON + HOUR)[0].tick_at == NOON + HOUR + MINUTE


# ── overlap, from when runs are expected to end ───────────────────────────────────────────────────────


def running(since: Instant, **rest: Any) -> OpenRunFacts:
    return OpenRunFacts("r", since, **rest)


def test_a_run_that_is_active_now_does_not_stay_open_until_tomorrow() -> None:
    facts = Facts(active=1, times=RunTimes((running(NOON - SECOND),), 8 * SECOND))
    assert said(look(make_planning("0 3 * * *"), facts, rows=2)) == [(GO, LIKELY), (GO, LIKELY)]


def test_a_run_that_awaits_approval_is_open_until_its_request_expires() -> None:
    waiting = running(NOON, is_waiting=True, expires_at=NOON + DAY)
    planning = make_planning("30 * * * *", needs_approval=True)
    rows = look(planning, Facts(active=1, times=RunTimes((waiting,))), rows=26)
    assert said(rows[:25]) == [(SKIP, LIKELY)] * 24 + [(GO, LIKELY)]
    assert {row.reason for row in rows[:24]} == {Reason.OVERLAP_POLICY_SKIP}
    assert rows[25].certainty is LIKELY  # the next run awaits approval too


@pytest.mark.parametrize(
    ("seconds", "expected"), [(7_200, LIKELY), (NEVER_SECONDS, UNKNOWN)], ids=["two hours", "never"]
)
def test_a_predicted_run_that_awaits_approval_ends_when_its_request_expires(seconds: int, expected: Certainty) -> None:
    policies = Effective(ApprovalPolicy(requires_approval=True, expires_after_seconds=seconds))
    rows = look(make_planning("0 * * * *", needs_approval=True, own_policies=policies), rows=30)
    assert said(rows[:2]) == [(GO, CERTAIN), (SKIP, expected)]
    assert {row.certainty for row in rows[1:]} == {expected}
    assert [row.decision for row in rows].index(GO, 1) == (2 if expected is LIKELY else 24)


def test_an_approval_that_never_expires_does_not_stop_the_forecast() -> None:
    waiting = running(NOON, is_waiting=True, expires_at=NEVER)
    rows = look(make_planning("0 * * * *"), Facts(active=1, times=RunTimes((waiting,))), rows=30)
    assert {row.certainty for row in rows} == {UNKNOWN}
    assert [row.decision for row in rows].index(GO) == 23


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        (RunTimes((), 30 * SECOND), [(GO, CERTAIN), (GO, LIKELY), (GO, LIKELY)]),
        (RunTimes((), 90 * SECOND), [(GO, CERTAIN), (SKIP, LIKELY), (GO, LIKELY)]),
        (RunTimes(), [(GO, CERTAIN), (SKIP, UNKNOWN), (GO, UNKNOWN)]),
    ],
    ids=["short", "long", "no history"],
)
def test_only_the_next_occurrence_is_certain_while_no_run_is_open(
    times: RunTimes, expected: list[tuple[Forecast, Certainty]]
) -> None:
    assert said(look(make_planning(timeout_seconds=120), Facts(times=times), rows=3)) == expected


def test_without_history_a_run_takes_its_timeout() -> None:
    rows = look(make_planning(timeout_seconds=300), rows=11)
    assert [row.tick_at for row in rows if row.decision is GO] == [NOON + n * MINUTE for n in (1, 6, 11)]


# How many of six occurrences, 1 minute apart, are dispatched, held and skipped; a run takes 150 seconds.
POLICIES = {
    "skip": (Overlap(), "g..g.."),
    "buffer_one": (Overlap(OverlapPolicy.BUFFER_ONE), "gh.h.h"),
    "buffer_all": (Overlap(OverlapPolicy.BUFFER_ALL), "ghhhhh"),
    "two buffered": (Overlap(OverlapPolicy.BUFFER_ALL, max_buffered=2), "ghhh.h"),
    "allow_all": (Overlap(OverlapPolicy.ALLOW_ALL), "gggggg"),
    "two at once": (Overlap(OverlapPolicy.ALLOW_ALL, max_concurrency=2), "gg.gg."),
    "cancel_other": (Overlap(OverlapPolicy.CANCEL_OTHER), "ghhhhh"),
    "terminate_other": (Overlap(OverlapPolicy.TERMINATE_OTHER), "gggggg"),
}


def letters(rows: list[ForecastRow]) -> str:
    return "".join("." if row.decision is SKIP else "h" if row.held else "g" for row in rows)


@pytest.mark.parametrize(("overlap", "expected"), POLICIES.values(), ids=POLICIES)
def test_the_table_of_policies(overlap: Overlap, expected: str) -> None:
    rows = look(make_planning(overlap=overlap), Facts(times=RunTimes((), 150 * SECOND)), rows=6)
    assert letters(rows) == expected


@pytest.mark.parametrize(("overlap", "expected"), POLICIES.values(), ids=POLICIES)
def test_it_is_what_the_engine_does_with_runs_of_that_length(overlap: Overlap, expected: str) -> None:
    world = World(make_planning(overlap=overlap), NOON, duration=150 * SECOND).poll_until(NOON + 6 * MINUTE)
    letter: dict[type, str] = {Fire: "g", Hold: "h"}
    engine = "".join(letter.get(type(each), ".") for each in world.decisions())
    assert engine == expected


def test_with_no_limit_of_runs_every_occurrence_is_certain() -> None:
    planning = make_planning("* * * * * *", overlap=OverlapPolicy.ALLOW_ALL, rotation=3)
    rows = look(planning, Facts(active=5), after=NOON + 300 * DAY, rows=3)
    assert said(rows) == [(GO, CERTAIN)] * 3
    assert [row.rotation_index for row in rows] == [0, 1, 2]  # 300 days have so many seconds


def test_as_many_are_certain_as_there_are_places() -> None:
    planning = make_planning(overlap=Overlap(OverlapPolicy.ALLOW_ALL, max_concurrency=3))
    facts = Facts(active=1, times=RunTimes((running(NOON),), SECOND))
    assert [row.certainty for row in look(planning, facts, rows=4)] == [CERTAIN, CERTAIN, LIKELY, LIKELY]


def test_held_runs_are_released_in_order_when_a_run_ends() -> None:
    held = OpenRunFacts("h", NOON - MINUTE, NOON - MINUTE, is_held=True)
    times = RunTimes((running(NOON - 2 * MINUTE), held), 150 * SECOND)  # one ends at 12:00:30, the other at 12:03
    facts = Facts(active=1, held=1, times=times)
    assert letters(look(make_planning(overlap=OverlapPolicy.BUFFER_ONE), facts)) == "h.h.."


def test_a_run_that_was_asked_to_stop_ends_after_its_grace() -> None:
    run = running(NOON - HOUR, stop_at=NOON)
    facts = Facts(active=1, times=RunTimes((run,), 9 * HOUR))
    assert look(make_planning(), facts, rows=1)[0].decision is GO


def test_no_two_occurrences_of_a_team_with_another_queue_policy_are_decided_by_the_schedule_alone() -> None:
    policies = CreationPolicies(
        None, {None: PolicyBundle(None, None)}, queue=QueuePolicy(overlap_policy=OverlapPolicy.ALLOW_ALL)
    )
    rows = look(make_planning(), Facts(active=1, policies=policies), rows=3)
    assert said(rows) == [(GO, CERTAIN)] * 3


# ── what makes a decision uncertain ───────────────────────────────────────────────────────────────────

FREE = Overlap(OverlapPolicy.ALLOW_ALL)
HOLIDAY = Facts(calendars={"c": CalendarDefinition("c", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 4)}))})
TRUE = compile_condition({"/x": {"neq": 1}})


@pytest.mark.parametrize(
    ("fields", "facts", "shared", "expected"),
    [
        ({}, NO_FACTS, None, [(GO, CERTAIN)] * 4),
        ({"calendars": ("c",)}, HOLIDAY, None, [(SKIP, CERTAIN)] * 4),
        ({"calendars": ("c",), "condition": TRUE}, HOLIDAY, None, [(SKIP, CERTAIN)] * 4),
        ({"condition": TRUE}, NO_FACTS, None, [(GO, UNKNOWN)] * 4),
        ({"max_runs": 3}, NO_FACTS, None, [(GO, CERTAIN)] * 3 + [(SKIP, CERTAIN)]),
        ({"max_runs": 3, "condition": TRUE}, NO_FACTS, None, [(GO, UNKNOWN)] * 3 + [(SKIP, UNKNOWN)]),
        ({"max_runs": 9, "condition": TRUE}, NO_FACTS, None, [(GO, UNKNOWN)] * 4),
        ({"max_runs": 0, "condition": TRUE}, NO_FACTS, None, [(SKIP, CERTAIN)] * 4),
        ({"max_runs": 9, "condition": TRUE, "calendars": ("c",)}, HOLIDAY, None, [(SKIP, CERTAIN)] * 4),
        ({"budget": Budget(5)}, NO_FACTS, None, [(GO, UNKNOWN)] * 4),
        ({"budget": Budget(0)}, NO_FACTS, None, [(SKIP, CERTAIN)] * 4),
        ({"budget": Budget(None, 2)}, NO_FACTS, None, [(GO, CERTAIN)] * 2 + [(SKIP, CERTAIN)] * 2),
        ({"budget": Budget(None, 2), "condition": TRUE}, NO_FACTS, None, [(GO, UNKNOWN)] * 2 + [(SKIP, UNKNOWN)] * 2),
        ({"concurrency_key": "k"}, NO_FACTS, None, [(GO, UNKNOWN)] * 4),
        ({"workflow": "w"}, Facts(cycle=("a", "b")), None, [(SKIP, CERTAIN)] * 4),
        ({"assignee": "ada"}, NO_FACTS, None, [(GO, CERTAIN)] * 4),
        ({"assignee": "ada"}, Facts(assignee_budget=Budget(None, 9)), None, [(GO, UNKNOWN)] * 4),
        ({}, NO_FACTS, SharedFacts(room=QuotaRoom(199_990, Quota.RUNS_PER_MINUTE, 200_000, 10)), [(GO, CERTAIN)] * 4),
        ({}, NO_FACTS, SharedFacts(room=QuotaRoom(9_000, Quota.OPEN_RUNS, 200_000, 191_000)), [(GO, UNKNOWN)] * 4),
        ({}, NO_FACTS, SharedFacts(room=QuotaRoom(10, Quota.RUNS_PER_MINUTE, 10, 0)), [(GO, UNKNOWN)] * 4),
    ],
    ids=str,
)
def test_the_table_of_certainty(
    fields: dict[str, Any], facts: Facts, shared: SharedFacts | None, expected: list[tuple[Forecast, Certainty]]
) -> None:
    assert said(look(make_planning(overlap=FREE, **fields), facts, shared=shared, rows=4)) == expected


def test_a_sentence_says_what_it_depends_on() -> None:
    [first, second] = look(make_planning(timeout_seconds=90), rows=2)
    assert first.sentence == "The occurrence will run."
    assert second.sentence == (
        "The occurrence is expected to be skipped: previous run still active. "
        "The decision depends on when earlier runs end. No run has finished yet; the timeout is 0:01:30 (h:mm:ss)."
    )


def test_every_reason_has_words() -> None:
    assert set(SKIPPED) == set(Reason)


# ── one answer for an instant, whoever asks ───────────────────────────────────────────────────────────

WORLDS = {
    "long runs": (make_planning(), Facts(times=RunTimes((), 150 * SECOND))),
    "buffered": (make_planning(overlap=OverlapPolicy.BUFFER_ONE), Facts(times=RunTimes((), 150 * SECOND))),
    "short runs": (make_planning("0 */2 * * *", rotation=3), Facts(times=BRIEF)),
    "many parts": (make_planning("*/7 * * * *", "*/5 * * * *"), Facts(times=BRIEF)),
    "a holiday": (make_planning("0 * * * *", calendars=("c",), rotation=2), HOLIDAY._replace(times=BRIEF)),
    "a budget": (make_planning("0 * * * *", budget=Budget(None, 3)), Facts(times=BRIEF, runs_today=1)),
    "few runs": (make_planning(max_runs=700), Facts(times=BRIEF)),
    "every second": (make_planning("* * * * * *"), Facts(times=RunTimes((), 1_500_000))),
    "jitter": (make_planning(spec=make_spec("* * * * *", jitter_ms=30_000)), Facts(times=RunTimes((), 40 * SECOND))),
    "approval": (make_planning("0 * * * *", needs_approval=True), NO_FACTS),
}


@pytest.mark.parametrize(("planning", "facts"), WORLDS.values(), ids=WORLDS)
def test_an_answer_does_not_depend_on_where_one_begins_to_look(planning: Planning, facts: Facts) -> None:
    rows = look(planning, facts, rows=1_500)
    asked = forecaster(planning, facts)
    for place in (0, 1, 2, 40, 998, 999, 1_000, 1_001, 1_499):
        assert asked.at(rows[place].tick_at) == rows[place]
        assert next(asked.rows(rows[place].tick_at - 1)) == rows[place]


@pytest.mark.parametrize(("planning", "facts"), WORLDS.values(), ids=WORLDS)
def test_stretches_count_what_rows_show(planning: Planning, facts: Facts) -> None:
    rows = look(planning, facts, rows=1_500)
    until = rows[-1].tick_at
    counted: Counter[tuple[Any, ...]] = Counter()
    for each in forecaster(planning, facts).stretches(NOON):
        if each.first > until:
            break
        count = planning.spec.count(each.first - 1, min(each.last, until))
        counted[each.decision, each.reason, each.held, each.certainty] += count
    assert counted == Counter((row.decision, row.reason, row.held, row.certainty) for row in rows)


def test_beyond_the_simulation_guards_alone_decide() -> None:
    rows = look(make_planning("* * * * * *"), Facts(times=RunTimes((), 1_500_000)), after=NOON + DAY, rows=2)
    assert said(rows) == [(GO, UNKNOWN)] * 2
    assert rows[0].doubt == "The occurrence is too far ahead to predict the runs before it."


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (GO, UNKNOWN)),
        ({"overlap": FREE}, (GO, CERTAIN)),
        ({"overlap": FREE, "budget": Budget(None, 5)}, (GO, UNKNOWN)),
        ({"overlap": FREE, "max_runs": 10**9}, (GO, UNKNOWN)),
        ({"overlap": FREE, "max_runs": 5}, (SKIP, CERTAIN)),
        ({"calendars": ("gone",)}, (SKIP, CERTAIN)),
        ({"calendars": ("gone",), "max_runs": 10**9}, (SKIP, UNKNOWN)),
        ({"budget": Budget(0)}, (SKIP, CERTAIN)),
    ],
    ids=str,
)
def test_the_table_of_certainty_beyond_the_simulation(
    fields: dict[str, Any], expected: tuple[Forecast, Certainty]
) -> None:
    assert said(look(make_planning(**fields), after=NOON + 4_000 * DAY, rows=1)) == [expected]


def test_the_simulation_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    decided = 0

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal decided
        decided += 1
        return decide(*given, **named)

    monkeypatch.setattr(evaluator, "decide", counted)
    look(make_planning("* * * * * *"), Facts(times=RunTimes((), 1_500_000)), after=NOON + 300 * DAY, rows=200)
    assert decided == MAX_STEPS


def test_the_counts_of_an_instant_far_ahead_are_those_where_the_simulation_ends() -> None:
    asked = forecaster(make_planning("* * * * * *"), Facts(times=RunTimes((), 1_500_000)))
    assert asked.tally_at(NOON + 3_000 * DAY).runs_born == asked.tally_at(NOON + 2_000 * DAY).runs_born > 400


def test_runs_that_end_before_the_next_begins_are_counted_and_not_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluator, "MAX_STEPS", 3)
    [row] = look(make_planning(rotation=7), Facts(times=BRIEF), after=NOON + 30 * DAY, rows=1)
    assert (row.decision, row.certainty, row.rotation_index) == (GO, LIKELY, 30 * 1_440 % 7)


# ── what is overdue ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (CatchupPolicy.FIRE_ONCE, ["", "missed", "missed", "overlap_policy_skip"]),
        (CatchupPolicy.SKIP, ["missed", "missed", "missed", "overlap_policy_skip"]),
        (CatchupPolicy.FIRE_ALL, ["", "", "", "overlap_policy_skip"]),
    ],
    ids=str,
)
def test_what_is_overdue_is_decided_as_the_next_tick_will(policy: CatchupPolicy, expected: list[str]) -> None:
    planning = make_planning("0 * * * *", catchup=policy, timeout_seconds=2 * 3_600)
    now = NOON + 3 * HOUR + 10 * MINUTE
    rows = look(planning, position=make_position(NOON), now=now, rows=4)
    assert [row.reason or "" for row in rows[:3]] == expected[:3]
    assert {row.certainty for row in rows[:3]} == {UNKNOWN}
    busy = policy is not CatchupPolicy.SKIP
    assert (rows[3].reason or "") == (expected[3] if busy else "")


@pytest.mark.parametrize("policy", [CatchupPolicy.FIRE_ONCE, CatchupPolicy.SKIP])
@pytest.mark.parametrize(
    "limits",
    [{"max_runs": 3}, {"budget": Budget(max_daily_runs=3)}, {"overlap": Overlap(OverlapPolicy.ALLOW_ALL, 3)}],
    ids=["max_runs", "max_daily_runs", "max_concurrency"],
)
def test_each_overdue_occurrence_may_have_a_run_that_counts(policy: CatchupPolicy, limits: dict[str, Any]) -> None:
    """A scheduler that is late but alive decides them one by one."""
    planning = make_planning("0 * * * *", catchup=policy, **{"overlap": OverlapPolicy.ALLOW_ALL, **limits})
    rows = look(planning, position=make_position(NOON), now=NOON + 3 * HOUR + 10 * MINUTE, rows=4)
    assert said(rows[3:]) == [(GO, UNKNOWN)]


def test_what_is_a_little_late_is_decided_as_on_time() -> None:
    rows = look(make_planning("0 * * * *"), now=clock("13:00:20"), rows=1)
    assert said(rows) == [(GO, CERTAIN)]


# ── a clock that stands still ─────────────────────────────────────────────────────────────────────────


def test_a_pause_that_ends_by_itself_lets_held_runs_go_first() -> None:
    held = OpenRunFacts("h", NOON, NOON, is_held=True)
    rows = look(
        make_planning("*/10 * * * *", overlap=OverlapPolicy.BUFFER_ALL),
        Facts(held=1, times=RunTimes((held,), 15 * MINUTE)),
        position=make_position(NOON, status=Status.PAUSED),
        paused_until=clock("13:00"),
        rows=9,
    )
    assert [row.reason for row in rows[:5]] == [Reason.STATUS_NOT_TRIGGERABLE] * 5
    assert {row.certainty for row in rows[:5]} == {CERTAIN}
    assert letters(rows[5:]) == "hhhh"


def test_the_counts_at_an_instant_are_those_of_its_decision() -> None:
    asked = forecaster(make_planning(), Facts(times=RunTimes((), 150 * SECOND)))
    assert [asked.tally_at(NOON + n * MINUTE).active for n in range(1, 6)] == [0, 1, 1, 0, 1]


def test_the_counts_at_the_last_occurrence_do_not_include_its_own_run() -> None:
    asked = forecaster(make_planning(spec=make_spec("0 * * * *", end_at=NOON + 2 * HOUR)), Facts(times=BRIEF))
    assert [asked.tally_at(NOON + n * HOUR).active for n in (1, 2)] == [0, 0]


def test_the_counts_at_an_overdue_occurrence_do_not_include_its_own_run() -> None:
    planning = make_planning("0 * * * *", catchup=CatchupPolicy.FIRE_ALL, overlap=OverlapPolicy.ALLOW_ALL)
    asked = forecaster(planning, now=NOON + 4 * HOUR + 10 * MINUTE)
    assert [asked.tally_at(NOON + n * HOUR).runs_born for n in (1, 2, 4)] == [0, 1, 3]


def test_the_counts_at_the_first_occurrence_of_a_day_are_those_of_that_day() -> None:
    asked = forecaster(make_planning("0 */6 * * *", budget=Budget(max_daily_runs=1)), Facts(times=BRIEF))
    assert [asked.tally_at(NOON + n * 6 * HOUR).runs_today for n in (1, 2, 3)] == [0, 0, 1]


# ── moved instants ────────────────────────────────────────────────────────────────────────────────────


def moved(spec: Spec, after: str) -> list[tuple[str, list[tuple[str, str | None]]]]:
    start = from_rfc3339(after)
    rows = look(make_planning(spec=spec), position=make_position(start), now=start, after=start, rows=2)
    return [(to_rfc3339(row.tick_at), [(each.kind, each.local_time) for each in row.moved]) for row in rows]


# Berlin's clocks leap from 02:00 to 03:00 on 29 March 2026, and show 02:00 to 03:00 twice on 25 October: zdump.
@pytest.mark.parametrize(
    ("spec", "after", "expected"),
    [
        (
            make_spec("30 2 * * *", timezone="Europe/Berlin"),
            "2026-03-28T12:00:00Z",
            [("2026-03-29T01:00:00Z", [("dst_gap", "2026-03-29T02:30:00")]), ("2026-03-30T00:30:00Z", [])],
        ),
        (
            make_spec("30 2 * * *", timezone="Europe/Berlin"),
            "2026-10-24T12:00:00Z",
            [("2026-10-25T00:30:00Z", [("dst_fold", "2026-10-25T02:30:00")]), ("2026-10-26T01:30:00Z", [])],
        ),
        (
            make_spec("30 2 * * *", timezone="Europe/Berlin", dst_fold="both"),
            "2026-10-24T12:00:00Z",
            [
                ("2026-10-25T00:30:00Z", [("dst_fold", "2026-10-25T02:30:00")]),
                ("2026-10-25T01:30:00Z", [("dst_fold", "2026-10-25T02:30:00")]),
            ],
        ),
        (
            make_spec("30 * * * *", timezone="Europe/Berlin"),
            "2026-03-29T00:00:00Z",
            [("2026-03-29T00:30:00Z", []), ("2026-03-29T01:30:00Z", [])],
        ),
        (
            make_spec("30 2 * * *", "0 3 * * *", timezone="Europe/Berlin"),
            "2026-03-28T12:00:00Z",
            [
                ("2026-03-29T01:00:00Z", [("dst_gap", "2026-03-29T02:30:00"), ("deduplicated", None)]),
                ("2026-03-30T00:30:00Z", []),
            ],
        ),
        (make_spec("30 2 * * *"), "2026-03-28T12:00:00Z", [("2026-03-29T02:30:00Z", []), ("2026-03-30T02:30:00Z", [])]),
    ],
    ids=["gap", "fold", "both passes", "real time", "gap and two parts", "UTC"],
)
def test_clock_changes_and_parts_that_coincide_are_told(
    spec: Spec, after: str, expected: list[tuple[str, list[tuple[str, str | None]]]]
) -> None:
    assert moved(spec, after) == expected


def test_jitter_is_told() -> None:
    spec = make_spec("0 * * * *", jitter_ms=600_000)
    [row] = look(make_planning(spec=spec), rows=1)
    assert [(each.kind, each.seconds) for each in row.moved] == [("jittered", (row.due - row.tick_at) / SECOND)]
    assert row.unjittered().moved == ()
    assert "Jitter delays the occurrence by" in row.sentence


def test_every_kind_of_move_is_a_word_of_the_wire() -> None:
    spec = make_spec("30 2 * * *", "0 3 * * *", timezone="Europe/Berlin", jitter_ms=60_000)
    kinds = {
        each.kind
        for after in ("2026-03-28T12:00:00Z", "2026-10-24T12:00:00Z")
        for row in look(make_planning(spec=spec), position=make_position(from_rfc3339(after)), now=from_rfc3339(after),
                        after=from_rfc3339(after), rows=2)
        for each in row.moved
    }  # fmt: skip
    assert kinds == {kind.value for kind in MoveKind}
