"""Whether a process is there is read off the age of its last beat; what is worth a word is said in one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from horarium.core.decision.presence import ProcessState, Seen, notes, process_state

ALIVE, DRAINING, SILENT, GONE = ProcessState


@pytest.mark.parametrize(
    ("silent", "draining", "expected"),
    [
        (0, False, ALIVE),
        (12, False, ALIVE),
        (12.1, False, SILENT),
        (30, False, SILENT),
        (30.1, False, GONE),
        (86_400, False, GONE),
        (0, True, DRAINING),
        (12.1, True, SILENT),
        (31, True, GONE),
    ],
)
def test_the_state_of_a_process(silent: float, draining: bool, expected: ProcessState) -> None:
    assert process_state(silent, draining=draining) is expected


WORKER = Seen("w1", ALIVE, "1.1.0", "0019", frozenset({"ticker", "dispatcher"}))
SERVER = Seen("s1", ALIVE, "1.1.0", "0019", frozenset({"api"}))
MANY = [replace(SERVER, name=f"s{n}", schema="0018") for n in range(7)]


@pytest.mark.parametrize(
    ("processes", "schema", "expected"),
    [
        ([WORKER, SERVER], "0019", []),
        (
            [SERVER],
            "0019",
            [
                "no process decides due occurrences; start horarium up or horarium worker",
                "no process dispatches runs; start horarium up or horarium worker",
            ],
        ),
        (
            [WORKER, replace(SERVER, version="1.0.0"), replace(SERVER, name="s2", version=None)],
            "0019",
            ["processes run different versions: 1.0.0 (1), 1.1.0 (1), unknown (1)"],
        ),
        ([WORKER, replace(SERVER, version="1.0.0", state=GONE)], "0019", []),
        (
            [WORKER, *MANY],
            "0019",
            ["the schema is at 0019; other revision expected by s0, s1, s2, s3, s4 and 2 more"],
        ),
        ([WORKER], "0018", ["the schema is at 0018; other revision expected by w1"]),
        (
            [WORKER, replace(WORKER, name="w2", state=SILENT, silent_seconds=14.4)],
            "0019",
            ["w2 has sent no heartbeat for 14 s; its runs move when their leases expire"],
        ),
        (
            [replace(WORKER, stuck=("janitor", "usage"))],
            "0019",
            ["w1: janitor, usage made no progress; check its log"],
        ),
        (
            [replace(WORKER, clock_offset_seconds=-40.26), replace(SERVER, clock_offset_seconds=1.0)],
            "0019",
            ["w1: its clock is 40.3 s ahead of the database clock, which it uses"],
        ),
        (
            [replace(WORKER, clock_offset_seconds=2.0)],
            "0019",
            ["w1: its clock is 2.0 s behind the database clock, which it uses"],
        ),
    ],
    ids=["all is well", "no engine", "versions", "who is gone has none", "many schemas", "migrated by nobody",
         "silent", "stuck", "ahead", "behind"],
)  # fmt: skip
def test_what_somebody_should_look_at(processes: list[Seen], schema: str, expected: list[str]) -> None:
    assert list(notes(processes, schema)) == expected
