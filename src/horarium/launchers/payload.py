"""Bounds and payloads of launches.

A launch lasts until its work ends, its deadline passes or its cancellation is requested. A cancelled run, a passed
deadline and an input that is not JSON end it before anything is touched.

A result is at most 1 MiB. A larger one is cut and marked, not refused: the work is done, and repeating it would not
make the result smaller.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import orjson

from horarium.core.document.json_values import OUTGOING, Json
from horarium.core.lifecycle.outcome import Refused, RunCancelled, RunTimedOut
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.clock import Clock

MAX_RESULT_BYTES = 1_048_576
MAX_INPUT_BYTES = 4 * 1_048_576
MAX_CUT_RESULT = 65_536
MAX_ERROR_CHARACTERS = 4_000
_INT_MIN, _INT_MAX = -(2**63), 2**64 - 1


class NotJson(ValueError):
    """The value has no JSON spelling; the message says why, in one clause."""


def encode(value: object, *, limit: int = MAX_INPUT_BYTES) -> bytes:
    """The JSON text of a value; raises NotJson for what JSON cannot say or what is too large."""
    check(value)
    return dump(value, limit=limit)


def dump(value: object, *, limit: int = MAX_INPUT_BYTES) -> bytes:
    """The same for a value that is known to be JSON, or made of parts that are."""
    try:
        raw = orjson.dumps(value, default=_plain)
    except (orjson.JSONEncodeError, RecursionError) as wrong:
        raise NotJson(clean_text(str(wrong), 200)) from None
    if len(raw) > limit:
        raise NotJson(f"has {len(raw)} bytes as JSON; at most {limit} are allowed")
    return raw


def _plain(value: object) -> object:
    """orjson knows tuple and float by their exact classes and no mapping but dict; their kin are JSON too."""
    match value:
        case Mapping():
            return dict(value)
        case tuple():
            return list(value)
        case float():
            return float(value)
        case _:
            raise TypeError(f"contains a {type(value).__name__}, which is not valid JSON")


def check(value: object) -> None:
    """orjson alone would turn NaN into null and objects of many classes into text; both would be silent.

    Every input and result passes here, so the plain classes are told apart by identity, level by level.
    """
    level: Sequence[Any] = (value,)
    depth = seen = 0
    while level:
        depth += 1
        if depth > OUTGOING.depth:
            raise NotJson(f"is nested more than {OUTGOING.depth} deep")
        seen += len(level)
        below: list[Any] = []
        for item in level:
            kind = type(item)
            if kind is str:
                if not item.isascii() or "\x00" in item:
                    _check_text(item)
            elif kind is int:
                if not _INT_MIN <= item <= _INT_MAX:
                    _check_scalar(item)
            elif item is None or kind is bool:
                continue
            elif kind is dict or kind is list or isinstance(item, Mapping | list | tuple):
                if len(item) > OUTGOING.values - seen - len(below):
                    # Small documents can be vast: thirty lists, each of which holds the one before it twice.
                    raise NotJson(f"has more than {OUTGOING.values} values")
                below += item if kind is list else _children(item)
            else:
                _check_scalar(item)
        level = below


def _children(item: Mapping[Any, Any] | Sequence[Any]) -> Iterable[Any]:
    if not isinstance(item, dict | Mapping):
        return item
    for key in item:
        if not isinstance(key, str):
            raise NotJson(f"contains a key of type {type(key).__name__}; keys must be strings")
        if not key.isascii() or "\x00" in key:
            _check_text(key)
    return item.values()


def _check_text(value: str) -> None:
    if "\x00" in value:
        raise NotJson("contains the character U+0000, which cannot be stored")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise NotJson("contains an unpaired surrogate character") from None


def _check_scalar(value: object) -> None:
    """Large and broken numbers, kin of the plain classes, and what JSON cannot say."""
    match value:
        case str():
            _check_text(value)
        case int():
            if not _INT_MIN <= value <= _INT_MAX:
                raise NotJson("contains an integer of more than 64 bits")
        case float():
            if not math.isfinite(value):
                raise NotJson("contains NaN or an infinite number, which is not valid JSON")
        case _:
            raise NotJson(f"contains a {type(value).__name__}, which is not valid JSON")


def keep(value: object) -> Json:
    """A Python value as a result: plain JSON, cut when it is too large; raises NotJson."""
    raw = encode(value, limit=1024 * MAX_RESULT_BYTES)
    return orjson.loads(raw) if len(raw) <= MAX_RESULT_BYTES else cut_result(raw)


def read(raw: bytes, *, cut: bool = False, expect_json: bool | None = None) -> Json:
    """Read a target's output as a result: JSON if it is JSON, else text; None if it is empty.

    `cut`: the output was longer than the limit. `expect_json` False = the target declares it as text; None = it
    declares nothing.
    """
    if cut:
        return cut_result(raw)
    if not raw.strip():
        return None
    if expect_json is not False:
        try:
            value = orjson.loads(raw)
            check(value)
        except (orjson.JSONDecodeError, NotJson):
            pass
        else:
            return value
    return clean_text(raw.decode("utf-8", "replace"), MAX_RESULT_BYTES)


def cut_result(raw: bytes) -> Json:
    text = raw[:MAX_CUT_RESULT].decode("utf-8", "replace")
    return {"truncated": True, "limit_bytes": MAX_RESULT_BYTES, "text": clean_text(text, MAX_CUT_RESULT)}


def clean_text(text: str, limit: int = MAX_ERROR_CHARACTERS, *, tail: bool = False) -> str:
    """Text that any store can keep, at most `limit` characters of it: the first, or with `tail` the last."""
    if len(text) > limit:
        text = "…" + text[len(text) - limit + 1 :] if tail else text[: limit - 1] + "…"
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


T = TypeVar("T")

# Beyond this a sleep is as good as for ever, and some event loops overflow.
LONGEST_WAIT_SECONDS = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class WorkEnded(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class WorkTimedOut:
    """`abandoned`: the work did not stop within the grace and goes on unseen."""

    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class CancelRequested:
    abandoned: bool = False


End: TypeAlias = WorkEnded[T] | WorkTimedOut | CancelRequested


async def run_within(
    work: Coroutine[Any, Any, T] | asyncio.Future[T],
    *,
    seconds: float,
    cancelled: asyncio.Event | None,
    grace_seconds: float,
    stop: Callable[[], object] | None = None,
) -> End[T]:
    """Run work until it ends, its time is over or the run is cancelled.

    Cancelled work has `grace_seconds` to clean up. A future represents work elsewhere, which `stop` asks to stop
    instead of a cancellation. Work that ended at the same moment as the deadline has ended: its result takes
    precedence.
    """
    task = asyncio.ensure_future(work)
    stop = stop or task.cancel
    try:
        # Much of what is called ends at its first step, and needs neither a timer nor anybody who watches.
        await asyncio.sleep(0)
        if not task.done():
            await _first_of(task, min(max(seconds, 0), LONGEST_WAIT_SECONDS), cancelled)
    except asyncio.CancelledError:
        # The launch itself is cancelled, at shutdown: its work goes down with it.
        await _stopped(task, stop, grace_seconds)
        raise
    if task.done():
        return WorkEnded(task.result())
    asked = cancelled is not None and cancelled.is_set()
    abandoned = not await _stopped(task, stop, grace_seconds)
    return CancelRequested(abandoned) if asked else WorkTimedOut(abandoned)


async def _first_of(task: asyncio.Future[Any], seconds: float, cancelled: asyncio.Event | None) -> None:
    """`asyncio.wait` would do, at three times the price."""
    loop = asyncio.get_running_loop()
    first = loop.create_future()
    asked = loop.create_task(cancelled.wait()) if cancelled is not None else None

    def end(_ended: object = None) -> None:
        if not first.done():
            first.set_result(None)

    timer = loop.call_later(seconds, end)
    task.add_done_callback(end)
    if asked is not None:
        asked.add_done_callback(end)
    try:
        await first
    finally:
        timer.cancel()
        task.remove_done_callback(end)
        if asked is not None:
            asked.cancel()


async def _stopped(task: asyncio.Future[Any], stop: Callable[[], object], grace_seconds: float) -> bool:
    # It may fail long after anybody listens; asking for its error keeps the loop quiet.
    task.add_done_callback(_forget_error)
    stop()
    done, _ = await asyncio.wait({task}, timeout=grace_seconds)
    return bool(done)


def _forget_error(task: asyncio.Future[Any]) -> None:
    if not task.cancelled():
        task.exception()


@dataclass(frozen=True, slots=True)
class Cleared:
    """`inputs` is their JSON text."""

    inputs: bytes
    seconds_left: float


def preflight(request: LaunchRequest, clock: Clock) -> Cleared | Refused | RunTimedOut | RunCancelled:
    if request.cancelled is not None and request.cancelled.is_set():
        return RunCancelled("cancelled before it was launched")
    left = request.seconds_left(clock)
    if left <= 0:
        return RunTimedOut("the deadline passed before the launch")
    try:
        return Cleared(encode(request.inputs), left)
    except NotJson as wrong:
        return Refused(f"the input {wrong}")
