"""The commands around the service: what they print, what they change, and how they end."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from later_release import HEAD, LATER, become_later

from horarium.cli.main import main
from horarium.features.schedules import service as schedule_service
from horarium.instant import HOUR, from_rfc3339
from horarium.platform.caller import internal
from horarium.platform.clock import SystemClock
from horarium.platform.database import open_database
from horarium.platform.database import schema as tables
from horarium.platform.settings import Settings
from horarium.serve.service import open_service
from horarium.testing import FakeClock

CALLER = internal("test")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory of its own, and no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("HORARIUM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any, str]:
    code = main(list(arguments))
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


def plant(**fields: Any) -> None:
    """A schedule that was written two hours before now, while the service was not running."""
    clock = FakeClock(SystemClock().now() - 2 * HOUR)
    document = {"schedule_id": "hourly", "cron_expressions": ["@every PT1H"], "workflow_type": "sweep", **fields}
    with open_service(Settings(), clock=clock) as service:
        schedule_service.create(service.resources, CALLER, document)


# ── config ───────────────────────────────────────────────────────────────────────────────────────────


def test_config_tells_values_and_origins(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICK_MS", "250")
    monkeypatch.setenv("HORARIUM_TOKEN", "hor_very-secret")
    Path("horarium.toml").write_text("port = 9000\n")
    code, rows, _ = answer(capsys, "config", "--data-dir", "elsewhere", "-o", "json")
    found = {row["name"]: (row["value"], row["origin"]) for row in rows}
    assert code == 0
    assert found["data_dir"] == ("elsewhere", "flag")
    assert found["tick_ms"] == (250, "environment")
    assert found["port"] == (9000, "file")
    assert found["host"] == ("127.0.0.1", "default")
    assert found["allow_loopback_targets"] == (True, "up")
    assert "very-secret" not in json.dumps(rows)


def test_config_shows_no_secret_wherever_it_stands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "HORARIUM_DATABASE": "postgresql://ada:s3cret-1@db/h?sslpassword=s3cret-2",
        "HORARIUM_PUBLIC_URL": "https://ada:s3cret-3@h.example",
        "HORARIUM_COMMANDS": '{"backup": {"argv": ["pg_dump"], "env": {"PGPASSWORD": "s3cret-4"}}}',
        "HORARIUM_WEBHOOK_SECRETS": '{"a": "s3cret-5", "b": {"secret": "s3cret-6", "namespaces": ["*"]}}',
        "HORARIUM_SECRET_KEY": "s3cret-7",
        "HORARIUM_JWT_SECRET": "s3cret-8",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    for form in ("json", "table", "yaml"):
        assert main(["config", "-o", form]) == 0
        out = "".join(capsys.readouterr())
        assert "s3cret" not in out
        assert all(word in out for word in ("ada", "PGPASSWORD", "pg_dump", "h.example"))


def test_a_bad_setting_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_PORT", "high")
    code, out, err = answer(capsys, "config")
    assert (code, out, err.count("\n")) == (2, None, 1)
    assert "port" in err


# ── migrate, doctor ──────────────────────────────────────────────────────────────────────────────────


def test_migrating_twice_is_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "migrate")[0] == 0
    assert answer(capsys, "migrate") == (0, None, "schema is current\n")


def levels(rows: list[dict[str, str]]) -> dict[str, str]:
    return {row["check"]: row["level"] for row in rows}


def test_the_doctor_makes_nothing(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    code, rows, _ = answer(capsys, "doctor", "--port", "0", "-o", "json")
    assert (code, list(here.iterdir())) == (0, [])
    assert levels(rows)["data directory"] == levels(rows)["database"] == "warning"
    [targets] = [row["found"] for row in rows if row["check"] == "targets"]
    assert targets.startswith("loopback targets are open (set by `up` because it listens on loopback")
    assert all(row["remedy"] for row in rows if row["level"] != "ok")


def test_the_doctor_finds_what_is_wrong(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    plant()
    token = here / ".horarium" / "admin.token"
    token.write_text("hor_of-another-house\n")
    token.chmod(0o644)
    code, rows, _ = answer(capsys, "doctor", "--port", "0", "-o", "json")
    assert (code, levels(rows)["admin token"]) == (1, "failure")
    assert [row["remedy"] for row in rows if row["check"] == "admin token"] == ["chmod 600 .horarium/admin.token"]
    token.chmod(0o600)
    code, rows, _ = answer(capsys, "doctor", "--port", "0", "-o", "json")
    assert (code, levels(rows)["admin token"], levels(rows)["tables"]) == (1, "failure", "ok")


def test_the_doctor_sees_tables_that_are_missing(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    (here / ".horarium").mkdir(mode=0o700)
    sqlite3.connect(here / ".horarium" / "horarium.db").close()
    code, rows, _ = answer(capsys, "doctor", "--port", "0", "-o", "json")
    assert (code, levels(rows)["tables"]) == (1, "failure")
    assert [row["remedy"] for row in rows if row["check"] == "tables"] == ["horarium migrate"]


def test_whether_a_migration_is_due_can_be_asked_without_making_anything(
    capsys: pytest.CaptureFixture[str], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, told = answer(capsys, "migrate", "--check")
    assert (code, list(here.iterdir())) == (1, [])
    assert told.startswith("migration needed: ")
    migrate(here)
    set_revision(here, "0020")
    code, _, told = answer(capsys, "migrate", "--check")
    assert (code, told[:63]) == (1, "incompatible schema: The database was created by an unreleased ")
    assert answer(capsys, "migrate")[::2] == (1, told.replace("incompatible schema", "error"))
    _, rows, _ = answer(capsys, "doctor", "--port", "0", "-o", "json")
    assert [row["remedy"] for row in rows if row["check"] == "tables"] == ["set database to a new database"]
    set_revision(here, HEAD)
    assert answer(capsys, "migrate", "--check") == (0, None, "up to date: Schema current\n")
    become_later(monkeypatch, here)
    code, _, told = answer(capsys, "migrate", "--check")
    assert (code, told[:19], "until you migrate it: second thoughts" in told) == (1, "migration available", True)
    _, rows, _ = answer(capsys, "doctor", "--port", "0", "-o", "json")
    assert [(row["level"], "second thoughts" in row["found"]) for row in rows if row["check"] == "tables"] == [
        ("warning", True)
    ]
    assert answer(capsys, "migrate")[2].startswith(f"applied {LATER}\n")
    monkeypatch.undo()
    monkeypatch.chdir(here)
    code, _, told = answer(capsys, "migrate", "--check")
    assert (code, "newer" in told) == (0, True)
    assert "schema is current" in answer(capsys, "migrate")[2]


def set_revision(here: Path, revision: str) -> None:
    with closing(sqlite3.connect(here / ".horarium" / "horarium.db")) as connection:
        connection.execute("UPDATE schema_revision SET version_num = ?", (revision,))
        connection.commit()


def migrate(here: Path) -> None:
    (here / ".horarium").mkdir(mode=0o700, exist_ok=True)
    database = open_database(f"sqlite:///{here / '.horarium' / 'horarium.db'}")
    tables.migrate(database)
    database.close()


# ── tick, verify ─────────────────────────────────────────────────────────────────────────────────────


def test_a_tick_decides_what_is_due(capsys: pytest.CaptureFixture[str]) -> None:
    plant()
    code, rows, _ = answer(capsys, "tick", "--json")
    assert code == 0
    [row] = [row for row in rows if row["outcome"] == "triggered"]
    epoch = row["instance_id"].removeprefix("schedule:hourly:")
    assert (row["schedule_id"], epoch.isdigit()) == ("hourly", True)
    assert row["last_fired_at"] is not None
    assert from_rfc3339(row["next_fire_at"]) > from_rfc3339(row["occurrence_time"])
    assert answer(capsys, "tick", "--json") == (0, [], "no occurrences due\n")


def test_a_tick_prints_six_columns(capsys: pytest.CaptureFixture[str]) -> None:
    plant()
    assert main(["tick", "--limit", "1"]) == 0
    head, first, *_ = capsys.readouterr().out.splitlines()
    assert head.split() == [
        "schedule_id", "instance_id", "outcome", "occurrence_time", "last_fired_at", "next_fire_at",
    ]  # fmt: skip
    assert first.split()[0] == "hourly"


def test_verify_is_silent_on_a_sound_history(capsys: pytest.CaptureFixture[str]) -> None:
    plant()
    main(["tick"])
    capsys.readouterr()
    assert answer(capsys, "verify") == (0, None, "verified: every occurrence has exactly one decision\n")


def test_verify_finds_a_decision_that_was_taken_away(capsys: pytest.CaptureFixture[str], here: Path) -> None:
    plant()
    main(["tick"])
    capsys.readouterr()
    with sqlite3.connect(here / ".horarium" / "horarium.db") as connection:
        connection.execute("DELETE FROM history WHERE event_type = 'ScheduleTriggered'")
    connection.close()
    code, rows, err = answer(capsys, "verify", "-o", "json")
    assert code == 1
    assert {"gap", "missing"} <= {row["finding"] for row in rows}
    assert err.endswith("findings\n")


# ── refusals ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("arguments", [["server", "--port", "0"], ["worker"], ["tick"], ["verify"]], ids=lambda a: a[0])
def test_without_a_database_there_is_one_line_and_nothing_is_made(
    capsys: pytest.CaptureFixture[str], here: Path, arguments: list[str]
) -> None:
    code, out, err = answer(capsys, *arguments)
    assert (code, out, err.count("\n"), list(here.iterdir())) == (1, None, 1, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "--app", "nonsense"], "module:attribute"),
        (["up", "--app", "no.such.module:app"], "Cannot import no.such.module: "),
        (["up", "--app", "json:loads"], "json:loads is not a Horarium application"),
        (["up", "--demo", "--app", "jobs:app"], "--demo cannot be combined with --app"),
    ],
    ids=["form", "module", "object", "both"],
)
def test_a_bad_application_is_refused(capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    code, out, err = answer(capsys, *arguments, "--port", "0")
    assert (code, out, err.count("\n")) == (2, None, 1)
    assert said in err
