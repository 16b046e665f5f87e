"""Horarium inside another program: declared in code, run in somebody else's loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from horarium import Horarium
from horarium.errors import InvalidDefinition
from horarium.features.schedules import lifecycle, lists
from horarium.features.schedules import service as schedule_service
from horarium.platform.caller import internal
from horarium.testing import service

CALLER = internal("test")


def embedded(tmp_path: Path, **knobs: Any) -> Horarium:
    return Horarium(data_dir=tmp_path / "data", log_level="error", **knobs)


async def until(condition: Callable[[], object], seconds: float = 10) -> None:
    for _ in range(int(seconds / 0.05)):
        if condition():
            return
        await asyncio.sleep(0.05)
    raise AssertionError("it did not happen in time")


def test_a_task_is_still_a_function() -> None:
    app = Horarium()

    @app.task
    def double(x: int) -> int:
        return 2 * x

    @app.task(name="named", cpu=True)
    def other() -> None: ...

    assert double(2) == 4
    assert min(app.tasks) == "named"
    named = app.tasks.get("named")
    assert named is not None
    assert named.cpu


def test_a_schedule_is_named_after_its_function() -> None:
    app = Horarium()

    @app.schedule("0 2 * * *", timezone="Europe/Istanbul", overlap_policy="buffer_one")
    def nightly_report() -> None: ...

    @app.schedule(schedule_id="chosen", spec={"intervals": [{"every": "PT1H"}]})
    def hourly() -> None: ...

    nightly, chosen = app.templates
    assert nightly["schedule_id"] == "nightly_report"
    assert nightly["spec"] == {"cron_expressions": ["0 2 * * *"], "timezone": "Europe/Istanbul"}
    assert (nightly["source"], nightly["overlap_policy"]) == ("template", "buffer_one")
    assert chosen["spec"] == {"intervals": [{"every": "PT1H"}]}


def test_two_schedules_of_one_name_are_refused() -> None:
    app = Horarium()
    app.schedule("0 2 * * *", schedule_id="x")(len)
    with pytest.raises(InvalidDefinition, match="the schedule ID 'x' is used twice"):
        app.schedule("0 3 * * *", schedule_id="x")(len)


def test_a_mistake_in_a_schedule_names_its_file_and_line_at_import(tmp_path: Path) -> None:
    """Without a service, settings or a database: the module alone is imported."""
    declared = "from horarium import Horarium\napp = Horarium()\n\n\n"
    for wrong, said in (
        ('@app.schedule("0 25 * * *")', "spec.cron_expressions.0: hour: '25' is outside 0-23"),
        ('@app.schedule("0 2 * * *", timezone="Europe/Istambul")', "spec.timezone: "),
        ('@app.schedule("0 2 * * *", colour="red")', "colour: unknown field"),
        ('app.schedule("0 3 * * *", schedule_id="x")(len)\n@app.schedule("@daily", schedule_id="x")', "schedule_id: "),
    ):
        module = tmp_path / "jobs.py"
        module.write_text(f"{declared}{wrong}\ndef job() -> None: ...\n")
        line = 5 + wrong.count("\n")
        with pytest.raises(InvalidDefinition) as raised:
            exec(compile(module.read_text(), str(module), "exec"), {"__name__": "jobs"})
        assert str(raised.value).startswith(f"{module}:{line}: {said}")
    assert str(raised.value).endswith(f"the other one is at {module}:5")


def test_what_only_a_service_can_tell_is_no_mistake_at_import() -> None:
    app = Horarium()
    app.schedule(at=["2020-01-01T00:00:00Z"], calendars=["ours"], schedule_id="past")(len)
    app.schedule("0 2 * * *", schedule_id="theirs", action={"kind": "of-another-package", "x": 1})(len)
    assert len(app.templates) == 2


def test_a_variable_that_nothing_reads_is_logged_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_DATABSE", "postgresql://u:hunter2@h/d")
    log = StringIO()
    with service(settings={"log_level": "warning"}, log_to=log):
        pass
    assert "HORARIUM_DATABSE is not a setting; did you mean HORARIUM_DATABASE?" in log.getvalue()
    assert "hunter2" not in log.getvalue()


def test_a_function_may_have_several_schedules() -> None:
    app = Horarium()

    def job() -> None: ...

    app.schedule("0 2 * * *", schedule_id="early")(job)
    app.schedule("0 9 * * *", schedule_id="late")(job)
    assert len(app.tasks) == 1


def test_a_redeploy_changes_nothing_and_never_unpauses() -> None:
    app = Horarium()
    app.schedule("0 2 * * *", schedule_id="nightly")(len)
    with service(app=app) as horarium:
        lifecycle.pause(horarium.resources, CALLER, "nightly")
        from horarium.serve.service import put_templates

        put_templates(horarium.parts)
        found = lists.describe(horarium.resources, CALLER, "nightly")
        assert (found.row.status, found.row.revision) == ("paused", 1)


def test_what_a_person_wrote_is_not_touched_by_code() -> None:
    app = Horarium()
    app.schedule("0 2 * * *", schedule_id="nightly")(len)
    with service() as horarium:
        horarium.create(schedule_id="nightly", cron_expressions=["0 5 * * *"], workflow_type="theirs")
        from dataclasses import replace

        from horarium.serve.service import put_templates

        put_templates(replace(horarium.parts, application=app))
        found = lists.describe(horarium.resources, CALLER, "nightly")
        assert found.definition.spec.cron_expressions == ("0 5 * * *",)


def test_it_runs_inside_another_loop(tmp_path: Path) -> None:
    app, seen = embedded(tmp_path), []

    @app.schedule("@every PT1S")
    async def tick() -> None:
        seen.append(1)

    async def main() -> None:
        async with app:
            await until(lambda: len(seen) >= 2)
            with pytest.raises(RuntimeError, match="already"):
                await app.__aenter__()

    asyncio.run(main())
    with pytest.raises(RuntimeError, match="async with"):
        _ = app.service


def test_code_speaks_to_its_own_service_as_anybody_else_does(tmp_path: Path) -> None:
    app, told = embedded(tmp_path), []

    @app.schedule("0 0 1 1 *")
    def yearly() -> str:
        told.append(app.client.describe_schedule("yearly").schedule_id)
        return "done"

    async def main() -> None:
        async with app:
            created = await app.async_client.create_schedule(
                schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report"
            )
            assert created.schedule_id == "nightly"
            await asyncio.to_thread(app.client.trigger_schedule, "yearly")
            await until(lambda: told)
            history = await app.async_client.get_schedule_history("nightly")
            assert history.items[0].payload["command_context"]["principal"] == "embedded"

    asyncio.run(main())
    assert told == ["yearly"]
    for name in ("client", "async_client", "service"):
        with pytest.raises(RuntimeError, match="the service is not running"):
            getattr(app, name)


def test_a_service_that_stands_still_has_its_client_too() -> None:
    app = Horarium()
    app.schedule("0 2 * * *", schedule_id="nightly")(len)
    with service(app=app):
        assert [each.schedule_id for each in app.client.iter_schedules()] == ["nightly"]


def test_its_secret_opens_no_other_service(tmp_path: Path) -> None:
    async def ask(app: Horarium, secret: str) -> int:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app.api), base_url="http://x") as http:
            return (await http.get("/api/schedules", headers={"Authorization": f"Bearer {secret}"})).status_code

    async def main() -> None:
        async with embedded(tmp_path / "a") as one, embedded(tmp_path / "b") as other:
            assert await ask(one, one.service.secret) == 200
            assert await ask(one, other.service.secret) == 401
            assert one.service.secret not in repr(one.service)

    asyncio.run(main())


def test_it_starts_again_where_it_was(tmp_path: Path) -> None:
    app = embedded(tmp_path)
    app.schedule("0 2 * * *", schedule_id="nightly")(len)

    async def visit() -> bytes:
        async with app:
            return schedule_service.upsert(app.service.resources, CALLER, app.templates[0]).schedule_uid

    assert asyncio.run(visit()) == asyncio.run(visit())


def test_it_lives_in_the_lifespan_of_a_fastapi_program(tmp_path: Path) -> None:
    horarium, seen = embedded(tmp_path, token="hor_mine"), []
    horarium.schedule("@every PT1S", schedule_id="often")(lambda: seen.append(1))

    @asynccontextmanager
    async def lifespan(outer: FastAPI) -> AsyncIterator[None]:
        async with horarium:
            outer.mount("/horarium", horarium.api)
            yield

    outer = FastAPI(lifespan=lifespan)

    async def main() -> dict:
        async with outer.router.lifespan_context(outer):
            await until(lambda: seen)
            transport = httpx.ASGITransport(outer)
            async with httpx.AsyncClient(transport=transport, base_url="http://outer") as http:
                headers = {"Authorization": "Bearer hor_mine"}
                answer = await http.get("/horarium/api/schedules/often", headers=headers)
                return answer.json()

    described = asyncio.run(main())
    assert (described["schedule_id"], described["source"]) == ("often", "template")


def test_settings_or_knobs_but_not_both() -> None:
    with pytest.raises(TypeError, match="not both"):
        Horarium(Horarium(port=1).settings, port=2)
    assert Horarium(port=1234).settings.port == 1234


def test_importing_the_package_stays_cheap() -> None:
    script = (
        "import sys, horarium; "
        "print([name for name in ('fastapi', 'sqlalchemy', 'pydantic', 'uvicorn') if name in sys.modules]); "
        "print(horarium.Horarium.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout.splitlines() == ["[]", "Horarium"]
