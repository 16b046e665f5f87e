"""What a process says of itself is read as it was written, and of a row that is not ours as much as makes sense."""

from __future__ import annotations

import pytest

from horarium.platform.database.processes import About, Process, read_process

OWNER = "machine:4711:k3x9qz"
ABOUT = About("machine", 4711, ("api", "ticker"), "1.2.0", "0018", 1_700_000_000_000_000)


@pytest.mark.parametrize(
    "process",
    [
        pytest.param(Process(ABOUT, {"ticker": 5}, {"kinds": {}}, clock_offset=-3), id="at work"),
        pytest.param(Process(ABOUT, {}, None, draining=True), id="leaving"),
        pytest.param(Process(About("machine", 4711, ("api",), "1.2.0", "0018")), id="a door alone"),
    ],
)
def test_what_was_written_is_read(process: Process) -> None:
    assert read_process(OWNER, process.document()) == process


def test_who_leaves_serves_nothing() -> None:
    assert read_process(OWNER, Process(ABOUT, {}, {"kinds": {}}, draining=True).document()).serves is None


def test_every_number_at_the_top_is_a_loop_for_a_program_of_the_release_before() -> None:
    document = Process(ABOUT, {"ticker": 5}, {"kinds": {}}, clock_offset=-3).document()
    assert [name for name, value in document.items() if isinstance(value, int)] == ["ticker"]


@pytest.mark.parametrize(
    ("owner", "info", "expected"),
    [
        (OWNER, {"ticker": 5, "draining": "yes"}, Process(About("machine", 4711), {"ticker": 5}, draining=True)),
        (OWNER, None, Process(About("machine", 4711))),
        (OWNER, [1], Process(About("machine", 4711))),
        ("", {}, Process(About(""))),
        ("me", {"process": 7, "schema": 7, "ticker": True}, Process(About("me"), {"process": 7, "schema": 7})),
        ("m:x:y", {"process": {"roles": "api", "pid": "1", "version": 2}}, Process(About("m"))),
        ("m:99999999999:y", {"process": {"roles": ["a" * 300]}}, Process(About("m", roles=("a" * 255,)))),
        (
            "m",
            {"process": {"pid": 10**30, "started_at": 10**30, "clock_offset": 10**40}, "t": 10**50},
            Process(About("m")),
        ),
        ("m", {"process": {"started_at": -(10**17)}, "ticker": -1}, Process(About("m"))),
    ],
    ids=[
        "of an older program",
        "nothing",
        "a list",
        "no name",
        "other types",
        "wrong parts",
        "too large",
        "no instants",
        "before all time",
    ],
)
def test_a_row_that_is_not_ours_is_read_as_far_as_it_goes(owner: str, info: object, expected: Process) -> None:
    assert read_process(owner, info) == expected
