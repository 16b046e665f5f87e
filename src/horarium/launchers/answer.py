"""What an HTTP answer means for the run: status, headers and body become one outcome.

| answer                                | outcome                                                       |
|---------------------------------------|---------------------------------------------------------------|
| 202                                   | Accepted; reference = `reference` or `id` of the body, else `Location` |
| other 2xx                             | Finished with the body                                        |
| 429; 503 with `Retry-After`           | Busy                                                          |
| 408, 425, other 5xx                   | Unreachable: the target did not do it, a later try may        |
| 3xx                                   | Refused: a redirect would lead past the check of the address  |
| other 4xx                             | Refused                                                       |
"""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

import httpx

from horarium.instant import SECOND, Instant, from_datetime
from horarium.launchers.payload import MAX_RESULT_BYTES, clean_text, read
from horarium.life.outcome import Accepted, Busy, Finished, Outcome, Refused, Unreachable
from horarium.schedule.definition import Json

MAX_REFERENCE = 1_024
MAX_RETRY_AFTER_SECONDS = 86_400.0
_SNIPPET_CHARACTERS = 500
_TRY_LATER = frozenset({408, 425})


async def outcome_of(response: httpx.Response, now: Instant) -> Outcome:
    """Reads the body as far as it is wanted; network errors are the caller's to catch."""
    status = response.status_code
    if 200 <= status < 300:
        result = await _body(response)
        return Accepted(reference=_reference(result, response.headers)) if status == 202 else Finished(result)
    if 300 <= status < 400:
        return Refused(f"HTTP {status}: redirects are not followed; schedule the final URL")
    said = f"HTTP {status}: {await _snippet(response)}".removesuffix(": ")
    if status == 429 or (status == 503 and "retry-after" in response.headers):
        return Busy(retry_after(response.headers.get("retry-after"), now))
    if status in _TRY_LATER or status >= 500:
        return Unreachable(said)
    return Refused(said)


async def _body(response: httpx.Response) -> Json:
    """The raw bytes, never unpacked: `identity` was asked for, and a packed megabyte can hold a gigabyte."""
    raw, cut = await _read(response, MAX_RESULT_BYTES)
    packed = response.headers.get("content-encoding", "identity").strip().lower()
    if packed not in ("", "identity"):
        return {"undecoded": clean_text(packed, 100), "size_bytes": len(raw)}
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return read(raw, cut=cut, expect_json=False if kind.startswith("text/") else None)


async def _snippet(response: httpx.Response) -> str:
    raw, _ = await _read(response, 4 * _SNIPPET_CHARACTERS)
    return clean_text(" ".join(raw.decode("utf-8", "replace").split()), _SNIPPET_CHARACTERS)


async def _read(response: httpx.Response, limit: int) -> tuple[bytes, bool]:
    """At most `limit` bytes, and whether there was more."""
    raw = bytearray()
    async for chunk in response.aiter_raw():
        raw += chunk
        if len(raw) > limit:
            return bytes(raw[:limit]), True
    return bytes(raw), False


def _reference(result: Json, headers: httpx.Headers) -> str | None:
    if isinstance(result, dict):
        for name in ("reference", "id"):
            value = result.get(name)
            if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
                return clean_text(str(value), MAX_REFERENCE)
    location = headers.get("location")
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
