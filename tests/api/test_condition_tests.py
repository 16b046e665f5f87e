"""A condition is tried clause by clause, on what somebody gives or on what a schedule would see, and fails closed."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService

HOURLY: dict[str, Any] = {"cron_expressions": ["0 * * * *"], "overlap_policy": "allow_all"}
FEW_FAILED = {"/last_24h_stats/failed": {"lt": 3}, "/prior_run_result/rows": {"gt": 10}}


def tried(http: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = http.post("/api/conditions/test", json=body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_each_clause_says_what_it_saw(http: httpx.Client) -> None:
    found = tried(http, condition=FEW_FAILED, context={"last_24h_stats": {"failed": 1}})
    assert (found["holds"], found["error"]) == (False, None)
    first, second = found["findings"]
    assert first == {
        "path": "/last_24h_stats/failed", "operator": "lt", "value": 3, "found": True, "actual": 1, "holds": True,
        "sentence": "true: /last_24h_stats/failed is less than 3; the value is 1",
    }  # fmt: skip
    assert (second["found"], second["actual"], second["holds"]) == (False, None, False)


def test_the_live_context_is_what_the_tick_sees(http: httpx.Client, horarium: TestService) -> None:
    """The same condition, asked of the same schedule by the test and by the clock."""
    condition = {"/last_24h_stats/total": {"gt": 0}}
    horarium.create(schedule_id="s", workflow_type="w", **HOURLY, pre_dispatch_condition=condition)
    assert tried(http, condition=condition, schedule_id="s")["holds"] is False
    horarium.advance(hours=1)
    assert http.get("/api/schedules/s").json()["last_skip_reason"] == "condition_failed"
    assert http.post("/api/schedules/s/trigger", json={}).status_code == 200
    found = tried(http, condition=condition, schedule_id="s")
    assert found["holds"] is True
    assert found["context"] == {
        "prior_run_result": None,
        "last_24h_stats": {"succeeded": 0, "failed": 0, "total": 1},
    }
    horarium.advance(hours=1)
    assert http.get("/api/schedules/s").json()["fires_count"] == 2


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_without_a_schedule_it_is_what_a_new_one_sees(http: httpx.Client) -> None:
    found = tried(http, condition={"/prior_run_result": {"eq": None}, "/signal_rpc_result/depth": {"gt": 1}})
    assert [each["holds"] for each in found["findings"]] == [True, False]
    assert found["context"]["signal_rpc_result"] is None
    assert "no signal provider is configured" in found["warnings"][0]
    wrong = tried(http, condition={"/prior_run_reslt": {"neq": 1}})
    assert "did you mean /prior_run_result?" in wrong["warnings"][0]


UNREADABLE: list[object] = [
    "always", [1], {"a": {"eq": 1}}, {"/a": {"like": 1}}, {"/a": 1}, {"/a": {"eq": [[[]]] * 20_000}},
]  # fmt: skip


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_what_cannot_be_read_does_not_hold_and_what_is_large_is_cut(http: httpx.Client) -> None:
    for condition in UNREADABLE:
        found = tried(http, condition=condition, context={"a": 1})
        assert (found["holds"], bool(found["error"]), found["findings"]) == (False, True, []), str(condition)[:80]
    found = tried(http, condition={"/a": {"contains": "x"}}, context={"a": "x" * 500_000})
    assert found["holds"] is True
    assert len(found["findings"][0]["actual"]) == 1_000
    assert (found["context"], found["context_omitted"]) == (None, True)


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_both_a_schedule_and_a_context_are_refused(http: httpx.Client, horarium: TestService) -> None:
    horarium.create(schedule_id="s", workflow_type="w", **HOURLY)
    both = http.post("/api/conditions/test", json={"condition": {}, "schedule_id": "s", "context": {"a": 1}})
    assert list(both.json()["errors"]) == ["context"]
    assert http.post("/api/conditions/test", json={"schedule_id": "nobody"}).status_code == 404
