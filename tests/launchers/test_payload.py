"""What counts as JSON on the way out and on the way back, and what bounds a launch."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from horarium.core.document.json_values import OUTGOING
from horarium.launchers.payload import (
    MAX_RESULT_BYTES,
    CancelRequested,
    NotJson,
    WorkEnded,
    WorkTimedOut,
    clean_text,
    encode,
    keep,
    read,
    run_within,
)


def nested(depth: int) -> Any:
    value: Any = None
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [None, True, 0, -(2**63), 2**64 - 1, 1.5, "", "🎉", [], {}, {"a": [1, {"b": None}]}, nested(OUTGOING.depth)],
    ids=str,
)
def test_json_is_kept_as_it_is(value: Any) -> None:
    assert keep(value) == value


class Point(NamedTuple):
    x: int
    y: int


class Metres(float):
    pass


class Colour(StrEnum):
    RED = "red"


def test_the_kin_of_json_values_are_json_too() -> None:
    value = {"a": (1, 2), "b": MappingProxyType({"c": 1}), "d": Point(3, 4), "e": Metres(1.5), "f": Colour.RED}
    assert encode(value) == b'{"a":[1,2],"b":{"c":1},"d":[3,4],"e":1.5,"f":"red"}'


def test_a_small_value_that_unfolds_into_a_vast_one_is_refused() -> None:
    value: list[Any] = []
    for _ in range(40):
        value = [value, value]
    with pytest.raises(NotJson, match="more than 1000000 values"):
        encode(value)


@pytest.mark.parametrize(
    ("value", "part"),
    [
        (float("nan"), "NaN"),
        ([float("-inf")], "NaN"),
        (2**64, "64 bits"),
        (-(2**63) - 1, "64 bits"),
        ({1: 2}, "key of type int"),
        ({"\ud800": 1}, "surrogate"),
        ({"\x00": 1}, "U+0000"),
        (nested(OUTGOING.depth + 1), "nested"),
        (object(), "a object"),
        (1j, "complex"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_json_cannot_say_is_named(value: Any, part: str) -> None:
    with pytest.raises(NotJson, match=part.replace("+", r"\+")):
        encode(value)


def test_an_input_has_a_largest_size() -> None:
    with pytest.raises(NotJson, match="at most 10 are allowed"):
        encode("x" * 20, limit=10)


def test_a_result_at_the_limit_is_whole_and_beyond_it_is_cut() -> None:
    assert keep("x" * (MAX_RESULT_BYTES - 2)) == "x" * (MAX_RESULT_BYTES - 2)
    cut = keep("ü" * MAX_RESULT_BYTES)
    assert cut["truncated"] is True
    assert len(cut["text"]) <= 65_536


@pytest.mark.parametrize(
    ("raw", "options", "expected"),
    [
        (b"", {}, None),
        (b" \n", {}, None),
        (b"[1]", {}, [1]),
        (b"[1]", {"expect_json": False}, "[1]"),
        (b"[1", {}, "[1"),
        (b"NaN", {}, "NaN"),
        (b"\xff", {}, "\ufffd"),
        (b"a\x00b", {}, "a\ufffdb"),
        (b"[" * 500 + b"]" * 500, {}, "[" * 500 + "]" * 500),
        (b'"\\ud800"', {}, '"\\ud800"'),
    ],
    ids=["empty", "blank", "json", "text", "broken", "nan", "bytes", "nul", "deep", "surrogate"],
)
def test_what_a_target_wrote_becomes_a_result(raw: bytes, options: dict[str, Any], expected: Any) -> None:
    assert read(raw, **options) == expected


def test_text_is_cut_at_its_head_or_its_tail() -> None:
    assert clean_text("abcdef", 4) == "abc…"
    assert clean_text("abcdef", 4, tail=True) == "…def"
    assert clean_text("abcd", 4) == "abcd"
    assert clean_text("\ud800", 4) == "?"


# Bounds


def within(work: Any, seconds: float, *, cancel_after: float | None = None) -> Any:
    async def run() -> Any:
        cancelled = asyncio.Event()
        if cancel_after is not None:
            asyncio.get_running_loop().call_later(cancel_after, cancelled.set)
        return await run_within(work(), seconds=seconds, cancelled=cancelled, grace_seconds=0.1)

    return asyncio.run(run())


async def _quick() -> int:
    return 7


async def _long() -> None:
    await asyncio.sleep(30)


async def _stubborn() -> None:
    for _ in range(3):
        try:
            await asyncio.sleep(0.3)
        except asyncio.CancelledError:
            continue


async def _fails() -> None:
    raise LookupError("no")


def test_what_comes_first_is_the_end() -> None:
    assert within(_quick, 5) == WorkEnded(7)
    assert within(_long, 0.05) == WorkTimedOut()
    assert within(_long, 5, cancel_after=0.05) == CancelRequested()
    assert within(_stubborn, 0.05) == WorkTimedOut(abandoned=True)
    assert within(_stubborn, 5, cancel_after=0.05) == CancelRequested(abandoned=True)


@pytest.mark.parametrize("how", ["deadline", "cancel", "shutdown"])
def test_work_elsewhere_is_told_to_stop_and_not_cancelled(how: str) -> None:
    async def run() -> list[Any]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        cancelled = asyncio.Event()
        bounded = asyncio.ensure_future(
            run_within(
                answer,
                seconds=0.01 if how == "deadline" else 30,
                cancelled=cancelled,
                grace_seconds=30,
                stop=lambda: answer.set_result(7),
            )
        )
        await asyncio.sleep(0.02)
        if how == "cancel":
            cancelled.set()
        elif how == "shutdown":
            bounded.cancel()
        [end] = await asyncio.gather(bounded, return_exceptions=True)
        return [end, answer.result()]

    end, answer = asyncio.run(run())
    expected = {"deadline": WorkTimedOut(), "cancel": CancelRequested()}
    assert isinstance(end, asyncio.CancelledError) if how == "shutdown" else end == expected[how]
    assert answer == 7


def test_work_elsewhere_that_has_ended_is_not_told_to_stop() -> None:
    async def run() -> Any:
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        answer.set_result(7)
        return await run_within(answer, seconds=0, cancelled=None, grace_seconds=1, stop=pytest.fail)

    assert asyncio.run(run()) == WorkEnded(7)


def test_an_error_of_the_work_is_the_callers() -> None:
    with pytest.raises(LookupError):
        within(_fails, 5)


def test_a_far_deadline_is_no_overflow() -> None:
    assert within(_quick, 1e18) == WorkEnded(7)


def test_without_an_event_nobody_can_ask_it_to_stop() -> None:
    async def run() -> Any:
        return await run_within(_long(), seconds=0.05, cancelled=None, grace_seconds=0.1)

    assert asyncio.run(run()) == WorkTimedOut()
