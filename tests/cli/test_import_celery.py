"""`horarium import celery`: a real app in a process of its own, what it shows, and what it writes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from beat_apps import describe
from celery.schedules import crontab
from cli.served import Server

AFTER = ("--after", "2026-01-01T00:00:00Z")
APP = """
import sys
from celery import Celery
from celery.schedules import crontab

print("{not json")
print("nor this", file=sys.stderr)
app = Celery("shop", broker="redis://nobody.invalid/0")
app.conf.timezone = "America/New_York"
app.conf.task_routes = {"reports.*": {"queue": "reports"}}


@app.task(name="reports.send", time_limit=600)
def send(kind):
    raise AssertionError("an import runs nothing")


@app.on_after_configure.connect
def add(sender, **_):
    sender.add_periodic_task(crontab(hour=2, minute=30), send.s("nightly"), name="Nightly report", priority=3)
    sender.add_periodic_task(1800, send.s("half"), name="half")
"""


def write(name: str, text: str) -> None:
    Path(name).write_text(text)


def describe_into(file: str, entries: dict[str, Any], **more: Any) -> None:
    write(file, json.dumps(describe(entries, **more)))


def test_an_app_is_shown_with_the_fires_that_differ_and_nothing_is_written(server: Server) -> None:
    write("shop.py", APP)
    answer = server.ask("import", "celery", "shop", *AFTER)

    assert answer.code == 1, answer.err
    rows = [line.split() for line in answer.out.splitlines()]
    assert ["Nightly", "report", "Nightly-report", "30", "2", "*", "*", "*", "America/New_York"] in [
        r[:9] for r in rows
    ]
    (moved,) = [line for line in answer.out.splitlines() if " moved " in line]
    assert "Sun 2026-03-08 03:30:00 -04:00  Sun 2026-03-08 03:00:00 -04:00" in moved
    assert "note: half: anchor: beat counts from its start" in answer.out
    assert "nothing written; --apply writes 2 schedules as bundle celery:shop" in answer.err
    assert "not json" not in answer.out + answer.err
    assert server.service.http().get("/api/schedules").json()["schedules"] == []

    told = json.loads(server.ask("import", "celery", "shop:app", *AFTER, "-o", "json").out)
    assert [(each["name"], each["verdict"]) for each in told["entries"]] == [
        ("Nightly report", "differs"),
        ("half", "shifted"),
    ]
    action = told["bundle"]["schedules"][0]["action"]
    assert (action["args"], action["queue"], action["timeout_seconds"]) == (["nightly"], "reports", 600)
    assert told["bundle"]["schedules"][0]["priority"] == 6


def test_what_is_written_is_a_bundle_that_a_second_import_leaves_alone(server: Server) -> None:
    write("app.json", json.dumps(describe({
        "friday": {"schedule": crontab(minute=0, hour=0, day_of_month=13, day_of_week="fri"), "kwargs": {"a": 1}},
        "half": {"schedule": 0.5},
        "gone": {"schedule": 60},
    })))  # fmt: skip
    first = server.ask("import", "celery", "--from", "app.json", "--apply", "--pause", "-o", "json")
    assert first.code == 1, "one entry is only alike"
    changes = {each["name"]: each["change"] for each in json.loads(first.out)["changes"]}
    assert changes == {"celery:13:fri": "create", "friday": "create", "gone": "create"}

    found = server.service.http().get("/api/schedules/friday").json()
    assert (found["status"], found["action"]["kind"], found["action"]["kwargs"]) == ("paused", "celery", {"a": 1})
    assert (found["overlap_policy"], found["calendars"], found["bundle"]) == (
        "allow_all",
        ["celery:13:fri"],
        "celery:proj",
    )
    again = server.ask("import", "celery", "--from", "app.json", "--apply", "--approximate", "-o", "json")
    assert again.code == 0, again.err
    changes = {each["name"]: each["change"] for each in json.loads(again.out)["changes"]}
    assert changes == {"celery:13:fri": "unchanged", "friday": "unchanged", "gone": "unchanged", "half": "create"}

    describe_into("app.json", {"half": {"schedule": 1}})
    pruned = server.ask("import", "celery", "--from", "app.json", "--apply", "--prune")
    assert pruned.code == 0, pruned.err
    left = server.service.http().get("/api/schedules").json()["schedules"]
    assert [each["schedule_id"] for each in left] == ["half"]


def test_somebody_at_a_terminal_is_asked(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    describe_into("app.json", {"one": {"schedule": crontab(minute=0, hour=1)}}, days=3)
    for said, written in (("n", []), ("y", ["one"])):
        monkeypatch.setattr(sys, "stdin", io.StringIO(said + "\n"))
        monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
        answer = server.ask("import", "celery", "--from", "app.json")

        assert "Write 1 schedules?" in answer.err
        found = server.service.http().get("/api/schedules").json()["schedules"]
        assert [each["schedule_id"] for each in found] == written


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "give either MODULE:APP or --from FILE"),
        (["a:b", "--from", "x"], "give either MODULE:APP or --from FILE"),
        (["--from", "missing.json"], "--from: cannot read 'missing.json'"),
        (["--from", "bad.json"], "entries.0.schedule.kind: is required"),
        (["a:b", "--tz", "Mars/Olympus"], "timezone: 'Mars/Olympus' is not a time zone of the tz database"),
        (["a:b", "--prefix", "-"], "--prefix: '-' is not a valid ID"),
        (["a:b", "--python", "no-such-python"], "--python: cannot start 'no-such-python'"),
        (["leaves:app"], "leaves:app: loading failed: SystemExit: 3; last output: I go"),
        (["dies:app"], "dies:app: the process that loads it exited with code 4 and no answer; last output: gone"),
        (["hangs:app", "--load-timeout", "1"], "loading the app took more than 1 seconds"),
    ],
)
def test_what_cannot_be_read_is_one_line(empty_server: Server, arguments: list[str], told: str) -> None:
    write("bad.json", json.dumps({**describe({}), "entries": [{"name": "a", "task": "t"}]}))
    write("leaves.py", "import sys\nprint('I go')\nsys.exit(3)\n")
    write("dies.py", "import os\nprint('gone', flush=True)\nos._exit(4)\n")
    write("hangs.py", "import threading\nthreading.Event().wait()\n")
    answer = empty_server.ask("import", "celery", *arguments)

    assert answer.code == 2
    assert answer.err.startswith(f"error: {told}")
    assert len(answer.err.splitlines()) == 1


def test_a_server_without_an_answer_is_asked_only_when_something_is_written(
    empty_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe_into("app.json", {"one": {"schedule": crontab(minute=0, hour=1)}}, days=3)
    monkeypatch.setenv("HORARIUM_SERVER", "http://127.0.0.1:1")

    assert empty_server.ask("import", "celery", "--from", "app.json").code == 0
    assert empty_server.ask("import", "celery", "--from", "app.json", "--apply").code == 3


SITE_SETTINGS = """
SECRET_KEY = "none"
INSTALLED_APPS = ["django_celery_beat"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.sqlite3"}}
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
MIGRATION_MODULES = {"django_celery_beat": None}  # the tables as they are now, at once
"""
SITE_CELERY = """
from celery import Celery

app = Celery("site", broker="amqp://nobody.invalid//")
app.conf.beat_schedule = {"in-code": {"task": "t.code", "schedule": 60}}
"""
FILL = """
from datetime import datetime, timezone

import django

django.setup()
from django.core.management import call_command

call_command("migrate", run_syncdb=True, verbosity=0)
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

make = PeriodicTask.objects.create
tokyo = CrontabSchedule.objects.create(minute="0", hour="9", day_of_week="mon-fri", timezone="Asia/Tokyo")
make(name="tokyo", task="t.a", crontab=tokyo, args='["x"]', queue="jobs", description="by hand", priority=5,
     start_time=datetime(2026, 2, 1, tzinfo=timezone.utc), expires=datetime(2026, 9, 1, tzinfo=timezone.utc))
every = IntervalSchedule.objects.create(every=3, period="hours")
make(name="every", task="t.b", interval=every, enabled=False, expire_seconds=30, kwargs="{broken")
clock = ClockedSchedule.objects.create(clocked_time=datetime(2026, 5, 1, 12, tzinfo=timezone.utc))
make(name="clock", task="t.c", clocked=clock, one_off=True)
sun = SolarSchedule.objects.create(event="sunrise", latitude=41, longitude=29)
make(name="sun", task="t.d", solar=sun)
"""


def test_the_rows_of_django_celery_beat_are_read_and_left_as_they_are(
    empty_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("site_settings.py", SITE_SETTINGS)
    write("site_celery.py", SITE_CELERY)
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "site_settings")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path.cwd()), *sys.path])}
    subprocess.run([sys.executable, "-c", FILL], check=True, env=environment)
    before = Path("site.sqlite3").read_bytes()
    answer = empty_server.ask("import", "celery", "site_celery:app", "--django", *AFTER, "-o", "json")

    assert Path("site.sqlite3").read_bytes() == before
    told = json.loads(answer.out)
    assert {each["name"]: each["verdict"] for each in told["entries"]} == {
        "clock": "same",
        "every": "refused",
        "in-code": "shifted",
        "sun": "refused",
        "tokyo": "same",
    }
    documents = {each["schedule_id"]: each for each in told["bundle"]["schedules"]}
    assert documents["tokyo"]["spec"] == {
        "timezone": "Asia/Tokyo",
        "cron_expressions": ["0 9 * * mon-fri"],
        "start_at": "2026-02-01T00:00:00Z",
        "end_at": "2026-08-31T23:59:59.999999Z",
    }
    assert (documents["tokyo"]["note"], documents["tokyo"]["priority"]) == ("by hand", 5)
    assert documents["clock"]["spec"]["at"] == ["2026-05-01T12:00:00Z"]
    assert documents["clock"]["max_runs"] == 1
