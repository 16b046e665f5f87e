"""Why it did, did not, will or will not fire at an instant: every question is answered, whatever the instant."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from unit.decision.builders import NOON, UID, clock, make_planning, make_position, make_spec

from horarium.condition import compile_condition
from horarium.core.decision.explain import OccurrenceExplanation, RunNow, explain, nominal_of
from horarium.core.decision.facts import NO_FACTS, Facts, SharedFacts
from horarium.core.decision.forecast import GuardFinding, RecordedDecision
from horarium.core.decision.guards import GUARDS
from horarium.core.decision.health import AwaitingApprovals
from horarium.core.document.calendar import CalendarDefinition, CalendarKind
from horarium.core.document.planning import Planning
from horarium.core.document.states import Reason, RunState, Status
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.core.recurrence.spec import compile_spec
from horarium.instant import HOUR, MINUTE, SECOND, Instant, from_rfc3339

BEFORE = make_position(NOON - MINUTE)


def why(planning: Planning, at: Instant | str = NOON, facts: Facts = NO_FACTS, **rest: Any) -> OccurrenceExplanation:
    instant = from_rfc3339(at) if isinstance(at, str) else at
    options = {"now": NOON - MINUTE, "position": BEFORE, **rest}
    return explain(planning, UID, options.pop("position"), facts, at=instant, **options)


def found(explanation: OccurrenceExplanation, question: str) -> GuardFinding:
    [finding] = [each for each in explanation.findings if each.question == question]
    return finding


def part_details(explanation: OccurrenceExplanation) -> list[dict[str, Any]]:
    detail = found(explanation, "spec").detail
    assert detail is not None
    return [dict(part) for part in detail["parts"]]


# ── an occurrence ─────────────────────────────────────────────────────────────────────────────────


def test_an_occurrence_that_nothing_stands_against_fires() -> None:
    answer = why(make_planning("0 * * * *"))
    assert (answer.at, answer.on_spec, answer.fires, answer.reason, answer.due) == (NOON, True, True, None, NOON)
    assert (answer.previous, answer.following) == (clock("11:00"), clock("13:00"))
    assert answer.sentence == "The occurrence at 2026-05-04T12:00:00Z will run."


@pytest.mark.parametrize(
    ("paused_until", "fires"),
    [(None, False), (NOON + 1, False), (NOON, True), (NOON - 1, True)],
)
def test_a_pause_that_ends_before_it_does_not_stand_against_it(paused_until: Instant | None, fires: bool) -> None:
    paused = BEFORE._replace(status=Status.PAUSED)
    answer = why(make_planning("0 * * * *"), position=paused, paused_until=paused_until)
    assert (answer.fires, answer.reason) == (fires, None if fires else Reason.STATUS_NOT_TRIGGERABLE)
    assert found(answer, "status_not_triggerable").holds is fires


RUN = "01JQ8Z6H4M8X2V0T1R3S5W7Y9B"
OCCURRENCE = "The occurrence at 2026-05-04T12:00:00Z"
TRIGGERED = f"{OCCURRENCE} created a run."


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (None, ""),
        (RunNow(RUN, RunState.SUCCEEDED), f" Its run {RUN} ended in state succeeded."),
        (RunNow(RUN, RunState.QUEUED), f" Its run {RUN} is in state queued."),
        (
            RunNow(RUN, RunState.AWAITING_APPROVAL, AwaitingApprovals(1, NOON)),
            f" Its run {RUN} has been awaiting approval since 2026-05-04T12:00:00Z.",
        ),
        (
            RunNow(RUN, RunState.RUNNING, AwaitingApprovals(0, NOON, 1), ("publish", "spend")),
            f" Its run {RUN} is in state running. A step of a run has been awaiting approval"
            " since 2026-05-04T12:00:00Z. Approval is required for publish, spend.",
        ),
    ],
    ids=["gone", "ended", "open", "waits", "a step waits"],
)
def test_of_what_was_decided_it_is_told_what_has_become_of_its_run(run: RunNow | None, said: str) -> None:
    recorded = RecordedDecision("ScheduleTriggered", {"occurrence_time": "2026-05-04T12:00:00Z"}, NOON)
    assert why(make_planning(), now=NOON + MINUTE, recorded=recorded, run=run).sentence == TRIGGERED + said


def test_it_is_told_that_the_run_of_an_occurrence_will_wait_and_behind_what_it_would_be_skipped() -> None:
    will = why(make_planning(needs_approval=True))
    assert will.sentence.endswith("will run. The run will await approval.")
    busy = why(make_planning(needs_approval=True), facts=Facts(active=1), waiting=AwaitingApprovals(1, NOON - MINUTE))
    assert busy.sentence == (
        f"{OCCURRENCE} is expected to be skipped: previous run still active."
        " The decision depends on when earlier runs are approved."
        " A run has been awaiting approval since 2026-05-04T11:59:00Z."
    )


def test_every_question_is_answered_in_order() -> None:
    questions = [finding.question for finding in why(make_planning()).findings]
    assert questions == ["spec", *(guard.reason for guard in GUARDS), "overlap"]


def test_a_question_that_is_not_asked_of_this_schedule_has_no_answer() -> None:
    answer = why(make_planning())
    assert found(answer, "status_not_triggerable").holds is True
    for question in ("outside_window", "calendar", "condition_failed", "budget_exceeded", "cycle_detected"):
        assert found(answer, question) == GuardFinding(question, None)


def test_all_that_stands_against_it_is_said_and_the_first_is_the_reason() -> None:
    planning = make_planning(max_runs=0, budget=Budget(0, 0))
    answer = why(planning, position=make_position(NOON - MINUTE, status=Status.PAUSED), facts=Facts(active=1))
    against = [finding.question for finding in answer.findings if finding.holds is False]
    assert against == [
        "status_not_triggerable",
        "remaining_actions_exhausted",
        "budget_exceeded",
        "daily_limit_reached",
        "overlap",
    ]
    assert answer.reason is Reason.STATUS_NOT_TRIGGERABLE
    assert not answer.fires


def test_the_due_time_has_its_jitter() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", jitter_ms=600_000))
    assert why(planning).due == planning.spec.due(UID, NOON) != NOON


# ── not an occurrence: which part, and which field of it ──────────────────────────────────────────

FIELDS = [
    ("10 * * * * *", "2026-05-04T12:00:00Z", ["second 10"]),
    ("30 * * * *", "2026-05-04T12:00:00Z", ["minute 30"]),
    ("0 9-11 * * *", "2026-05-04T12:00:00Z", ["hour 9-11"]),
    ("0 12 5 * *", "2026-05-04T12:00:00Z", ["day-of-month 5"]),
    ("0 12 * JUN *", "2026-05-04T12:00:00Z", ["month JUN"]),
    ("0 12 * * TUE", "2026-05-04T12:00:00Z", ["day-of-week TUE"]),
    ("0 12 5 * TUE", "2026-05-04T12:00:00Z", ["day-of-month 5", "day-of-week TUE"]),
    ("30 9 5 6 *", "2026-05-04T12:00:00Z", ["minute 30", "hour 9", "month 6"]),
    ("0 12 * * *", "2026-05-04T12:00:00.5Z", ["fraction of a second"]),
]


@pytest.mark.parametrize(("cron", "at", "failed"), FIELDS, ids=[row[0] for row in FIELDS])
def test_the_fields_that_do_not_match_are_named(cron: str, at: str, failed: list[str]) -> None:
    answer = why(make_planning(cron), at)
    assert (answer.on_spec, answer.fires, answer.due) == (False, False, None)
    [part] = part_details(answer)
    assert part["failed"] == failed
    assert (part["cron"], part["timezone"]) == (cron, "UTC")
    assert answer.sentence.startswith(f"{at.replace('.5Z', '.500000Z')} is not an occurrence of this schedule. The ne")


def test_the_wall_clock_of_the_zone_is_shown() -> None:
    planning = make_planning(spec=make_spec("0 9 * * *", timezone="Asia/Kolkata"))
    [part] = part_details(why(planning))
    assert part["local_time"] == "2026-05-04T17:30:00"
    assert part["failed"] == ["minute 0", "hour 9"]


def test_every_part_says_why_it_is_not_its_time() -> None:
    spec = compile_spec(
        cron_expressions=["0 9 * * *"],
        intervals=[{"every": "PT25M", "offset": "PT5M"}],
        at=["2026-05-04T18:00:00Z", "2026-05-04T06:00:00Z"],
    )
    cron, interval, one_off = part_details(why(make_planning(spec=spec)))
    assert cron["failed"] == ["hour 9"]
    seconds_past = (NOON // SECOND - 300) % 1_500
    assert interval == {"every": "PT25M", "offset": "PT5M", "seconds_past": seconds_past}
    assert seconds_past > 0
    assert one_off == {"at": "one-off", "next": "2026-05-04T18:00:00Z"}


def test_after_the_last_one_off_there_is_no_next() -> None:
    answer = why(make_planning(spec=compile_spec(at=["2026-05-04T06:00:00Z"])))
    assert part_details(answer) == [{"at": "one-off", "next": None}]
    assert answer.sentence == "2026-05-04T12:00:00Z is not an occurrence of this schedule."
    assert (answer.previous, answer.following) == (clock("06:00"), None)


@pytest.mark.parametrize(
    ("window", "said"),
    [({"start_at": NOON + 1}, "start_at"), ({"end_at": NOON - 1}, "end_at")],
    ids=["before", "after"],
)
def test_outside_the_window_the_window_is_the_reason(window: dict[str, int], said: str) -> None:
    answer = why(make_planning(spec=make_spec("0 * * * *", **window)))
    assert (answer.on_spec, answer.fires, answer.reason) == (False, False, Reason.OUTSIDE_WINDOW)
    detail = found(answer, "outside_window").detail
    assert detail is not None
    assert said in detail


def test_outside_the_window_no_repeated_hour_is_blamed() -> None:
    answer = why(make_planning(spec=make_spec("0 * * * *", start_at=NOON + 1)))
    assert not any("repeated hour" in text for part in part_details(answer) for text in part["failed"])


# ── clock changes of New York, 2026 ───────────────────────────────────────────────────────────────


def new_york(cron: str, **choice: str) -> Planning:
    return make_planning(spec=make_spec(cron, timezone="America/New_York", **choice))


OTHER_PASS = ["not the time that dst_fold selects"]
CHANGES = [
    # 02:30 does not exist on 8 March: the gap ends at 07:00Z, which reads 03:00.
    ("gap, at its end", new_york("30 2 * * *"), "2026-03-08T07:00:00Z", None),
    ("gap, skipped", new_york("30 2 * * *", dst_gap="skip"), "2026-03-08T07:00:00Z", ["minute 30", "hour 2"]),
    ("gap, where it would be", new_york("30 2 * * *"), "2026-03-08T07:30:00Z", ["hour 2"]),
    # 01:30 comes twice on 1 November: at 05:30Z and at 06:30Z.
    ("fold, first pass", new_york("30 1 * * *"), "2026-11-01T05:30:00Z", None),
    ("fold, second pass", new_york("30 1 * * *"), "2026-11-01T06:30:00Z", OTHER_PASS),
    (
        "fold, first pass where the second was chosen",
        new_york("30 1 * * *", dst_fold="second"),
        "2026-11-01T05:30:00Z",
        OTHER_PASS,
    ),
    ("fold, both", new_york("30 1 * * *", dst_fold="both"), "2026-11-01T06:30:00Z", None),
    ("fold, wildcard", new_york("30 * * * *"), "2026-11-01T06:30:00Z", None),
]


@pytest.mark.parametrize(("planning", "at", "failed"), [row[1:] for row in CHANGES], ids=[row[0] for row in CHANGES])
def test_clock_changes_are_explained(planning: Planning, at: str, failed: list[str] | None) -> None:
    answer = why(planning, at, position=make_position(0))
    assert answer.on_spec is (failed is None)
    if failed is not None:
        assert [part["failed"] for part in part_details(answer)] == [failed]


# ── guards and overlap ────────────────────────────────────────────────────────────────────────────


def test_the_calendar_and_the_day_are_named() -> None:
    holiday = CalendarDefinition("feast", CalendarKind.SKIP_DATES, "UTC", frozenset({date(2026, 5, 4)}))
    answer = why(make_planning(calendars=("feast",)), facts=Facts(calendars={"feast": holiday}))
    detail = found(answer, "calendar").detail
    assert detail is not None
    assert (detail["calendar"], detail["date"], answer.reason) == ("feast", "2026-05-04", Reason.CALENDAR)


def test_the_values_that_a_condition_saw_are_shown_also_where_it_holds_not_first() -> None:
    planning = make_planning(condition=compile_condition({"/a": {"gt": 3}, "/b": {"eq": None}, "/c": {"neq": 1}}))
    answer = why(planning, facts=Facts(context={"a": 2, "c": 2}))
    detail = found(answer, "condition_failed").detail
    assert detail is not None
    seen = [(each["pointer"], each["found"], each["value"], each["holds"]) for each in detail["clauses"]]
    assert seen == [("/a", True, 2, False), ("/b", False, None, False), ("/c", True, 2, True)]


def test_the_budget_says_what_is_spent() -> None:
    answer = why(make_planning(budget=Budget(5), reserve=Decimal(2)), facts=Facts(spent_today=Decimal(4)))
    detail = found(answer, "budget_exceeded").detail
    assert detail == {"of": "schedule", "spending_limit_credits": "5.000000", "spent_today": "4", "reserve": "2"}


def test_what_the_assignee_has_spent_is_known() -> None:
    planning = make_planning(assignee="ada", reserve=Decimal(1))
    shared = SharedFacts(spent_by_assignee={"ada": Decimal(3)})
    answer = why(planning, facts=Facts(assignee_budget=Budget(3)), shared=shared)
    assert answer.reason is Reason.BUDGET_EXCEEDED


BUSY = Facts(active=1, active_run_ids=("run-7",))
OVERLAPS: list[tuple[str, Overlap, Facts, bool, str]] = [
    ("idle", Overlap(), NO_FACTS, True, "fire"),
    ("skip", Overlap(), BUSY, False, "overlap_policy_skip"),
    ("buffer", Overlap(OverlapPolicy.BUFFER_ONE), BUSY, True, "hold"),
    ("full", Overlap(OverlapPolicy.BUFFER_ONE), Facts(active=1, held=1), False, "buffer_full"),
    ("allowed", Overlap(OverlapPolicy.ALLOW_ALL), BUSY, True, "fire"),
    ("too many", Overlap(OverlapPolicy.ALLOW_ALL, 1), BUSY, False, "max_concurrent_reached"),
]


@pytest.mark.parametrize(
    ("overlap", "facts", "holds", "outcome"), [row[1:] for row in OVERLAPS], ids=[row[0] for row in OVERLAPS]
)
def test_overlap_is_explained_with_who_holds_it_up(overlap: Overlap, facts: Facts, holds: bool, outcome: str) -> None:
    answer = why(make_planning(overlap=overlap), facts=facts)
    finding = found(answer, "overlap")
    assert finding.detail is not None
    assert finding.holds is holds
    assert finding.detail["outcome" if holds else "reason"] == outcome
    assert finding.detail["active_run_ids"] == list(facts.active_run_ids)
    assert answer.reason == (None if holds else outcome)


def test_a_key_without_room_means_that_it_would_wait() -> None:
    planning = make_planning(concurrency_key="k")
    finding = found(why(planning, shared=SharedFacts(active_by_key={"k": 1})), "overlap")
    assert finding.detail is not None
    assert finding.detail["outcome"] == "hold"


# ── past, present and history ─────────────────────────────────────────────────────────────────────


def test_a_coming_occurrence_would_be_skipped_and_a_present_one_is_being_decided() -> None:
    planning = make_planning(max_runs=0)
    assert "will be skipped: max runs reached." in why(planning, now=NOON - 1).sentence
    assert "is due now and will be skipped" in why(planning, now=NOON).sentence
    paused = make_position(NOON - MINUTE, status=Status.PAUSED)  # nobody decides about it
    said = why(planning, now=NOON, position=paused).sentence
    assert "would be skipped: schedule not active." in said


def test_a_past_occurrence_without_a_record_says_so() -> None:
    answer = why(make_planning(), position=make_position(NOON), now=NOON + MINUTE)
    assert "has no recorded decision" in answer.sentence
    assert answer.sentence.endswith("The checks use the current definition.")
    assert answer.as_of == NOON + MINUTE


@pytest.mark.parametrize(
    ("payload", "ending"),
    [
        ({"reason": "calendar"}, "was skipped: excluded by a calendar."),
        ({"reason": "calendar", "detail": {"calendar": "weekends"}}, 'was skipped: excluded by calendar "weekends".'),
        ({"reason": "of_a_later_release"}, "was skipped: of_a_later_release."),
        ({}, "was skipped."),
    ],
    ids=["with a reason", "with a calendar", "unknown reason", "without"],
)
def test_what_history_recorded_wins(payload: dict[str, Any], ending: str) -> None:
    recorded = RecordedDecision("ScheduleTriggerSkipped", payload, NOON)
    answer = why(make_planning(), position=make_position(NOON), recorded=recorded)
    assert answer.recorded == recorded
    assert answer.sentence.endswith(ending)


def test_what_history_recorded_wins_off_the_spec_too() -> None:
    answer = why(make_planning("30 * * * *"), recorded=RecordedDecision("ScheduleTriggered", {}, NOON))
    assert answer.sentence == f"{OCCURRENCE} created a run."


def test_an_occurrence_that_another_run_covers_has_no_run_of_its_own() -> None:
    first = {"occurrence_time": "2026-05-04T11:00:00Z"}
    answer = why(make_planning(), recorded=RecordedDecision("ScheduleTriggered", first, NOON))
    assert answer.sentence == f"{OCCURRENCE} is covered by the run of the occurrence at 2026-05-04T11:00:00Z."


def test_a_buffered_occurrence_may_still_be_in_the_buffer() -> None:
    own = {"occurrence_time": "2026-05-04T12:00:00Z"}
    answer = why(make_planning(), recorded=RecordedDecision("ScheduleBuffered", own, NOON))
    assert answer.sentence == f"{OCCURRENCE} was buffered behind an earlier run."


@pytest.mark.parametrize("at", ["0001-01-01T00:00:00Z", "1850-06-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_any_instant_has_an_answer(at: str) -> None:
    every_day = CalendarDefinition("c", CalendarKind.SKIP_DATES, "Asia/Tokyo", frozenset())
    spec = make_spec("0 12 * * *", timezone="America/New_York")
    answer = why(make_planning(spec=spec, calendars=("c",)), at, Facts(calendars={"c": every_day}))
    assert not answer.fires


# ── before the creation, and by the jittered time ─────────────────────────────────────────────────


def test_before_its_creation_it_did_not_exist() -> None:
    answer = why(make_planning("0 * * * *"), "2026-05-03T20:00:00Z", created_at=NOON - HOUR)
    assert (answer.on_spec, answer.existed, answer.fires, answer.reason, answer.due) == (True, False, False, None, None)
    assert answer.sentence == "This schedule was created on 2026-05-04T11:00:00Z. It did not exist at this time."
    assert why(make_planning("0 * * * *"), created_at=NOON - HOUR).existed


def test_an_occurrence_is_found_by_the_time_at_which_it_acts() -> None:
    planning = make_planning(spec=make_spec("0 * * * *", jitter_ms=600_000))
    due = planning.spec.due(UID, NOON)
    assert nominal_of(planning, UID, due) == nominal_of(planning, UID, NOON) == NOON
    assert nominal_of(planning, UID, due + SECOND) == due + SECOND
