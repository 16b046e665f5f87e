"""The lanes of the agenda: complete counts of each schedule, whatever the others do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from horarium.features.forecast import agenda_lanes
from horarium.features.forecast import lane_rows as stored_lanes
from horarium.features.forecast.agenda import EVERYTHING, AgendaResult
from horarium.features.tenants import service as tenant_service
from horarium.instant import HOUR
from horarium.platform.caller import Caller
from horarium.platform.wire import Role
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases

WINDOW: dict[str, Any] = {
    "from": "2026-03-01T00:00:00Z",
    "to": "2026-03-01T06:00:00Z",
    "bucket_seconds": 3_600,
    "lanes": True,
}
BAD = {"failed", "timed_out", "launch_failed", "unknown"}
KINDS = ("dispatched", "skipped", "held", "missed", "failed")


def add(http: httpx.Client, schedule_id: str, cron: str, **fields: Any) -> None:
    document = {
        "schedule_id": schedule_id,
        "spec": {"cron_expressions": [cron]},
        "action": {"workflow_type": "w", "timeout_seconds": 360_000},
        "retry_policy": {"max_retries": 0},
        **fields,
    }
    answer = http.post("/api/schedules", json=document)
    assert answer.status_code == 201, answer.text


def look(http: httpx.Client, **query: Any) -> dict[str, Any]:
    answer = http.get("/api/agenda", params={**WINDOW, **query})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def lanes_of(found: dict[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    """By schedule and hour, the counts that are not 0."""
    return {
        lane["schedule_id"]: {
            bucket["at"][11:13]: {kind: bucket[kind] for kind in KINDS if bucket.get(kind)}
            for bucket in lane["buckets"]
        }
        for lane in found["lanes"]
    }


def lanes_of_rows(found: dict[str, Any]) -> dict[str, dict[str, dict[str, int]]]:
    """The same, counted from the single rows."""
    counted: dict[str, dict[str, Counter[str]]] = {}
    for row in found["rows"]:
        bucket = counted.setdefault(row["schedule_id"], {}).setdefault(row["at"][11:13], Counter())
        if row["decision"] == "dispatch":
            kind = "held" if row.get("held") else "dispatched"
        else:
            kind = "missed" if row["reason"] in ("missed", "catchup_cap") else "skipped"
        bucket[kind] += row.get("count", 1)
        bucket["failed"] += row.get("state") in BAD
    return {
        name: {at: {kind: many for kind, many in counts.items() if many} for at, counts in buckets.items()}
        for name, buckets in counted.items()
    }


def world(http: httpx.Client, horarium: TestService) -> None:
    """One schedule for each way in which an occurrence can end; it is 03:20 at the end."""
    add(http, "busy", "*/20 * * * *")
    add(http, "buffering", "*/30 * * * *", overlap_policy="buffer_all", max_buffered=3)
    add(http, "closed", "10 * * * *", calendars=["weekends-only"])
    add(http, "resting", "15 * * * *", paused=True)
    add(http, "failing", "5 * * * *")
    add(http, "asleep", "*/10 * * * *", catchup_policy="skip", overlap_policy="allow_all")
    horarium.advance(hours=1, minutes=6)
    horarium.fail(horarium.runs("failing")[-1])
    horarium.advance(minutes=24)
    horarium.sleep(hours=1, minutes=30)
    horarium.settle()
    horarium.advance(minutes=20)
    http.post(
        "/api/schedules/asleep/backfill",
        json={"start_time": "2026-03-01T02:00:00Z", "end_time": "2026-03-01T02:20:00Z", "overlap_policy": "allow_all"},
    )


@pytest.mark.archived
def test_the_counts_of_a_lane_are_those_of_its_rows(http: httpx.Client, horarium: TestService) -> None:
    world(http, horarium)
    found = look(http)
    assert {lane["schedule_id"] for lane in found["lanes"] if not lane["rows_complete"]} == set()
    assert {name: lane for name, lane in lanes_of(found).items() if lane} == lanes_of_rows(found)
    kinds = {kind for lane in lanes_of(found).values() for counts in lane.values() for kind in counts}
    assert kinds == set(KINDS)
    assert found["rows"] == look(http, lanes=False, limit=5_000)["rows"]
    assert found["buckets"] == look(http, lanes=False, limit=5_000)["buckets"]
    assert found["schedules"] == look(http, lanes=False, limit=5_000)["schedules"]


def test_a_dense_schedule_hides_no_other(http: httpx.Client, horarium: TestService) -> None:
    for number in range(3):
        dense = {"intervals": [{"every": "PT1S"}], "cron_expressions": []}
        add(http, f"dense{number}", "", spec=dense, overlap_policy="allow_all", paused=number == 2)
    add(http, "hourly", "0 * * * *", overlap_policy="allow_all")
    horarium.advance(seconds=5)
    found = look(http, to="2026-04-01T00:00:00Z", bucket_seconds=86_400)
    by_id = {lane["schedule_id"]: lane for lane in found["lanes"]}
    assert {name: lane["rows_complete"] for name, lane in by_id.items()} == {
        "dense0": False, "dense1": False, "dense2": False, "hourly": False,
    }  # fmt: skip
    for name in ("dense0", "dense1"):
        assert [bucket["dispatched"] for bucket in by_id[name]["buckets"]] == [86_399, *[86_400] * 30]
    assert [bucket["skipped"] for bucket in by_id["dense2"]["buckets"]] == [86_400 - 6, *[86_400] * 30]
    assert [bucket["dispatched"] for bucket in by_id["hourly"]["buckets"]] == [23, *[24] * 30]
    assert found["rows"] == []
    assert found["truncated"] is True
    near = look(http, to="2026-03-01T05:00:00Z")
    assert {row["schedule_id"] for row in near["rows"]} == {"hourly"}
    assert near["buckets"][0]["starts"] == 2 * 3_599


def pages(http: httpx.Client, **query: Any) -> Iterator[dict[str, Any]]:
    token = None
    while True:
        found = look(http, **query, **({} if token is None else {"next_page_token": token}))
        yield found
        token = found.get("next_page_token")
        if token is None:
            return


def test_lanes_come_in_pages_in_the_order_of_ids(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(7):
        add(http, f"s{number}", "0 * * * *", labels={"odd": str(number % 2)})
    horarium.advance(hours=2)
    whole = look(http)
    found = list(pages(http, lane_limit=3))
    assert [[lane["schedule_id"] for lane in page["lanes"]] for page in found] == [
        ["s0", "s1", "s2"], ["s3", "s4", "s5"], ["s6"],
    ]  # fmt: skip
    assert [lane for page in found for lane in page["lanes"]] == whole["lanes"]
    assert sorted((row["at"], row["schedule_id"]) for page in found for row in page["rows"]) == [
        (row["at"], row["schedule_id"]) for row in whole["rows"]
    ]
    odd = [lane["schedule_id"] for page in pages(http, lane_limit=1, label="odd=1") for lane in page["lanes"]]
    assert odd == ["s1", "s3", "s5"]
    client = horarium.client()
    ids = client.iter_agenda_lanes(start=WINDOW["from"], end=WINDOW["to"], bucket_seconds=3_600, lane_limit=2)
    assert [each.schedule_id for each in ids] == [f"s{number}" for number in range(7)]
    monkeypatch.setattr(agenda_lanes, "_MOST_EVENTS", 4)
    assert [lane for page in pages(http) for lane in page["lanes"]] == whole["lanes"]


def test_a_page_ends_where_its_lanes_have_too_many_rows(http: httpx.Client, horarium: TestService) -> None:
    """Of a great `limit` only the lanes whose rows a page holds are looked at, and the next page goes on."""
    for name in ("a", "b", "c", "d"):
        add(http, name, "* * * * *", overlap_policy="allow_all")
    add(http, "dense", "* * * * * *", overlap_policy="allow_all")
    add(http, "rare", "0 * * * *")
    start, end = horarium.now, horarium.now + 80 * HOUR

    def page(token: str | None) -> AgendaResult:
        return agenda_lanes.look(
            horarium.resources, horarium.caller, start=start, end=end, limit=5_000, bucket_seconds=3_600,
            wanted=EVERYTHING, next_page_token=token,
        )  # fmt: skip

    found = [page(None)]
    while found[-1].next_page_token is not None:
        found.append(page(found[-1].next_page_token))
    assert [[lane.schedule_id for lane in each.lanes or ()] for each in found] == [
        ["a", "b"],
        ["c", "d", "dense", "rare"],
    ]
    assert all(len(each.rows) <= agenda_lanes.MOST_ROWS for each in found)
    assert [lane.rows_complete for each in found for lane in each.lanes or ()] == [True] * 4 + [False, True]


def test_an_id_that_was_used_again_is_one_lane(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a", "0 * * * *", overlap_policy="allow_all")
    horarium.advance(hours=2)
    http.delete("/api/schedules/a")
    add(http, "gone", "0 * * * *", overlap_policy="allow_all")
    horarium.advance(hours=1)
    http.delete("/api/schedules/gone")
    add(http, "a", "30 * * * *", overlap_policy="allow_all", name="new")
    found = look(http)
    assert [(lane["schedule_id"], lane["name"]) for lane in found["lanes"]] == [("a", "new"), ("gone", "")]
    assert lanes_of(found) == lanes_of_rows(found)
    # Two days later nothing of them can lie in the window.
    horarium.advance(days=3)
    later = look(http, **{"from": "2026-03-04T00:00:00Z", "to": "2026-03-04T06:00:00Z"})
    assert [lane["schedule_id"] for lane in later["lanes"]] == ["a"]


def test_a_long_history_is_searched_for_the_window(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(http, "a", "0 * * * *", overlap_policy="allow_all")
    horarium.advance(days=2)
    monkeypatch.setattr(stored_lanes, "_SHORT", 8)
    day = {"from": "2026-03-02T12:00:00Z", "to": "2026-03-03T00:00:00Z"}
    found = look(http, **day, limit=200)
    assert lanes_of(found) == lanes_of_rows(found)
    assert sum(bucket["dispatched"] for bucket in found["lanes"][0]["buckets"]) == 12


SENSELESS_LANES: list[tuple[dict[str, Any], str, str]] = [
    ({"bucket_seconds": 1, "to": "2026-04-01T00:00:00Z"}, "bucket_seconds", "use 2679 or more"),
    ({"lane_limit": 0}, "lane_limit", "between 1 and 100"),
    ({"lane_limit": 101}, "lane_limit", "between 1 and 100"),
    ({"limit": -1}, "limit", "between 0 and 5000"),
    ({"reason": "missed"}, "reason", "cannot be combined with `lanes`"),
    ({"next_page_token": "x"}, "next_page_token", "token"),
    ({"lanes": False, "next_page_token": "x"}, "next_page_token", "lanes=true"),
]


def test_lanes_that_make_no_sense_are_refused(http: httpx.Client) -> None:
    for query, field, says in SENSELESS_LANES:
        answer = http.get("/api/agenda", params={**WINDOW, **query})
        assert answer.status_code in (400, 422), (query, field, says, answer.text)
        assert field in answer.text, (query, field, says)
        assert says in answer.text, (query, field, says)


def test_a_tenant_sees_its_own_lanes(http: httpx.Client, horarium: TestService) -> None:
    add(http, "mine", "0 * * * *")
    tenant_service.create_namespace(horarium.resources, horarium.caller, "other")
    root = Caller("root", Role.ADMIN, "other")
    theirs = horarium.http(
        token=tenant_service.issue_token(horarium.resources, root, name="looks", role="viewer").secret
    )
    for query in ({}, {"schedule_id": "mine"}, {"text": "mine"}):
        assert look(theirs, **query)["lanes"] == []
