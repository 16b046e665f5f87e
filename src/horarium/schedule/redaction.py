"""How values that were sent are kept out of what comes back: each that is found in a text is masked.

A target may echo what it was sent, in an error or in a result, and both are stored and shown. What is masked is the
value itself, what follows a scheme such as `Bearer`, the values of cookies, what `Basic` holds, and each of these as
JSON, addresses and HTML spell it, in capitals or small letters, in base64 (also inside a longer text that was encoded
as a whole, and where line breaks divide it) and in hexadecimal digits, and a number of the same digits. Half a value at
the cut end of a text is masked as well. Short values are left: they would be found everywhere.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode, urlsafe_b64encode
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import accumulate
from typing import Final
from urllib.parse import quote, quote_plus

from horarium.schedule.json_limits import Json

MASK: Final = "***"
LEAST: Final = 8
"""Characters; what is shorter is not masked."""

_ELLIPSIS = "…"
# Of a number that JSON can carry.
_MOST_DIGITS = 20
# No secret holds it, so none is found across it.
_BETWEEN = "\x00"
# No text that was cut is shorter.
_CUT = 256
# Of one value: `Bearer x` has two, and a cookie a few. A secret of a thousand words is looked for as a whole.
_MOST_PARTS = 8
# Of one value, empty ones included, that are looked for in other spellings: `Basic x` has six. Of more parts only the
# whole value is.
_MOST_ENCODED = 7
# As a text shows it, or as JSON spells it; MIME and PEM divide base64 (RFC 2045 section 6.8, RFC 7468 section 2).
_LINE_BREAK = re.compile(r"(?:\r|\n|\\r|\\n)+[ \t]*")
# Places where half a value may begin. A value that repeats itself has thousands, and each is a comparison.
_MOST_BEGINNINGS = 32


class Redactor:
    """Redactor for some values; `Redactor(())` changes nothing."""

    def __init__(self, values: Collection[str]) -> None:
        found = _with_slashes(each for value in values for each in _spellings(value) if len(each) >= LEAST)
        # The longest first: a value that is part of another must not leave the rest of it.
        self._values = sorted(found, key=len, reverse=True)
        self._base64 = sorted(
            _with_slashes(
                each
                for value in values
                for part in _encodable(value)
                for each in _in_base64(part)
                if len(each) >= LEAST
            ),
            key=len,
            reverse=True,
        )
        digits = (each for each in found if each.isascii() and each.isdigit() and len(each) <= _MOST_DIGITS)
        self._numbers = frozenset(map(int, digits))

    def text(self, text: str) -> str:
        if len(text) < LEAST:
            return text
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        text = _without_divided(text, self._base64)
        return _without_a_half(text, self._values)

    def json(self, value: Json) -> Json:
        """Keys too. All texts of it are looked through at once: one by one a hundred thousand would take seconds."""
        if not self._values:
            return value
        texts = list(_texts(value))
        joined = _BETWEEN.join(texts)
        for each in self._values:
            if each in joined:
                joined = joined.replace(each, MASK)
        joined = _without_divided(joined, self._base64)
        masked = joined.split(_BETWEEN)
        if len(masked) != len(texts):  # a text holds what stands between them, which JSON of ours never does
            masked = [self.text(each) for each in texts]
        begun = [each for each in self._values if each[:LEAST] in joined]
        return self._with_texts(value, (_without_a_half(each, begun) for each in masked))

    def _with_texts(self, value: Json, texts: Iterator[str]) -> Json:
        """The same with other texts, in the order of `_texts`."""
        if isinstance(value, str):
            return next(texts)
        if isinstance(value, Mapping):
            return {
                next(texts) if isinstance(key, str) else key: self._with_texts(item, texts)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._with_texts(item, texts) for item in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return MASK if value in self._numbers else value
        return value


def _without_divided(text: str, values: Sequence[str]) -> str:
    """Mask the values that line breaks divide."""
    breaks = list(_LINE_BREAK.finditer(text)) if values else []
    if not breaks:
        return text
    begins, ends = [0, *(each.end() for each in breaks)], [*(each.start() for each in breaks), len(text)]
    whole = "".join(text[begin:end] for begin, end in zip(begins, ends, strict=True))
    # Of each line, its beginning in the text without breaks.
    joined_at = [0, *accumulate(end - begin for begin, end in zip(begins, ends, strict=True))][:-1]

    def place(index: int) -> int:
        line = bisect_right(joined_at, index) - 1
        return begins[line] + index - joined_at[line]

    kept: list[tuple[int, int]] = []
    for value in values:
        if value in whole:
            start = whole.find(value)
            while start >= 0:
                kept.append((place(start), place(start + len(value) - 1) + 1))
                start = whole.find(value, start + len(value))
    shown: list[str] = []
    last = 0
    for start, end in sorted(kept):
        if start >= last:
            shown += [text[last:start], MASK]
        last = max(last, end)
    return "".join([*shown, text[last:]])


def _without_a_half(text: str, values: Sequence[str]) -> str:
    if len(text) < _CUT:
        return text
    body = text.removesuffix(_ELLIPSIS)
    for value in values:
        start = _beginning(body, value)
        if start >= 0:
            return body[:start] + MASK + text[len(body) :]
    return text


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(key, str):
                yield key
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def _beginning(body: str, value: str) -> int:
    """Where the half of a value begins with which a text ends; -1 = there is none.

    Of a value that repeats itself it may be too early: then more is masked than had to be.
    """
    first = start = body.find(value[:LEAST], max(0, len(body) - len(value) + 1))
    for _ in range(_MOST_BEGINNINGS):
        if start < 0 or value.startswith(body[start:]):
            return start
        start = body.find(value[:LEAST], start + 1)
    return first


def _spellings(value: str) -> Iterator[str]:
    for part in _parts(value):
        yield part
        for ascii_only in (True, False):
            yield json.dumps(part, ensure_ascii=ascii_only)[1:-1]
    for part in _encodable(value):
        yield from _encoded(part)
        yield from _in_base64(part)


def _with_slashes(texts: Iterable[str]) -> set[str]:
    """Also as JSON may spell a slash (RFC 8259, section 7), which base64 has."""
    found = set(texts)
    return found | {each.replace("/", r"\/") for each in found if "/" in each}


def _encodable(value: str) -> set[str]:
    """The value, and its parts where they are few."""
    parts = _parts(value)
    return {part for part in (parts if len(parts) <= _MOST_ENCODED else {value}) if len(part) >= LEAST}


def _parts(value: str) -> set[str]:
    """The value, and the parts by which a target may know it: `Bearer x` is `x` to it."""
    words = re.split(r"[;\s]+", value, maxsplit=_MOST_PARTS)
    parts = {value}
    if len(words) <= _MOST_PARTS:
        parts |= {*words, *(each.partition("=")[2] for each in words)}
    if len(words) == 2 and words[0].lower() == "basic":
        parts |= _of_basic(words[1])
    return parts


def _of_basic(text: str) -> set[str]:
    """RFC 7617: `user:password` in base64, which every target takes apart."""
    try:
        plain = b64decode(text + "=" * (-len(text) % 4), validate=True).decode()
    except ValueError:
        return set()
    return {plain, plain.partition(":")[2]}


def _encoded(part: str) -> Iterator[str]:
    raw = part.encode("utf-8", "replace")
    yield from (part.upper(), part.lower())
    yield from (quote(part, safe="", errors="replace"), quote(part, errors="replace"))
    yield quote_plus(part, errors="replace")
    yield from (escape(part), escape(part, quote=False))
    yield from (raw.hex(), raw.hex().upper())


def _in_base64(part: str) -> Iterator[str]:
    raw = part.encode("utf-8", "replace")
    for encode in (b64encode, urlsafe_b64encode):
        yield encode(raw).decode().rstrip("=")
        yield from _inside_base64(raw, encode)


def _inside_base64(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """Yield the characters that `raw` alone decides, for each place it can take in a group of three bytes (RFC 4648).

    The characters beside them also carry bits of the neighbouring bytes, so they differ from text to text.
    """
    for before in range(3):
        begin, end = -(-before * 8 // 6), (before + len(raw)) * 8 // 6
        yield encode(bytes(before) + raw).decode()[begin:end]
