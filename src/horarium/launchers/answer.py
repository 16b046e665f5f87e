"""What an HTTP answer means for the run: status, headers and body become one outcome.

| answer                             | outcome                                                                |
|------------------------------------|------------------------------------------------------------------------|
| 202                                | Accepted; reference = `reference` or `id` of the body, else `Location` |
| other 2xx                          | Finished with the body                                                 |
| 408, 425                           | Unreachable: the target says that it did not begin                     |
| 429                                | Busy; of class `rate_limit` where it lasts                             |
| 503 with `Retry-After`             | Busy                                                                   |
| 502, 504; 503 without it           | Unknown: whoever answers cannot say what became of the request         |
| 500, other 5xx, 6xx and above      | RunFailed, `provider_error`: the target tried, a retry is a new attempt|
| 3xx                                | Refused: a redirect would lead past the check of the address           |
| other 4xx                          | Refused                                                                |

A number beyond 599 counts as a 5xx (RFC 9110 section 15). An answer that breaks off is no answer, except where
its status alone says that the run is not done.
"""

from __future__ import annotations

import asyncio
from datetime import UTC
from email.utils import parsedate_to_datetime

from horarium.instant import SECOND, Instant, from_datetime
from horarium.launchers.exchange import Answer, Lost
from horarium.launchers.payload import MAX_RESULT_BYTES, clean_text, read
from horarium.life.outcome import Accepted, Busy, Finished, Outcome, Refused, RunFailed, Unknown, Unreachable
from horarium.policy.retry import RetryCause
from horarium.schedule.json_limits import Json

MAX_REFERENCE = 1_024
MAX_RETRY_AFTER_SECONDS = 86_400.0
_SNIPPET_CHARACTERS = 500
_SNIPPET_SECONDS = 5.0
_NOT_BEGUN = frozenset({408, 425})
# A gateway that lost its upstream, or a server that goes down: the request may have been carried out behind it.
_NOBODY_KNOWS = frozenset({502, 503, 504})


async def outcome_of(answer: Answer, now: Instant, *, hidden: str | None = None) -> Outcome:
    """Reads the body as far as it is wanted; a connection that breaks is the caller's to catch.

    `hidden` is what no error may show, although the target sends it back: errors are kept and read by many.
    """
    status = answer.status
    if 200 <= status < 300:
        result = await _body(answer)
        return Accepted(_reference(result, answer.header(b"location"))) if status == 202 else Finished(result)
    if 300 <= status < 400:
        return Refused(f"HTTP {status}: redirects are not followed; set the final URL")
    said = shown(status, await opening(answer), hidden)
    return not_done(status, said, answer.header(b"retry-after"), now)


def not_done(status: int, said: str, wish: str | None, now: Instant) -> Outcome:
    """Outcome of a status of 400 or more; `wish` is the header `Retry-After`."""
    if status == 429:
        return Busy(retry_after(wish, now), sent=True, error_class=RetryCause.RATE_LIMIT)
    if status == 503 and wish is not None:
        return Busy(retry_after(wish, now), sent=True)
    if status in _NOT_BEGUN:
        return Unreachable(said, sent=True)
    if status in _NOBODY_KNOWS:
        return Unknown(said)
    return Refused(said) if status < 500 else RunFailed(said, RetryCause.PROVIDER_ERROR)


async def _body(answer: Answer) -> Json:
    """The raw bytes, never unpacked: `identity` was asked for, and a packed megabyte can hold a gigabyte."""
    raw, cut = await answer.read(MAX_RESULT_BYTES)
    packed = (answer.header(b"content-encoding") or "identity").strip().lower()
    if packed not in ("", "identity"):
        return {"undecoded": clean_text(packed, 100), "size_bytes": len(raw)}
    kind = (answer.header(b"content-type") or "").partition(";")[0].strip().lower()
    return read(raw, cut=cut, expect_json=False if kind.startswith("text/") else None)


async def opening(answer: Answer) -> bytes:
    """Only for people: the status has said already what became of the run, so a body that does not come is left out."""
    try:
        async with asyncio.timeout(_SNIPPET_SECONDS):
            raw, _ = await answer.read(4 * _SNIPPET_CHARACTERS)
    except (Lost, TimeoutError):
        return b""
    return raw


def shown(status: int, raw: bytes, hidden: str | None) -> str:
    """A status and how its body begins, in one line."""
    text = " ".join(raw.decode("utf-8", "replace").split())
    snippet = clean_text(text.replace(hidden, "…") if hidden else text, _SNIPPET_CHARACTERS)
    return f"HTTP {status}: {snippet}".removesuffix(": ")


def _reference(result: Json, location: str | None) -> str | None:
    if isinstance(result, dict):
        for name in ("reference", "id"):
            value = result.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return clean_text(str(value), MAX_REFERENCE)
    return clean_text(location, MAX_REFERENCE) if location else None


def retry_after(value: str | None, now: Instant) -> float | None:
    """RFC 9110 section 10.2.3: seconds, or a date. What is neither is as good as nothing said."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_RETRY_AFTER_SECONDS)
    try:
        moment = parsedate_to_datetime(text[:64])
        # A date without a zone is GMT by the same RFC; Python leaves `-0000` naive.
        seconds = (from_datetime(moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - now) / SECOND
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return min(max(seconds, 0.0), MAX_RETRY_AFTER_SECONDS)
