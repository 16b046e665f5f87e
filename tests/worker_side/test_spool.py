"""The spool: what was written survives its writer, is delivered in order, and is bounded."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from horarium.celery.spool import Spool
from horarium.celery.spool_file import (
    Destination,
    SpoolFile,
    SpoolLine,
    adopt,
    create,
    head_of,
    line_of,
    offset_text,
    read_head,
    read_lines,
    to_keep,
)

HERE = Destination("https://h.example", "default")
THERE = Destination("https://other.example", "default")


def said(number: int, **more: Any) -> bytes:
    return line_of({"run_id": f"r{number}", **more}, final=number % 2 == 1)


def waiting(file: SpoolFile | None) -> list[Any]:
    assert file is not None
    return [each.document() for each in file.pending(1_000, 10**9).lines]


def numbers(file: SpoolFile | None) -> list[str]:
    return [document["run_id"] for document in waiting(file)]


def left_behind(path: Path) -> SpoolFile:
    """As after kill -9: the file is as it is, and nobody has it."""
    file = adopt(path)
    assert file is not None
    return file


# ── one file ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_was_written_survives_its_writer(tmp_path: Path) -> None:
    file = create(tmp_path, HERE)
    for number in range(3):
        file.add(said(number))
    assert adopt(file.path) is None  # its owner lives
    file.forget()
    again = left_behind(file.path)
    assert (again.destination, numbers(again)) == (HERE, ["r0", "r1", "r2"])


HEAD, LINES = head_of(HERE), [said(0), said(1)]
BEGIN = len(HEAD)
ALL = HEAD + b"".join(LINES)
ONE_DONE = HEAD[:-21] + offset_text(BEGIN + len(LINES[0]))
CRASHES = {
    "before the first report": (HEAD, []),
    "after two reports": (ALL, ["r0", "r1"]),
    "in the midst of the second": (ALL[:-5], ["r0"]),
    "in the midst of the only one": (ALL[: BEGIN + 5], []),
    "before its newline": (ALL[:-1], ["r0"]),
    "after the first was delivered": (ONE_DONE + b"".join(LINES), ["r1"]),
    "after all were delivered": (HEAD[:-21] + offset_text(len(ALL)) + b"".join(LINES), []),
    "between saying so and cutting the file": (ALL, ["r0", "r1"]),
    "with less than it says was delivered": (HEAD[:-21] + offset_text(len(ALL)), []),
    "with an offset of its own": (HEAD[:-21] + offset_text(3) + b"".join(LINES), ["r0", "r1"]),
}


@pytest.mark.parametrize(("raw", "expected"), CRASHES.values(), ids=CRASHES)
def test_a_file_is_read_whenever_its_writer_died(tmp_path: Path, raw: bytes, expected: list[str]) -> None:
    path = tmp_path / "x.spool"
    path.write_bytes(raw)
    file = left_behind(path)
    assert numbers(file) == expected
    found = file.pending(100, 10**9)
    if found.lines:
        file.delivered(found.lines[-1].end, found.generation)
    assert numbers(file) == []
    file.close()
    assert not path.exists()


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\n\n",
        b"{}\n00000000000000000064\n",
        b"not json\n1\n",
        HEAD[:-5],
        HEAD.replace(b"1,", b"2,"),
        b"[" * 9_000,
    ],
    ids=["empty", "blank", "nobody's", "no json", "half", "later version", "deep"],
)
def test_what_is_no_spool_is_set_aside(tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "x.spool").write_bytes(raw)
    spool = Spool(tmp_path)
    spool.sweep()
    assert (spool.sources, [each.name for each in tmp_path.iterdir()]) == ([], ["x.broken"])


def test_a_process_that_may_open_no_more_files_leaves_what_it_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(tmp_path, HERE, said(1)).forget()

    def no_more(_path: Path) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    spool = Spool(tmp_path)
    with monkeypatch.context() as full:
        full.setattr("horarium.celery.spool.adopt", no_more)
        spool.sweep()
    spool.sweep()
    [file] = spool.sources
    assert numbers(file) == ["r1"]


def test_reports_come_in_their_order_and_in_parts(tmp_path: Path) -> None:
    file = create(tmp_path, HERE)
    for number in range(5):
        file.add(said(number))
    two = file.pending(2, 10**9)
    assert [line.document() for line in two.lines] == [{"run_id": "r0"}, {"run_id": "r1"}]
    assert len(file.pending(100, 1).lines) == 1  # one at least, however large it is
    file.delivered(two.lines[-1].end, two.generation)
    file.add(said(5))
    assert numbers(file) == ["r2", "r3", "r4", "r5"]


def test_a_file_that_is_never_empty_does_not_grow_for_ever(tmp_path: Path) -> None:
    file = create(tmp_path, HERE)
    for number in range(60):
        file.add(said(number, text="x" * 100_000))
        if number:
            next_one = file.pending(1, 10**9)
            file.delivered(next_one.lines[0].end, next_one.generation)
    assert numbers(file) == ["r59"]
    assert file.path.stat().st_size < 2_000_000
    assert adopt(file.path) is None  # it is still ours


def test_ends_are_kept_before_progress_and_the_newest_first() -> None:
    kinds = (True, False, True, False, True)
    named = [SpoolLine(final, b"", 100 * number, 100 * number + 100) for number, final in enumerate(kinds)]
    table = {0: [], 99: [], 100: [4], 200: [2, 4], 300: [0, 2, 4], 400: [0, 2, 3, 4], 500: [0, 1, 2, 3, 4]}
    assert {most: [named.index(line) for line in to_keep(named, most)] for most in table} == table


def test_a_full_file_is_written_anew_and_a_late_answer_does_no_harm(tmp_path: Path) -> None:
    file = create(tmp_path, HERE)
    for number in range(10):
        file.add(said(number))
    under_way = file.pending(3, 10**9)
    size = len(said(1))
    assert file.shrink(5 * size) == 5  # the progress
    file.delivered(under_way.lines[-1].end, under_way.generation)
    assert numbers(file) == ["r1", "r3", "r5", "r7", "r9"]
    assert file.shrink(2 * size) == 3
    assert numbers(file) == ["r7", "r9"]
    assert file.shrink(10 * size) == 0
    assert adopt(file.path) is None


def test_a_full_disk_leaves_no_half_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = create(tmp_path, HERE)
    file.add(said(1))
    write = os.pwrite

    def full(descriptor: int, raw: bytes, offset: int) -> int:
        if len(raw) > 5:
            return write(descriptor, raw[:5], offset)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="No space"):
            file.add(said(3))
    file.add(said(5))
    assert numbers(file) == ["r1", "r5"]


def test_lines_and_heads_are_read_as_they_were_written() -> None:
    head = read_head(ALL)
    assert head is not None
    assert (head.destination, head.size, head.done) == (HERE, BEGIN, BEGIN)
    lines = read_lines(ALL[BEGIN:], BEGIN)
    assert [(line.final, line.size, line.end) for line in lines] == [
        (False, len(LINES[0]), BEGIN + len(LINES[0])),
        (True, len(LINES[1]), len(ALL)),
    ]


# ── the directory ────────────────────────────────────────────────────────────────────────────────────


def test_what_others_left_behind_is_adopted_once_and_goes_when_delivered(tmp_path: Path) -> None:
    dead = Spool(tmp_path)
    dead.put(HERE, said(1))
    first, second = Spool(tmp_path), Spool(tmp_path)
    first.sweep()
    assert first.sources == []  # it lives
    dead.forget()
    first.sweep()
    second.sweep()
    assert ([numbers(file) for file in first.sources], second.sources) == ([["r1"]], [])
    [file] = first.sources
    found = file.pending(10, 10**9)
    file.delivered(found.lines[-1].end, found.generation)
    first.sweep()
    assert list(tmp_path.iterdir()) == []


def test_each_destination_has_a_file_of_its_own_and_the_oldest_comes_first(tmp_path: Path) -> None:
    for number, destination in enumerate((HERE, THERE, HERE)):
        dead = Spool(tmp_path)
        dead.put(destination, said(number))
        [file] = dead.sources
        dead.forget()
        os.utime(file.path, ns=(number, number))
    heir = Spool(tmp_path)
    heir.sweep()
    assert {file.destination: numbers(file) for file in heir.sources} == {HERE: ["r0"], THERE: ["r1"]}


def test_a_process_that_sends_nothing_leaves_its_reports_to_others(tmp_path: Path) -> None:
    parent, child = Spool(tmp_path, leaves=True), Spool(tmp_path)
    parent.put(HERE, said(0))
    parent.put(HERE, said(1))
    child.sweep()
    [file] = child.sources
    assert numbers(file) == ["r0", "r1"]
    parent.put(HERE, said(2))  # while the child has the file
    found = file.pending(10, 10**9)
    file.delivered(found.lines[-1].end, found.generation)
    child.sweep()
    assert [numbers(file) for file in child.sources] == [["r2"]]
    child.forget()
    parent.put(HERE, said(3))  # nobody has it: it goes on with its own
    other = Spool(tmp_path)
    other.sweep()
    assert sorted(number for file in other.sources for number in numbers(file)) == ["r2", "r3"]


def test_nothing_that_is_added_is_taken_for_delivered(tmp_path: Path) -> None:
    """Whatever the offset said, and however long the file was then."""
    parent = Spool(tmp_path, leaves=True)
    parent.put(HERE, said(0))
    [path] = tmp_path.iterdir()
    raw = path.read_bytes()
    with path.open("r+b") as file:  # as one leaves it that died in the midst of it
        file.write(HEAD[:-21] + offset_text(len(raw)))
        file.truncate(BEGIN)
    for number in range(1, 4):
        parent.put(HERE, said(number))
    heir = Spool(tmp_path)
    heir.sweep()
    assert [numbers(file) for file in heir.sources] == [["r1", "r2", "r3"]]


def test_a_directory_that_was_tidied_up_is_made_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.sweep()
    spool.put(HERE, said(1))
    shutil.rmtree(tmp_path / "spool")
    spool.sweep()
    spool.put(HERE, said(3))
    assert [numbers(file) for file in spool.sources] == [["r1"], ["r3"]]
    assert len(list((tmp_path / "spool").iterdir())) == 1


def test_the_spool_is_bounded_and_says_what_it_lost(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spool = Spool(tmp_path, limit=200_000)
    for number in range(400):
        spool.put(HERE, said(number, text="x" * 1_000))
    [file] = spool.sources
    assert file.path.stat().st_size <= 200_000
    assert numbers(file)[-1] == "r399"
    assert {int(name[1:]) % 2 for name in numbers(file)[:50]} == {1}  # progress went first
    assert "is full" in caplog.text


def test_no_message_makes_more_files_than_there_are_services(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for number in range(20):
        spool.put(Destination(f"https://h{number}.example", "default"), said(1))
    with pytest.raises(OSError, match="already has reports for 20 services"):
        spool.put(HERE, said(1))
    [file, *_] = spool.sources
    found = file.pending(10, 10**9)
    file.delivered(found.lines[-1].end, found.generation)
    spool.put(HERE, said(1))
    assert len(list(tmp_path.iterdir())) == 20


def test_a_process_that_sends_nothing_counts_only_reports_that_wait(tmp_path: Path) -> None:
    parent, child = Spool(tmp_path, leaves=True), Spool(tmp_path)
    services = [Destination(f"https://h{number}.example", "default") for number in range(20)]
    for service in services:
        parent.put(service, said(1))
    with pytest.raises(OSError, match="already has reports for 20 services"):
        parent.put(HERE, said(1))
    child.sweep()
    for file in child.sources:
        found = file.pending(10, 10**9)
        file.delivered(found.lines[-1].end, found.generation)
    child.sweep()
    parent.put(HERE, said(3))
    child.sweep()
    assert [(file.destination, numbers(file)) for file in child.sources] == [(HERE, ["r3"])]


def test_an_idle_process_leaves_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.put(HERE, said(1))
    [file] = spool.sources
    found = file.pending(10, 10**9)
    file.delivered(found.lines[-1].end, found.generation)
    spool.close()
    assert list(tmp_path.iterdir()) == []
