"""A schedule that begins or ceases to need somebody is told once, however many look."""

from __future__ import annotations

import pytest

from horarium.engine import chores
from horarium.features.history import service as history_service
from horarium.testing import Accepted, TestService, service


def changes(horarium: TestService) -> list[tuple[str | None, str, str | None]]:
    page = history_service.newest_entries(horarium.resources, horarium.caller, page_size=200)
    health = [each for each in reversed(page.entries) if each.kind == "schedule_health"]
    return [(each.schedule_id, each.event.payload["status"], each.event.payload.get("was")) for each in health]


def test_a_change_is_told_once_and_so_is_its_end(service_url: str) -> None:
    with service(answer=Accepted(), database=service_url) as horarium:
        watch = horarium.parts.engine.health
        horarium.create(schedule_id="s", cron_expressions=["0 * * * *"], workflow_type="w", overlap_policy="allow_all")
        assert watch.step() == 0
        horarium.advance(hours=1)
        horarium.clock.advance(3_600 + 61)
        assert (watch.step(), watch.step()) == (1, 0)
        horarium.settle()
        assert watch.step() == 1
        horarium.create(
            schedule_id="gone",
            cron_expressions=["0 * * * *"],
            workflow_type="w",
            approval_policy={"requires_approval": True},
        )
        horarium.http().post("/api/schedules/gone/trigger")
        assert watch.step() == 1
        horarium.http().delete("/api/schedules/gone")
        assert watch.step() == 0
        assert changes(horarium) == [
            ("s", "late", None),
            ("s", "ok", "late"),
            ("gone", "waiting_for_approval", None),
        ]


def test_a_crowd_of_one_namespace_hides_nobody_elses_schedule(
    service_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chores, "MOST", 2)
    with service(answer=Accepted(), database=service_url) as horarium:
        watch, http = horarium.parts.engine.health, horarium.http()
        for namespace, count in (("crowd", 5), ("others", 1)):
            http.post("/api/namespaces", json={"namespace": namespace})
            inside = horarium.http(namespace=namespace)
            for number in range(count):
                document = {"schedule_id": f"s{number}", "cron_expr": "0 * * * *", "workflow_type": "w"}
                inside.post("/api/schedules", json={**document, "approval_policy": {"requires_approval": True}})
                inside.post(f"/api/schedules/s{number}/trigger")
        assert [watch.step() for _ in range(4)] == [2, 2, 2, 0]
        assert horarium.http(namespace="others").delete("/api/schedules/s0").status_code == 200
        horarium.http(namespace="crowd").post("/api/schedules/s3/pause")
        assert sum(watch.step() for _ in range(3)) == 1, "all that were told are looked at, in turn"
