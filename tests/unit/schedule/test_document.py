"""A schedule may be written in five vocabularies; each is read into the same definition."""

from __future__ import annotations

import re
from typing import Any

import pytest

from horarium.core.document.document import Defaults, ParsedDefinition, from_canonical, parse_definition, to_document
from horarium.core.document.places import COMPUTED, PLACES, SHIPPED_NAMES
from horarium.core.document.places import NAMES as WRITTEN
from horarium.core.document.reader import SHIPPED, WORKFLOW
from horarium.core.policy.queue import CatchupPolicy, OverlapPolicy
from horarium.errors import InvalidDefinition
from horarium.instant import from_rfc3339

TOP, OBJECTS = SHIPPED_NAMES.top, SHIPPED_NAMES.objects
NOW = from_rfc3339("2026-01-01T00:00:00Z")
CRON = {"cron_expressions": ["0 2 * * *"]}
PARTS = frozenset(OBJECTS)


def parse(document: object, **how: Any) -> ParsedDefinition:
    return parse_definition(document, now=NOW, generated_id="generated", **how)


def camel(key: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), key)


def in_camel_case(document: dict[str, Any]) -> dict[str, Any]:
    """Our own keys only: what is inside labels, inputs and conditions belongs to the user."""
    return {
        camel(key): {camel(inner): item for inner, item in value.items()} if key in PARTS else value
        for key, value in document.items()
    }


# ── the vocabularies, one table each ──────────────────────────────────────────────────────────────

LENSERFIGHT: dict[str, dict[str, Any]] = {
    "every column of a schedule row": {
        "id": "9d7f0c1e-0000-4000-8000-000000000001",
        "workflow_id": "5b1d0a52-0000-4000-8000-000000000002",
        "cron_expr": "0 8 * * *",
        "timezone": "Europe/Istanbul",
        "is_active": True,
        "assignee_type": "agent",
        "assignee_id": "3f2e-agent",
        "workflow_assignment_id": "77aa-assignment",
        "approval_policy": {"requires_approval": True, "mode": "sensitive_actions", "gates": ["publish", "spend"]},
        "retry_policy": {
            "max_retries": 2,
            "backoff_ms": 500,
            "retry_on": ["timeout", "rate_limit"],
            "timeout_ms": 9_000,
        },
        "failure_policy": {"mode": "fallback", "fallback_assignee_id": "team-9"},
        "queue_policy": {
            "mode": "parallel",
            "max_concurrency": 3,
            "priority": 5,
            "on_missed": "backfill",
            "max_backfill": 7,
        },
        "inputs_template": {"topic": "news"},
        "global_model_id": "gpt-large",
        "next_run_at": "2026-04-16T09:00:02Z",
        "last_run_at": None,
        "last_run_id": None,
        "last_dispatch_status": "dispatched",
        "last_error_at": None,
        "last_error_message": None,
        "last_completed_at": None,
        "last_result": {},
    },
    "the parameters of the upsert call": {
        "p_workflow_id": "w1",
        "p_schedule_id": "s1",
        "p_cron_expr": "* * * * *",
        "p_timezone": "UTC",
        "p_global_model_id": None,
        "p_inputs_template": {},
        "p_is_active": True,
        "p_assignee_type": "team",
        "p_assignee_id": "t1",
        "p_workflow_assignment_id": None,
        "p_approval_policy": {"requiresApproval": True},
        "p_retry_policy": {"maxRetries": 1},
        "p_failure_policy": {"mode": "isolate"},
        "p_queue_policy": {"mode": "parallel"},
    },
    "calendar, condition, rotation and limits": {
        "workflow_id": "w1",
        "cron_expr": "0 8 * * *",
        "calendar_id": "us-federal-holidays-2026",
        "pre_dispatch_condition": {
            "/prior_run_result/status": {"eq": "completed"},
            "/last_24h_stats/failed": {"lt": 3},
        },
        "inputs_rotation": [{"audience": "tech"}, {"audience": "business"}],
        "last_rotation_index": 4,
        "spending_limit_credits": 12.5,
        "max_daily_battles": 3,
        "max_tokens": 10_000,
        "allow_tools": ["search"],
    },
}
REGISTRAR: dict[str, dict[str, Any]] = {
    "the input of upsert_schedule": {
        "schedule_id": "s1",
        "workflow_id": "w1",
        "version": 3,
        "user_id": "u1",
        "cron_expr": "0 30 9 * * *",
        "timezone": "America/New_York",
        "start_at": "2026-02-01T00:00:00Z",
        "end_at": "2027-02-01T00:00:00+01:00",
        "jitter_ms": 1_500,
        "overlap_policy": "queue",
        "catchup_policy": "fire_immediately",
    },
    "a row of the schedules table": {
        "schedule_id": "s1",
        "workflow_id": "w1",
        "version": 1,
        "user_id": "u1",
        "cron_expr": "0 9 * * *",
        "timezone": "UTC",
        "start_at": None,
        "end_at": None,
        "next_run_at": "2026-02-01T09:00:00Z",
        "paused": False,
        "jitter_ms": 0,
        "overlap_policy": "allow",
        "catchup_policy": "none",
        "updated_at": "2026-01-01T00:00:00Z",
    },
}
DURABLE_WORKFLOW: dict[str, dict[str, Any]] = {
    "every parameter of create": {
        "schedule_id": "daily-invoice-sync",
        "workflow_class": "App\\Workflows\\InvoiceSyncWorkflow",
        "cron_expression": "0 2 * * *",
        "arguments": ["nightly"],
        "timezone": "America/New_York",
        "overlap_policy": "BufferOne",
        "labels": {"team": "billing"},
        "memo": {"origin": "scheduled"},
        "search_attributes": {"tenant_id": "42"},
        "jitter_seconds": 300,
        "max_runs": 3,
        "connection": "redis",
        "queue": "high-priority",
        "notes": "Runs every night at 2 AM ET.",
        "namespace": "billing",
    },
    "a spec and an action": {
        "schedule_id": "mixed-schedule",
        "spec": {
            "cron_expressions": ["0 12 * * *"],
            "intervals": [{"every": "PT6H"}, {"every": "PT1H", "offset": "PT5M"}],
            "timezone": "America/Chicago",
        },
        "action": {
            "workflow_type": "report-workflow",
            "workflow_class": "ReportWorkflow",
            "input": {"region": "us-east-1"},
            "task_queue": "reports",
            "execution_timeout_seconds": 60,
            "run_timeout_seconds": 30,
        },
        "overlap_policy": "TerminateOther",
        "note": "",
    },
    "what the command line sends, nulls and all": {
        "schedule_id": None,
        "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "UTC"},
        "action": {"workflow_type": "sync", "input": {"codec": "avro", "blob": "wwHioz3/VYAiNwwA"}},
        "overlap_policy": "skip",
        "jitter_seconds": None,
        "max_runs": None,
        "note": None,
        "paused": False,
        "memo": [],
        "labels": [],
        "search_attributes": [],
    },
}
MOLECULE: dict[str, dict[str, Any]] = {
    "a prompt with every field": {
        "name": "Daily Security Audit",
        "cron_expr": "0 9 * * *",
        "timezone": "America/New_York",
        "prompt": "Run a security audit of all open PRs.",
        "enabled": True,
        "source": "template",
    },
    "the two required fields": {"cron_expr": "0 17 * * 5", "prompt": "Write a weekly retrospective."},
    "a row as it is listed": {
        "id": "s1",
        "cron_expr": "0 9 * * *",
        "prompt": "x",
        "last_status": "success",
        "last_error": "",
        "run_count": 3,
        "next_run_at": None,
        "last_run_at": None,
    },
}
VOCABULARIES = {
    f"{system}: {title}": document
    for system, documents in {
        "LenserFight": LENSERFIGHT,
        "registrar": REGISTRAR,
        "Durable Workflow": DURABLE_WORKFLOW,
        "Molecule": MOLECULE,
    }.items()
    for title, document in documents.items()
}


@pytest.mark.parametrize("spelled", [dict, in_camel_case], ids=["snake_case", "camelCase"])
@pytest.mark.parametrize("document", VOCABULARIES.values(), ids=VOCABULARIES)
def test_every_vocabulary_is_read_and_written_back_as_the_canonical_one(document: dict[str, Any], spelled: Any) -> None:
    definition = parse(spelled(document)).definition
    canonical = to_document(definition)
    assert definition == parse(document).definition
    assert parse(canonical).definition == definition
    assert from_canonical(canonical) == definition


def test_a_lenserfight_row_says_what_it_says() -> None:
    definition = parse(LENSERFIGHT["every column of a schedule row"]).definition
    assert to_document(definition) == {
        "schedule_id": "9d7f0c1e-0000-4000-8000-000000000001",
        "namespace": "default",
        "spec": {"cron_expressions": ["0 8 * * *"], "timezone": "Europe/Istanbul"},
        "action": {
            "kind": "workflow",
            "workflow_id": "5b1d0a52-0000-4000-8000-000000000002",
            "input": {"topic": "news"},
            "global_model_id": "gpt-large",
        },
        "assignee_type": "agent",
        "assignee_id": "3f2e-agent",
        "workflow_assignment_id": "77aa-assignment",
        "overlap_policy": "allow_all",
        "max_concurrency": 3,
        "priority": 5,
        "catchup_policy": "fire_all",
        "max_catchup": 7,
        "approval_policy": {"requires_approval": True, "mode": "sensitive_actions", "gates": ["publish", "spend"]},
        "retry_policy": {
            "max_retries": 2,
            "backoff_ms": 500,
            "max_backoff_ms": 60_000,
            "retry_on": ["timeout", "rate_limit"],
            "timeout_ms": 9_000,
        },
        "failure_policy": {"mode": "fallback", "fallback_assignee_id": "team-9"},
    }


def test_a_durable_workflow_schedule_says_what_it_says() -> None:
    definition = parse(DURABLE_WORKFLOW["every parameter of create"]).definition
    assert to_document(definition) == {
        "schedule_id": "daily-invoice-sync",
        "namespace": "billing",
        "note": "Runs every night at 2 AM ET.",
        "labels": {"team": "billing"},
        "memo": {"origin": "scheduled"},
        "search_attributes": {"tenant_id": "42"},
        "spec": {"cron_expressions": ["0 2 * * *"], "timezone": "America/New_York", "jitter_seconds": 300},
        "action": {
            "kind": "workflow",
            "workflow_class": "App\\Workflows\\InvoiceSyncWorkflow",
            "input": ["nightly"],
            "connection": "redis",
            "queue": "high-priority",
        },
        "overlap_policy": "buffer_one",
        "catchup_policy": "fire_once",
        "max_runs": 3,
    }


def test_a_registrar_schedule_says_what_it_says() -> None:
    definition = parse(REGISTRAR["the input of upsert_schedule"]).definition
    assert definition.spec.jitter_ms == 1_500
    assert definition.spec.end_at == from_rfc3339("2027-01-31T23:00:00Z")
    assert definition.action.target == {"workflow_id": "w1", "version": 3}
    assert definition.overlap.policy is OverlapPolicy.BUFFER_ALL
    assert definition.catchup.policy is CatchupPolicy.FIRE_ALL
    assert definition.user_id == "u1"


def test_encoded_input_is_kept_verbatim() -> None:
    definition = parse(DURABLE_WORKFLOW["what the command line sends, nulls and all"]).definition
    assert definition.action.input == {"codec": "avro", "blob": "wwHioz3/VYAiNwwA"}
    assert definition.schedule_id == "generated"


# ── every name ────────────────────────────────────────────────────────────────────────────────────

# A value other than the default for every place, in canonical form.
SAMPLES: dict[str, Any] = {
    "schedule_id": "chosen",
    "namespace": "billing",
    "name": "Nightly",
    "note": "for operators",
    "labels": {"team": "a"},
    "memo": {"origin": "x"},
    "search_attributes": {"tenant": 42},
    "source": "template",
    "user_id": "u1",
    "owner": "o1",
    "spec.cron_expressions": ["5 4 * * *"],
    "spec.intervals": [{"every": "PT1H", "offset": "PT5M"}],
    "spec.at": ["2026-06-01T00:00:00Z"],
    "spec.timezone": "Asia/Tokyo",
    "spec.start_at": "2026-02-01T00:00:00Z",
    "spec.end_at": "2027-02-01T00:00:00.000001Z",
    "spec.jitter_seconds": 2,
    "spec.dst_gap": "skip",
    "spec.dst_fold": "both",
    "action.kind": "workflow",
    "action.workflow_type": "billing",
    "action.workflow_id": "w1",
    "action.workflow_class": "App\\Sync",
    "action.version": "latest",
    "action.prompt": "Say hello.",
    "action.url": "https://example.com/hook?x=1",
    "action.method": "PUT",
    "action.headers": {"X-Team": "a"},
    "action.secret": "hook-secret",
    "action.task": "billing.sync",
    "action.args": [1, {"a": None}],
    "action.kwargs": {"to": "ops"},
    "action.callable": "billing.sync",
    "action.command": "backup",
    "action.input": ["a", "b"],
    "action.connection": "redis",
    "action.template": True,
    "action.queue": "high",
    "action.global_model_id": "m1",
    "action.execution_timeout_seconds": 5,
    "action.run_timeout_seconds": 6,
    "action.timeout_seconds": 7,
    "action.delivery": "at_most_once",
    "assignee_type": "team",
    "assignee_id": "a1",
    "workflow_assignment_id": "wa1",
    "calendars": ["weekends-only"],
    "pre_dispatch_condition": {"/a": {"eq": 1}},
    "inputs_rotation": [{"a": 1}, {"a": 2}],
    "budget.spending_limit_credits": 1.5,
    "budget.max_daily_runs": 0,
    "overlap_policy": "cancel_other",
    "max_concurrency": 2,
    "max_buffered": 0,
    "cancel_grace_seconds": 5,
    "concurrency_key": "agent-7",
    "concurrency_limit": 2,
    "priority": -1,
    "catchup_policy": "spread",
    "max_catchup": 1,
    "catchup_window_seconds": 0,
    "catchup_spread_seconds": 5,
    "misfire_grace_seconds": 0,
    "approval_policy.requires_approval": False,
    "approval_policy.mode": "on_block",
    "approval_policy.gates": ["publish"],
    "approval_policy.expires_after_seconds": 60,
    "approval_policy.approvals_required": 2,
    "approval_policy.approvers": ["ada", "role:owner"],
    "approval_policy.allow_requester": True,
    "approval_policy.while_waiting": "supersede",
    "retry_policy.max_retries": 0,
    "retry_policy.backoff_ms": 100_000,
    "retry_policy.max_backoff_ms": 1,
    "retry_policy.retry_on": [],
    "retry_policy.timeout_ms": 5,
    "failure_policy.mode": "halt",
    "failure_policy.fallback_assignee_id": "a2",
    "limits.runtime_seconds": 10,
    "limits.cost": 0.25,
    "limits.tokens": 5_000_000_000,
    "limits.tool_calls": 0,
    "limits.allow_tools": [],
    "pause_on_failure": 3,
    "failing_after": 4,
    "max_runs": 1,
    "paused": True,
}
# Names whose value has another form than the place they are read as.
OTHER_FORMS: dict[str, Any] = {
    "cron_expr": "5 4 * * *",
    "cron_expression": "5 4 * * *",
    "jitter_ms": 2_000,
    "enabled": False,
    "is_active": False,
    "calendar_id": "weekends-only",
}
OWN_ACTION = ("prompt", "url", "task", "callable", "command")
NEEDED = {
    "action.method": {"url": "http://a"},
    "action.headers": {"url": "http://a"},
    "action.secret": {"url": "http://a"},
    "action.args": {"task": "t"},
    "action.kwargs": {"task": "t"},
}
NAMES = [("", name) for name in TOP] + [(part, name) for part, table in OBJECTS.items() for name in table]


def document_with(part: str, name: str, spelled: Any) -> dict[str, Any]:
    place = (OBJECTS[part] if part else TOP)[name].place
    value = OTHER_FORMS.get(name, SAMPLES[place])
    document: dict[str, Any] = {"schedule_id": "base"} if place != "schedule_id" else {}
    if place != "spec.cron_expressions":
        document["spec"] = dict(CRON)
    if place.removeprefix("action.") not in OWN_ACTION:
        document["action"] = dict(NEEDED.get(place, {"workflow_type": "base"}))
    if place == "action.workflow_type":
        document["action"] = {}
    if place == "assignee_type":
        document["assignee_id"] = "a1"
    if part:
        document.setdefault(part, {})[spelled(name)] = value
    else:
        document[spelled(name)] = value
    return document


def at_place(document: dict[str, Any], place: str) -> Any:
    for key in place.split("."):
        document = document[key]
    return document


@pytest.mark.parametrize("spelled", [str, camel], ids=["snake_case", "camelCase"])
def test_every_name_is_read_as_its_place(spelled: Any) -> None:
    for part, name in NAMES:
        place = (OBJECTS[part] if part else TOP)[name].place
        parsed = parse(document_with(part, name, spelled))
        canonical = to_document(parsed.definition)
        if place == "paused":
            assert parsed.paused is True, (part, name)
        else:
            shown_at = "action.task" if place == "action.callable" else place
            assert at_place(canonical, shown_at) == SAMPLES[place], (part, name)
            assert parse(canonical).definition == parsed.definition, (part, name)
            assert from_canonical(canonical) == parsed.definition, (part, name)


def test_every_place_has_a_sample() -> None:
    assert SAMPLES.keys() == PLACES.keys()


def test_every_canonical_field_can_be_read() -> None:
    assert {place.partition(".")[0] for place in PLACES} == {*WRITTEN, "paused"}


@pytest.mark.parametrize("name", sorted(COMPUTED - {"uid", "fires_count"}))
def test_what_we_compute_is_ignored_with_a_warning(name: str) -> None:
    parsed = parse({"cron_expr": "0 2 * * *", "prompt": "x", camel(name): "2026-01-01T00:00:00Z"})
    assert parsed.warnings == (f"{camel(name)}: read-only field, ignored",)


def test_no_computed_name_is_also_a_field() -> None:
    assert not COMPUTED & (TOP.keys() | OBJECTS.keys())


def test_the_canonical_document_is_written_in_one_order() -> None:
    everything: dict[str, Any] = {}
    for place, value in reversed(SAMPLES.items()):
        part, _, key = place.partition(".")
        if place == "paused" or (part == "action" and key not in (*WORKFLOW.fields, "input", "queue")):
            continue
        if key:
            everything.setdefault(part, {})[key] = value
        else:
            everything[part] = value
    assert tuple(to_document(parse(everything).definition)) == WRITTEN


def test_a_document_that_says_nothing_more_is_written_with_six_keys() -> None:
    canonical = to_document(parse({"cron_expr": "0 2 * * *", "prompt": "x"}).definition)
    assert tuple(canonical) == ("schedule_id", "namespace", "spec", "action", "overlap_policy", "catchup_policy")


# ── kinds of action ───────────────────────────────────────────────────────────────────────────────

KINDS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "workflow_type": ({"workflow_type": "w"}, "workflow", {"workflow_type": "w"}),
    "workflow_id": (
        {"workflow_id": "w", "version": "Latest"},
        "workflow",
        {"workflow_id": "w", "version": "latest"},
    ),
    "prompt": ({"prompt": "p"}, "prompt", {"prompt": "p"}),
    "url": ({"url": "http://a"}, "http", {"url": "http://a", "method": "POST"}),
    "method in any case": ({"url": "http://a", "method": "get"}, "http", {"url": "http://a", "method": "GET"}),
    "task": ({"task": "t"}, "celery", {"task": "t"}),
    "callable": ({"callable": "m:f"}, "python", {"task": "m:f"}),
    "task and callable": ({"callable": "m:f", "task": "m:f"}, "python", {"task": "m:f"}),
    "task of python": ({"kind": "Python", "task": "t"}, "python", {"task": "t"}),
    "command": ({"command": "backup", "arguments": ["-v"]}, "command", {"command": "backup"}),
    "command with an object": ({"command": "backup", "input": {"a": 1}}, "command", {"command": "backup"}),
    "pull": ({"kind": "pull", "workflow_type": "w", "task_queue": "q"}, "pull", {"workflow_type": "w"}),
}


@pytest.mark.parametrize("nested", [True, False], ids=["nested", "flat"])
@pytest.mark.parametrize(("action", "kind", "target"), KINDS.values(), ids=KINDS)
def test_the_kind_of_an_action_follows_from_its_fields(
    action: dict[str, Any], kind: str, target: dict[str, Any], nested: bool
) -> None:
    document = {"spec": CRON, "action": action} if nested else {"spec": CRON, **action}
    read = parse(document).definition.action
    assert (read.kind, read.target) == (kind, target)


def test_every_kind_has_a_row() -> None:
    assert {kind for _, kind, _ in KINDS.values()} == set(SHIPPED)


# ── defaults and names ────────────────────────────────────────────────────────────────────────────


def test_defaults_fill_what_a_document_leaves_open() -> None:
    chosen = Defaults(OverlapPolicy.ALLOW_ALL, CatchupPolicy.SKIP, jitter_ms=1_500, misfire_grace_seconds=5)
    definition = parse({"cron_expr": "0 2 * * *", "prompt": "x"}, defaults=chosen).definition
    assert definition.overlap.policy is OverlapPolicy.ALLOW_ALL
    assert definition.catchup.policy is CatchupPolicy.SKIP
    assert definition.spec.jitter_ms == 1_500
    assert definition.catchup.misfire_grace_seconds == 5


def test_a_document_beats_the_defaults() -> None:
    definition = parse(
        {"cron_expr": "0 2 * * *", "prompt": "x", "queue_policy": {"mode": "serial"}, "jitter_ms": 0},
        defaults=Defaults(OverlapPolicy.ALLOW_ALL, jitter_ms=1_500),
    ).definition
    assert (definition.overlap.policy, definition.spec.jitter_ms) == (OverlapPolicy.SKIP, 0)


def test_defaults_are_those_of_the_definition_itself() -> None:
    plain = parse({"cron_expr": "0 2 * * *", "prompt": "x"}).definition
    assert parse({"cron_expr": "0 2 * * *", "prompt": "x"}, defaults=Defaults()).definition == plain
    assert tuple(to_document(plain)["spec"]) == ("cron_expressions",)  # type: ignore[arg-type]  # JSON


@pytest.mark.parametrize("wrong", [{"jitter_ms": -1}, {"jitter_ms": 86_400_001}, {"max_catchup": -1}], ids=str)
def test_defaults_have_the_bounds_of_the_fields(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="must be between"):
        Defaults(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_the_documents_own_id_and_namespace_win() -> None:
    definition = parse({"cron_expr": "0 2 * * *", "prompt": "x", "id": "mine"}, namespace="billing").definition
    assert (definition.schedule_id, definition.namespace) == ("mine", "billing")


def test_a_schedule_without_any_id_is_refused() -> None:
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition({"cron_expr": "0 2 * * *", "prompt": "x"}, now=NOW)
    assert refused.value.errors == {"schedule_id": ["is required"]}


@pytest.mark.parametrize(
    ("given", "paused"),
    [
        ({}, None),
        ({"paused": True}, True),
        ({"enabled": False}, True),
        ({"isActive": True}, False),
        ({"is_active": False, "paused": True, "enabled": False}, True),
        ({"paused": None}, None),
    ],
    ids=str,
)
def test_whether_it_starts_paused_is_said_in_three_ways(given: dict[str, Any], paused: bool | None) -> None:
    assert parse({"cron_expr": "0 2 * * *", "prompt": "x", **given}).paused is paused


def test_the_same_thing_twice_is_fine_when_both_agree() -> None:
    document = {
        "cron_expr": "0 2 * * *",
        "spec": {"cronExpressions": ["0 2 * * *"], "jitter_seconds": 2.0},
        "jitterMs": 2_000,
        "overlap_policy": "skip",
        "queue_policy": {"mode": "Serial"},
        "workflow_id": "w",
        "action": {"workflowId": "w", "input": [1]},
        "arguments": [1.0],
    }
    assert parse(document).definition.spec.jitter_ms == 2_000


IDLE = {
    "max_buffered": {"max_buffered": 3},
    "cancel_grace_seconds": {"cancel_grace_seconds": 3},
    "queue_policy.maxBackfill": {"queue_policy": {"maxBackfill": 3}},
    "catchup_spread_seconds": {"catchup_spread_seconds": 3},
    "concurrency_limit": {"concurrency_limit": 3},
    "failure_policy.fallback_assignee_id": {"failure_policy": {"fallback_assignee_id": "a"}},
}


@pytest.mark.parametrize(("path", "given"), IDLE.items(), ids=IDLE)
def test_a_number_without_effect_is_warned_about(path: str, given: dict[str, Any]) -> None:
    (warning,) = parse({"cron_expr": "0 2 * * *", "prompt": "x", **given}).warnings
    assert warning.startswith(f"{path}: has no effect without ")


def test_numbers_with_an_effect_are_not_warned_about() -> None:
    document = {
        "cron_expr": "0 2 * * *",
        "prompt": "x",
        "overlap_policy": "buffer_all",
        "max_buffered": 3,
        "catchup_policy": "spread",
        "max_catchup": 3,
        "catchup_spread_seconds": 3,
        "concurrency_key": "k",
        "concurrency_limit": 2,
    }
    assert parse(document).warnings == ()


def test_a_pointer_that_can_never_be_there_is_warned_about_where_it_was_written() -> None:
    document = {"cron_expr": "0 2 * * *", "prompt": "x", "preDispatchCondition": {"/last_24h_stats/faild": {"lt": 3}}}
    (warning,) = parse(document).warnings
    assert warning.startswith("preDispatchCondition: '/last_24h_stats/faild' never exists; did you mean ")


def test_calendars_may_carry_a_zone_and_are_listed_once() -> None:
    names = ["holidays:US@America/New_York", "weekends-only", "holidays:TR", "weekends-only"]
    document = {"cron_expr": "0 2 * * *", "prompt": "x", "calendars": names}
    assert parse(document).definition.calendars == tuple(names[:3])
