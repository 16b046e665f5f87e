"""`horarium schedule`: what the flags, the file and the server make of each other."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from cli.served import Server

from horarium.core.document.places import PLACES
from horarium.features.schedules.definition_flags import FLAGS, definition

NIGHTLY = ("schedule", "create", "nightly", "--cron", "0 2 * * *", "--workflow-type", "report")


def described(server: Server, schedule_id: str = "nightly") -> dict[str, object]:
    found: dict[str, object] = json.loads(server.told("schedule", "describe", schedule_id, "-o", "json"))
    return found


# ── flags and files ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("flag", FLAGS, ids=lambda flag: flag.name)
def test_every_flag_has_a_place_in_the_document(flag: object) -> None:
    place = getattr(flag, "place", "")
    assert place in PLACES or any(each.startswith(f"{place}.") for each in PLACES)


def said(**flags: Any) -> dict[str, object]:
    return definition(**{**{flag.key: None for flag in FLAGS}, **flags})


@pytest.mark.parametrize(
    ("flags", "document"),
    [
        ({}, {}),
        ({"cron": []}, {}),
        ({"every": ["PT1H"]}, {"spec": {"intervals": [{"every": "PT1H"}]}}),
        ({"every": ["PT1H+PT5M"]}, {"spec": {"intervals": [{"every": "PT1H", "offset": "PT5M"}]}}),
        ({"every": ["90m", "1h30m+5m"]}, {"spec": {"intervals": [{"every": "PT1H30M"},
                                                                  {"every": "PT1H30M", "offset": "PT5M"}]}}),
        ({"jitter_seconds": 30.0}, {"spec": {"jitter_seconds": 30}}),
        ({"jitter_seconds": 0.5}, {"spec": {"jitter_seconds": 0.5}}),
        ({"label": ["a=b", "c=d=e"]}, {"labels": {"a": "b", "c": "d=e"}}),
        ({"input": "[1]", "url": "http://x"}, {"action": {"url": "http://x", "input": [1]}}),
        ({"max_runs": 0}, {"max_runs": 0}),
        ({"note": ""}, {"note": ""}),
    ],
    ids=str,
)  # fmt: skip
def test_what_flags_say(flags: dict[str, object], document: dict[str, object]) -> None:
    assert said(**flags) == document


def test_a_flag_replaces_what_the_file_says_and_leaves_the_rest(server: Server) -> None:
    document = {"schedule_id": "n", "spec": {"cron_expressions": ["0 1 * * *"], "timezone": "Asia/Tokyo"}, "note": "x"}
    Path("n.json").write_text(json.dumps({**document, "action": {"workflow_type": "w"}}))
    server.told("schedule", "create", "--file", "n.json", "--cron", "0 5 * * *", "--queue", "q")
    found = described(server, "n")
    assert found["spec"] == {"cron_expressions": ["0 5 * * *"], "timezone": "Asia/Tokyo"}
    assert (found["note"], found["action"]) == (
        "x", {"kind": "workflow", "workflow_type": "w", "queue": "q", "task_queue": "q"},
    )  # fmt: skip


def test_a_deleted_schedule_is_listed_by_its_status_and_described_on_request(server: Server) -> None:
    server.told(*NIGHTLY)
    server.told("schedule", "delete", "nightly")
    assert "nightly" not in server.told("schedule", "list")
    [listed] = json.loads(server.told("schedule", "list", "--status", "deleted", "-o", "json"))["schedules"]
    found = json.loads(server.told("schedule", "describe", "nightly", "--deleted", "-o", "json"))
    assert listed["deleted_at"] == found["deleted_at"] is not None
    assert f"deleted at {found['deleted_at']}" in server.told("schedule", "describe", "nightly", "--deleted")
    assert server.ask("schedule", "describe", "nightly").code == 5


def test_a_document_may_come_from_stdin(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b'{"cron_expr": "0 1 * * *", "workflow_type": "w"}'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert server.told("schedule", "upsert", "piped", "-f", "-").startswith("piped: created")


def test_a_schedule_without_an_id_gets_one(server: Server) -> None:
    created = json.loads(server.told("schedule", "create", "--every", "PT1H", "--workflow-type", "w", "-o", "json"))
    assert described(server, created["schedule_id"])["schedule_id"] == created["schedule_id"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--input", "{"], "--input: not JSON"),
        (["--input", "NaN"], "--input: not JSON"),
        (["--input", "@missing.json"], "--input: cannot read 'missing.json'"),
        (["--input", "[" * 100_000], "nested too deeply"),
        (["--label", "novalue"], "--label: must be NAME=VALUE"),
        (["--label", "=x"], "--label: must be NAME=VALUE"),
        (["--file", "missing.json"], "file: cannot read 'missing.json'"),
        (["--file", "array.json"], "file: 'array.json' is not an object"),
        (["--file", "spec.json", "--cron", "* * * * *"], "spec: must be an object"),
        (["--file", "other.json"], "the file has the schedule_id 'other', not 'nightly'"),
        ([], "the definition is empty"),
        (["--max-runs", "many"], "--max-runs"),
        (["--cron", "0 25 * * *", "--workflow-type", "w"], "hour: '25' is outside 0-23"),
        (["--every", "90"], "--every: '90' is not a duration; use such as 90m, 1h30m or PT90M"),
        (["--every=-5m", "--workflow-type", "w"], "--every: '-5m' is not a duration"),
        (["--cron", "0 2 * * *"], "action: is required"),
        (["--cron", "0 2 * * *", "--prompt", "x", "--url", "http://x"], "belong to different kinds"),
        (["--cron", "0 2 * * *", "--workflow-type", "w", "--overlap-policy", "maybe"], "--overlap-policy: "),
        (["--cron", "0 2 * * *", "--workflow-type", "w", "--tz", "Mars/Base"], "timezone"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_a_bad_definition_is_one_line_and_2(empty_server: Server, arguments: list[str], named: str) -> None:
    Path("array.json").write_text("[]")
    Path("spec.json").write_text('{"spec": 1}')
    Path("other.json").write_text('{"schedule_id": "other", "cron_expr": "0 1 * * *", "workflow_type": "w"}')
    answer = empty_server.ask("schedule", "create", "nightly", *arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert named in answer.err


def test_a_warning_of_the_server_is_talk(server: Server) -> None:
    answer = server.ask(*NIGHTLY, "--max-buffered", "3")
    assert (answer.code, answer.err) == (
        0, "warning: max_buffered: has no effect without overlap_policy buffer_all\n",
    )  # fmt: skip


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────


def test_another_kind_of_action_is_named_and_the_old_field_cleared(server: Server) -> None:
    server.told(*NIGHTLY)
    assert server.ask("schedule", "update", "nightly", "--url", "https://example.org").code == 2
    change = ["--kind", "http", "--url", "https://example.org", "--clear", "action.workflow_type"]
    assert server.told("schedule", "update", "nightly", *change).startswith("nightly: updated action")


def test_of_two_writers_with_the_same_version_the_second_is_refused(server: Server) -> None:
    server.told(*NIGHTLY)
    server.told("schedule", "update", "nightly", "--note", "first", "--if-version", "1")
    for verb in (["update", "nightly", "--note", "second"], ["pause", "nightly"], ["delete", "nightly"]):
        answer = server.ask("schedule", *verb, "--if-version", "1")
        assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert described(server)["note"] == "first"


def test_a_schedule_that_is_there_is_not_created_again(server: Server) -> None:
    server.told(*NIGHTLY)
    answer = server.ask(*NIGHTLY)
    assert (answer.code, answer.out) == (1, "")


def test_detaching_what_is_not_attached_changes_nothing(server: Server) -> None:
    server.told(*NIGHTLY)
    assert "unchanged" in server.told("schedule", "calendar", "detach", "nightly", "holidays:US")


def test_a_pause_with_an_end_says_so(server: Server) -> None:
    server.told(*NIGHTLY)
    until = ("--until", "2026-03-05T06:00:00Z")
    server.told("schedule", "pause", "nightly", *until, "--reason", "the database moves")
    shown = server.told("schedule", "describe", "nightly")
    assert "until 2026-03-05T06:00:00Z by admin: the database moves" in shown
    answer = server.ask("schedule", "pause", "nightly", "--until", "2020-01-01T00:00:00Z")
    assert (answer.code, answer.err.count("\n"), "until" in answer.err) == (2, 1, True)


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_list_goes_on_for_as_long_as_it_was_asked_to(server: Server) -> None:
    for number in range(230):
        server.service.create(schedule_id=f"s{number:03}", cron_expr="0 2 * * *", workflow_type="w")
    assert len(server.told("schedule", "list").splitlines()) == 51
    assert len(server.told("schedule", "list", "--limit", "205").splitlines()) == 206
    assert len(server.told("schedule", "list", "--all").splitlines()) == 231
    assert len(server.told("schedule", "list", "--all", "-o", "jsonl").splitlines()) == 230
    whole = json.loads(server.told("schedule", "list", "--all", "-o", "json"))
    assert (len(whole["schedules"]), whole["has_more"], whole["next_page_token"]) == (230, False, None)


def test_the_next_run_is_shown_where_a_calendar_forbids_the_next_fire(server: Server) -> None:
    """The first of March 2026 is a Sunday."""
    sunday, monday = "2026-03-01T02:00:00Z", "2026-03-02T02:00:00Z"
    assert server.told(*NIGHTLY) == f"nightly: created; next fire {sunday}; retries: up to 1\n"
    attached = server.told("schedule", "calendar", "attach", "nightly", "weekdays")
    assert attached == f"nightly: updated calendars; next fire {sunday}; next run {monday}\n"
    row = server.told("schedule", "list").splitlines()[1].split()
    assert (sunday in row, monday in row) == (False, True)
    assert f"next run    {monday}" in server.told("schedule", "describe", "nightly")
    attached = server.told("schedule", "calendar", "attach", "nightly", "weekends")
    assert attached.endswith("; next run - (calendar)\n")
    assert "calendar" in server.told("schedule", "list").splitlines()[1].split()


def test_retries_are_set_by_one_word_and_told_when_written_and_described(server: Server) -> None:
    for flags, said in (
        ([], "up to 1"),
        (["--retries", "0"], "none"),
        (["--max-retries", "3"], "up to 3"),
    ):
        name = "-".join(["s", *flags[1:]])
        written = server.told("schedule", "create", name, "--cron", "17 3 1 1 *", "--workflow-type", "w", *flags)
        assert written.endswith(f"; retries: {said}\n")
        assert f"retries     {said}" in server.told("schedule", "describe", name)
    changed = server.told("schedule", "update", name, "--retries", "0")
    assert "; retries: none" in changed
    assert "retries" not in server.told("schedule", "update", name, "--note", "n")


def test_a_page_token_goes_on_where_the_list_ended(server: Server) -> None:
    for number in range(3):
        server.service.create(schedule_id=f"s{number}", cron_expr="0 2 * * *", workflow_type="w")
    first = json.loads(server.told("schedule", "list", "--limit", "2", "-o", "json"))
    assert first["has_more"]
    rest = json.loads(server.told("schedule", "list", "--page-token", first["next_page_token"], "-o", "json"))
    ids = [row["schedule_id"] for row in [*first["schedules"], *rest["schedules"]]]
    assert sorted(ids) == ["s0", "s1", "s2"]


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (["--label", "team=a"], ["one"]),
        (["--status", "paused"], ["two"]),
        (["--workflow-type", "x"], ["two"]),
        (["--text", "tw"], ["two"]),
        (["--source", "template"], []),
        (["--owner", "nobody"], []),
        (["--query", "tenant = 42"], ["two"]),
    ],
    ids=lambda value: " ".join(value),
)
def test_a_list_can_be_narrowed(server: Server, filters: list[str], found: list[str]) -> None:
    server.service.create(schedule_id="one", cron_expr="0 2 * * *", workflow_type="w", labels={"team": "a"})
    server.service.create(
        schedule_id="two", cron_expr="0 2 * * *", workflow_type="x", paused=True, search_attributes={"tenant": 42}
    )
    rows = server.told("schedule", "list", *filters, "-o", "jsonl").splitlines()
    assert [json.loads(row)["schedule_id"] for row in rows] == found


def test_a_list_shows_timing_target_and_outcome_in_full_at_any_width(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://example.com/" + "path/" * 30
    server.told("schedule", "create", "n" * 90, "--cron", "0 9 * * 1-5", "--tz", "Asia/Tokyo", "--url", url)
    monkeypatch.setenv("COLUMNS", "80")
    head, row = server.told("schedule", "list").splitlines()
    assert head.startswith("Schedule ID")
    assert head.endswith("Last Outcome")
    for part in ("n" * 90, "at 09:00, Monday to Friday (Asia/Tokyo time)", f"http {url}"):
        assert part in row


def test_one_schedule_may_be_deleted_with_yes(server: Server) -> None:
    server.told(*NIGHTLY)
    assert server.told("schedule", "delete", "nightly", "--yes") == "nightly: deleted\n"


def test_a_one_time_run_in_the_past_is_refused_with_its_reason(empty_server: Server) -> None:
    refused = empty_server.ask("schedule", "create", "--at", "2020-01-01T00:00:00Z", "--workflow-type", "w")
    assert (refused.code, refused.out) == (2, "")
    assert "--at: never fires; the time is in the past; set a time in the future" in refused.err


def test_what_others_have_written_cannot_move_the_cursor(server: Server) -> None:
    server.service.create(schedule_id="a", cron_expr="0 2 * * *", workflow_type="w", note="a\x1b[31mb\u202e")
    shown = server.told("schedule", "describe", "a")
    assert "a\\x1b[31mb\\u202e" in shown
    assert "\x1b" not in shown


def test_the_history_ends_where_it_is_asked_to(server: Server) -> None:
    server.told(*NIGHTLY)
    for number in range(4):
        server.told("schedule", "update", "nightly", "--note", str(number))
    page = json.loads(server.told("schedule", "history", "nightly", "--limit", "2", "-o", "json"))
    assert ([event["sequence"] for event in page["events"]], page["has_more"], page["next_cursor"]) == ([1, 2], True, 2)
    rest = server.told("schedule", "history", "nightly", "--after-sequence", "2", "--all", "-o", "jsonl").splitlines()
    assert [json.loads(line)["sequence"] for line in rest] == [3, 4, 5]


def test_the_history_can_begin_with_the_newest_event(server: Server) -> None:
    server.told(*NIGHTLY)
    for number in range(5):
        server.told("schedule", "update", "nightly", "--note", str(number))

    def sequences(*flags: str) -> list[int]:
        told = server.told("schedule", "history", "nightly", "-o", "jsonl", *flags).splitlines()
        return [json.loads(line)["sequence"] for line in told]

    assert sequences() == [1, 2, 3, 4, 5, 6]
    assert sequences("--reverse") == [6, 5, 4, 3, 2, 1]
    assert sequences("--reverse", "--after-sequence", "4") == [3, 2, 1]
    iterated = server.service.client().iter_schedule_history("nightly", order="desc", limit=2)
    assert [event.sequence for event in iterated] == [6, 5, 4, 3, 2, 1]


# As seed 000 prints it.
PRINTED = """\
# Example: only dispatch when the prior run succeeded and the 24h failure count is low.
pre_dispatch_condition:
  /prior_run_result/status:
    eq: "completed"
  /last_24h_stats/failed:
    lt: 3
"""
MEANT = {"/prior_run_result/status": {"eq": "completed"}, "/last_24h_stats/failed": {"lt": 3}}


@pytest.mark.parametrize("source", ["@condition.yaml", "@-", PRINTED, json.dumps(MEANT)])
@pytest.mark.parametrize("verb", ["set", "--condition"])
def test_a_condition_may_be_yaml_under_its_name(
    server: Server, monkeypatch: pytest.MonkeyPatch, source: str, verb: str
) -> None:
    Path("condition.yaml").write_text(PRINTED)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(PRINTED.encode())))
    server.told(*NIGHTLY)
    command = ("condition", "set", "nightly", source) if verb == "set" else ("update", "nightly", verb, source)
    assert server.told("schedule", *command).startswith("nightly: updated")
    assert described(server)["pre_dispatch_condition"] == MEANT


def test_a_condition_may_be_tried_as_it_is_printed(server: Server) -> None:
    Path("condition.yaml").write_text(PRINTED)
    Path("context.json").write_text(json.dumps({"last_24h_stats": {"failed": 1}}))
    tried = json.loads(server.told("condition", "test", "--filter", "condition.yaml", "--context", "context.json"))
    assert tried == {"result": False, "error": None}
    server.told(*NIGHTLY)
    assert server.ask("schedule", "condition", "test", "nightly", PRINTED).code == 1


def test_a_rotation_may_stand_under_its_name_and_an_empty_one_clears_it(server: Server) -> None:
    server.told(*NIGHTLY)
    server.told("schedule", "rotation", "set", "nightly", '{"inputs_rotation": [{"audience": "tech"}]}')
    assert described(server)["inputs_rotation"] == [{"audience": "tech"}]
    server.told("schedule", "rotation", "set", "nightly", "[]")
    assert "inputs_rotation" not in described(server)


def test_a_pointer_that_can_never_be_there_is_told(server: Server) -> None:
    server.told(*NIGHTLY)
    told = server.ask("schedule", "condition", "set", "nightly", '{"/last_24h_stats/faild": {"lt": 3}}')
    assert told.code == 0
    assert "warning: pre_dispatch_condition: '/last_24h_stats/faild' never exists; did you mean" in told.err


def test_explain_takes_the_nominal_time_of_the_next_fire(server: Server) -> None:
    server.told(*NIGHTLY, "--jitter-seconds", "600")
    told = json.loads(server.told("schedule", "explain", "nightly", "-o", "json"))
    assert (told["at"], told["on_spec"]) == ("2026-03-01T02:00:00Z", True)


def test_explain_of_the_past_shows_the_guards_as_they_were_asked(server: Server) -> None:
    server.told(*NIGHTLY, "--calendar", "weekdays")
    server.service.advance(days=1)
    server.told("schedule", "pause", "nightly")
    told = server.told("schedule", "explain", "nightly", "--at", "2026-03-01T02:00:00Z").splitlines()
    assert told[0].endswith('was skipped: excluded by calendar "weekdays".')
    assert told[1].startswith("Checks at decision time (2026-03-01T02:00:")
    answers = {line.split()[0]: line.split()[1] for line in told[4:]}
    assert (answers["status_not_triggerable"], answers["calendar"], answers["overlap"]) == ("yes", "no", "not")


def test_explain_needs_a_moment_where_there_is_no_next_fire(server: Server) -> None:
    server.told("schedule", "create", "once", "--at", "2026-03-01T01:00:00Z", "--workflow-type", "w")
    server.service.advance(hours=2)
    answer = server.ask("schedule", "explain", "once")
    assert (answer.code, answer.err) == (2, "error: the schedule has no next fire; give --at\n")
    assert server.ask("schedule", "explain", "once", "--at", "2026-03-01T01:00:00Z").code == 0


@pytest.mark.parametrize(("days", "word"), [(1, "late"), (3, "stale")])
def test_a_schedule_that_waits_for_its_decision_is_late_or_stale_and_1(server: Server, days: int, word: str) -> None:
    server.told(*NIGHTLY)
    server.service.sleep(days=days)
    answer = server.ask("schedule", "health", "nightly")
    assert (answer.code, word in answer.out, "2026-03-01T0" in answer.out) == (1, True, True)
    assert server.ask("schedule", "health").code == 1


def test_a_schedule_whose_runs_fail_is_failing_and_1_and_health_counts_it(server: Server) -> None:
    server.told(*NIGHTLY)
    assert server.ask("schedule", "health").code == 0
    for _ in range(3):
        server.told("schedule", "trigger", "nightly")
        server.service.settle()
        run = server.service.runs("nightly")[-1]
        server.service.fail(run, "no route to host", error_class="its own")  # which no policy retries
    answer = server.ask("schedule", "health", "--unwell")
    assert (answer.code, "failing" in answer.out, "no route to host" in answer.out) == (1, True, True)
    assert "schedules: 1 failing (details: horarium schedule health)" in server.ask("health").out


def test_a_calendar_that_ends_soon_is_a_warning_of_each_command(server: Server) -> None:
    days = ("calendar", "create", "soon", "--kind", "only_dates", "--date", "2026-05-15")
    assert "warning: soon: its dates end on 2026-05-15" in server.ask(*days).err
    warning = "calendars: soon: its dates end on 2026-05-15; after that it prevents every run\n"
    made = server.ask(*NIGHTLY, "--calendar", "soon")
    assert (made.code, f"warning: {warning}" in made.err) == (0, True)
    health = server.ask("schedule", "health")
    assert (health.code, health.err) == (0, f"warning: nightly: {warning}")
    server.told("schedule", "calendar", "detach", "nightly", "soon")
    assert f"warning: {warning}" in server.ask("schedule", "calendar", "attach", "nightly", "soon").err


def test_a_skip_does_not_hide_that_the_last_run_failed(server: Server) -> None:
    """It fails on Friday, 6 March; the calendar excludes Saturday."""
    server.service.create(
        schedule_id="daily", cron_expr="0 2 6,7 3 *", workflow_type="w", calendars=["weekdays"],
        retry_policy={"max_retries": 0},
    )  # fmt: skip
    server.service.advance_to("2026-03-06T03:00:00Z")
    server.service.fail(server.service.runs("daily")[-1], "no route to host", error_class="its own")
    assert server.told("schedule", "list", "--text", "daily").splitlines()[1].endswith("  error")
    server.service.advance_to("2026-03-07T03:00:00Z")
    shown = server.told("schedule", "list", "--text", "daily").splitlines()[1]
    assert shown.endswith("  skipped (last run failed)")


def test_a_backfill_that_is_too_large_is_refused_with_its_size(server: Server) -> None:
    server.told("schedule", "create", "often", "--every", "PT1M", "--workflow-type", "w")
    answer = server.ask(
        "schedule", "backfill", "often", "--from", "2026-01-01T00:00:00Z", "--to", "2026-02-01T00:00:00Z"
    )
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "1000" in answer.err


def test_a_backfill_says_what_waits_what_was_skipped_and_why_there_is_nothing(server: Server) -> None:
    server.told(*NIGHTLY, "--calendar", "weekdays")
    fill = ("schedule", "backfill", "nightly", "--from")
    week = (*fill, "2026-02-20T00:00:00Z", "--to", "2026-02-25T00:00:00Z")
    planned = server.ask(*week, "--dry-run")
    assert planned.err == "3 of 5 would be started, 2 of them buffered; skipped: 2 calendar\n"
    done = server.ask(*week)
    assert [line.split()[1] for line in done.out.splitlines()[1:]] == [
        "started", "skipped", "skipped", "buffered", "buffered",
    ]  # fmt: skip
    assert server.ask(*week).err == "0 of 5 started; skipped: 3 already_exists, 2 calendar\n"
    history = server.told("schedule", "history", "nightly", "--all")
    assert (history.count("ScheduleTriggerSkipped"), history.count("ScheduleBuffered")) == (7, 2)
    empty = server.ask(*fill, "2026-02-20T03:00:00Z", "--to", "2026-02-20T04:00:00Z")
    assert (empty.code, empty.err) == (0, "0 of 0 started\nThe window contains no occurrences.\n")
    ahead = server.ask(*fill, "2026-03-05T00:00:00Z", "--to", "2026-03-07T00:00:00Z", "-o", "json")
    assert (ahead.code, json.loads(ahead.out)["message"]) == (
        0,
        "All occurrences in this window are in the future; the first is 2026-03-05T02:00:00Z.",
    )


def test_a_backfill_that_runs_out_of_runs_says_so(server: Server) -> None:
    server.told(*NIGHTLY, "--max-runs", "1", "--overlap-policy", "allow_all")
    window = ("--from", "2026-02-01T00:00:00Z", "--to", "2026-02-04T00:00:00Z")
    assert "the schedule reached max_runs" in server.ask("schedule", "backfill", "nightly", *window).err


def test_local_times_are_those_of_the_schedule_where_nobody_names_a_zone(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HORARIUM_TZ", raising=False)
    spec = {"cron_expressions": ["0 9 * * *"], "timezone": "Asia/Kathmandu"}
    server.service.create(schedule_id="kathmandu", spec=spec, workflow_type="report")

    def understood(*arguments: str) -> str:
        answer = server.ask("schedule", *arguments)
        assert answer.code == 0, answer.err
        return answer.err.splitlines()[0]

    at = ("explain", "kathmandu", "--at", "2026-03-02 09:00")
    assert understood(*at).startswith("--at: 2026-03-02T03:15:00Z (")
    assert understood(*at, "--tz", "Asia/Tokyo").startswith("--at: 2026-03-02T00:00:00Z (")
    assert understood("preview", "kathmandu", "--from", "2026-03-05").startswith("--from: 2026-03-04T18:15:00Z (")
    window = ("--from", "2026-02-01", "--to", "2026-02-02", "--dry-run")
    assert understood("backfill", "kathmandu", *window).startswith("--from: 2026-01-31T18:15:00Z (")
    assert understood("pause", "kathmandu", "--until", "2126-03-02").startswith("--until: 2126-03-01T18:15:00Z (")
    assert "Asia/Kathmandu" not in understood("backfill", "kathmandu", "--from", "1h", "--to", "now", "--dry-run")
    monkeypatch.setenv("HORARIUM_TZ", "Asia/Tokyo")
    assert understood(*at).startswith("--at: 2026-03-02T00:00:00Z (")
