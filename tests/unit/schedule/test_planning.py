"""The planning text keeps all that a decision needs, nothing of who the schedule is, and refuses what is corrupt."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from decimal import Decimal
from itertools import islice
from typing import Any

import pytest

from horarium.condition import compile_condition
from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import Action, Definition, IntervalText, SpecText
from horarium.core.document.effective_policies import Effective, effective_text
from horarium.core.document.planning import (
    FAILING_AFTER_DIGITS,
    FAILING_AFTER_KEY,
    Planning,
    compile_once,
    compile_planning,
    planning_text,
    remembered,
)
from horarium.core.document.reader import SHIPPED
from horarium.core.document.rendering import TemplateUse
from horarium.core.document.states import Delivery
from horarium.core.policy.approval import ApprovalPolicy, RetryPolicy, WhileWaiting
from horarium.core.policy.limits import Budget, RunLimits
from horarium.core.policy.queue import Catchup, CatchupPolicy, Overlap, OverlapPolicy
from horarium.core.recurrence.parts import CronSchedule, DstFold, DstGap
from horarium.core.recurrence.spec import Spec
from horarium.instant import from_rfc3339

START, END = from_rfc3339("2026-01-01T00:00:00Z"), from_rfc3339("2030-01-01T00:00:00Z")
PLAIN = Definition("one", SpecText(("0 9 * * *",)), Action("http", {"url": "https://example.org"}))
WORK = Action(
    "workflow",
    {"workflow_id": "report"},
    queue="slow",
    timeout_seconds=77,
    delivery=Delivery.AT_MOST_ONCE,
)
RICH = Definition(
    schedule_id="rich",
    spec=SpecText(
        cron_expressions=("0 9 * * MON-FRI", "30 2 * * *"),
        intervals=(IntervalText("PT90M", "PT5M"), IntervalText("P1D")),
        at=("2026-07-01T12:00:00Z",),
        timezone="Europe/Istanbul",
        start_at=START,
        end_at=END,
        jitter_ms=1_500,
        dst_gap=DstGap.SKIP,
        dst_fold=DstFold.BOTH,
    ),
    action=WORK,
    assignee=Assignee(AssigneeType.AGENT, "ada"),
    calendars=("holidays:TR", "mine"),
    pre_dispatch_condition={"/prior_run_result/status": {"eq": "completed"}},
    inputs_rotation=({"a": 1}, {"a": 2}, {"a": 3}),
    budget=Budget(Decimal("12.345678"), 7),
    overlap=Overlap(OverlapPolicy.CANCEL_OTHER, 2, 5, 45),
    catchup=Catchup(CatchupPolicy.SPREAD, 10, 3_600, 90, 30),
    concurrency_key="agent:ada",
    concurrency_limit=4,
    priority=9,
    limits=RunLimits(runtime_seconds=600, cost=Decimal("0.000001")),
    retry=RetryPolicy(timeout_ms=5_000),
    max_runs=99,
    pause_on_failure=3,
)


def compiled(definition: Definition, *, needs_approval: bool = False) -> Planning:
    return compile_planning(planning_text(definition, needs_approval=needs_approval))


def first_occurrences(spec: Spec, count: int = 200) -> list[int]:
    return list(islice(spec.occurrences(START), count))


# ── round trip ────────────────────────────────────────────────────────────────────────────────────

KEPT: dict[str, Any] = {
    "overlap": RICH.overlap,
    "catchup": RICH.catchup,
    "calendars": ("holidays:TR", "mine"),
    "condition": compile_condition(RICH.pre_dispatch_condition),
    "rotation": 3,
    "budget": RICH.budget,
    "reserve": Decimal("0.000001"),
    "assignee": "ada",
    "max_runs": 99,
    "failing_after": None,
    "template": None,
    "needs_approval": True,
    "workflow": "report",
    "kind": "workflow",
    "concurrency_key": "agent:ada",
    "concurrency_limit": 4,
    "priority": 9,
    "pause_on_failure": 3,
    "queue": "slow",
    "timeout_seconds": 77,
    "delivery": Delivery.AT_MOST_ONCE,
    "target": "workflow:report",
    "attempt_ms": 5_000,
    "runtime_seconds": 600,
    "workflow_owner": None,
    "while_waiting": WhileWaiting.SUPERSEDE,
    "assignee_type": AssigneeType.AGENT,
    "assignment": None,
    "asked_version": None,
    "own_policies": Effective(RICH.approval, RICH.retry, RICH.failure, RICH.limits),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_field_survives_the_text(name: str) -> None:
    waiting = replace(RICH, approval=ApprovalPolicy(while_waiting=WhileWaiting.SUPERSEDE))
    kept = {**KEPT, "own_policies": replace(KEPT["own_policies"], approval=waiting.approval)}
    assert getattr(compiled(waiting, needs_approval=True), name) == kept[name]


def test_the_spec_survives_the_text() -> None:
    spec, written = compiled(RICH).spec, RICH.spec.compile("rich")
    assert (spec.start_at, spec.end_at, spec.jitter_ms, spec.zone.key) == (START, END, 1_500, "Europe/Istanbul")
    assert spec == written
    assert first_occurrences(spec) == first_occurrences(written)
    cron = spec.parts[0]
    assert isinstance(cron, CronSchedule)
    assert (cron.dst_gap, cron.dst_fold) == (DstGap.SKIP, DstFold.BOTH)


@pytest.mark.parametrize(
    ("given", "use"),
    [({"day": "{{ nominal }}"}, TemplateUse.REPLACES), ({"day": ["{{ inputs.x }}"]}, TemplateUse.FILLS_IN)],
)
def test_the_use_of_a_template_survives_the_text(given: dict[str, Any], use: TemplateUse) -> None:
    assert compiled(replace(RICH, action=replace(WORK, template=True, input=given))).template is use
    assert compiled(replace(RICH, action=replace(WORK, input=given))).template is None


def test_the_owner_of_a_stored_workflow_survives_the_text() -> None:
    assert compile_planning(planning_text(RICH, needs_approval=False, workflow_owner="ada")).workflow_owner == "ada"


def test_what_few_say_survives_the_text() -> None:
    team, action = Assignee(AssigneeType.TEAM, "desk"), replace(WORK, target={**WORK.target, "version": 3})
    planning = compiled(replace(RICH, assignee=team, workflow_assignment_id="given", action=action))
    assert (planning.assigned, planning.assignment, planning.asked_version) == (team, "given", 3)


def test_a_text_of_an_older_program_names_an_agent_and_no_policies() -> None:
    older = "{" + ",".join(each for each in STORED if "own_policies" not in each) + "}"
    planning = compile_planning(older)
    assert (planning.assigned, planning.own_policies) == (Assignee(AssigneeType.AGENT, "ada"), None)


def test_every_field_of_a_planning_is_looked_at() -> None:
    assert {"spec", "memo", *KEPT} == {each.name for each in fields(Planning)}


def test_what_is_worked_out_is_forgotten_with_its_planning() -> None:
    counted = []

    @remembered
    def double(planning: Planning, word: str) -> int:
        counted.append(word)
        return 2 * planning.rotation

    one = compile_once(planning_text(RICH, needs_approval=False))
    other = compile_once(planning_text(RICH, needs_approval=False))
    assert one is not other
    assert {double(one, "a"), double(one, "a"), double(other, "a")} == {2 * one.rotation}
    assert double(one, "b") == 2 * one.rotation
    assert counted == ["a", "a", "b"]
    assert len(one.memo) == 2


def test_the_defaults_survive_the_text() -> None:
    target = "http:https://example.org:443"
    planning, bare = compiled(PLAIN), Planning(PLAIN.spec.compile("one"), kind="http", target=target)
    for name in KEPT:
        assert getattr(planning, name) == getattr(bare, name), name


@pytest.mark.parametrize("amount", ["0", "0.000001", "999999999999.999999", "1000000000000"])
def test_amounts_are_exact_to_a_millionth(amount: str) -> None:
    definition = replace(PLAIN, budget=Budget(Decimal(amount)), limits=RunLimits(cost=Decimal(amount)))
    planning = compiled(definition)
    assert planning.budget.spending_limit_credits == planning.reserve == Decimal(amount)


OWN = effective_text(Effective(RICH.approval, RICH.retry, RICH.failure, RICH.limits))
# As it stands in databases: a text that changes would be a new key for every schedule.
STORED = (
    '"assignee":"ada"',
    '"attempt_ms":5000',
    '"budget":[12345678,7]',
    '"calendars":["holidays:TR","mine"]',
    '"catchup":["spread",10,3600,90,30]',
    '"concurrency":["agent:ada",4]',
    '"condition":{"/prior_run_result/status":{"eq":"completed"}}',
    '"delivery":"at_most_once"',
    '"kind":"workflow"',
    '"max_runs":99',
    '"needs_approval":true',
    '"overlap":["cancel_other",2,5,45]',
    f'"own_policies":{json.dumps(OWN)}',
    '"pause_on_failure":3',
    '"priority":9',
    '"queue":"slow"',
    '"reserve":1',
    '"rotation":3',
    '"runtime_seconds":600',
    '"spec":{"at":["2026-07-01T12:00:00Z"],"cron_expressions":["0 9 * * MON-FRI","30 2 * * *"],"dst_fold"'
    ':"both","dst_gap":"skip","end_at":1893456000000000,"intervals":[{"every":"PT90M","offset":"PT5M"},{"every":"P1D","offset":null}],"jitter_ms":1500,"start_at":1767225600000000,"timezone":"Europe/Istanbul"}',
    '"target":"workflow:report"',
    '"timeout":77',
    '"workflow":"report"',
)


def test_the_text_of_a_definition_stays_as_it_was_stored() -> None:
    assert planning_text(RICH, needs_approval=True) == "{" + ",".join(STORED) + "}"


# ── identity ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "other",
    [
        {"schedule_id": "two"},
        {"namespace": "elsewhere"},
        {"name": "Another", "note": "n", "labels": {"a": "b"}, "memo": {"c": 1}},
        {"owner": "bob", "user_id": "u"},
        {"inputs_rotation": ({"a": 9}, {"a": 8}, {"a": 7})},
        {"action": replace(WORK, target={"workflow_id": "report", "prompt": "p"}, input={"x": 1})},
    ],
    ids=["id", "namespace", "words", "people", "inputs", "target"],
)
def test_who_a_schedule_is_and_what_it_carries_are_not_in_the_text(other: dict[str, Any]) -> None:
    one, two = (planning_text(each, needs_approval=False) for each in (RICH, replace(RICH, **other)))
    assert one == two
    assert compile_planning(one) is compile_planning(two)


def test_two_texts_give_two_objects_that_are_not_equal() -> None:
    assert compiled(PLAIN) != compiled(replace(PLAIN, priority=1))
    assert compiled(PLAIN) != compiled(PLAIN, needs_approval=True)


def test_the_text_is_canonical() -> None:
    text = planning_text(RICH, needs_approval=False)
    document = json.loads(text)
    assert json.dumps(document, sort_keys=True, separators=(",", ":")) == text


# ── hashes ────────────────────────────────────────────────────────────────────────────────────────

HASHED = [
    "H * * * *",
    "H H * * *",
    "H/15 * * * *",
    "H(0-29)/10 H(9-17) * * *",
    "H H * * * *",
    "0 H * * H",
    "0 0 H * *",
    "0 0 H,LW * THU",
    "0 H 15W,H 1,H 3#2",
    "CRON_TZ=Asia/Tokyo H 9 * * *",
    "0 0 */10,H * MON",
    "*/20,H 2 * * *",
    "30 */2,H * * *",
    "H 9 ? * MON",
]


@pytest.mark.parametrize("expression", HASHED)
@pytest.mark.parametrize("schedule_id", ["one", "two"])
def test_a_hash_is_resolved_and_means_what_it_meant(expression: str, schedule_id: str) -> None:
    zone = None if "TZ=" in expression else "America/New_York"
    definition = replace(PLAIN, schedule_id=schedule_id, spec=SpecText((expression,), timezone=zone))
    written = json.loads(planning_text(definition, needs_approval=False))["spec"]["cron_expressions"]
    assert "H" not in written[0].replace("THU", "")
    written_spec = definition.spec.compile(schedule_id)
    assert first_occurrences(compiled(definition).spec) == first_occurrences(written_spec)
    [part], [meant] = compiled(definition).spec.parts, written_spec.parts
    assert isinstance(part, CronSchedule)
    assert isinstance(meant, CronSchedule)
    assert part.cron.fixed == meant.cron.fixed


def test_an_expression_without_a_hash_is_kept_letter_by_letter() -> None:
    definition = replace(PLAIN, spec=SpecText(("0 9 * MAR THU", "@daily", "@every PT5M")))
    written = json.loads(planning_text(definition, needs_approval=False))["spec"]["cron_expressions"]
    assert written == ["0 9 * MAR THU", "@daily", "@every PT5M"]


# ── corruption ────────────────────────────────────────────────────────────────────────────────────


def _without(key: str) -> Callable[[dict[str, Any]], object]:
    return lambda document: document.pop(key)


def _with(key: str, value: Any) -> Callable[[dict[str, Any]], object]:
    return lambda document: document.__setitem__(key, value)


# What a text of an older program lacks.
ADDED = {"target": "http:", "attempt_ms": None, "runtime_seconds": None, "workflow_owner": None}
DAMAGE: dict[str, Callable[[dict[str, Any]], object]] = {
    **{
        f"no {key}": _without(key)
        for key in sorted(json.loads(planning_text(PLAIN, needs_approval=False)).keys() - ADDED)
    },
    "unknown overlap": _with("overlap", ["never", None, None, 30]),
    "overlap too long": _with("overlap", ["skip", None, None, 30, 1]),
    "overlap negative": _with("overlap", ["skip", -1, None, 30]),
    "unknown catch-up": _with("catchup", ["sometimes", 1, 1, 1, 1]),
    "unknown delivery": _with("delivery", "perhaps"),
    "no kind at all": _with("kind", 5),
    "bad condition": _with("condition", {"/a": {"like": 1}}),
    "bad budget": _with("budget", [-1, None]),
    "bad concurrency": _with("concurrency", ["k"]),
    "bad cron": _with("spec", {"cron_expressions": ["61 * * * *"]}),
    "empty spec": _with("spec", {}),
    "unknown zone": _with("spec", {"cron_expressions": ["* * * * *"], "timezone": "Mars/Olympus"}),
    "unknown key of the spec": _with("spec", {"cron_expressions": ["* * * * *"], "colour": "red"}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_text_raises(damage: str) -> None:
    document = json.loads(planning_text(PLAIN, needs_approval=False))
    DAMAGE[damage](document)
    with pytest.raises((ValueError, KeyError, TypeError)):
        compile_planning(json.dumps(document))


def test_a_text_of_an_older_program_is_still_read() -> None:
    document = json.loads(planning_text(PLAIN, needs_approval=False))
    planning = compile_planning(json.dumps({key: value for key, value in document.items() if key not in ADDED}))
    assert {name: getattr(planning, name) for name in ADDED} == ADDED


def test_a_policy_that_allows_more_time_than_the_action_changes_nothing() -> None:
    assert compiled(replace(RICH, retry=RetryPolicy(timeout_ms=77_000))).attempt_ms is None


@pytest.mark.parametrize("text", ["", "null", "[]", "{", "1", '"x"', "\0", "\ud800"])
def test_a_text_that_is_no_document_raises(text: str) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        compile_planning(text)


def test_a_condition_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        planning_text(replace(PLAIN, pre_dispatch_condition={"/a": {"eq": float("nan")}}), needs_approval=False)


# ── what a definition says of itself ──────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("target", "workflow"),
    [
        ({}, None),
        ({"workflow_id": "a", "workflow_type": "b"}, "a"),
        ({"workflow_id": "", "workflow_type": "b"}, "b"),
        ({"workflow_class": "c"}, "c"),
        ({"url": "https://example.org"}, None),
    ],
)
def test_work_is_known_by_its_first_name(target: dict[str, Any], workflow: str | None) -> None:
    assert Action("pull", target).workflow == workflow


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        (Action("prompt"), 300),
        (Action("http"), 3_600),
        (Action("prompt", execution_timeout_seconds=7), 7),
        (Action("http", run_timeout_seconds=6, execution_timeout_seconds=7), 6),
        (Action("http", timeout_seconds=5, run_timeout_seconds=6), 5),
    ],
)
def test_every_action_has_a_deadline(action: Action, seconds: int) -> None:
    assert SHIPPED.timeout_of(action) == seconds


@pytest.mark.parametrize("own", [1, 7, 2**31 - 1])
def test_the_own_threshold_of_failures_stands_first_where_sql_reads_it(own: int) -> None:
    text = planning_text(replace(RICH, failing_after=own), needs_approval=True)
    assert text.startswith(f'{{"{FAILING_AFTER_KEY}":"{own:0{FAILING_AFTER_DIGITS}}",')
    assert compile_planning(text).failing_after == own
    assert FAILING_AFTER_KEY not in planning_text(RICH, needs_approval=True)
