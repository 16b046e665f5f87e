"""Each count of the overview is the length of the list to which it leads, and ends at a bound."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.states import Status
from horarium.features.cluster import service as cluster_service
from horarium.features.cluster.model import Overview, ScheduleCounts
from horarium.features.cluster.service import BOUNDS, JUDGED, RUNS, Bounds
from horarium.features.schedules import health_rows, lists, write_rows
from horarium.testing import TestService

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
        "failed_24h": len(
            http.get("/api/runs", params={"state": "unsuccessful", "finished_after": shown["since"]}).json()["runs"]
        ),
        "missed_lately": len(http.get("/api/agenda", params={**window, "reason": "missed"}).json()["rows"]),
    }


def counts(shown: dict[str, Any]) -> dict[str, int]:
    own = {name: value for name, value in shown.items() if isinstance(value, int)}
    return {**{f"schedules.{status}": count for status, count in shown["schedules"].items()}, **own}


def set_aside(horarium: TestService, name: str, **changes: Any) -> None:
    uid = lists.describe(horarium.resources, horarium.caller, name).row.schedule_uid
    horarium.resources.database.write(lambda connection: write_rows.move_position(connection, uid, **changes))


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


@pytest.mark.both_databases
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


@pytest.mark.both_databases
def test_a_page_by_health_looks_at_so_many_and_goes_on(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MOST_JUDGED", 2)
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
    found = cluster_service.look(horarium.resources, horarium.caller, Bounds(schedules=1, rows=1, judged=1))
    assert found.schedules[Status.ACTIVE].count == found.schedules[Status.PAUSED].count == 1
    assert {"schedules.active", "schedules.paused", "failing", "running", "missed_lately"} <= set(found.bounded())
    assert "waiting_for_approval" not in found.bounded()
    exact = cluster_service.look(horarium.resources, horarium.caller, Bounds(schedules=2, rows=2, judged=2))
    assert list(exact.bounded()) == []
    assert exact.schedules[Status.ACTIVE].count == 2


def test_the_words_of_the_answer_are_those_that_are_counted() -> None:
    assert set(ScheduleCounts.__struct_fields__) == {status.value for status in Status} - {"deleted"}
    named = {word.value for word in (*JUDGED, *RUNS)}
    assert named <= set(Overview.__struct_fields__)
    assert BOUNDS.judged <= 5_000


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


def end(http: httpx.Client, horarium: TestService, name: str, outcome: str) -> None:
    """Trigger a schedule, and end its run."""
    http.post(f"/api/schedules/{name}/trigger", json={})
    horarium.settle()
    run = horarium.runs(name)[-1]
    (horarium.fail if outcome == "failed" else horarium.finish)(run)


@pytest.mark.both_databases
def test_runs_that_failed_in_24_hours_are_counted_and_listed(http: httpx.Client, horarium: TestService) -> None:
    add(http, "a", "0 0 1 1 *", overlap_policy="allow_all", retry_policy={"max_retries": 0})
    for outcome in ("failed", "succeeded", "failed"):
        end(http, horarium, "a", outcome)
        horarium.sleep(hours=13)
    shown = http.get("/api/overview").json()
    assert (shown["failed_24h"], counts(shown)) == (1, lengths(http, shown))
    listed = http.get("/api/schedules/a/runs", params={"finished_after": "-30h"}).json()["runs"]
    assert [each["state"] for each in listed] == ["failed", "succeeded"]
    assert http.get("/api/runs", params={"finished_after": "soon"}).status_code == 422


def test_a_schedule_says_itself_when_it_is_failing(http: httpx.Client, horarium: TestService) -> None:
    add(http, "usual")
    add(http, "strict", failing_after=1)
    add(http, "patient", failing_after=100)
    # What looks like the threshold inside of a condition is none.
    add(http, "odd", pre_dispatch_condition={"/a": {"eq": {"after_failures": "0000000001"}}})
    for failures, expected in ((1, {"strict"}), (2, {"strict"}), (3, {"strict", "usual", "odd"}), (100, None)):
        for name in ("usual", "strict", "patient", "odd"):
            set_aside(horarium, name, failures_in_a_row=failures)
        wanted = {"usual", "strict", "patient", "odd"} if expected is None else expected
        assert ids(http, health="failing") == wanted, failures
        shown = http.get("/api/overview").json()
        assert shown["failing"] == len(wanted)
        unwell = {each["schedule_id"] for each in http.get("/api/health/schedules?unwell=true").json()["schedules"]}
        assert unwell == wanted
        told = {each: http.get(f"/api/schedules/{each}/health").json()["status"] for each in ids(http)}
        assert {name for name, status in told.items() if status == "failing"} == wanted
        database = horarium.resources.database
        assert database.read(lambda connection: health_rows.count_failing(connection, 3)) == len(wanted)
    http.patch("/api/schedules/strict", json={"failing_after": 1_000})
    assert http.get("/api/schedules/strict").json()["failing_after"] == 1_000
    assert ids(http, health="failing") == {"usual", "odd", "patient"}


def test_a_last_run_that_failed_is_shown_though_the_schedule_is_not_failing(
    http: httpx.Client, horarium: TestService
) -> None:
    add(http, "a", "0 0 1 1 *", retry_policy={"max_retries": 0})
    end(http, horarium, "a", "failed")
    for shown in (http.get("/api/schedules/a").json(), http.get("/api/schedules").json()["schedules"][0]):
        assert (shown["last_status"], shown["consecutive_failures"]) == ("error", 1)
    examined = http.get("/api/schedules/a/health").json()
    assert examined["status"] == "ok"
    assert "The last run failed" in examined["sentence"]


def test_due_schedules_do_not_hide_late_ones(http: httpx.Client, horarium: TestService) -> None:
    """More are due at this moment than are judged: those that have been due for longest are judged first."""
    for number in range(8):
        add(http, f"due{number}")
    add(http, "late", "45 * * * *")
    horarium.advance(hours=1)
    horarium.sleep(minutes=60)
    few = cluster_service.look(horarium.resources, horarium.caller, Bounds(judged=2))
    assert few.health[HealthStatus.LATE].count == 1
