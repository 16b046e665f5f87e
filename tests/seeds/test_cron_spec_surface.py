"""The cron scheduler's specification: upsert, pause, delete and get; a key for each tick; overlap and catch-up."""

from __future__ import annotations

import hashlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from seeds.door import Door, begins, runs_stay_open

from horarium import Horarium
from horarium.instant import from_rfc3339
from horarium.launchers.requests import data
from horarium.launchers.tasks import job_of
from horarium.platform.settings import load_settings
from horarium.testing import TestService, Unreachable, service

SCHEDULE: dict[str, Any] = {
    "schedule_id": "wf-1",
    "workflow_id": "workflow-1",
    "version": 3,
    "user_id": "user-7",
    "cron_expr": "0 9 * * *",
    "timezone": "America/New_York",
    "overlap_policy": "skip",
    "catchup_policy": "none",
}


def upsert(door: Door, **changes: Any) -> dict[str, Any]:
    return door.post("/schedules/upsert", {**SCHEDULE, **changes})


def hourly(door: Door, **changes: Any) -> None:
    upsert(door, cron_expr="0 * * * *", timezone="UTC", **changes)


# ── the registrar ────────────────────────────────────────────────────────────────────────────────────


def test_an_upsert_answers_with_the_id_and_the_next_time(door: Door) -> None:
    done = upsert(door)
    assert (done["schedule_id"], done["next_run_at"]) == ("wf-1", "2026-04-10T13:00:00Z")
    assert upsert(door, cron_expr="0 10 * * *")["next_run_at"] == "2026-04-10T14:00:00Z"
    assert len(door.get("/api/schedules")["schedules"]) == 1


def test_without_an_id_the_same_deployment_is_the_same_schedule(door: Door) -> None:
    first, again = upsert(door, schedule_id=None), upsert(door, schedule_id=None)
    assert first["schedule_id"] == again["schedule_id"]
    assert again["outcome"] == "unchanged"


def test_registration_in_process_is_that_of_the_wire(tmp_path: Path) -> None:
    """The same fields, defaults and words, without a network between; a repeated deployment is the same schedule."""
    app = Horarium(data_dir=tmp_path, log_level="error")
    with service(app=app) as horarium:
        document = {name: SCHEDULE[name] for name in ("workflow_id", "version", "user_id", "cron_expr", "timezone")}
        first, again = app.client.upsert_trigger(document), app.client.upsert_trigger(document)
        assert (first.schedule_id, again.outcome) == (again.schedule_id, "unchanged")
        found = app.client.get_trigger(first.schedule_id)
        assert (found.overlap_policy, found.catchup_policy, found.user_id) == ("skip", "none", "user-7")
        assert (found.next_run_at, len(found.preview)) == (first.next_run_at, 5)
        assert app.client.pause_trigger(first.schedule_id, True).paused
        assert not app.client.pause_trigger(first.schedule_id, False).paused
        horarium.advance(days=1)
        assert [row.status for row in app.client.list_trigger_runs(first.schedule_id)] == ["SUCCESS"]
        assert app.client.delete_trigger(first.schedule_id).outcome == "deleted"


@pytest.mark.parametrize("when", [{"cron_expr": "0 * * * *"}, {"at": ["2026-04-10T01:00:00Z"]}], ids=["cron", "once"])
def test_an_upsert_of_our_own_without_an_id_is_repeatable_too(
    door: Door, horarium: TestService, when: dict[str, Any]
) -> None:
    document = {"workflow_type": "w", "name": "n", **when}
    first = door.post("/api/schedules/upsert", document, status=201)
    assert door.post("/api/schedules/upsert", document, status=200)["outcome"] == "unchanged"
    horarium.advance(hours=2)
    again = door.post("/api/schedules/upsert", {**document, "scheduleId": None, "note": "another"}, status=200)
    assert again["schedule_id"] == first["schedule_id"]
    other = door.post("/api/schedules/upsert", {**document, "cron_expr": "5 * * * *"}, status=201)
    assert other["schedule_id"] != first["schedule_id"]
    door.post("/api/schedules/upsert", {"workflow_type": "w"}, status=422)


def test_a_schedule_comes_with_its_columns_and_its_next_five_times(door: Door) -> None:
    upsert(door)
    found = door.get("/schedules/wf-1")
    assert {name: found[name] for name in SCHEDULE} == SCHEDULE
    assert (found["paused"], found["jitter_ms"]) == (False, 0)
    assert found["preview"] == [f"2026-04-{day}T13:00:00Z" for day in (10, 11, 12, 13, 14)]


def test_the_policies_are_skip_and_none_where_nothing_is_said(door: Door) -> None:
    upsert(door, overlap_policy=None, catchup_policy=None)
    found = door.get("/schedules/wf-1")
    assert (found["overlap_policy"], found["catchup_policy"]) == ("skip", "none")


def test_a_schedule_is_paused_and_resumed_by_its_id(door: Door) -> None:
    upsert(door)
    assert door.post("/schedules/pause", {"schedule_id": "wf-1", "paused": True})["paused"] is True
    assert door.get("/schedules/wf-1")["next_run_at"] is not None  # the next occurrence, also while paused
    assert door.post("/schedules/pause", {"schedule_id": "wf-1", "paused": False})["paused"] is False


def test_an_upsert_never_unpauses(door: Door) -> None:
    """The specification stores `paused: false` at each upsert; nobody wants a redeploy to start what was stopped."""
    upsert(door)
    door.post("/schedules/pause", {"schedule_id": "wf-1", "paused": True})
    upsert(door, cron_expr="0 10 * * *")
    assert door.get("/schedules/wf-1")["paused"] is True


def test_a_deleted_schedule_fires_no_more(door: Door, horarium: TestService) -> None:
    hourly(door)
    door.delete("/schedules/wf-1")
    horarium.advance(hours=3)
    assert door.runs("wf-1") == []
    door.get("/schedules/wf-1", status=404)


@pytest.mark.parametrize(
    "change",
    [{"cron_expr": "never"}, {"cron_expr": "0 0 30 2 *"}, {"timezone": "Local"}, {"timezone": ""}],
    ids=["no cron", "never fires", "Local", "an empty zone"],
)
def test_cron_and_zone_are_validated(door: Door, change: dict[str, str]) -> None:
    door.post("/schedules/upsert", {**SCHEDULE, **change}, status=422)


def test_six_fields_begin_with_seconds(door: Door) -> None:
    assert upsert(door, cron_expr="30 0 9 * * *")["next_run_at"] == "2026-04-10T13:00:30Z"


def test_a_window_begins_and_ends_inclusively(door: Door, horarium: TestService) -> None:
    hourly(door, start_at="2026-04-10T02:00:00Z", end_at="2026-04-10T04:00:00Z")
    horarium.advance(days=1)
    assert [nominal[11:13] for nominal in door.nominals("wf-1")] == ["02", "03", "04"]
    found = door.describe("wf-1")
    assert (found["status"], found["next_fire_at"]) == ("finished", None)


# ── one run for each tick ────────────────────────────────────────────────────────────────────────────


def test_the_idempotency_key_is_the_hash_of_schedule_and_time(door: Door, horarium: TestService) -> None:
    """The schedule goes in by its `uid`: an id that is used again must not find the keys of the one before."""
    hourly(door)
    horarium.advance(hours=2)
    uid = door.describe("wf-1")["uid"]
    expected = [
        hashlib.sha256(f"{uid}:{from_rfc3339(moment) // 1_000_000}".encode()).hexdigest()
        for moment in ("2026-04-10T01:00:00Z", "2026-04-10T02:00:00Z")
    ]
    assert [run["key"] for run in door.runs("wf-1")] == expected
    assert [request.key for request in horarium.launcher.deliveries] == expected


def test_a_restart_starts_no_tick_a_second_time(tmp_path_factory: pytest.TempPathFactory) -> None:
    database = f"sqlite:///{tmp_path_factory.mktemp('restart') / 'horarium.db'}"
    with service(at="2026-04-10T00:00:00Z", database=database) as before:
        before.create(schedule_id="s", cron_expressions=["0 * * * *"], workflow_type="x")
        before.advance(hours=2)
    with service(at="2026-04-10T02:00:00Z", database=database) as after:
        after.advance(hours=1)
        assert len(after.runs("s")) == 3
        assert len(after.launcher.deliveries) == 1
        assert after.verify() == []


@pytest.mark.parametrize("path", ["/run-launcher/start", "/api/run-launcher/start"])
def test_the_run_launcher_starts_one_run_for_a_key(door: Door, horarium: TestService, path: str) -> None:
    body = {
        "workflow_id": "workflow-1",
        "version": 3,
        "user_id": "user-7",
        "scheduled_for": "2026-04-10T00:00:00Z",
        "idempotency_key": "k1",
    }
    first, again = door.post(path, body, status=201), door.post(path, body, status=200)
    assert (first["started"], first["run_id"]) == (True, again["run_id"])
    horarium.settle()
    assert len(horarium.launcher.deliveries) == 1


@runs_stay_open
def test_the_ledger_has_a_row_for_each_tick(door: Door, horarium: TestService) -> None:
    hourly(door, timeout_seconds=86_400)
    horarium.advance(hours=3)
    rows = door.get("/schedules/wf-1/runs", limit=10)["runs"]
    assert [(row["run_at"][11:13], row["status"]) for row in rows] == [
        ("03", "SKIPPED"),
        ("02", "SKIPPED"),
        ("01", "STARTED"),
    ]
    assert {"idempotency_key", "schedule_id", "run_at", "status", "run_id", "created_at"} <= rows[0].keys()
    uid = door.describe("wf-1")["uid"]
    keys = [hashlib.sha256(f"{uid}:{from_rfc3339(row['run_at']) // 1_000_000}".encode()).hexdigest() for row in rows]
    assert [row["idempotency_key"] for row in rows] == keys, "a tick that was skipped has its key too"
    native = door.get("/api/schedules/wf-1/runs", include="skips")["runs"]
    assert [row["key"] for row in native] == keys


def test_a_range_of_missed_ticks_has_the_key_of_its_first_and_a_skip_by_hand_has_none(
    door: Door, horarium: TestService
) -> None:
    hourly(door)
    horarium.settle()
    horarium.sleep(hours=4.5)
    horarium.settle()
    horarium.advance(seconds=1)
    door.post("/schedules/pause", {"schedule_id": "wf-1", "paused": True})
    door.post("/api/schedules/wf-1/trigger")
    by_hand, missed = door.get("/schedules/wf-1/runs")["runs"]
    assert (missed["status"], missed["count"]) == ("SKIPPED", 4)
    assert (by_hand["status"], by_hand["idempotency_key"]) == ("SKIPPED", None)
    uid, first = door.describe("wf-1")["uid"], from_rfc3339(missed["run_at"]) // 1_000_000
    assert missed["idempotency_key"] == hashlib.sha256(f"{uid}:{first}".encode()).hexdigest()


def test_the_user_reaches_the_executor(door: Door, horarium: TestService) -> None:
    hourly(door)
    horarium.advance(hours=1)
    body = {"workflow_id": "workflow-1", "user_id": "user-8", "idempotency_key": "k1"}
    started = door.post("/run-launcher/start", body, status=201)
    horarium.settle()
    assert [request.user_id for request in horarium.launcher.deliveries] == ["user-7", "user-8"]
    assert [data(request)["user_id"] for request in horarium.launcher.deliveries] == ["user-7", "user-8"]
    assert [job_of(request, None).user_id for request in horarium.launcher.deliveries] == ["user-7", "user-8"]
    assert door.get(f"/api/runs/{started['run_id']}")["user_id"] == "user-8"


def test_only_an_admin_names_another_user(horarium: TestService) -> None:
    with horarium.http() as admin:
        token = admin.post("/api/tokens", json={"role": "owner", "name": "robot"}).json()["secret"]
    body = {"workflow_id": "workflow-1", "user_id": "somebody-else", "idempotency_key": "k1"}
    with horarium.http(token=token) as http:
        assert http.post("/run-launcher/start", json=body).status_code == 201
    horarium.settle()
    [request] = horarium.launcher.deliveries
    assert request.user_id not in (None, "somebody-else")


# ── policies ─────────────────────────────────────────────────────────────────────────────────────────


@runs_stay_open
@pytest.mark.parametrize(
    ("policy", "statuses"),
    [
        ("allow", ["STARTED", "STARTED", "STARTED"]),
        ("skip", ["STARTED"]),
        ("queue", ["STARTED", "ENQUEUED", "ENQUEUED"]),
    ],
)
def test_the_overlap_policy_allows_skips_or_queues(
    door: Door, horarium: TestService, policy: str, statuses: list[str]
) -> None:
    hourly(door, overlap_policy=policy, timeout_seconds=86_400)
    horarium.advance(hours=3)
    assert [run["status"] for run in door.runs("wf-1")] == statuses


@runs_stay_open
def test_queued_ticks_run_one_after_the_other_in_their_order(door: Door, horarium: TestService) -> None:
    hourly(door, overlap_policy="queue", timeout_seconds=86_400)
    horarium.advance(hours=3)
    for number in range(3):
        horarium.finish(horarium.runs("wf-1")[number])
    assert [run["status"] for run in door.runs("wf-1")] == ["SUCCESS"] * 3
    assert [str(request.nominal // 3_600_000_000 % 24) for request in horarium.launcher.deliveries] == ["1", "2", "3"]


@begins("2026-04-10T00:30:00Z")
@pytest.mark.parametrize(
    ("policy", "hours"),
    [("none", []), ("fire_immediately", ["01", "02", "03", "04"]), ("spread", ["01", "02", "03", "04"])],
)
def test_the_catchup_policy_ignores_fires_or_spreads_what_was_missed(
    door: Door, horarium: TestService, policy: str, hours: list[str]
) -> None:
    hourly(door, catchup_policy=policy, overlap_policy="allow")
    horarium.settle()
    horarium.sleep(hours=4)
    horarium.advance(minutes=2)
    assert [nominal[11:13] for nominal in door.nominals("wf-1")] == hours
    assert horarium.verify() == []


@begins("2026-04-10T00:30:00Z")
def test_spread_distributes_the_missed_ticks_over_a_minute(door: Door, horarium: TestService) -> None:
    hourly(door, catchup_policy="spread", overlap_policy="allow")
    horarium.settle()
    horarium.sleep(hours=4)
    horarium.advance(minutes=2)
    ended = [from_rfc3339(run["finished_at"]) for run in door.runs("wf-1")]  # each at once
    assert all(later - earlier >= 10_000_000 for earlier, later in pairwise(ended))
    assert ended[-1] - ended[0] <= 60_000_000


def test_a_storm_of_missed_ticks_is_capped(door: Door, horarium: TestService) -> None:
    upsert(
        door,
        cron_expr="* * * * *",
        timezone="UTC",
        catchup_policy="fire_immediately",
        overlap_policy="allow",
        max_catchup=3,
    )
    horarium.settle()
    horarium.sleep(hours=1, minutes=30)
    horarium.settle()
    [missed] = door.events("wf-1", "ScheduleMissed")
    assert missed["payload"]["reason"] == "catchup_cap"
    assert len(door.runs("wf-1")) + missed["payload"]["count"] == 90


def test_jitter_never_comes_early(door: Door, horarium: TestService) -> None:
    """The specification draws from -jitter to +jitter; here a run is never early, and the delay is a hash."""
    hourly(door, jitter_ms=90_000)
    horarium.advance(hours=12)
    delays = [from_rfc3339(run["due"]) - from_rfc3339(run["nominal"]) for run in door.runs("wf-1")]
    assert all(0 <= delay <= 90_000_000 for delay in delays)
    assert len(set(delays)) > 1


# ── failures ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("answer", [Unreachable("connection refused")], ids=["unreachable"])
def test_a_launch_is_tried_a_few_times_and_then_failed(door: Door, horarium: TestService) -> None:
    hourly(door)
    horarium.advance(hours=1, minutes=30)
    [run] = door.runs("wf-1")
    assert (run["status"], run["state"]) == ("FAILED", "launch_failed")
    assert len(horarium.launcher.deliveries) > 1
    assert len({request.key for request in horarium.launcher.deliveries}) == 1


@runs_stay_open
def test_the_executor_reports_back(door: Door, horarium: TestService) -> None:
    hourly(door)
    horarium.advance(hours=1)
    [run] = door.runs("wf-1")
    token = horarium.launcher.deliveries[-1].report_token  # what the executor was handed
    said = {"state": "succeeded", "result": {"rows": 4}, "report_token": token}
    done = door.post(f"/api/runs/{run['run_id']}/report", said)
    assert done["state"] == "succeeded"
    run = door.get(f"/api/runs/{run['run_id']}")
    assert (run["status"], run["result"]) == ("SUCCESS", {"rows": 4})


# ── eyes and knobs ───────────────────────────────────────────────────────────────────────────────────


@runs_stay_open
def test_the_metrics_of_the_specification_are_counted(door: Door, horarium: TestService) -> None:
    hourly(door)
    for _ in range(3):
        door.post("/api/schedules/wf-1/trigger")
    text = horarium.http().get("/metrics").text
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines['horarium_runs_emitted_total{origin="manual"}']) == 1
    assert float(lines["horarium_runs_skipped_overlap_total"]) == 2
    others = {"horarium_schedules_due", "horarium_runs_failed_launch_total", "horarium_drift_seconds_count"}
    assert others <= lines.keys()


@pytest.mark.parametrize(
    ("variable", "default", "given", "read"),
    [
        ("TICK_MS", 1_000, "250", 250),
        ("LOOKAHEAD_MS", 60_000, "1000", 1_000),
        ("MAX_CATCHUP_PER_TICK", 100, "7", 7),
        ("DEFAULT_OVERLAP_POLICY", "skip", "queue", "queue"),
        # The default of the service is `fire_once`; a schedule that says `none` has what the specification means.
        ("DEFAULT_CATCHUP_POLICY", "fire_once", "none", "none"),
        ("DEFAULT_JITTER_MS", 0, "500", 500),
    ],
)
def test_the_knobs_keep_their_bare_names(
    monkeypatch: pytest.MonkeyPatch, variable: str, default: Any, given: str, read: Any
) -> None:
    name = variable.lower()
    assert getattr(load_settings(), name) == default
    monkeypatch.setenv(variable, given)
    assert getattr(load_settings(), name) == read
