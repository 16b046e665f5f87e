"""The offline commands: data on stdout, talk on stderr, exit codes that a script can trust."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from horarium.cli.main import main
from horarium.cli.offline import EXHIBITS, Exhibit
from horarium.core.recurrence.spec import next_fires
from horarium.instant import from_rfc3339, to_datetime
from horarium.platform.clock import SystemClock

HOSTILE = ["x" * 10_000, "* " * 5_000, "\udcff * * * *", "\x00", "\n", "1" * 10_000 + " * * * *", "@" + "e" * 10_000]


@pytest.fixture(autouse=True)
def no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    return (code, *capsys.readouterr())


def test_next_prints_the_same_instants_as_the_library(capsys: pytest.CaptureFixture[str]) -> None:
    after = "2026-10-24T00:00:00Z"
    code, out, err = run(capsys, "next", "*/20 1 * * *", "--tz", "Europe/London", "--after", after, "-n", "9")
    expected = next_fires("*/20 1 * * *", timezone="Europe/London", after=after, count=9)
    assert (code, err) == (0, "")
    assert [datetime.fromisoformat(text) for text in json.loads(out)] == expected


@pytest.mark.parametrize(
    ("fold", "expected"),
    [
        ("first", ["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"]),
        ("second", ["2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"]),
        ("both", ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"]),
    ],
)
def test_next_takes_the_pass_of_a_repeated_hour_that_was_asked_for(
    capsys: pytest.CaptureFixture[str], fold: str, expected: list[str]
) -> None:
    options = ["--tz", "America/New_York", "--after", "2026-11-01T00:00:00-04:00", "-n", "2", "--dst-fold", fold]
    assert json.loads(run(capsys, "next", "30 1 * * *", *options)[1]) == expected


def test_next_starts_now_unless_told(capsys: pytest.CaptureFixture[str]) -> None:
    before = datetime.now(UTC)
    _, out, _ = run(capsys, "next", "* * * * * *")
    fire = datetime.fromisoformat(json.loads(out)[0])
    assert before < fire <= datetime.now(UTC) + timedelta(seconds=1)


@pytest.mark.parametrize("command", ["next", "explain-cron", "lint"])
@pytest.mark.parametrize("expr", HOSTILE, ids=lambda text: ascii(text[:8]))
def test_a_hostile_expression_is_one_line_on_stderr(
    capsys: pytest.CaptureFixture[str], command: str, expr: str
) -> None:
    code, out, err = run(capsys, command, expr)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert len(err) < 300


def test_lint_ends_with_1_where_it_found_something(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "lint", "*/7 * * * *")
    assert (code, err) == (1, "")
    assert out.startswith("uneven_step: ")


def test_lint_says_on_stderr_that_it_found_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lint", "7 3 * * *") == (0, "", "no findings\n")


def test_lint_tells_that_a_calendar_ends_soon(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ("lint", "7 3 * * *", "--calendar", "us-federal-holidays-2026", "--calendar", "weekdays", "--after")
    ends = "calendar_ends: us-federal-holidays-2026: its dates end on 2026-12-31; after that it excludes no day\n"
    assert run(capsys, *asked, "2026-10-02T00:00:00Z") == (1, ends, "")
    assert run(capsys, *asked, "2026-10-01T00:00:00Z") == (0, "", "no findings\n")
    code, _, err = run(capsys, "lint", "7 3 * * *", "--calendar", "mine")
    assert (code, "unknown built-in calendar 'mine'" in err) == (2, True)


def test_lint_tells_what_next_refuses(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "lint", "5 0 30 2 *")
    assert (code, out) == (1, "never_fires: the expression has no occurrence within eight years\n")


# ── condition test ───────────────────────────────────────────────────────────────────────────────────


def files(folder: Path, condition: str, context: str) -> list[str]:
    (folder / "filter.json").write_text(condition, "utf-8")
    (folder / "context.json").write_text(context, "utf-8")
    return ["--filter", str(folder / "filter.json"), "--context", str(folder / "context.json")]


@pytest.mark.parametrize(
    ("condition", "context", "result"),
    [
        ('{"/failed": {"lt": 3}}', '{"failed": 2}', True),
        ('{"/failed": {"lt": 3}}', '{"failed": 3}', False),
        ("null", "{}", True),
        ('\ufeff{"/a": {"eq": 1}}', '{"a": 1.0}', True),
    ],
    ids=["holds", "does not hold", "no filter", "byte order mark"],
)
def test_a_condition_is_answered_with_exit_code_0(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, condition: str, context: str, result: bool
) -> None:
    code, out, err = run(capsys, "condition", "test", *files(tmp_path, condition, context))
    assert (code, json.loads(out), err) == (0, {"result": result, "error": None}, "")


@pytest.mark.parametrize(
    ("context", "warned"), [('{"last_24h_stats": {"failed": 1}}', True), ('{"order": {}}', False)], ids=["ours", "any"]
)
def test_a_pointer_that_can_never_be_in_a_schedules_context_is_a_warning(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, context: str, warned: bool
) -> None:
    filter_text = '{"/last_24h_stats/faild": {"neq": 3}}'
    code, out, err = run(capsys, "condition", "test", *files(tmp_path, filter_text, context))
    assert (code, json.loads(out)) == (0, {"result": True, "error": None})
    assert ("did you mean /last_24h_stats/failed?" in err) is warned


def test_a_malformed_filter_fails_closed_and_says_why(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, err = run(capsys, "condition", "test", *files(tmp_path, '{"/a": {"like": 1}}', "{}"))
    answer = json.loads(out)
    assert (code, answer["result"], err) == (0, False, "")
    assert "unknown operator 'like'" in answer["error"]


@pytest.mark.parametrize(
    ("condition", "context", "named"),
    [
        ("{", "{}", "filter"),
        ("{}", "", "context"),
        ("{}", '{"a": NaN}', "context"),
        ("{}", "[" * 100_000, "context"),
        ("{}", "1" * 10_000, "context"),
    ],
    ids=["cut off", "empty", "not a number", "deep", "a number without end"],
)
def test_a_file_that_holds_no_json_is_a_bad_question(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, condition: str, context: str, named: str
) -> None:
    code, out, err = run(capsys, "condition", "test", *files(tmp_path, condition, context))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"error: {named}: ")


def test_a_file_that_is_not_text_is_a_bad_question(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = files(tmp_path, "{}", "{}")
    (tmp_path / "context.json").write_bytes(b"\xff\xfe\xff")
    assert run(capsys, "condition", "test", *arguments)[0] == 2


@pytest.mark.parametrize("name", ["missing.json", ".", "a\0b"], ids=["missing", "folder", "impossible name"])
def test_a_file_that_cannot_be_read_is_a_bad_question(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str
) -> None:
    arguments = files(tmp_path, "{}", "{}")
    code, out, err = run(capsys, "condition", "test", "--filter", str(tmp_path / name), *arguments[2:])
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: filter: cannot read ")


def test_a_hyphen_is_stdin(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"/a": {"eq": "b"}}')))
    arguments = files(tmp_path, "{}", '{"a": "b"}')
    _, out, _ = run(capsys, "condition", "test", "--filter", "-", *arguments[2:])
    assert json.loads(out) == {"result": True, "error": None}


# ── showcase, clock ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.title)
def test_every_exhibit_shows_what_next_answers(capsys: pytest.CaptureFixture[str], exhibit: Exhibit) -> None:
    code, out, _ = run(capsys, "showcase")
    part = out.split(exhibit.title + "\n")[1].split("\n\n")[0]
    fires = next_fires(
        exhibit.expr, timezone=exhibit.timezone, after=exhibit.after, count=exhibit.count, key=exhibit.key
    )
    assert code == 0
    assert [line.split(" = ")[1] for line in part.splitlines() if line.startswith("  fires")] == [
        fire.isoformat().replace("+00:00", "Z") for fire in fires
    ]


def test_the_system_clock_tells_the_time_of_the_machine() -> None:
    clock = SystemClock()
    before = datetime.now(UTC)
    now = to_datetime(clock.now())
    assert before - timedelta(milliseconds=1) <= now <= datetime.now(UTC)
    assert clock.now() > from_rfc3339("2026-01-01T00:00:00Z")


def test_monotonic_time_does_not_go_back() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
