"""Values of secrets, their allowed destinations, and a redactor that masks them in texts of a target.

A pin names scheme, host and port. `erp.example.com` stands for https on port 443; everything else is written as
`scheme://host:port`. Both spellings have one canonical form, so that pins are compared as text.

A target may echo what it was sent, in an error or in a result, and both are stored and shown. The redactor masks the
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
from ipaddress import ip_address
from itertools import accumulate
from typing import Final
from urllib.parse import quote, quote_plus

from horarium.core.document.json_values import Json
from horarium.core.policy.queue import PolicyError, shown

# ── Values and pins ───────────────────────────────────────────────────────────────────────────────────


MAX_VALUE_BYTES = 65_536
MAX_HOSTS = 20
ANY = ("*",)
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
# RFC 1035: a name has at most 253 characters, and a label 63.
_MAX_HOST = 253
_NAME = r"(\[[^\[\]]{1,80}\]|[^\[\]:/?#@\\]{1,254})"
_HOST_AND_PORT = re.compile(rf"{_NAME}:[0-9]{{1,5}}", re.ASCII)
_DESTINATION = re.compile(rf"(https?)://{_NAME}(?::([0-9]{{1,5}}))?", re.ASCII | re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)


def checked_value(value: object) -> str:
    """No problem repeats the value: problems are shown and logged."""
    if not isinstance(value, str):
        raise PolicyError("value", "must be a string")
    if not value:
        raise PolicyError("value", "is empty")
    if len(value) > MAX_VALUE_BYTES:
        raise PolicyError("value", f"is longer than {MAX_VALUE_BYTES} bytes")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise PolicyError("value", "contains an unpaired surrogate character") from None
    if size > MAX_VALUE_BYTES:
        raise PolicyError("value", f"is longer than {MAX_VALUE_BYTES} bytes")
    if "\x00" in value:
        raise PolicyError("value", "contains the character U+0000, which is not allowed in a header")
    return value


def checked_hosts(hosts: object) -> tuple[str, ...] | None:
    """Each once, as they are compared; None = the secret may go to any host, which is spelled `["*"]` as well."""
    if hosts is None or hosts in (list(ANY), ANY):
        return None
    if not isinstance(hosts, list | tuple) or not 0 < len(hosts) <= MAX_HOSTS:
        raise PolicyError("hosts", f"must be an array of 1 to {MAX_HOSTS} hosts, or * alone for any host")
    return tuple(dict.fromkeys(_checked_pin(f"hosts.{index}", host) for index, host in enumerate(hosts)))


def host_names(field: str, hosts: object) -> tuple[str, ...]:
    """Each once, as they are compared; there may be none, and none of them stands for others."""
    if not isinstance(hosts, list | tuple) or len(hosts) > MAX_HOSTS:
        raise PolicyError(field, f"must be an array of at most {MAX_HOSTS} host names")
    return tuple(dict.fromkeys(_checked_host(f"{field}.{index}", host) for index, host in enumerate(hosts)))


def pin(scheme: str, host: str, port: int) -> str:
    """Return the canonical pin of a destination: the bare host for https on port 443, else scheme, host and port."""
    plain = _plain(host)
    if (scheme, port) == ("https", DEFAULT_PORTS["https"]):
        return plain
    return f"{scheme}://{f'[{plain}]' if ':' in plain else plain}:{port}"


def may_go_to(hosts: Collection[str] | None, destination: str) -> bool:
    """Check whether a secret with these pins may be sent to `destination`, a pin. Empty: it has no host."""
    return hosts is None or destination in hosts


def not_allowed(name: str, hosts: Collection[str] | None, destination: str) -> str:
    """Say that a secret with these pins may not be sent to `destination`, and which pin is missing."""
    allowed = f"may be sent to {', '.join(hosts)} only" if hosts else "has no allowed host"
    if not destination:
        return f"the secret {name!r} {allowed}; this target has no host"
    return f"the secret {name!r} {allowed}, not to {destination}; set the secret again with {destination} in its hosts"


def _checked_pin(field: str, given: object) -> str:
    if not isinstance(given, str) or "://" not in given:
        if isinstance(given, str) and _HOST_AND_PORT.fullmatch(given):
            raise PolicyError(field, f"{shown(given)} has no scheme; write https://{given} or http://{given}")
        return _checked_host(field, given)
    found = _DESTINATION.fullmatch(given)
    scheme, host, digits = ("", "", None) if found is None else found.groups()
    port = DEFAULT_PORTS.get(scheme.lower(), 0) if digits is None else int(digits)
    if not 0 < port < 65_536 or not _is_host(_plain(host)):
        raise PolicyError(
            field, f"{shown(given)} is not a destination; write https://host:port or http://host:port without a path"
        )
    return pin(scheme.lower(), host, port)


def _checked_host(field: str, host: object) -> str:
    if not isinstance(host, str) or not 0 < len(host) <= _MAX_HOST + 2:
        raise PolicyError(field, f"{shown(host)} is not a host name")
    plain = _plain(host)
    if not _is_host(plain):
        raise PolicyError(field, f"{shown(host)} is not a host name; omit scheme, port, path and *")
    return plain


def _plain(host: str) -> str:
    """DNS knows no case, and a dot at the end says nothing; an address is compared as it is shortest."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare.lower().removesuffix(".")


def _is_host(plain: str) -> bool:
    try:
        ip_address(plain)
    except ValueError:
        return len(plain) <= _MAX_HOST and all(_LABEL.fullmatch(label) for label in plain.split("."))
    return True


# ── Redaction ─────────────────────────────────────────────────────────────────────────────────────────


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
    for part in _parts_of_value(value):
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
    parts = _parts_of_value(value)
    return {part for part in (parts if len(parts) <= _MOST_ENCODED else {value}) if len(part) >= LEAST}


def _parts_of_value(value: str) -> set[str]:
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
