"""Liveness by completed steps, and the health of schedules by their own spec."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import httpx
import pytest

from horarium.core.document.states import Status
from horarium.features.schedules import rows as schedules
from horarium.features.schedules import write_rows
from horarium.instant import SECOND
from horarium.platform.database import processes
from horarium.platform.http.routing import OPERATIONS
from horarium.testing import Accepted, Finished, TestService, service


def beat(horarium: TestService, process: str = "p1", /, **seconds_ago: float) -> None:
    """A process writes down when each of its loops last completed a step."""
    now = horarium.now
    info = {loop: now - round(ago * SECOND) for loop, ago in seconds_ago.items()}
    horarium.resources.database.write(lambda c: processes.beat_lease(c, f"process:{process}", process, now, 30, info))


def liveness(http: httpx.Client) -> tuple[int, dict[str, Any]]:
    answer = http.get("/admin/liveness")
    return answer.status_code, answer.json()


def test_without_a_ticker_nothing_lives(http: httpx.Client) -> None:
    assert liveness(http) == (503, {"healthy": False, "subsystems": {}, "processes": []})


def test_each_loop_is_told_with_the_age_of_its_last_completed_step(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, ticker=3, janitor=1)
    status, body = liveness(http)
    assert (status, body["healthy"]) == (200, True)
    assert (
        body["subsystems"]["scheduler"]
        == body["subsystems"]["ticker"]
        == {
            "last_tick_at": "2026-02-28T23:59:57Z",
            "seconds_ago": 3.0,
            "limit_seconds": 15.0,
            "healthy": True,
        }
    )
    [process] = body["processes"]
    assert (process["name"], process["alive"], process["healthy"], sorted(process["loops"])) == (
        "p1", True, True, ["janitor", "ticker"],
    )  # fmt: skip


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_loop_that_rests_for_a_minute_is_not_stuck(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, ticker=1, usage=70, clock=70, retention=700)
    assert [each["healthy"] for each in liveness(http)[1]["processes"]] == [True]


def test_a_beat_does_not_hide_a_ticker_that_hangs(http: httpx.Client, horarium: TestService) -> None:
    """The process beats on; the age of the ticker's last step is what counts."""
    beat(horarium, ticker=0)
    for _ in range(10):
        horarium.clock.advance(5)
        beat(horarium, ticker=(horarium.now - 1_772_323_200 * SECOND) / SECOND, janitor=0)
    status, body = liveness(http)
    assert (status, body["healthy"], body["subsystems"]["ticker"]["healthy"]) == (503, False, False)
    assert body["subsystems"]["janitor"]["healthy"]
    assert body["processes"][0]["alive"]


def test_any_ticker_will_do_and_the_stuck_one_is_shown(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, "good", ticker=1)
    beat(horarium, "stuck", ticker=100)
    status, body = liveness(http)
    assert (status, {each["name"]: each["healthy"] for each in body["processes"]}) == (
        200, {"good": True, "stuck": False},
    )  # fmt: skip


OWNER = "machine-7:4711471147:k3x9qz"


@pytest.mark.both_databases
def test_only_admins_of_the_installation_learn_of_machines_and_processes(
    service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.serve.service._owner", lambda: OWNER)
    with service(database=service_url, answer=Accepted()) as horarium:
        house = horarium.http()
        house.post("/api/namespaces", json={"namespace": "b"})
        secret = horarium.http(namespace="b").post("/api/tokens", json={"name": "mallory", "role": "admin"}).json()
        tenant = horarium.http(token=secret["secret"])
        document = {
            "schedule_id": "s",
            "cron_expressions": ["0 * * * *"],
            "action": {"kind": "http", "url": "http://x"},
        }
        assert tenant.post("/api/schedules", json=document).status_code == 201
        run_id = tenant.post("/api/schedules/s/trigger").json()["run_id"]
        horarium.settle()  # our process holds the run now
        beat(horarium, OWNER, ticker=1)
        names = {"schedule_id": "s", "run_id": run_id, "namespace": "b", "token_id": secret["token_id"]}
        known = defaultdict(lambda: "unknown", names)
        asked = [path.format_map(known) for method, path in OPERATIONS if method == "GET" and path != "/api/events"]
        told = {path: tenant.get(path) for path in asked}
        assert [
            path for path, answer in told.items() if "machine-7" in answer.text or "4711471147" in answer.text
        ] == []
        assert told[f"/api/runs/{run_id}"].status_code == told[f"/api/runs/{run_id}/events"].status_code == 200
        assert told["/admin/liveness"].json()["subsystems"]["ticker"]["healthy"]
        assert told["/admin/liveness"].json()["processes"] == []
        assert [each["name"] for each in liveness(house)[1]["processes"]] == [OWNER]


def test_a_process_that_died_counts_for_nothing(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, ticker=0)
    horarium.clock.advance(31)
    status, body = liveness(http)
    assert (status, body["subsystems"], body["processes"][0]["alive"]) == (503, {}, False)


@pytest.mark.parametrize(("loop", "rest"), [("clock", 60), ("retention", 600), ("tzdata", 86_400), ("janitor", 5)])
@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_loop_that_rests_long_is_not_stuck_while_it_rests(
    http: httpx.Client, horarium: TestService, loop: str, rest: int
) -> None:
    beat(horarium, ticker=0, **{loop: rest + 10})
    assert liveness(http)[1]["subsystems"][loop]["healthy"]
    beat(horarium, ticker=0, **{loop: rest * 2 + 20})
    assert not liveness(http)[1]["subsystems"][loop]["healthy"]


# ── schedules ────────────────────────────────────────────────────────────────────────────────────────


def health(http: httpx.Client, schedule_id: str = "s") -> dict[str, Any]:
    answer = http.get(f"/api/schedules/{schedule_id}/health")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def token(http: httpx.Client, role: str) -> str:
    return str(http.post("/api/tokens", json={"name": role, "role": role}).json()["secret"])


def create(horarium: TestService, schedule_id: str = "s", **fields: Any) -> None:
    usual = {"cron_expressions": ["0 9 * * 1-5"], "workflow_type": "x", "overlap_policy": "allow_all"}
    horarium.create({"schedule_id": schedule_id, **usual, **fields})


def test_a_schedule_for_weekdays_is_not_stale_on_sunday(http: httpx.Client, horarium: TestService) -> None:
    """Nor on a Monday morning, three days after Friday's run."""
    create(horarium)
    horarium.advance_to("2026-03-06T09:30:00Z")
    horarium.finish(horarium.runs("s")[-1])
    for moment in ("2026-03-08T23:00:00Z", "2026-03-09T08:59:00Z"):
        horarium.advance_to(moment)
        found = health(http)
        assert "2026-03-06T09:30:00Z. Next occurrence: 2026-03-09T09:00:00Z." in found.pop("sentence")
        assert found | {"error": 0} == {
            "workspace_id": None,
            "workspace_name": None,
            "schedule_id": "s",
            "schedule_name": "s",
            "namespace": "default",
            "cron_expr": "0 9 * * 1-5",
            "last_run_at": "2026-03-06T09:00:00Z",
            "expected_next_run": "2026-03-09T09:00:00Z",
            "status": "ok",
            "failures_in_a_row": 0,
            "last_status": "success",
            "consecutive_empty_runs": 0,
            "late_seconds": 0.0,
            "stale_threshold_seconds": 2 * 3 * 86_400.0,
            "error": 0,
        }


def test_what_is_undecided_beyond_its_grace_is_late_and_after_two_gaps_stale(
    http: httpx.Client, horarium: TestService
) -> None:
    create(horarium)
    horarium.advance_to("2026-03-03T09:30:00Z")
    moments = {"2026-03-04T09:01:00Z": "ok", "2026-03-04T09:10:00Z": "late", "2026-03-05T10:00:00Z": "stale"}
    for moment, status in moments.items():
        horarium.clock.set(moment)
        assert health(http)["status"] == status
    horarium.clock.set("2026-03-04T09:10:00Z")
    assert health(http)["late_seconds"] == 600.0
    assert "2026-03-04T09:00:00Z is 600 s overdue" in health(http)["sentence"]


def failed_runs(horarium: TestService, count: int, schedule_id: str = "s") -> None:
    for _ in range(count):
        horarium.http().post(f"/api/schedules/{schedule_id}/trigger")
        horarium.settle()
        run = horarium.runs(schedule_id)[-1]
        horarium.fail(run, "no route to host", error_class="its own")  # which no policy retries


def test_three_failed_runs_make_a_schedule_failing_and_a_success_makes_it_well(
    http: httpx.Client, horarium: TestService
) -> None:
    create(horarium)
    failed_runs(horarium, 2)
    assert health(http)["status"] == "ok"
    failed_runs(horarium, 1)
    found = health(http)
    assert (found["status"], found["failures_in_a_row"], found["error"]) == ("failing", 3, "no route to host")
    for run in horarium.runs("s"):
        assert run.run_id in found["sentence"]
    [outcomes] = [each for each in http.get("/readyz").json()["checks"] if each["name"] == "outcomes"]
    assert outcomes == {
        "name": "outcomes",
        "passed": True,
        "detail": "failing schedules: 1; broken schedules: 0",
        "remedy": None,
    }
    http.post("/api/schedules/s/trigger")
    horarium.settle()
    horarium.finish(horarium.runs("s")[-1])
    assert health(http)["status"] == "ok"


def test_a_run_that_waits_for_approval_makes_its_schedule_wait(http: httpx.Client, horarium: TestService) -> None:
    create(horarium, approval_policy={"requires_approval": True})
    http.post("/api/schedules/s/trigger")
    assert health(http)["status"] == "waiting_for_approval"


def test_a_viewer_may_ask_for_all_of_its_namespace_and_no_other(http: httpx.Client, horarium: TestService) -> None:
    for number in range(3):
        create(horarium, f"s{number}")
    http.post("/api/namespaces", json={"namespace": "other"})
    asked = {"Authorization": f"Bearer {token(http, 'viewer')}"}
    first = http.get("/api/health/schedules", params={"page_size": 2}, headers=asked).json()
    rest = {"page_size": 2, "next_page_token": first["next_page_token"]}
    second = http.get("/api/health/schedules", params=rest, headers=asked).json()
    assert second["next_page_token"] is None
    ids = [row["schedule_id"] for page in (first, second) for row in page["schedules"]]
    assert sorted(ids) == ["s0", "s1", "s2"]
    there = http.get("/api/health/schedules", headers={**asked, "X-Namespace": "other"})
    assert (there.status_code, there.json()["reason"]) == (404, "namespace_not_found")
    assert http.get("/api/health/schedules", headers={"X-Namespace": "other"}).json()["schedules"] == []
    foreign = http.get("/api/health/schedules", params=rest, headers={"X-Namespace": "other"})
    assert foreign.status_code == 403


def test_only_the_unwell_are_told_when_only_they_are_asked_for(http: httpx.Client, horarium: TestService) -> None:
    create(horarium, "well")
    create(horarium, "fails")
    create(horarium, "waits", approval_policy={"requires_approval": True})
    create(horarium, "late", cron_expressions=[], at=["2026-03-01T01:00:00Z"])
    create(horarium, "resting", paused=True)
    failed_runs(horarium, 3, "fails")
    http.post("/api/schedules/waits/trigger")
    horarium.clock.set("2026-03-01T03:00:00Z")
    rows = http.get("/api/health/schedules", params={"unwell": "true"}).json()["schedules"]
    found = {row["schedule_id"]: row["status"] for row in rows}
    assert found == {"fails": "failing", "waits": "waiting_for_approval", "late": "late"}


@pytest.mark.both_databases
def test_a_row_that_lost_its_due_time_is_stale_and_not_at_rest(http: httpx.Client, horarium: TestService) -> None:
    create(horarium)

    def lose(connection: Any) -> None:
        row = schedules.find(connection, "default", "s")
        assert row is not None
        write_rows.move_position(connection, row.schedule_uid, next_due=None)

    horarium.resources.database.write(lose)
    horarium.clock.set("2026-03-09T00:00:00Z")
    assert health(http)["status"] == "stale"


@pytest.mark.both_databases
def test_every_state_has_its_word(http: httpx.Client, horarium: TestService) -> None:
    create(horarium, "fresh")
    create(horarium, "resting", paused=True)
    create(horarium, "over", cron_expressions=[], at=["2026-03-01T01:00:00Z"])
    create(horarium, "torn")
    uid = horarium.resources.database.read(lambda c: schedules.find(c, "default", "torn"))
    assert uid is not None
    horarium.resources.database.write(
        lambda c: write_rows.move_position(c, uid.schedule_uid, status=Status.BROKEN, last_error="torn")
    )
    horarium.advance(hours=2)
    horarium.clock.set("2026-03-01T03:00:00Z")
    rows = http.get("/api/health/schedules").json()["schedules"]
    assert {row["schedule_id"]: (row["status"], row["error"]) for row in rows} == {
        "fresh": ("never_run", None),
        "resting": ("paused", None),
        "over": ("ok", None),
        "torn": ("broken", "torn"),
    }


def test_a_paused_schedule_is_never_stale(http: httpx.Client, horarium: TestService) -> None:
    create(horarium, paused=True)
    horarium.clock.set("2027-03-01T00:00:00Z")
    assert health(http)["status"] == "paused"


def test_an_unknown_or_deleted_schedule_has_no_health(http: httpx.Client, horarium: TestService) -> None:
    create(horarium)
    http.delete("/api/schedules/s")
    for name in ("s", "ghost"):
        assert http.get(f"/api/schedules/{name}/health").json()["reason"] == "schedule_not_found"


# ── for a monitor ────────────────────────────────────────────────────────────────────────────────────


def watched(http: httpx.Client, **query: Any) -> list[dict[str, Any]]:
    answer = http.get("/admin/schedules/health", params=query)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()
    return found


@pytest.mark.parametrize("answer", [Finished()], ids=["finished"])
def test_a_monitor_reads_three_words(http: httpx.Client, horarium: TestService) -> None:
    """On a Monday morning a schedule for weekdays is well; a disabled one never is stale."""
    http.post("/api/agents", json={"id": "a", "name": "Zoe", "url": "https://agents.example.com/a"})
    create(horarium, "plain", cron_expressions=["0 * * * *"])
    body = {"name": "weekdays", "cron_expr": "0 9 * * 1-5", "prompt": "p"}
    ids = {}
    for name in ("weekdays", "resting", "never"):
        ids[name] = http.post("/workspaces/a/schedules", json={**body, "name": name}).json()["id"]
    http.patch(f"/workspaces/a/schedules/{ids['never']}", json={"cron_expr": "0 0 1 12 *"})
    horarium.advance_to("2026-03-06T09:30:00Z")
    http.patch(f"/workspaces/a/schedules/{ids['resting']}", json={"enabled": False})
    horarium.clock.set("2026-03-09T08:59:00Z")
    rows = watched(http)
    assert [(row["schedule_name"], row["status"], row["health"]) for row in rows] == [
        ("plain", "stale", "stale"),
        ("never", "never_run", "never_run"),
        ("resting", "ok", "paused"),
        ("weekdays", "ok", "ok"),
    ]
    assert rows[3] | {"sentence": ""} == {
        "workspace_id": "a",
        "workspace_name": "Zoe",
        "schedule_id": ids["weekdays"],
        "schedule_name": "weekdays",
        "cron_expr": "0 9 * * 1-5",
        "last_run_at": "2026-03-06T09:00:00Z",
        "expected_next_run": "2026-03-09T09:00:00Z",
        "status": "ok",
        "stale_threshold_seconds": 2 * 3 * 86_400,
        "health": "ok",
        "sentence": "",
    }
    assert isinstance(rows[3]["stale_threshold_seconds"], int)  # clients in stricter languages read a whole number
    horarium.clock.set("2026-03-20T00:00:00Z")
    assert {row["schedule_name"]: row["status"] for row in watched(http)}["weekdays"] == "stale"
    http.delete("/api/agents/a")
    assert [row["schedule_name"] for row in watched(http)] == ["plain"]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
def test_a_monitor_turns_pages_and_must_be_an_admin(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("c", "a", "b"):
        create(horarium, f"id-{name}", name=name)
    monkeypatch.setattr("horarium.features.schedules.health.MOST_SHOWN", 2)
    first = http.get("/admin/schedules/health")
    second = http.get(first.links["next"]["url"])
    assert [row["schedule_name"] for row in first.json() + second.json()] == ["a", "b", "c"]
    assert second.links == {}
    assert http.get("/admin/schedules/health?after=ghost").json()["error"] == "schedule not found"
    monkeypatch.setattr("horarium.features.schedules.health.MOST_WATCHED", 2)
    refused = http.get("/admin/schedules/health")
    assert (refused.status_code, "/api/health/schedules" in refused.json()["error"]) == (409, True)
    viewer = horarium.http(token=token(http, "viewer")).get("/admin/schedules/health")
    assert (viewer.status_code, viewer.json()["error"]) == (403, "the role viewer lacks the permission administer")
