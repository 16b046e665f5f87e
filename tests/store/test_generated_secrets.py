"""Secrets that were made of credentials end with whom they belong to, and not before."""

from __future__ import annotations

from typing import Any

from horarium.features.runs import retention_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.starts import start_run
from horarium.features.schedules import rows as schedule_rows
from horarium.features.secrets import service as secret_service
from horarium.platform.ids import id_text
from horarium.testing import Accepted, TestService, service

ACTION: dict[str, Any] = {"url": "https://api.example.com/", "headers": {"Authorization": "Bearer canary-0001"}}
CALLS = {"schedule_id": "calls", "cron_expressions": ["0 * * * *"], "action": ACTION}


def names(horarium: TestService) -> list[str]:
    return [each.name for each in secret_service.list_secrets(horarium.resources, horarium.caller).secrets]


def forget_runs(horarium: TestService) -> None:
    def work(connection: Any) -> None:
        rows = runs_read.page_of_namespace(connection, "default", limit=10).rows
        retention_rows.delete_runs(connection, [row.run_id for row in rows])

    horarium.resources.database.write(work)


def test_those_of_a_run_without_a_schedule_go_with_it(database_url: str) -> None:
    with service(answer=Accepted(), database=database_url) as horarium:
        run = start_run(horarium.resources, horarium.caller, ACTION, key="k")
        horarium.settle()
        assert names(horarium) == [f"run.{id_text(run.run_id)}.authorization"]
        assert horarium.launcher.deliveries[0].action.target["headers"] == ACTION["headers"]
        assert "canary" not in horarium.http().get(f"/api/runs/{id_text(run.run_id)}").text
        forget_runs(horarium)
        assert names(horarium) == []


def test_a_run_that_outlives_its_schedule_keeps_them_and_they_go_with_its_rows(database_url: str) -> None:
    with service(answer=Accepted(), database=database_url) as horarium:
        database, http = horarium.resources.database, horarium.http()
        http.post("/api/schedules", json=CALLS)
        horarium.advance(hours=1)
        [run] = horarium.runs("calls")
        http.delete("/api/schedules/calls")
        assert names(horarium) == ["schedule.calls.authorization"]
        horarium.fail(run, error_class="timeout")
        horarium.advance(hours=1)
        assert len(horarium.launcher.deliveries) == 2  # the second try has its credentials
        horarium.finish(horarium.runs("calls")[0])
        forget_runs(horarium)
        row = database.read(lambda c: schedule_rows.find_newest(c, "default", "calls"))
        assert row is not None
        uids, now = [row.schedule_uid], horarium.now + 1
        database.write(lambda c: retention_rows.trim_history(c, uids, recorded_before=now, now=now))
        http.post("/api/schedules", json=CALLS)  # the id is used again, and so is the name
        assert database.write(lambda c: retention_rows.purge_schedules(c, uids, deleted_before=now)) == 1
        assert names(horarium) == ["schedule.calls.authorization"]
        http.delete("/api/schedules/calls")
        assert names(horarium) == []
