"""Each count of the overview is the length of the list to which it leads, and ends at a bound."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.operations import listings, overviews
from horarium.operations.overviews import BOUNDS, JUDGED, RUNS, Bounds
from horarium.schedule.position import Status
from horarium.store.schedules import positions
from horarium.testing import TestService
from horarium.wire.overview import Overview, ScheduleCounts

ACTION: dict[str, Any] = {"workflow_type": "w", "timeout_seconds": 360_000}


def add(http: httpx.Client, name: str, cron: str = "0 * * * *", **fields: Any) -> None:
    document = {"schedule_id": name, "spec": {"cron_expressions": [cron]}, "action": ACTION, **fields}
    assert http.post("/api/schedules", json=document).status_code == 201


def ids(http: httpx.Client, **query: Any) -> set[str]:
    """Of all pages."""
    found: list[str] = []
    token: str | None = None
    while True:
        asked = query if token is None else {**query, "next_page_token": token}
        page = http.get("/api/schedules", params=asked).json()
        found += [each["schedule_id"] for each in page["schedules"]]
        token = page["next_page_token"]
        if token is None:
            assert len(found) == len(set(found))
            return set(found)


def lengths(http: httpx.Client, shown: dict[str, Any]) -> dict[str, int]:
    """What the lists say that the counts lead to."""
    window = {"from": shown["since"], "to": shown["as_of"]}
    return {
        **{f"schedules.{status}": len(ids(http, status=status)) for status in shown["schedules"]},
        **{word: len(ids(http, health=word)) for word in JUDGED},
        **{state: len(http.get("/api/runs", params={"state": state}).json()["runs"]) for state in RUNS},
        "waiting_for_approval": len(http.get("/api/approvals").json()["approvals"]),
        "missed_lately": len(http.get("/api/agenda", params={**window, "reason": "missed"}).json()["rows"]),
    }


def counts(shown: dict[str, Any]) -> dict[str, int]:
    own = {name: value for name, value in shown.items() if isinstance(value, int)}
    return {**{f"schedules.{status}": count for status, count in shown["schedules"].items()}, **own}


def set_aside(horarium: TestService, name: str, **changes: Any) -> None:
    uid = listings.describe(horarium.resources, horarium.caller, name).row.schedule_uid
    horarium.resources.database.write(lambda connection: positions.move(connection, uid, **changes))


def troubled(http: httpx.Client, horarium: TestService) -> dict[str, Any]:
    """One schedule for each kind of trouble, and some that are well."""
    add(http, "well")
    add(http, "resting", paused=True)
    add(http, "asking", approval_policy={"requires_approval": True})
    add(http, "buffering", "*/30 * * * *", overlap_policy="buffer_one")
    add(http, "bad")
    add(http, "bad-and-resting")
    add(http, "asleep", "*/5 * * * *", catchup_policy="skip", overlap_policy="allow_all")
    horarium.advance(hours=3)
    for name in ("bad", "bad-and-resting"):
        set_aside(horarium, name, failures_in_a_row=5)
    http.post("/api/schedules/bad-and-resting/pause", json={})
    add(http, "lost")
    set_aside(horarium, "lost", status=Status.BROKEN)
    horarium.sleep(minutes=30)
    horarium.settle()
    horarium.sleep(minutes=40)  # nobody has decided what came since
    shown: dict[str, Any] = http.get("/api/overview").json()
    return shown


def test_every_count_is_the_length_of_a_list(http: httpx.Client, horarium: TestService) -> None:
    found = troubled(http, horarium)
    assert counts(found) == lengths(http, found)
    assert found["bounded"] == []
    assert found["schedules"] == {"active": 5, "paused": 2, "finished": 0, "broken": 1}
    # Whoever rests is not failing, and whoever waits for a yes is not late, whatever else holds of them.
    assert ids(http, health="failing") == {"bad"}
    assert ids(http, health="waiting_for_approval") == {"asking"}
    assert ids(http, health="stale") == {"asleep"}
    assert ids(http, health="late") == {"well", "buffering"}
    assert ids(http, health="broken") == {"lost"}
    assert ids(http, health="paused") == {"resting", "bad-and-resting"}
    assert (found["waiting_for_approval"], found["missed_lately"], found["held"]) == (1, 1, 1)
    # The lists say what is told of each.
    told = {each: http.get(f"/api/schedules/{each}/health").json()["status"] for each in ids(http)}
    for word in ("broken", "paused", "waiting_for_approval", "failing", "stale", "late"):
        assert ids(http, health=word) == {name for name, status in told.items() if status == word}, word
        assert ids(http, health=word, page_size=1) == ids(http, health=word), word
    unwell = {each["schedule_id"] for each in http.get("/api/health/schedules?unwell=true").json()["schedules"]}
    assert unwell == {name for name, status in told.items() if status not in ("ok", "paused", "never_run")}


def test_what_somebody_calls_missed_is_counted_by_what_it_was(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a")
    horarium.sleep(hours=3)
    http.post("/api/schedules/a/pause", json={"reason": "missed"})
    [_, overtaken, _] = http.get("/api/schedules/a/history").json()["events"]
    assert overtaken["payload"]["reason"] == "superseded"
    shown = http.get("/api/overview").json()
    assert (shown["missed_lately"], counts(shown)) == (0, lengths(http, shown))


def test_a_page_by_health_looks_at_so_many_and_goes_on(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listings, "MOST_JUDGED", 2)
    for number in range(6):
        add(http, f"s{number}")
    horarium.advance(hours=1)
    for number in range(6):
        set_aside(horarium, f"s{number}", failures_in_a_row=3)
    for number in (1, 2, 3, 4):
        http.post(f"/api/schedules/s{number}/pause", json={})
    first = http.get("/api/schedules", params={"health": "failing", "page_size": 2}).json()
    assert (len(first["schedules"]), first["next_page_token"] is None) == (1, False)
    assert ids(http, health="failing", page_size=2) == {"s0", "s5"}


def test_counts_end_at_their_bounds_and_say_so(http: httpx.Client, horarium: TestService) -> None:
    for number in range(4):
        add(http, f"s{number}", paused=number > 1)
    horarium.advance(hours=1, seconds=1)
    for number in range(2):
        set_aside(horarium, f"s{number}", failures_in_a_row=3)
    found = overviews.look(horarium.resources, horarium.caller, Bounds(schedules=1, rows=1, judged=1))
    assert found.schedules[Status.ACTIVE].count == found.schedules[Status.PAUSED].count == 1
    assert {"schedules.active", "schedules.paused", "failing", "running", "missed_lately"} <= set(found.bounded())
    assert "waiting_for_approval" not in found.bounded()
    exact = overviews.look(horarium.resources, horarium.caller, Bounds(schedules=2, rows=2, judged=2))
    assert list(exact.bounded()) == []
    assert exact.schedules[Status.ACTIVE].count == 2


def test_the_words_of_the_answer_are_those_that_are_counted() -> None:
    assert set(ScheduleCounts.__struct_fields__) == {status.value for status in Status} - {"deleted"}
    named = {word.value for word in (*JUDGED, *RUNS)}
    assert named <= set(Overview.__struct_fields__)
    assert BOUNDS.judged <= 1_000


def test_words_of_health_that_no_index_leads_to_are_refused(http: httpx.Client) -> None:
    for word in ("ok", "never_run", "splendid", ""):
        answer = http.get("/api/schedules", params={"health": word})
        assert (answer.status_code, list(answer.json()["errors"])) == (422, ["health"]), word


def test_nobody_is_counted_of_another_tenant(http: httpx.Client, horarium: TestService) -> None:
    add(http, "mine")
    horarium.advance(hours=1)
    http.post("/api/namespaces", json={"namespace": "other"})
    theirs = horarium.http(namespace="other").get("/api/overview").json()
    assert set(counts(theirs).values()) == {0}
    assert horarium.http(namespace="nobody").get("/api/overview").status_code == 404
