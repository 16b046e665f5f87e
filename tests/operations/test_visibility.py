"""The one-line language for lists, and the tokens that lead from page to page."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from typing import Any

import pytest
from operations.desks import ADMIN, VIEWER, Office

from horarium.features.schedules import lifecycle, lists
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.filters import (
    MAX_QUERY_LENGTH,
    TEXT_FIELDS,
    FilterClause,
    ForeignPageToken,
    InvalidQuery,
    ListRefused,
    MalformedPageToken,
    OtherFilters,
    ScheduleFilter,
    StalePageToken,
    UnsupportedField,
    UnsupportedPredicate,
    fingerprint,
    make_list_token,
    parse_query,
    read_list_token,
)
from horarium.features.schedules.list_rows import Cursor

CURSOR = Cursor(1_772_323_200_000_000, "nightly")
FILTERS = fingerprint({"status": "active", "query": None})


@pytest.mark.parametrize(
    ("text", "clauses"),
    [
        ('Status = "active"', [FilterClause("Status", "active")]),
        ("  WorkflowType='report'  ", [FilterClause("WorkflowType", "report")]),
        (r"Note = 'it\'s \\ fine'", [FilterClause("Note", "it's \\ fine")]),
        (r'Note = "a \"quote\" \u00fc"', [FilterClause("Note", 'a "quote" ü')]),
        ("tenant = 42 and  live = TRUE", [FilterClause("tenant", 42), FilterClause("live", True)]),
        ("a = -1.5 AND b = false And c = 0", [FilterClause("a", -1.5), FilterClause("b", False), FilterClause("c", 0)]),
        ("team.name-x = 'OR NOT IN >= LIKE'", [FilterClause("team.name-x", "OR NOT IN >= LIKE")]),
    ],
)
def test_clauses_are_read(text: str, clauses: list[FilterClause]) -> None:
    assert list(parse_query(text)) == clauses
    assert [type(each.value) for each in parse_query(text)] == [type(each.value) for each in clauses]


@pytest.mark.parametrize(
    "text",
    [
        "a != 1", "a <> 1", "a >= 1", "a <= 1", "a > 1", "a < 1", "a = 1 OR b = 2", "NOT a = 1",
        "a LIKE 'x'", "a contains 'x'", "a starts_with 'x'", "a ENDS_WITH 'x'", "a IN 'x'",
    ],
)  # fmt: skip
def test_what_other_languages_have_is_named(text: str) -> None:
    with pytest.raises(UnsupportedPredicate) as refused:
        parse_query(text)
    assert refused.value.parameter == "query"


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "Status", "Status =", "= 'x'", "'Status' = 'x'", "Status = active", "a = 1 AND", "AND a = 1",
        "a = 1 b = 2", "a = 1 'AND' b = 2", "a = 'open", 'a = "\\x"', 'a = "\\ud800"', "a = 1 ; b", "a = 1.2.3",
        "a = 12x", "a == 1", "x" * (MAX_QUERY_LENGTH + 1), *(f"{name} = 1" for name in TEXT_FIELDS),
    ],
)  # fmt: skip
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        parse_query(text)


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────


def found(office: Office, query: str) -> list[str]:
    page = lists.list_schedules(office.resources, VIEWER, ScheduleFilter(query=parse_query(query)))
    return [each.row.schedule_id for each in page.schedules]


@pytest.mark.both_databases
def test_a_query_finds_what_has_no_column_of_its_own(office: Office) -> None:
    long = "\U0001f552" * 1_000
    office.create(schedule_id="a", note=long, action={"workflow_type": "w", "task_queue": "slow"})
    office.create(schedule_id="b", note="short", search_attributes={"share": 2.0, "tenant": 2})
    assert found(office, f"Note = '{long}'") == ["a"]
    assert found(office, "TaskQueue = 'slow'") == ["a"]
    assert found(office, "share = 2 AND tenant = 2.0") == ["b"]
    assert found(office, "TaskQueue = 'slow' AND Note = 'short'") == []


def test_a_query_follows_an_edit(office: Office) -> None:
    office.create(schedule_id="a", note="old")
    schedule_service.update(office.resources, ADMIN, "a", {"note": "new"})
    assert (found(office, "Note = 'old'"), found(office, "Note = 'new'")) == ([], ["a"])


def test_an_attribute_that_no_schedule_carries_is_taken_for_a_mistake(office: Office) -> None:
    office.create(schedule_id="a", search_attributes={"tenant": 2})
    with pytest.raises(UnsupportedField, match="tenent"):
        found(office, "tenent = 2")


def test_a_status_that_nobody_has_is_refused(office: Office) -> None:
    with pytest.raises(InvalidQuery, match="active, paused"):
        found(office, "Status = 'deleted'")


def test_a_page_goes_on_only_while_its_last_schedule_is_there(office: Office) -> None:
    for name in ("a", "b", "c"):
        office.create(schedule_id=name)
    token = lists.list_schedules(office.resources, VIEWER, page_size=1).next_page_token
    [shown] = lists.list_schedules(office.resources, VIEWER, page_size=1).schedules
    lifecycle.delete(office.resources, ADMIN, shown.row.schedule_id)
    with pytest.raises(StalePageToken) as refused:
        lists.list_schedules(office.resources, VIEWER, next_page_token=token)
    cursor = refused.value.last_safe_cursor
    assert isinstance(cursor, dict)
    assert cursor["schedule_id"] == shown.row.schedule_id


# ── tokens ───────────────────────────────────────────────────────────────────────────────────────────


def signed(content: Any) -> str:
    text = base64.urlsafe_b64encode(content if isinstance(content, bytes) else json.dumps(content).encode()).decode()
    return f"{text.rstrip('=')}.{sha256(text.rstrip('=').encode()).hexdigest()}"


def forged(**changes: Any) -> str:
    cursor = {"created_at": 1, "schedule_id": "x"}
    return signed({"version": 1, "namespace": "default", "filter_fingerprint": FILTERS, "cursor": cursor} | changes)


def test_a_token_leads_back_to_its_cursor() -> None:
    assert read_list_token(make_list_token("default", FILTERS, CURSOR), "default", FILTERS) == CURSOR


def test_filters_that_are_not_set_are_no_filters() -> None:
    assert fingerprint({"status": "active"}) == FILTERS
    assert fingerprint({"status": "paused"}) != FILTERS
    assert fingerprint({"labels": {"a": "1", "b": "2"}}) == fingerprint({"labels": {"b": "2", "a": "1"}})


def test_a_token_of_another_namespace_is_refused_and_tells_nothing() -> None:
    with pytest.raises(ForeignPageToken) as refused:
        read_list_token(make_list_token("other", FILTERS, CURSOR), "default", FILTERS)
    assert refused.value.last_safe_cursor is None


def test_a_token_of_other_filters_is_refused_with_what_was_seen() -> None:
    with pytest.raises(OtherFilters) as refused:
        read_list_token(make_list_token("default", fingerprint({}), CURSOR), "default", FILTERS)
    assert refused.value.last_safe_cursor == {"created_at": "2026-03-01T00:00:00Z", "schedule_id": "nightly"}


@pytest.mark.parametrize(
    "token",
    [
        "", "x", "x.y", "ü.ü", "x" * 10_000, make_list_token("default", FILTERS, CURSOR)[:-1],
        "A" + make_list_token("default", FILTERS, CURSOR)[1:], signed(b"not json"), signed([]), signed({}),
        forged(version=2), forged(namespace=7), forged(cursor=None), forged(cursor={"created_at": 1}),
        forged(cursor={"created_at": "1", "schedule_id": "x"}), forged(cursor={"created_at": 1, "schedule_id": 1}),
        forged(cursor={"created_at": 2**63, "schedule_id": "x"}),
        forged(cursor={"created_at": 1, "schedule_id": "a\0"}),
        forged(cursor={"created_at": 1, "schedule_id": "a" * 129}),
    ],
)  # fmt: skip
def test_what_no_page_has_given_is_malformed(token: str) -> None:
    with pytest.raises(MalformedPageToken):
        read_list_token(token, "default", FILTERS)


def test_every_refusal_has_a_reason_of_its_own() -> None:
    kinds = ListRefused.__subclasses__()
    assert len({kind.reason for kind in kinds}) == len(kinds) == 8
