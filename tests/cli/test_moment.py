"""What a person means by a time: a table of spellings, and the door at which each is typed."""

from __future__ import annotations

import json

import pytest
from cli.served import Server

from horarium.cli.main import main
from horarium.core.recurrence.zone import Wall, load_zone
from horarium.errors import InvalidSpec
from horarium.instant import Instant, from_rfc3339, to_rfc3339
from horarium.platform.cli.times import Direction, read_moment

NOW = from_rfc3339("2026-11-15T12:00:00.5Z")  # a Sunday
PAST, FUTURE = Direction.PAST, Direction.FUTURE


def read(text: str, direction: Direction = FUTURE, zone: str = "UTC", now: Instant = NOW) -> str:
    return to_rfc3339(read_moment(text, flag="--at", now=now, zone=load_zone(zone), direction=direction).instant)


@pytest.mark.parametrize(
    ("text", "past", "future"),
    [
        ("now", "2026-11-15T12:00:00Z", "2026-11-15T12:00:00Z"),
        ("7d", "2026-11-08T12:00:00Z", "2026-11-22T12:00:00Z"),
        ("1h30m", "2026-11-15T10:30:00Z", "2026-11-15T13:30:00Z"),
        ("2 weeks 1 hour", "2026-11-01T11:00:00Z", "2026-11-29T13:00:00Z"),
        ("PT30M", "2026-11-15T11:30:00Z", "2026-11-15T12:30:00Z"),
        ("09:00", "2026-11-15T09:00:00Z", "2026-11-16T09:00:00Z"),
        ("9pm", "2026-11-14T21:00:00Z", "2026-11-15T21:00:00Z"),
        ("noon", "2026-11-14T12:00:00Z", "2026-11-15T12:00:00Z"),
        ("friday", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"),
        ("sunday", "2026-11-08T00:00:00Z", "2026-11-22T00:00:00Z"),
        ("Nov 8", "2026-11-08T00:00:00Z", "2027-11-08T00:00:00Z"),
    ],
)
def test_what_does_not_say_where_it_lies_lies_where_the_option_says(text: str, past: str, future: str) -> None:
    assert (read(text, PAST), read(text, FUTURE)) == (past, future)


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-11-08T14:00:00Z", "2026-11-08T14:00:00Z"),
        ("2026-11-08 14:00:00+03:00", "2026-11-08T11:00:00Z"),
        ("2026-11-08T14:00Z", "2026-11-08T14:00:00Z"),
        ("2026-11-08", "2026-11-08T00:00:00Z"),
        ("2026-11-08T14:00", "2026-11-08T14:00:00Z"),
        ("2026-11-08 14:00:30", "2026-11-08T14:00:30Z"),
        ("+30m", "2026-11-15T12:30:00Z"),
        ("in 2 hours", "2026-11-15T14:00:00Z"),
        ("-7d", "2026-11-08T12:00:00Z"),
        ("3 days ago", "2026-11-12T12:00:00Z"),
        ("tomorrow 09:00", "2026-11-16T09:00:00Z"),
        ("  Tomorrow   at 9:30 PM ", "2026-11-16T21:30:00Z"),
        ("yesterday", "2026-11-14T00:00:00Z"),
        ("the day after tomorrow", "2026-11-17T00:00:00Z"),
        ("next friday 9am", "2026-11-20T09:00:00Z"),
        ("last monday 12am", "2026-11-09T00:00:00Z"),
        ("8th November, 2027 noon", "2027-11-08T12:00:00Z"),
    ],
)
@pytest.mark.parametrize("direction", Direction)
def test_what_says_it_is_the_same_everywhere(text: str, instant: str, direction: Direction) -> None:
    assert read(text, direction) == instant


@pytest.mark.parametrize(
    ("text", "zone", "instant", "wall"),
    [
        ("2026-11-08 09:00", "Europe/Istanbul", "2026-11-08T06:00:00Z", Wall.ONCE),
        ("tomorrow", "Pacific/Kiritimati", "2026-11-16T10:00:00Z", Wall.ONCE),  # it is the 16th there already
        # https://www.timeanddate.com/time/change/usa/new-york?year=2026
        ("2026-03-08 02:30", "America/New_York", "2026-03-08T07:00:00Z", Wall.LEAPT),
        ("2026-11-01 01:30", "America/New_York", "2026-11-01T05:30:00Z", Wall.TWICE),
        # Samoa left out a day: https://www.timeanddate.com/news/time/samoa-dateline.html
        ("2011-12-30 12:00", "Pacific/Apia", "2011-12-30T10:00:00Z", Wall.LEAPT),
    ],
)
def test_local_times_are_read_in_the_zone(text: str, zone: str, instant: str, wall: Wall) -> None:
    found = read_moment(text, flag="--at", now=NOW, zone=load_zone(zone), direction=FUTURE)
    assert (to_rfc3339(found.instant), found.wall) == (instant, wall)


def test_the_zone_of_the_machine_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", ":nowhere")
    assert read("tomorrow 09:00") == "2026-11-16T09:00:00Z"


@pytest.mark.parametrize(
    "text",
    [
        "", "1", "12", "2026", "may", "a", "11/08/2026", "next week", "5 months", "P1M", "1y", "tomorrow 9",
        "tomorrow 25:00", "13pm", "0am", "31 feb", "2026-13-08", "2026-13-08T00:00:00Z", "tomorrow 09:00 EST",
        "9999-12-31", "0001-01-01", "99999w", "999999999w", "friday tomorrow", "tomorow", "\x00", "1" * 5_000,
        "1d " * 40, "٣d", "--to", "in", "ago", "+", "p",
    ],
    ids=lambda text: ascii(text[:20]),
)  # fmt: skip
def test_what_could_mean_anything_is_refused_by_the_name_of_the_flag(text: str) -> None:
    with pytest.raises(InvalidSpec) as refused:
        read(text)
    assert refused.value.message.startswith("--at: ")
    assert len(refused.value.message) < 300


@pytest.fixture
def at_noon(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stopped:
        def now(self) -> Instant:
            return from_rfc3339("2026-03-01T12:00:00Z")

    monkeypatch.setattr("horarium.platform.cli.times.SystemClock", Stopped)
    monkeypatch.delenv("HORARIUM_TZ", raising=False)


@pytest.mark.usefixtures("at_noon")
def test_next_takes_words_and_says_what_it_understood(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["next", "0 9 * * *", "--tz", "Europe/Istanbul", "--after", "tomorrow 09:00"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == ["2026-03-03T06:00:00Z"]
    assert err == "--after: 2026-03-02T06:00:00Z (Mon 2026-03-02 09:00:00 +03:00, Europe/Istanbul)\n"


@pytest.mark.usefixtures("at_noon")
def test_the_variable_names_the_zone_where_no_flag_does(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HORARIUM_TZ", "Europe/Istanbul")
    assert main(["next", "@hourly", "--after", "2026-03-02"]) == 0
    assert capsys.readouterr().err.startswith("--after: 2026-03-01T21:00:00Z (")
    monkeypatch.setenv("HORARIUM_TZ", "Nowhere/Else")
    assert main(["next", "@hourly", "--after", "2026-03-02"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: HORARIUM_TZ: 'Nowhere/Else' is not a time zone of the tz database")


@pytest.mark.usefixtures("at_noon")
def test_commands_that_ask_a_server_take_times_for_people(server: Server) -> None:
    """A bare span is past in a backfill, and ahead everywhere else."""
    server.told(
        "schedule", "create", "once", "--at", "tomorrow 09:00", "--tz", "Europe/Istanbul", "--end-at", "7d",
        "--workflow-type", "w",
    )  # fmt: skip
    spec = json.loads(server.told("schedule", "describe", "once", "-o", "json"))["spec"]
    assert (spec["at"], spec["end_at"]) == (["2026-03-02T06:00:00Z"], "2026-03-08T12:00:00Z")
    server.told("schedule", "create", "often", "--every", "P1D", "--workflow-type", "w")
    filled = server.ask("schedule", "backfill", "often", "--from", "3d", "--to", "yesterday", "--dry-run", "-o", "json")
    assert [row["fire_time"][:10] for row in json.loads(filled.out)["results"]] == ["2026-02-27"]
    assert "--from: 2026-02-26T12:00:00Z\n--to: 2026-02-28T00:00:00Z\n" in filled.err
    seen = json.loads(server.told("schedule", "preview", "often", "--from", "2d", "-n", "1", "-o", "jsonl"))
    assert seen["tick_at"] == "2026-03-04T00:00:00Z"
    told = json.loads(server.told("schedule", "explain", "often", "--at", "2026-03-05", "-o", "json"))
    assert (told["at"], told["on_spec"]) == ("2026-03-05T00:00:00Z", True)
    token = json.loads(server.told("token", "create", "a", "--role", "viewer", "--expires-at", "90d", "-o", "json"))
    assert token["expires_at"] == "2026-05-30T12:00:00Z"


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (["schedule", "backfill", "s", "--from", "soon", "--to", "now"], "--from"),
        (["schedule", "create", "s", "--at", "soon", "--workflow-type", "w"], "--at"),
        (["schedule", "preview", "s", "--from", "soon"], "--from"),
        (["schedule", "explain", "s", "--at", "soon"], "--at"),
        (["schedule", "explain", "s", "--at", "now", "--tz", "Mars"], "--tz"),
        (["token", "create", "a", "--role", "viewer", "--expires-at", "soon"], "--expires-at"),
        (["next", "@hourly", "--after", "soon"], "--after"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else value,
)
def test_a_time_that_is_none_is_refused_by_its_flag(empty_server: Server, arguments: list[str], flag: str) -> None:
    answer = empty_server.ask(*arguments)
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err.startswith(f"error: {flag}: ")
