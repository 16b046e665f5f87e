"""`horarium apply` and `horarium export`: a bundle, what it would change, and what it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli.served import Server

HOURLY: dict[str, Any] = {"schedule_id": "hourly", "cron_expr": "0 * * * *", "workflow_type": "w"}
FROM = ("--from", "2026-03-01T00:00:00Z")


def apply(server: Server, *arguments: str, **bundle: Any) -> dict[str, str]:
    """What became of each by its name."""
    Path("bundle.json").write_text(json.dumps(bundle))
    rows = server.told("apply", "-f", "bundle.json", *FROM, "-o", "jsonl", *arguments).splitlines()
    return {row["name"]: row["change"] for row in map(json.loads, rows)}


def test_applying_twice_changes_nothing_the_second_time(server: Server) -> None:
    bundle = {"calendars": [{"name": "c", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-01-01"]}],
              "schedules": [{**HOURLY, "calendars": ["c"], "labels": {"a": "b"}}]}  # fmt: skip
    assert apply(server, **bundle) == {"c": "create", "hourly": "create"}
    assert apply(server, **bundle) == {"c": "unchanged", "hourly": "unchanged"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["version"] == 1


def test_a_dry_run_writes_nothing(empty_server: Server) -> None:
    assert apply(empty_server, "--dry-run", schedules=[HOURLY]) == {"hourly": "create"}
    assert empty_server.ask("schedule", "describe", "hourly").code == 5


def test_what_is_exported_applies_elsewhere_and_means_the_same(server: Server) -> None:
    server.told("calendar", "create", "ours", "--date", "2026-12-24")
    server.told(
        *("schedule", "create", "a", "--cron", "0 2 * * *", "--tz", "Asia/Tokyo", "--workflow-type", "w"),
        *("--queue", "q", "--input", '{"x": [1]}', "--label", "k=v", "--overlap-policy", "buffer_all"),
        *("--jitter-seconds", "5", "--calendar", "ours", "--max-runs", "9"),
    )
    bundle = json.loads(server.told("export"))
    server.told("namespace", "create", "copy")
    assert apply(server, "--namespace", "copy", **bundle) == {"ours": "create", "a": "create"}
    copied = json.loads(server.told("export", "--namespace", "copy"))
    assert copied["calendars"] == bundle["calendars"]
    assert copied["schedules"] == [{**document, "source": "template"} for document in bundle["schedules"]]
    assert apply(server, "--namespace", "copy", **copied) == {"ours": "unchanged", "a": "unchanged"}


def test_a_bundle_may_be_yaml(server: Server) -> None:
    bundle = """
    schedules:  # all of them
      - schedule_id: hourly
        cron_expr: 0 * * * *
        start_at: 2026-03-08T07:00:00Z
        workflow_type: w
    """
    Path("bundle.yaml").write_text(bundle)
    asked = ("apply", *FROM, "-o", "jsonl", "-f")
    assert json.loads(server.told(*asked, "bundle.yaml"))["change"] == "create"
    Path("again.yml").write_text(server.told("export", "-o", "yaml"))
    assert json.loads(server.told(*asked, "again.yml"))["change"] == "unchanged"
    Path("bad.yaml").write_text("schedules: &a [*a]")
    assert "is not YAML: a reference" in server.ask("apply", "-f", "bad.yaml").err


def test_what_a_user_has_made_is_kept(server: Server) -> None:
    server.told("schedule", "create", "hourly", "--every", "PT2H", "--workflow-type", "theirs")
    assert apply(server, "--prune", schedules=[HOURLY]) == {"hourly": "keep"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["workflow_type"] == "theirs"


def test_nothing_is_deleted_unless_it_is_told_to(server: Server) -> None:
    apply(server, schedules=[HOURLY, {**HOURLY, "schedule_id": "other"}])
    server.told("schedule", "create", "users", "--every", "PT2H", "--workflow-type", "w")
    assert apply(server, schedules=[HOURLY]) == {"hourly": "unchanged"}
    assert apply(server, "--prune", schedules=[HOURLY]) == {"hourly": "unchanged", "other": "delete"}
    rows = server.told("schedule", "list", "-o", "jsonl").splitlines()
    assert sorted(json.loads(row)["schedule_id"] for row in rows) == ["hourly", "users"]


def test_a_pause_survives(server: Server) -> None:
    apply(server, schedules=[HOURLY])
    server.told("schedule", "pause", "hourly")
    assert apply(server, schedules=[{**HOURLY, "note": "new"}]) == {"hourly": "update"}
    assert json.loads(server.told("schedule", "describe", "hourly", "-o", "json"))["status"] == "paused"


def test_a_one_off_that_is_over_is_no_error_when_it_is_applied_again(server: Server) -> None:
    once = {"schedule_id": "once", "at": ["2026-03-01T01:00:00Z"], "workflow_type": "w"}
    apply(server, schedules=[once])
    server.service.advance(hours=2)
    Path("bundle.json").write_text(json.dumps({"schedules": [once]}))
    answer = server.ask("apply", "-f", "bundle.json", "--from", "2026-03-01T02:00:00Z", "-o", "json")
    assert json.loads(answer.out)["changes"][0]["change"] == "unchanged"


def test_a_built_in_calendar_is_kept(empty_server: Server) -> None:
    wanted = {"name": "weekends-only", "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-01-01"]}
    assert apply(empty_server, calendars=[wanted]) == {"weekends-only": "keep"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "holds no object"),
        ('{"schedule": []}', "unknown field 'schedule'"),
        ('{"schedules": 1}', "must be an array of objects"),
        ('{"schedules": [1]}', "must be an array of objects"),
        ('{"schedules": [{}]}', "each of schedules needs a schedule_id"),
        ('{"calendars": [{"name": 1}]}', "each of calendars needs a name"),
        ('{"schedules": [{"schedule_id": "a"}, {"schedule_id": "a"}]}', "'a' is there twice"),
        (
            '{"schedules": [{"schedule_id": "a", "cron_expr": "61 * * * *", "workflow_type": "w"}]}',
            "schedule 'a': cron",
        ),
    ],
    ids=lambda text: text[:40],
)
def test_a_bad_bundle_is_refused_before_anything_is_written(empty_server: Server, text: str, why: str) -> None:
    Path("bundle.json").write_text(text)
    answer = empty_server.ask("apply", "-f", "bundle.json")
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert why in answer.err


def test_an_empty_bundle_is_talk(empty_server: Server) -> None:
    Path("bundle.json").write_text("{}")
    answer = empty_server.ask("apply", "-f", "bundle.json")
    assert (answer.code, answer.out, answer.err) == (0, "", "the bundle is empty\n0 of 0 changed\n")
