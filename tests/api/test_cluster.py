"""Who serves a database and what waits, as an operator asks it; and a worker that dies, which is noticed in time."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.features.runs import count_rows
from horarium.instant import SECOND
from horarium.platform.database import processes
from horarium.platform.database.processes import About, Process
from horarium.platform.database.schema import newest_revision
from horarium.testing import Accepted, TestService

QUEUED = pytest.mark.parametrize("answer", [Accepted(reference="mail", queued=True)], ids=["queued"])
ENGINE = ("ticker", "dispatcher")
FLOOD = {"schedule_id": "flood", "cron_expressions": ["0 * * * *"], "overlap_policy": "allow_all",
         "action": {"workflow_type": "sweep", "task_queue": "flood"}}  # fmt: skip


def beat(horarium: TestService, owner: str, *roles: str, version: str = "1.0.0", **said: Any) -> None:
    about = About("machine", 7, roles, version, newest_revision(), horarium.now)
    process = Process(about, dict.fromkeys(roles, horarium.now), **said)
    horarium.resources.database.write(lambda c: processes.beat_process(c, owner, process, horarium.now))


def cluster(http: httpx.Client) -> dict[str, Any]:
    answer = http.get("/api/cluster/processes")
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def states(http: httpx.Client) -> dict[str, str]:
    return {each["name"]: each["state"] for each in cluster(http)["processes"]}


def pulled(http: httpx.Client, schedule_id: str = "s") -> None:
    document = {"schedule_id": schedule_id, "cron_expressions": ["0 * * * *"],
                "action": {"workflow_type": "sweep", "task_queue": "mail"}}  # fmt: skip
    http.post("/api/schedules", json=document).raise_for_status()
    http.post(f"/api/schedules/{schedule_id}/trigger").raise_for_status()


@pytest.mark.both_databases
def test_each_process_is_told_with_its_roles_and_what_it_runs(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, "a", "api")
    beat(horarium, "w", *ENGINE, clock_offset=-2_500)
    horarium.clock.advance(3)
    told = cluster(http)
    assert told["schema_revision"] == newest_revision()
    assert (told["notes"], told["more"], told["workers"], told["queues"]) == ([], False, [], [])
    assert told["processes"][1] == {
        "name": "w",
        "host": "machine",
        "pid": 7,
        "roles": list(ENGINE),
        "state": "alive",
        "version": "1.0.0",
        "schema_revision": newest_revision(),
        "started_at": "2026-03-01T00:00:00Z",
        "beat_at": "2026-03-01T00:00:00Z",
        "seconds_ago": 3.0,
        "runs": 0,
        "stuck": [],
        "clock_offset_seconds": -0.0025,
    }


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_versions_that_differ_are_pointed_out(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, "a", *ENGINE)
    beat(horarium, "b", *ENGINE, version="1.1.0")
    assert cluster(http)["notes"] == ["processes run different versions: 1.0.0 (1), 1.1.0 (1)"]


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_process_that_leaves_and_one_that_dies_are_told_apart(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, "dies", *ENGINE)
    beat(horarium, "leaves", *ENGINE, draining=True)
    beat(horarium, "stays", *ENGINE)
    assert states(http) == {"dies": "alive", "leaves": "draining", "stays": "alive"}
    horarium.resources.database.write(lambda c: processes.delete_process(c, "leaves"))
    horarium.clock.advance(13)
    beat(horarium, "stays", *ENGINE)
    assert states(http) == {"dies": "silent", "stays": "alive"}
    assert cluster(http)["notes"] == ["dies has sent no heartbeat for 13 s; its runs move when their leases expire"]
    horarium.clock.advance(18)
    beat(horarium, "stays", *ENGINE)
    assert (states(http), cluster(http)["notes"]) == ({"dies": "gone", "stays": "alive"}, [])


@QUEUED
def test_a_worker_of_a_queue_that_dies_is_seen_and_its_run_taken_within_half_a_minute(
    http: httpx.Client, horarium: TestService
) -> None:
    beat(horarium, "w", *ENGINE)
    pulled(http)
    horarium.settle()
    assert cluster(http)["queues"] == [{"kind": "workflow", "queue": "mail", "ready": 0, "queued": 1, "held": 0}]
    claimed = http.post("/api/queues/mail/claim", json={"worker": "dies"}).json()["runs"]
    assert len(claimed) == 1
    died = horarium.now
    assert [(each["name"], each["state"], each["runs"]) for each in cluster(http)["workers"]] == [("dies", "alive", 1)]
    horarium.clock.advance(13)
    assert [each["state"] for each in cluster(http)["workers"]] == ["silent"]
    while not (taken := http.post("/api/queues/mail/claim", json={"worker": "other"}).json()["runs"]):
        # As often as the janitor of a process looks.
        horarium.clock.advance(horarium.resources.settings.janitor_seconds)
        horarium.settle()
        assert horarium.now - died <= 30 * SECOND
    assert taken[0]["run_id"] == claimed[0]["run_id"]
    assert [(each["name"], each["runs"]) for each in cluster(http)["workers"]] == [("other", 1)]


def test_what_waits_is_told_with_how_long_it_has(http: httpx.Client, horarium: TestService) -> None:
    beat(horarium, "w", *ENGINE)
    pulled(http)
    horarium.clock.advance(4)
    told = cluster(http)
    assert told["oldest_ready_seconds"] == 4.0
    assert told["queues"] == [{"kind": "workflow", "queue": "mail", "ready": 1, "queued": 0, "held": 0}]
    horarium.clock.advance(3_600)
    assert cluster(http)["tick_lag_seconds"] > 0


def test_the_run_that_waits_longest_is_told_although_its_queue_is_not_shown(
    http: httpx.Client, horarium: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(count_rows, "MOST_GROUPS", 1)
    beat(horarium, "w", *ENGINE)
    pulled(http)
    horarium.clock.advance(4)
    for _ in range(2):
        http.post("/api/schedules", json=FLOOD)
        http.post("/api/schedules/flood/trigger").raise_for_status()
    told = cluster(http)
    assert [each["queue"] for each in told["queues"]] == ["flood"]
    assert told["oldest_ready_seconds"] == 4.0


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_only_admins_of_the_house_may_ask(http: httpx.Client, horarium: TestService) -> None:
    http.post("/api/namespaces", json={"namespace": "b"})
    secret = horarium.http(namespace="b").post("/api/tokens", json={"name": "m", "role": "admin"}).json()["secret"]
    assert horarium.http(token=secret).get("/api/cluster/processes").status_code == 403
    viewer = http.post("/api/tokens", json={"name": "v", "role": "viewer"}).json()["secret"]
    assert horarium.http(token=viewer).get("/api/cluster/processes").status_code == 403
