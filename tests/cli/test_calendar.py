"""`horarium calendar`: keeping days, and reading them from files."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
import sqlalchemy as sa
import typer
from cli.served import Server

from horarium.features.calendars.commands import read_dates
from horarium.platform.database.tables import calendars


def event(*lines: str) -> str:
    return "\r\n".join(["BEGIN:VCALENDAR", "BEGIN:VEVENT", *lines, "END:VEVENT", "END:VCALENDAR", ""])


DAY = "DTSTART;VALUE=DATE:20260102"


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("2026-01-02\n", ["2026-01-02"]),
        ("\ufeff2026-01-03 late\n\n# a comment\n2026-01-02 # early\n2026-01-02", ["2026-01-02", "2026-01-03"]),
        (event(DAY), ["2026-01-02"]),
        (event(DAY, "DTEND;VALUE=DATE:20260104"), ["2026-01-02", "2026-01-03"]),
        (event("DTSTART;VALUE=DA", " TE:20260102", "SUMMARY:RRULE:x"), ["2026-01-02"]),
        (event("dtstart;value=date:20260102"), ["2026-01-02"]),
        (event("DTSTART;X-A=b;VALUE=DATE:20260102"), ["2026-01-02"]),
        ("BEGIN:VCALENDAR\nRRULE:outside\n" + event(DAY)[17:], ["2026-01-02"]),
    ],
    ids=["one", "comments", "event", "span", "folded", "lower case", "parameters", "outside an event"],
)
def test_a_file_lists_days(tmp_path: Path, text: str, days: list[str]) -> None:
    (tmp_path / "days").write_text(text, "utf-8", newline="")
    assert read_dates(str(tmp_path / "days")) == days


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "contains no days"),
        ("# nothing\n", "contains no days"),
        ("2026-02-30", "line 1: '2026-02-30' is not a date"),
        ("2026-01-02\n20260103", "line 2: '20260103' is not a date"),
        ("2026-W01-1", "is not a date"),
        ("x" * 100_000, "is not a date"),
        ("٢٠٢٦-٠١-٠٢", "is not a date"),
        (event(DAY, "RRULE:FREQ=YEARLY"), "line 4: recurring events (RRULE)"),
        (event(DAY, "RDATE;VALUE=DATE:20270101"), "recurring events (RDATE)"),
        (event("DTSTART:20260102T090000Z"), "line 3: DTSTART has a time of day"),
        (event(DAY, "DURATION:P2D"), "DURATION is not supported"),
        (event("SUMMARY:x"), "the event has no DTSTART"),
        (event(DAY, "DTEND;VALUE=DATE:20260102"), "an event of 0 days"),
        (event(DAY, "DTEND;VALUE=DATE:99990101"), "an event of"),
        (event("DTSTART;VALUE=DATE:2026-01-02"), "is not a date such as 20260131"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR", "contains no days"),
    ],
    ids=lambda text: ascii(text[:40]),
)
def test_what_is_no_list_of_days_is_refused_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "days").write_text(text, "utf-8", newline="")
    with pytest.raises(typer.TyperException) as refused:
        read_dates(str(tmp_path / "days"))
    assert why in str(refused.value.format_message())
    assert len(refused.value.format_message()) < 300


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "days").write_bytes(b"\xff\xfe")
    with pytest.raises(typer.TyperException, match="not UTF-8"):
        read_dates(str(tmp_path / "days"))


def test_a_hostile_file_is_refused_in_good_time(tmp_path: Path) -> None:
    """Folded lines are joined once, not again and again."""
    (tmp_path / "days").write_text("BEGIN:VCALENDAR\nBEGIN:VEVENT\nX:" + "\n x" * 200_000, "utf-8")
    begin = time.process_time()
    with pytest.raises(typer.TyperException):
        read_dates(str(tmp_path / "days"))
    assert time.process_time() - begin < 10


def test_more_days_than_fit_are_refused(tmp_path: Path) -> None:
    lines = "\n".join(f"{1900 + day // 300:04}-{day % 300 // 25 + 1:02}-{day % 25 + 1:02}" for day in range(10_001))
    (tmp_path / "days").write_text(lines)
    with pytest.raises(typer.TyperException, match="at most 10000"):
        read_dates(str(tmp_path / "days"))


def test_importing_twice_adds_nothing_the_second_time(server: Server) -> None:
    Path("days").write_text("2026-01-02\n2026-01-03\n")
    assert server.told("calendar", "import", "ours", "days") == "ours: created with 2 dates\n"
    assert server.told("calendar", "import", "ours", "days") == "ours: 0 added, 0 removed; 2 dates in total\n"
    assert server.told("calendar", "import", "ours", "days", "--tz", "Asia/Tokyo")
    found = json.loads(server.told("calendar", "show", "ours", "-o", "json"))
    assert (found["timezone"], found["dates"]) == ("Asia/Tokyo", ["2026-01-02", "2026-01-03"])


def test_a_built_in_calendar_cannot_be_imported_into(empty_server: Server) -> None:
    Path("days").write_text("2026-01-02\n")
    answer = empty_server.ask("calendar", "import", "us-federal-holidays-2026", "days")
    assert (answer.code, answer.out, answer.err.count("\n")) == (1, "", 1)


def test_a_calendar_may_be_a_rule(server: Server) -> None:
    server.told("calendar", "create", "closed", "--rule", "weekends", "--date", "2026-12-24")
    assert "2026-12-26 Saturday" in server.told("calendar", "show", "closed", "--year", "2026")


def test_a_calendar_has_the_zone_that_it_is_given_and_else_none(server: Server) -> None:
    def zone() -> object:
        return json.loads(server.told("calendar", "show", "ours", "-o", "json"))["timezone"]

    server.told("calendar", "create", "ours", "--rule", "weekends")
    assert (zone(), "that of each schedule" in server.told("calendar", "show", "ours")) == (None, True)
    assert server.told("calendar", "update", "ours", "--tz", "Asia/Tokyo") == "ours: updated timezone\n"
    assert zone() == "Asia/Tokyo"
    server.told("schedule", "create", "s", "--cron", "0 2 * * *", "--workflow-type", "w")
    attached = server.ask("schedule", "calendar", "attach", "s", "ours")
    assert attached.err == "warning: calendars: ours uses days of the time zone Asia/Tokyo, but the schedule uses UTC\n"
    server.told("calendar", "update", "ours", "--clear", "timezone")
    assert zone() is None
    for wrong in ([], ["--clear", "dates"]):
        answer = server.ask("calendar", "update", "ours", *wrong)
        assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_weekends_and_weekdays_are_listed_and_shown(server: Server) -> None:
    rows = [line.split() for line in server.told("calendar", "list").splitlines()]
    assert [row[0] for row in rows[-2:]] == ["weekends", "weekdays"]
    assert "2026-01-03 Saturday" in server.told("calendar", "show", "weekends", "--year", "2026")


@pytest.mark.parametrize(
    "arguments",
    [["--kind", "maybe"], ["--date", "tomorrow"], ["--tz", "Mars/Base"], ["--rule", "moonphase"]],
    ids=lambda value: value[0],
)
def test_a_bad_calendar_is_refused(empty_server: Server, arguments: list[str]) -> None:
    answer = empty_server.ask("calendar", "create", "x", *arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)


def test_a_calendar_that_cannot_be_read_is_named_on_stderr_beside_the_others(server: Server) -> None:
    for name in ("bad", "good"):
        server.told("calendar", "create", name, "--date", "2026-12-25")
    damaged = sa.update(calendars).where(calendars.c.name == "bad").values(document="[oh")
    server.service.resources.database.write(lambda connection: connection.execute(damaged))
    answer = server.ask("calendar", "list")
    assert (answer.code, "good" in answer.out, "bad" in answer.out) == (0, True, False)
    assert answer.err.startswith("calendars: bad is unreadable: document: ")
    assert "cannot be read: document: " in server.ask("calendar", "show", "bad").err
