"""What a run says becomes lines, the last of them, and what was dropped is counted."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from horarium.platform.run_log import MAX_LINE, RunLog, Stream, split_lines

OUT, ERR, LOG = Stream


def log_of(most: int = 65_536) -> RunLog:
    return RunLog(lambda: 7, most)


def texts(log: RunLog, *, last: bool = True) -> list[str]:
    return [line.text for line in log.peek(last=last).lines]


@pytest.mark.parametrize(
    ("text", "lines", "rest"),
    [
        ("", [], ""),
        ("a", [], "a"),
        ("a\n", ["a"], ""),
        ("a\r\n\nb", ["a", ""], "b"),
        ("x" * MAX_LINE, [], "x" * MAX_LINE),
        ("x" * (MAX_LINE + 1), ["x" * MAX_LINE], "x"),
        ("x" * (MAX_LINE + 1) + "\n", ["x" * MAX_LINE, "x"], ""),
    ],
    ids=["nothing", "begun", "ended", "empty-line", "just-fits", "too-long", "too-long-and-ended"],
)
def test_lines_end_where_they_end_or_get_too_long(text: str, lines: list[str], rest: str) -> None:
    assert split_lines(text) == (lines, rest)


@pytest.mark.parametrize(
    ("pieces", "lines"),
    [
        ([(OUT, "a"), (OUT, "b\nc")], [(OUT, "ab"), (OUT, "c")]),
        ([(OUT, "a"), (ERR, "oh\n"), (OUT, "b\n")], [(ERR, "oh"), (OUT, "ab")]),
        ([(OUT, b"caf\xc3"), (OUT, b"\xa9\n")], [(OUT, "café")]),
        ([(OUT, b"\xff\xfe\n"), (OUT, b"\xc3")], [(OUT, "\ufffd\ufffd"), (OUT, "\ufffd")]),
        ([(LOG, "a\x00b\ud800\n")], [(LOG, "a\ufffdb?")]),
        ([], []),
    ],
    ids=["pieces", "streams", "split-character", "no-utf-8", "no-database-holds-it", "nothing"],
)
def test_pieces_become_lines(pieces: list[tuple[Stream, Any]], lines: list[tuple[Stream, str]]) -> None:
    log = log_of()
    for stream, data in pieces:
        log.write(stream, data)
    assert log.touched is bool(pieces)
    assert [(line.stream, line.text) for line in log.peek(last=True).lines] == lines
    assert {line.at for line in log.peek().lines} <= {7}


def test_an_unended_line_waits_for_its_end() -> None:
    log = log_of()
    log.write(OUT, "a\nb")
    assert texts(log, last=False) == ["a"]
    log.write(OUT, "c\n")
    assert texts(log, last=False) == ["a", "bc"]


def test_what_is_not_kept_stays_and_what_is_goes() -> None:
    log = log_of()
    log.write(OUT, "a\nb\n")
    first = log.peek()
    log.write(OUT, "c\n")
    log.done(first)
    second = log.peek(last=True)
    assert (second.dropped, [line.text for line in second.lines]) == (0, ["c"])
    log.done(second)
    log.write(OUT, "too late\n")
    assert log.peek(last=True).lines == ()


@pytest.mark.parametrize("bites", [1, 7, 1_000], ids=["one by one", "sevens", "at once"])
def test_the_last_lines_are_kept_and_the_others_counted(bites: int) -> None:
    log, written = log_of(2_000), [f"line {number:04}\n" for number in range(1_000)]
    for first in range(0, 1_000, bites):
        log.write(OUT, "".join(written[first : first + bites]))
    batch = log.peek(last=True)
    assert batch.lines[-1].text == "line 0999"
    assert batch.dropped + len(batch.lines) == 1_000
    assert 20 < len(batch.lines) <= 40


def test_lines_that_fall_off_while_others_are_being_kept_are_counted_once() -> None:
    log = log_of(2_000)
    log.write(OUT, "a\nb\n")
    first = log.peek()
    for number in range(1_000):
        log.write(OUT, f"line {number:04}\n")
    log.done(first)
    second = log.peek()
    assert 2 + second.dropped + len(second.lines) == 1_002


def test_gigabytes_take_no_room() -> None:
    log, megabyte = log_of(4_096), b"y\n" * 524_288
    for _ in range(64):
        log.write(OUT, megabyte)
    assert sum(len(piece[2]) for piece in log._pieces) <= 5 * 4_096
    batch = log.peek(last=True)
    assert batch.dropped + len(batch.lines) == 64 * 524_288


def test_a_line_without_an_end_does_not_grow_for_ever() -> None:
    log = log_of(20_000)
    for _ in range(100):
        log.write(OUT, "x" * 5_000)
        log.peek()
    assert sum(len(text) for text in texts(log)) <= 20_000 + MAX_LINE


def test_lines_that_were_lost_elsewhere_are_counted() -> None:
    log = log_of()
    log.skip(5)
    log.write(OUT, "a\n")
    assert (log.peek().dropped, texts(log)) == (5, ["a"])


def test_nothing_is_kept_where_nothing_is_wanted() -> None:
    log = log_of(0)
    log.write(OUT, "a\n")
    assert (log.touched, log.peek(last=True).lines) == (False, ())


def test_threads_may_write_at_once() -> None:
    log = log_of(1_000_000)

    def write() -> None:
        for _ in range(500):
            log.write(LOG, "x\n")

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(log.peek(last=True).lines) == 2_000
