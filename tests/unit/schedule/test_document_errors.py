"""Everything that is wrong with a document is said at once, under the paths that its author wrote."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.document import parse_definition
from horarium.errors import InvalidDefinition
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-01-01T00:00:00Z")
GOOD: dict[str, Any] = {"schedule_id": "s", "cron_expr": "0 2 * * *", "prompt": "x"}


def errors_of(document: object) -> dict[str, list[str]]:
    with pytest.raises(InvalidDefinition) as refused:
        parse_definition(document, now=NOW)
    return refused.value.errors


def with_action(**action: Any) -> dict[str, Any]:
    return {"schedule_id": "s", "cron_expr": "0 2 * * *", "action": action}


def with_spec(**spec: Any) -> dict[str, Any]:
    return {"schedule_id": "s", "prompt": "x", "spec": spec}


# path → a document whose only problem is there, and a part of what is said about it
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    # identity
    "schedule_id": (GOOD | {"schedule_id": "a/b"}, "is not a valid ID"),
    "scheduleId": ({"scheduleId": "", "cron_expr": "0 2 * * *", "prompt": "x"}, "is not a valid ID"),
    "namespace": (GOOD | {"namespace": 5}, "is not a valid ID"),
    "name": (GOOD | {"name": "n" * 256}, "at most 255"),
    "description": (GOOD | {"description": 5}, "must be a string"),
    "notes": (GOOD | {"notes": "n" * 1_001}, "at most 1000"),
    "source": (GOOD | {"source": "git"}, "template, runtime"),
    "owner": (GOOD | {"owner": " x"}, "spaces"),
    "labels": (GOOD | {"labels": {str(n): "x" for n in range(65)}}, "at most 64"),
    "labels.team": (GOOD | {"labels": {"team": None}}, "must be a string"),
    "labels.long": (GOOD | {"labels": {"long": "ü" * 1_025}}, "2048 bytes"),
    "searchAttributes.tenant": (GOOD | {"searchAttributes": {"tenant": {"a": 1}}}, "array of strings"),
    "search_attributes.tags": (GOOD | {"search_attributes": {"tags": ["a", 1]}}, "only strings"),
    "search_attributes": (GOOD | {"search_attributes": [1]}, "must be an object"),
    "memo": (GOOD | {"memo": {"a": "x" * 262_144}}, "262144"),
    "memo.a.external_payload": (GOOD | {"memo": {"a": {"external_payload": 1}}}, "reserved"),
    "labels.result_envelope": (GOOD | {"labels": {"result_envelope": "x"}}, "reserved"),
    "search_attributes.external_storage": (GOOD | {"search_attributes": {"external_storage": "x"}}, "reserved"),
    # spec
    "spec": (with_spec(), "at least one cron expression"),
    "spec.cron_expressions": (with_spec(cron_expressions="0 2 * * *"), "must be an array"),
    "spec.cron_expressions.1": (with_spec(cron_expressions=["0 2 * * *", "0 25 * * *"]), "hour"),
    "spec.cronExpressions.0": (with_spec(cronExpressions=[5]), "must be a string"),
    "cron_expr": (GOOD | {"cron_expr": "61 * * * *"}, "minute"),
    "cronExpression": ({"schedule_id": "s", "prompt": "x", "cronExpression": ["* * * * *"]}, "must be a string"),
    "spec.intervals.0.every": (with_spec(intervals=[{"every": "P1M"}]), "months"),
    "spec.intervals.1.offset": (with_spec(intervals=[{"every": "PT1H"}, {"every": "PT1H", "offset": "x"}]), "ISO-8601"),
    "spec.intervals.0.evry": (with_spec(intervals=[{"evry": "PT1H"}]), "unknown key"),
    "spec.intervals.0": (with_spec(intervals=["PT1H"]), "must be an object"),
    "spec.at.1": (with_spec(at=["2026-06-01T00:00:00Z", "2026-06-01"]), "RFC 3339"),
    "spec.at.0": (with_spec(at=["2026-06-01T00:00:00.5Z"]), "whole second"),
    "spec.timezone": (
        with_spec(cron_expressions=["0 2 * * *"], timezone="Europe/Instanbul"),
        "did you mean Europe/Istanbul",
    ),
    "timezone": (GOOD | {"timezone": "Local"}, "not a time zone"),
    "spec.start_at": (with_spec(cron_expressions=["0 2 * * *"], start_at="tomorrow"), "RFC 3339"),
    "spec.endAt": (with_spec(cron_expressions=["0 2 * * *"], endAt=1_767_225_600), "RFC 3339"),
    "end_at": (
        GOOD | {"start_at": "2027-01-01T00:00:00Z", "end_at": "2026-06-01T00:00:00Z"},
        "must not be before start_at",
    ),
    "spec.end_at": (with_spec(cron_expressions=["0 2 * * *"], end_at="2025-01-01T00:00:00Z"), "end_at is in the past"),
    "jitter_seconds": (GOOD | {"jitter_seconds": 86_401}, "between 0 and 86400"),
    "spec.jitter_seconds": (with_spec(cron_expressions=["0 2 * * *"], jitter_seconds=0.0001), "millisecond"),
    "jitterMs": (GOOD | {"jitterMs": 1.5}, "whole number of milliseconds"),
    "jitter_ms": (GOOD | {"jitter_ms": -1}, "between 0 and 86400"),
    "spec.dst_gap": (with_spec(cron_expressions=["0 2 * * *"], dst_gap="never"), "next_valid, skip"),
    # action
    "action": ({"schedule_id": "s", "cron_expr": "0 2 * * *"}, "is required"),
    "action.kind": (with_action(kind="email"), "must be one of workflow, prompt"),
    "action.workflow_type": (with_action(kind="workflow"), "needs workflow_type or workflow_id or workflow_class"),
    "action.workflow_id": (with_action(workflow_id="a b"), "is not a valid ID"),
    "version": (GOOD | {"prompt": None, "workflow_id": "w", "version": "v2"}, "latest"),
    "action.version": (with_action(workflow_id="w", version=0), "between 1"),
    "prompt": (GOOD | {"prompt": "  \n"}, "non-blank"),
    "action.prompt": (with_action(prompt="ü" * 50_001), "100000 bytes"),
    "action.url": (with_action(url="ftp://example.com"), "http:// or https://"),
    "action.method": (with_action(url="http://a", method="TRACE"), "POST, GET"),
    "action.headers.X-A": (with_action(url="http://a", headers={"X-A": "b\r\nX-B: c"}), "one line"),
    "action.headers": (with_action(url="http://a", headers={"a b": "c"}), "not a valid header name"),
    "action.headers.Host": (with_action(url="http://a", headers={"Host": "b"}), "set by the launcher"),
    "action.headers.x-a": (with_action(url="http://a", headers={"X-A": "b", "x-a": "c"}), "specified twice"),
    "action.task": (with_action(kind="celery"), "is required"),
    "action.callable": (with_action(task="a", callable="b"), "conflicts with `action.task`"),
    "action.arguments": (with_action(command="backup", arguments=["a", 1]), "at most 1000 strings"),
    "action.input": (with_action(workflow_type="w", input="text"), "array or an object"),
    "action.queue": (with_action(kind="pull", workflow_type="w"), "is required"),
    "task_queue": (with_action(workflow_type="w") | {"task_queue": ""}, "between 1 and 256"),
    "action.timeoutSeconds": (with_action(prompt="x", timeoutSeconds=0), "between 1"),
    "action.delivery": (with_action(prompt="x", delivery="exactly_once"), "at_least_once, at_most_once"),
    # assignee, guards, policies
    "assignee_id": (GOOD | {"assignee_type": "agent"}, "is required"),
    "assignee.id": (GOOD | {"assignee": {"id": "a b"}}, "is not a valid ID"),
    "assignee_type": (GOOD | {"assignee_type": "robot", "assignee_id": "a"}, "agent, team"),
    "calendar_id": (GOOD | {"calendar_id": "a b"}, "is not a valid ID"),
    "calendars.1": (GOOD | {"calendars": ["a", "holidays:US@Europe/Nowhere"]}, "not a time zone"),
    "calendars": (GOOD | {"calendars": "weekends"}, "must be an array"),
    "pre_dispatch_condition": (GOOD | {"pre_dispatch_condition": {"/a": {"like": 1}}}, "unknown operator"),
    "inputs_rotation": (GOOD | {"inputs_rotation": [{}] * 1001}, "at most 1000"),
    "inputs_rotation.1": (GOOD | {"inputs_rotation": [{}, 5]}, "must be an object"),
    "budget.spending_limit_credits": (GOOD | {"budget": {"spending_limit_credits": "lots"}}, "number of credits"),
    "max_daily_battles": (GOOD | {"max_daily_battles": 1.5}, "must be an integer"),
    "limits.spendingLimitCredits": (GOOD | {"limits": {"spendingLimitCredits": -1}}, "between 0"),
    "limits.cost": (GOOD | {"limits": {"cost": "1e3"}}, "number of credits"),
    "limits.runtime": (GOOD | {"limits": {"runtime": 0}}, "between 1"),
    "overlap_policy": (GOOD | {"overlap_policy": "maybe"}, "buffer_one"),
    "queue_policy.mode": (GOOD | {"queue_policy": {"mode": "maybe"}}, "buffer_one"),
    "queuePolicy.onMissed": (GOOD | {"queuePolicy": {"onMissed": "later"}}, "fire_once"),
    "queue_policy.maxConcurrency": (GOOD | {"queue_policy": {"maxConcurrency": 0}}, "between 1"),
    "queue_policy": (GOOD | {"queue_policy": "serial"}, "must be an object"),
    "priority": (GOOD | {"priority": 101}, "must be between -100 and 100"),
    "max_catchup": (GOOD | {"max_catchup": True}, "must be an integer"),
    "approval_policy.requiresApproval": (GOOD | {"approval_policy": {"requiresApproval": "yes"}}, "true or false"),
    "retry_policy.retryOn": (GOOD | {"retry_policy": {"retryOn": ["sunrise"]}}, "provider_error"),
    "failure_policy.fallback_assignee_id": (GOOD | {"failure_policy": {"mode": "fallback"}}, "is required"),
    "failing_after": (GOOD | {"failing_after": 0}, "between 1"),
    "pause_on_failure": (GOOD | {"pause_on_failure": 0}, "between 1"),
    "maxRuns": (GOOD | {"maxRuns": 0}, "between 1"),
    "enabled": (GOOD | {"enabled": 1}, "true or false"),
    # names
    "cron_exprs": (GOOD | {"cron_exprs": []}, "did you mean `cron_expr"),
    "spec.timezon": (with_spec(cron_expressions=["0 2 * * *"], timezon="UTC"), "did you mean `timezone`"),
    "action.timezone": (with_action(prompt="x", timezone="UTC"), "belongs to `spec.timezone`"),
    "retryPolicy.maxRetrys": (GOOD | {"retryPolicy": {"maxRetrys": 1}}, "did you mean `max_retries`"),
    "zzz": (GOOD | {"zzz": 1}, "unknown field"),
}


@pytest.mark.parametrize(("path", "document", "text"), [(p, d, t) for p, (d, t) in WRONG.items()], ids=WRONG)
def test_a_problem_is_found_under_its_path(path: str, document: dict[str, Any], text: str) -> None:
    errors = errors_of(document)
    assert list(errors) == [path]
    assert text in errors[path][0]


URLS = [
    "",
    "example.com",
    "http://",
    "http:///path",
    "https://user@example.com",
    "https://user:pass@example.com/",
    "http://exa mple.com",
    "http://example.com\\@evil.com",
    "http://exämple.com",
    "http://example.com/\n",
    "http://[::1",
    "http://example.com:99999/",
    "file:///etc/passwd",
    "http://" + "a" * 2_048,
    5,
]


@pytest.mark.parametrize("url", URLS, ids=lambda url: repr(url)[:40])
def test_a_url_that_is_no_plain_web_address_is_refused(url: object) -> None:
    assert list(errors_of(with_action(url=url))) == ["action.url"]


DISAGREEMENTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "flat and nested cron": (
        GOOD | {"spec": {"cron_expressions": ["0 3 * * *"]}},
        "spec.cron_expressions",
        "cron_expr",
    ),
    "two spellings": (GOOD | {"cronExpr": "0 3 * * *"}, "cronExpr", "cron_expr"),
    "two units": (GOOD | {"jitter_seconds": 1, "jitter_ms": 1_001}, "jitter_ms", "jitter_seconds"),
    "queue policy": (
        GOOD | {"overlap_policy": "allow", "queue_policy": {"mode": "serial"}},
        "queue_policy.mode",
        "overlap_policy",
    ),
    "missed": (
        GOOD | {"queue_policy": {"onMissed": "skip"}, "catchup_policy": "fire_all"},
        "catchup_policy",
        "queue_policy.onMissed",
    ),
    "paused": (GOOD | {"enabled": True, "paused": True}, "paused", "enabled"),
    "inputs": (GOOD | {"inputs": [1], "arguments": [True]}, "arguments", "inputs"),
    "note": (GOOD | {"note": "a", "notes": "b"}, "notes", "note"),
    "budget": (
        GOOD | {"max_daily_runs": 1, "budget": {"maxDailyBattles": 2}},
        "budget.maxDailyBattles",
        "max_daily_runs",
    ),
    "queues": (with_action(task="t", queue="a", task_queue="b"), "action.task_queue", "action.queue"),
}


@pytest.mark.parametrize(("document", "path", "other"), DISAGREEMENTS.values(), ids=DISAGREEMENTS)
def test_the_same_thing_given_twice_and_differently_is_refused_with_both_names(
    document: dict[str, Any], path: str, other: str
) -> None:
    errors = errors_of(document)
    assert list(errors) == [path]
    assert f"conflicts with `{other}`" in errors[path][0]


FOREIGN: dict[str, tuple[dict[str, Any], str]] = {
    "url in a prompt": ({"kind": "prompt", "prompt": "x", "url": "http://a"}, "action.url"),
    "prompt in a workflow": ({"kind": "workflow", "workflow_type": "w", "prompt": "x"}, "action.prompt"),
    "callable in celery": ({"kind": "celery", "task": "t", "callable": "c"}, "action.callable"),
    "version in a pull": ({"kind": "pull", "workflow_type": "w", "queue": "q", "version": 1}, "action.version"),
}


@pytest.mark.parametrize(("action", "path"), FOREIGN.values(), ids=FOREIGN)
def test_a_field_of_another_kind_is_refused(action: dict[str, Any], path: str) -> None:
    errors = errors_of(with_action(**action))
    assert list(errors) == [path]
    assert "belongs to an action of kind" in errors[path][0]


def test_a_name_is_one_line() -> None:
    assert "control character" in errors_of(GOOD | {"name": "a\nb"})["name"][0]


def test_headers_are_bounded() -> None:
    headers = {f"x-{n}": "a" for n in range(101)}
    assert "101 headers" in errors_of(with_action(url="http://a", headers=headers))["action.headers"][0]


def test_fields_of_two_kinds_without_a_kind_are_refused_by_name() -> None:
    errors = errors_of({"schedule_id": "s", "cron_expr": "0 2 * * *", "prompt": "x", "action": {"url": "http://a"}})
    assert errors == {
        "action": ["`prompt` and `action.url` belong to different kinds of action; use the fields of one kind"]
    }


def test_all_problems_are_said_at_once() -> None:
    document = {
        "spec": {"cron_expressions": ["0 2 * * *", "nonsense", 5], "timezone": "Mars", "jitter_seconds": -1, "foo": 1},
        "action": {"url": "ftp://a", "method": "x", "timeout_seconds": 0},
        "retry_policy": {"maxRetries": -1, "backoffMs": "x", "retry_on": 5},
        "queue_policy": {"mode": "x", "priority": "high"},
        "labels": {"a": None, "b": []},
        "max_runs": 0,
        "bar": 1,
    }
    assert set(errors_of(document)) == {
        "schedule_id",
        "spec.cron_expressions.1",
        "spec.cron_expressions.2",
        "spec.timezone",
        "spec.jitter_seconds",
        "spec.foo",
        "action.url",
        "action.method",
        "action.timeout_seconds",
        "retry_policy.maxRetries",
        "retry_policy.backoffMs",
        "retry_policy.retry_on",
        "queue_policy.mode",
        "queue_policy.priority",
        "labels.a",
        "labels.b",
        "max_runs",
        "bar",
    }


def test_a_bad_fallback_is_said_once() -> None:
    errors = errors_of(GOOD | {"failure_policy": {"mode": "fallback", "fallback_assignee_id": ""}})
    assert {path: len(texts) for path, texts in errors.items()} == {"failure_policy.fallback_assignee_id": 1}


def test_an_unreadable_cron_is_not_also_missing() -> None:
    assert list(errors_of(GOOD | {"cron_expr": 5})) == ["cron_expr"]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"cron_expr": "0 0 30 2 *"}, "spec.cron_expr"),
        ({"at": ["2020-01-01T00:00:00Z"]}, "spec.at"),
        ({"at": ["2020-01-01T00:00:00Z"], "cron_expressions": ["0 0 31 2 *"]}, "spec"),
    ],
    ids=["30 February", "a past moment", "both"],
)
def test_a_spec_without_a_future_is_refused(spec: dict[str, Any], path: str) -> None:
    errors = errors_of(with_spec(**spec))
    assert list(errors) == [path]
    assert "never fires" in errors[path][0]


def test_a_field_at_the_top_that_belongs_inside_an_object_is_sent_there() -> None:
    errors = errors_of(GOOD | {"max_retries": 3, "backoff_ms": 5, "max_token": 1})
    assert errors["max_retries"] == ["unknown field; it belongs to `retry_policy.max_retries`"]
    assert errors["backoff_ms"] == ["unknown field; it belongs to `retry_policy.backoff_ms`"]
    assert errors["max_token"] == ["unknown field; did you mean `max_tokens`?"]


def test_zones_that_disagree_are_blamed_on_the_zone() -> None:
    errors = errors_of(GOOD | {"cron_expr": "CRON_TZ=Asia/Tokyo 0 2 * * *", "timezone": "UTC"})
    assert "differ" in errors["timezone"][0]
    errors = errors_of(with_spec(cron_expressions=["TZ=Asia/Tokyo 0 2 * * *", "TZ=UTC 0 2 * * *"]))
    assert "differ" in errors["spec"][0]


@pytest.mark.parametrize("document", [None, 5, "text", True, [1], ["a"]], ids=repr)
def test_a_document_is_an_object(document: object) -> None:
    assert "must be an object" in errors_of(document)["document"][0]


def test_an_empty_array_is_an_empty_document() -> None:
    assert set(errors_of([])) == {"schedule_id", "spec", "action"}


def test_a_schedule_with_neither_spec_nor_action_is_refused() -> None:
    assert set(errors_of({"schedule_id": "s", "spec": None, "action": []})) == {"spec", "action"}


def test_problems_are_counted_to_fifty() -> None:
    errors = errors_of(GOOD | {f"unknown_{n}": n for n in range(1_000)})
    assert sum(len(texts) for texts in errors.values()) == 50
