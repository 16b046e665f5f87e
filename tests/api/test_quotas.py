"""A tenant that fills what it may have is refused with the numbers, and one beside it goes on as if it were alone."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.tenants import service as tenant_service
from horarium.instant import from_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.client.errors import QuotaExceeded
from horarium.platform.wire import Role
from horarium.testing import TestService, service

pytestmark = pytest.mark.both_databases

MINUTELY = {"cron_expressions": ["* * * * *"]}
NIGHTLY = {"cron_expressions": ["0 2 * * *"]}
# What is counted in SQL is tried on both databases, by the clock here and in `tests/store`.
ON_ONE = pytest.mark.parametrize("dialect", ["sqlite"])


def document(name: str, spec: dict[str, Any] = NIGHTLY, **fields: Any) -> dict[str, Any]:
    overlap = {"overlap_policy": "allow_all"}
    return {"schedule_id": name, "spec": spec, "action": {"workflow_type": "w"}, **overlap, **fields}


@pytest.fixture
def greedy(horarium: TestService) -> httpx.Client:
    """Of a tenant beside the quiet one."""
    for name in ("greedy", "quiet"):
        tenant_service.create_namespace(horarium.resources, horarium.caller, name)
    return horarium.http(namespace="greedy")


@pytest.fixture
def quiet(horarium: TestService, greedy: httpx.Client) -> httpx.Client:
    return horarium.http(namespace="quiet")


def limit(http: httpx.Client, **quotas: Any) -> dict[str, Any]:
    answer = http.patch("/api/namespaces/greedy", json={"quotas": quotas}, headers={"X-Namespace": "default"})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["quotas"]
    return found


def add(http: httpx.Client, *names: str, spec: dict[str, Any] = NIGHTLY, **fields: Any) -> None:
    for name in names:
        answer = http.post("/api/schedules", json=document(name, spec, **fields))
        assert answer.status_code == 201, answer.text


def refused(answer: httpx.Response, status: int, **members: Any) -> None:
    assert answer.status_code == status, answer.text
    body = answer.json()
    assert body["reason"] == "quota_exceeded"
    assert {name: body[name] for name in members} == members


@ON_ONE
def test_no_more_schedules_than_the_quota(greedy: httpx.Client, quiet: httpx.Client) -> None:
    add(greedy, "a", "b")
    limit(greedy, schedules=3)
    bundle = {"schedules": [document("c"), document("d")]}
    refused(greedy.post("/api/apply", json=bundle), 422, quota="schedules", limit=3, used=2, count=2)
    add(greedy, "c")
    told = {"quota": "schedules", "limit": 3, "used": 3, "count": 1}
    refused(greedy.post("/api/schedules", json=document("d")), 422, **told)
    refused(greedy.post("/api/schedules/upsert", json=document("d")), 422, **told)
    assert greedy.put("/api/schedules/a", json={"note": "edits go on"}).status_code == 200
    add(quiet, "a", "b", "c", "d")
    assert greedy.delete("/api/schedules/a").status_code == 200
    add(greedy, "d")


@ON_ONE
def test_no_more_open_runs_than_the_quota_through_any_door(horarium: TestService, greedy: httpx.Client) -> None:
    add(greedy, "a")
    limit(greedy, open_runs=2)
    started = [greedy.post("/api/schedules/a/trigger") for _ in range(2)]
    assert [each.status_code for each in started] == [200, 200]
    told = {"quota": "open_runs", "limit": 2, "used": 2}
    full = greedy.post("/api/schedules/a/trigger")
    refused(full, 429, **told)
    assert int(full.headers["Retry-After"]) > 0
    start = {"workflow_id": "w", "idempotency_key": "k", "scheduled_for": "2026-03-01T00:00:00Z"}
    refused(greedy.post("/api/run-launcher/start", json=start), 429, **told)
    horarium.sleep(days=3)
    horarium.settle()
    window = {"start_time": "2026-03-01T00:00:00Z", "end_time": "2026-03-03T00:00:00Z"}
    refused(greedy.post("/api/schedules/a/backfill", json=window), 429, **told)
    run_id = started[0].json()["run_id"]
    assert greedy.post(f"/api/runs/{run_id}/terminate").status_code == 200
    assert greedy.post(f"/api/runs/{run_id}/rerun", json={}).status_code == 200, "one has ended, one may start"
    refused(greedy.post(f"/api/runs/{run_id}/rerun", json={}), 429, **told)


def test_the_clock_skips_what_does_not_fit_and_says_so(
    horarium: TestService, greedy: httpx.Client, quiet: httpx.Client
) -> None:
    add(greedy, "a", "b", "c", spec=MINUTELY)
    add(quiet, "a", "b", "c", spec=MINUTELY)
    limit(greedy, runs_per_minute=2)
    horarium.advance(minutes=1)
    assert len(greedy.get("/api/runs").json()["runs"]) == 2
    assert len(quiet.get("/api/runs").json()["runs"]) == 3
    shown = [greedy.get(f"/api/schedules/{name}").json() for name in ("a", "b", "c")]
    assert sorted(str(each["last_skip_reason"]) for each in shown) == ["None", "None", "quota_exceeded"]
    left_out = next(each["schedule_id"] for each in shown if each["last_skip_reason"])
    events = greedy.get(f"/api/schedules/{left_out}/history").json()["events"]
    skipped = next(each for each in events if each["event_type"] == "ScheduleTriggerSkipped")
    assert skipped["payload"]["detail"] == {"quota": "runs_per_minute", "limit": 2, "used": 2}
    at = {"at": "2026-03-01T00:02:00Z"}
    foreseen = greedy.get(f"/api/schedules/{left_out}/explain", params=at).json()
    # Whether there is room then depends on what other schedules start by then.
    assert (foreseen["reason"], foreseen["certainty"]) == (None, "unknown")
    assert "quota runs_per_minute" in foreseen["sentence"]
    horarium.clock.set(from_rfc3339("2026-03-01T00:01:59Z"))
    full = greedy.post("/api/schedules/a/trigger")
    refused(full, 429, quota="runs_per_minute", limit=2, used=2)
    assert full.headers["Retry-After"] == "1"
    horarium.advance(minutes=1)
    assert len(greedy.get("/api/runs").json()["runs"]) == 4, "each minute has its own"


@ON_ONE
def test_what_is_caught_up_after_an_outage_is_capped_and_recorded(
    horarium: TestService, greedy: httpx.Client, quiet: httpx.Client
) -> None:
    for http in (greedy, quiet):
        add(http, "a", "b", spec=MINUTELY, catchup_policy="fire_all")
    limit(greedy, runs_per_minute=5)
    horarium.sleep(minutes=30)
    horarium.settle()
    assert len(greedy.get("/api/runs").json()["runs"]) == 5
    assert len(quiet.get("/api/runs?page_size=200").json()["runs"]) == 60
    missed = [
        (each["event_type"], each["payload"]["count"])
        for name in ("a", "b")
        for each in greedy.get(f"/api/schedules/{name}/history").json()["events"]
        if each["payload"].get("reason") == "quota_exceeded" and "count" in each["payload"]
    ]
    assert sum(count for _, count in missed) >= 50
    assert {kind for kind, _ in missed} == {"ScheduleMissed"}
    assert not horarium.verify()


@ON_ONE
def test_a_spec_is_no_denser_than_the_quota(greedy: httpx.Client, quiet: httpx.Client) -> None:
    add(greedy, "a", spec={"cron_expressions": ["* * * * * *"]})
    limit(greedy, shortest_gap_seconds=60)
    dense = {"cron_expressions": ["0 * * * *", "30 0 * * * *"]}
    told = {"quota": "shortest_gap_seconds", "limit": 60, "used": 30}
    refused(greedy.post("/api/schedules", json=document("b", dense)), 422, **told)
    refused(greedy.post("/api/apply", json={"schedules": [document("b", dense)]}), 422)
    add(greedy, "b", spec=MINUTELY)
    refused(greedy.put("/api/schedules/b", json={"spec": dense}), 422, **told)
    assert greedy.patch("/api/schedules/a", json={"note": "it was there before"}).status_code == 200
    add(quiet, "b", spec=dense)


def test_bytes_are_counted_as_they_come_and_again_by_the_engine(
    horarium: TestService, greedy: httpx.Client, quiet: httpx.Client
) -> None:
    add(greedy, "a", note="x" * 500)
    large = greedy.post("/api/schedules/a/trigger", json={"inputs": {"text": "y" * 30_000}})
    assert large.status_code == 200
    before = limit(greedy)["bytes_stored"]["used"]
    assert before > 30_000
    while horarium.parts.engine.usage.step():
        pass
    counted = limit(greedy)["bytes_stored"]["used"]
    assert 30_000 < counted < 40_000
    limit(greedy, bytes_stored=counted + 500)
    told = {"quota": "bytes_stored", "limit": counted + 500, "used": counted}
    refused(greedy.post("/api/schedules", json=document("b", memo={"text": "z" * 1_000})), 422, **told)
    refused(greedy.post("/api/schedules/a/trigger"), 422, **told)
    add(quiet, "b", memo={"text": "z" * 1_000})
    days = [f"2027-{month:02}-{day:02}" for month in range(1, 13) for day in range(1, 29)]
    calendar = {"name": "c", "kind": "skip_dates", "dates": days}
    refused(greedy.post("/api/calendars", json=calendar), 422, **told)
    applied = greedy.post("/api/apply", json={"calendars": [calendar]})
    assert (applied.status_code, applied.json()["reason"]) == (422, "quota_exceeded")
    limit(greedy, bytes_stored=None)
    assert greedy.post("/api/calendars", json=calendar).status_code == 201
    added = limit(greedy)["bytes_stored"]["used"]
    assert added > counted + 3_000
    horarium.clock.advance(120)
    while horarium.parts.engine.usage.step():
        pass
    assert limit(greedy)["bytes_stored"]["used"] >= added, "it is found by the count as well"


@ON_ONE
def test_a_namespace_shows_its_limits_and_its_use_and_only_the_installation_changes_them(
    horarium: TestService, greedy: httpx.Client, quiet: httpx.Client
) -> None:
    add(greedy, "a")
    greedy.post("/api/schedules/a/trigger")
    limit(greedy, open_runs=7, schedules=None)
    own = Caller("root", Role.ADMIN, "greedy")
    token = tenant_service.issue_token(horarium.resources, own, name="t", role="admin", subject="greedy").secret
    tenant = horarium.http(token=token)
    shown = tenant.get("/api/namespaces/greedy").json()
    assert shown["quotas"]["open_runs"] == {"limit": 7, "used": 1, "own": True}
    assert shown["quotas"]["schedules"] == {"limit": None, "used": 1, "own": True}
    assert shown["quotas"]["runs_per_minute"] == {"limit": 200_000, "used": 1}
    assert shown["retention"] == {"keep_runs_days": 90, "keep_history_days": None}
    assert tenant.patch("/api/namespaces/greedy", json={"quotas": {"open_runs": 9}}).status_code == 403
    assert tenant.patch("/api/namespaces/quiet", json={"quotas": {"open_runs": 9}}).status_code == 404
    assert tenant.get("/api/namespaces/quiet").status_code == 404
    admin = {"X-Namespace": "default"}
    for wrong in ({"quotas": {"open_runs": -1}}, {"quotas": {"opened": 1}}, {"retention": {"keep_runs_days": 0}}):
        assert greedy.patch("/api/namespaces/greedy", json=wrong, headers=admin).status_code == 422
    assert greedy.patch("/api/namespaces/nobody", json={}, headers=admin).status_code == 404
    assert limit(greedy, open_runs="default")["open_runs"] == {"limit": 200_000, "used": 1}


def test_the_client_is_told_the_numbers_and_does_not_ask_again() -> None:
    with service(at="2026-03-01T00:00:00Z", settings={"quota_runs_per_minute": 1}) as horarium:
        horarium.create(document("a"))
        client = horarium.client()
        client.trigger_schedule("a")
        with pytest.raises(QuotaExceeded) as full:
            client.trigger_schedule("a")
        assert (full.value.status, full.value.quota, full.value.limit, full.value.used) == (
            429,
            "runs_per_minute",
            1,
            1,
        )
        assert client.change_namespace("default", quotas={"runs_per_minute": None}).quotas is not None
        assert client.trigger_schedule("a").outcome == "triggered"


@pytest.mark.parametrize(
    ("path", "first", "longer", "room"),
    [
        ("/api/secrets/s", {"value": "v"}, {"value": "v" * 20_000}, 5_000),
        (
            "/api/agents/a",
            {"url": "https://agents.example.com", "token": "t"},
            {"url": "https://agents.example.com", "token": "t" * 4_000},
            1_000,
        ),
    ],
)
def test_a_longer_secret_in_the_place_of_another_counts(
    greedy: httpx.Client, path: str, first: dict[str, str], longer: dict[str, str], room: int
) -> None:
    """One of the same length takes nothing, also where all is used up."""
    greedy.put(path, json=first).raise_for_status()
    used = limit(greedy)["bytes_stored"]["used"]
    limit(greedy, bytes_stored=used + room)
    refused = greedy.put(path, json=longer)
    assert (refused.status_code, refused.json()["reason"]) == (422, "quota_exceeded")
    limit(greedy, bytes_stored=used)
    same = {**first, "value": "w"} if "value" in first else {**first, "token": "u"}
    assert greedy.put(path, json=same).status_code == 200
