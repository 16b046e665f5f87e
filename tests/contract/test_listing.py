"""The published client lists schedules: every filter, page by page, and each refusal as a ScheduleListError."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from contract.conftest import Server
from contract.documents import REPORT, nightly
from contract.published import ClientError, Published


def ids(page: dict[str, Any]) -> list[str]:
    return [each["schedule_id"] for each in page["schedules"]]


@pytest.fixture
def stocked(published: Published) -> Published:
    """s0 … s5, the even ones paused, the last two of another workflow and queue."""
    for number in range(6):
        other = number >= 4
        published.create_schedule(
            **nightly(
                f"s{number}",
                action={"workflow_type": "other", "task_queue": "slow"} if other else REPORT,
                paused=number % 2 == 0,
                note=f"note {number}",
                search_attributes={
                    "number": number,
                    "even": number % 2 == 0,
                    "tags": ["all", f"t{number}"],
                    "share": 0.5,
                },
            )
        )
    return published


def refusal(published: Published, **asked: Any) -> ClientError:
    with pytest.raises(ClientError) as refused:
        published.list_schedules(**asked)
    assert refused.value.type == "ScheduleListError"
    return refused.value


# ── what is listed ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sync", [False, True], ids=["async", "sync"])
def test_the_newest_come_first(stocked: Published, sync: bool) -> None:
    page = replace(stocked, sync=sync).list_schedules()
    assert ids(page) == [f"s{number}" for number in (5, 4, 3, 2, 1, 0)]
    assert page["next_page_token"] is None


def test_an_empty_namespace_has_an_empty_list(published: Published) -> None:
    assert published.list_schedules() == {"schedules": [], "next_page_token": None}


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        ({"status": "paused"}, "s4 s2 s0"),
        ({"status": "active"}, "s5 s3 s1"),
        ({"workflow_type": "other"}, "s5 s4"),
        ({"workflow_type": "nobody"}, ""),
        ({"status": "active", "workflow_type": "other"}, "s5"),
        ({"query": 'ScheduleId = "s3"'}, "s3"),
        ({"query": "Status = 'paused' AND WorkflowType = 'report'"}, "s2 s0"),
        ({"query": "TaskQueue = 'slow'"}, "s5 s4"),
        ({"query": "TaskQueue = 'nobody'"}, ""),
        ({"query": "Note = 'note 1'"}, "s1"),
        ({"query": "number = 4"}, "s4"),
        ({"query": "even = true and TaskQueue = \"reports\""}, "s2 s0"),
        ({"query": "tags = 't5'"}, "s5"),
        ({"query": "tags = 'all' AND tags = 't2'"}, "s2"),
        ({"query": "tags = 't1' AND tags = 't2'"}, ""),
        ({"query": "share = 0.5 AND number = 1"}, "s1"),
        ({"query": "ScheduleId = 's1' AND ScheduleId = 's2'"}, ""),
        ({"query": "WorkflowType = 'report'", "workflow_type": "other"}, ""),
        ({"query": "Status = 'active'", "status": "paused"}, ""),
        ({"query": "Status = 'active' AND Status = 'paused'"}, ""),
    ],
    ids=str,
)  # fmt: skip
def test_filters_are_joined_by_and(stocked: Published, filters: dict[str, Any], found: str) -> None:
    assert ids(stocked.list_schedules(**filters)) == found.split()


def test_pages_join_without_gap_or_overlap_also_when_their_size_changes(stocked: Published) -> None:
    first = stocked.list_schedules(page_size=1)
    second = stocked.list_schedules(page_size=3, next_page_token=first["next_page_token"])
    third = stocked.list_schedules(page_size=200, next_page_token=second["next_page_token"])
    assert [ids(page) for page in (first, second, third)] == [["s5"], ["s4", "s3", "s2"], ["s1", "s0"]]
    assert third["next_page_token"] is None


def test_the_filters_go_on_with_the_token(stocked: Published) -> None:
    filters = {"status": "paused", "query": "tags = 'all'", "page_size": 2}
    first = stocked.list_schedules(**filters)
    assert ids(first) + ids(stocked.list_schedules(**filters, next_page_token=first["next_page_token"])) == [
        "s4", "s2", "s0",
    ]  # fmt: skip


def test_a_deleted_schedule_is_never_listed(stocked: Published) -> None:
    stocked.delete_schedule(schedule_id="s3")
    assert "s3" not in ids(stocked.list_schedules())


# ── what is refused ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({"status": "sleepy"}, "status"),
        ({"status": ""}, "status"),
        ({"workflow_type": ""}, "workflow_type"),
        ({"query": ""}, "query"),
        ({"next_page_token": ""}, "next_page_token"),
        ({"page_size": 0}, "page_size"),
        ({"page_size": 201}, "page_size"),
        ({"page_size": -1}, "page_size"),
    ],
    ids=str,
)
def test_a_bad_value_is_refused_with_its_field(published: Published, asked: dict[str, Any], field: str) -> None:
    refused = refusal(published, **asked)
    assert (refused.status, refused.reason, refused.field) == (422, "validation_failed", field)
    assert field in refused.errors
    assert refused.last_safe_cursor is None


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("Status != 'active'", "unsupported_schedule_visibility_predicate"),
        ("Status = 'active' OR Status = 'paused'", "unsupported_schedule_visibility_predicate"),
        ("ScheduleId LIKE 's%'", "unsupported_schedule_visibility_predicate"),
        ("Owner = 'me'", "unsupported_schedule_visibility_field"),
        ("Status = 1", "invalid_schedule_visibility_query"),
        ("Status = 'sleepy'", "invalid_schedule_visibility_query"),
        ("Status", "invalid_schedule_visibility_query"),
        ("x" * 2_049, "invalid_schedule_visibility_query"),
    ],
)
def test_a_bad_query_is_refused_with_its_reason(published: Published, query: str, reason: str) -> None:
    refused = refusal(published, query=query)
    assert (refused.status, refused.reason, refused.field) == (422, reason, "query")
    assert refused.errors["query"]


@pytest.mark.parametrize("token", ["nonsense", "a.b", "x" * 4_096])
def test_a_malformed_token_is_refused(published: Published, token: str) -> None:
    refused = refusal(published, next_page_token=token)
    assert (refused.status, refused.reason) == (400, "malformed_schedule_page_token")
    assert (refused.field, refused.last_safe_cursor) == ("next_page_token", None)


def test_a_token_of_another_namespace_is_refused(stocked: Published, server: Server) -> None:
    token = stocked.list_schedules(page_size=1)["next_page_token"]
    refused = refusal(stocked.with_options(namespace=server.new_namespace()), next_page_token=token)
    assert (refused.status, refused.reason) == (403, "schedule_page_token_namespace_mismatch")


@pytest.mark.parametrize("changed", [{}, {"status": "active"}, {"query": "tags = 'all'"}], ids=str)
def test_a_token_of_other_filters_is_refused(stocked: Published, changed: dict[str, Any]) -> None:
    token = stocked.list_schedules(status="paused", page_size=1)["next_page_token"]
    refused = refusal(stocked, next_page_token=token, **changed)
    assert (refused.status, refused.reason) == (409, "schedule_page_token_filter_mismatch")
    assert refused.last_safe_cursor["schedule_id"] == "s4"


def test_a_token_whose_schedule_is_gone_is_stale(stocked: Published) -> None:
    token = stocked.list_schedules(page_size=2)["next_page_token"]
    stocked.delete_schedule(schedule_id="s4")
    refused = refusal(stocked, next_page_token=token)
    assert (refused.status, refused.reason, refused.field) == (409, "stale_schedule_page_token", "next_page_token")
    assert refused.last_safe_cursor["schedule_id"] == "s4"


def test_a_token_whose_id_was_used_again_is_stale(stocked: Published) -> None:
    token = stocked.list_schedules(page_size=2)["next_page_token"]
    stocked.delete_schedule(schedule_id="s4")
    stocked.create_schedule(**nightly("s4"))
    assert refusal(stocked, next_page_token=token).reason == "stale_schedule_page_token"
