"""Every refusal becomes the exception that the published client has for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from contract.documents import REPORT, nightly
from contract.published import ClientError, Published


@pytest.fixture(params=["async", "sync"])
def client(request: pytest.FixtureRequest, published: Published) -> Published:
    return replace(published, sync=request.param == "sync")


def refusal(call: Any, **args: Any) -> ClientError:
    with pytest.raises(ClientError) as refused:
        call(**args)
    return refused.value


WINDOW = {"start_time": "2026-03-01T00:00:00Z", "end_time": "2026-03-02T00:00:00Z"}


@pytest.mark.parametrize(
    ("call", "args"),
    [("describe", {}), ("update", {"note": "x"}), ("pause", {}), ("resume", {}), ("trigger", {}), ("delete", {}),
     ("backfill", WINDOW)],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
@pytest.mark.parametrize("schedule_id", ["ghost", "workflow-ghost"])
def test_an_unknown_schedule_is_schedule_not_found(
    client: Published, call: str, args: dict[str, Any], schedule_id: str
) -> None:
    refused = refusal(getattr(client.of(schedule_id), call), **args)
    assert (refused.type, refused.schedule_id) == ("ScheduleNotFound", schedule_id)


def test_an_id_that_is_taken_is_schedule_already_exists(client: Published) -> None:
    client.create_schedule(**nightly())
    assert refusal(client.create_schedule, **nightly()).type == "ScheduleAlreadyExists"


@pytest.mark.parametrize("namespace", ["nowhere", "x" * 300])
def test_an_unknown_namespace_is_namespace_not_found(client: Published, namespace: str) -> None:
    elsewhere = client.with_options(namespace=namespace)
    assert refusal(elsewhere.create_schedule, **nightly()).type == "NamespaceNotFound"
    assert refusal(elsewhere.list_schedules).type == "NamespaceNotFound"
    assert refusal(elsewhere.describe_schedule, schedule_id="a").type == "NamespaceNotFound"


@pytest.mark.parametrize("token", [None, "wrong", "hor_contracT"])
def test_a_missing_or_wrong_token_is_unauthorized(client: Published, token: str | None) -> None:
    refused = refusal(client.with_options(token=token).list_schedules)
    assert refused.type == "Unauthorized"
    assert "token" in refused.text


def test_discovery_needs_a_token_too(client: Published) -> None:
    action = {**REPORT, "input": [1]}
    refused = refusal(client.with_options(token="wrong").create_schedule, **nightly(action=action))
    assert refused.type in ("RuntimeDiscoveryUnavailable", "Unauthorized")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"spec": {}}, "spec"),
        ({"spec": {"cron_expressions": ["0 25 * * *"]}}, "spec.cron_expressions.0"),
        ({"spec": {"cron_expressions": ["0 0 30 2 *"]}}, "spec.cron_expressions"),
        ({"spec": {"intervals": [{"every": "soon"}]}}, "spec.intervals.0.every"),
        ({"spec": {"intervals": [{"every": "P1M"}]}}, "spec.intervals.0.every"),
        ({"spec": {"cron_expressions": ["0 2 * * *"], "timezone": "Mars/Base"}}, "spec.timezone"),
        ({"action": {"workflow_type": ""}}, "action.workflow_type"),
        ({"action": {**REPORT, "run_timeout_seconds": 0}}, "action.run_timeout_seconds"),
        ({"overlap_policy": "sometimes"}, "overlap_policy"),
        ({"jitter_seconds": -1}, "jitter_seconds"),
        ({"max_runs": 0}, "max_runs"),
        ({"note": "x" * 1_001}, "note"),
        ({"memo": {"x": "y" * 270_000}}, "memo"),
    ],
    ids=str,
)  # fmt: skip
def test_a_bad_definition_is_invalid_argument_with_its_fields(
    published: Published, changes: dict[str, Any], field: str
) -> None:
    refused = refusal(published.create_schedule, **nightly(**changes))
    assert refused.type == "InvalidArgument"
    assert field in refused.errors, refused.errors
    assert refused.text
    assert published.list_schedules()["schedules"] == []


def test_a_bad_update_is_invalid_argument_and_changes_nothing(client: Published) -> None:
    client.create_schedule(**nightly())
    before = client.describe_schedule(schedule_id="nightly")
    refused = refusal(client.update_schedule, schedule_id="nightly", spec={"cron_expressions": ["nope"]})
    assert (refused.type, list(refused.errors)) == ("InvalidArgument", ["spec.cron_expressions.0"])
    assert client.describe_schedule(schedule_id="nightly") == before


def test_a_request_that_is_too_large_is_refused_once(client: Published) -> None:
    refused = refusal(client.create_schedule, **nightly(memo={"x": "y" * 3_000_000}))
    assert refused.type in ("ServerError", "InvalidArgument")
    assert refused.told.get("status", 422) in (413, 422)


@pytest.mark.parametrize("schedule_id", ["a/b", "a%2Fb", "a/b/c", "%00", "%ff", "a%0a", "x" * 5_000])
def test_an_id_that_cannot_be_is_not_found_and_never_our_fault(client: Published, schedule_id: str) -> None:
    refused = refusal(client.of(schedule_id).pause)
    assert refused.type in ("ScheduleNotFound", "ServerError")
    assert refused.told.get("status", 404) in (404, 405)
