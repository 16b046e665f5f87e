"""Envelopes of encoded inputs: the form of the Durable Workflow client, read as plain JSON.

Its client sends `{"codec": "avro", "blob": base64}`. The blob is Avro's single-object encoding: two bytes of
magic, the eight of the schema's CRC-64 fingerprint, and one datum of one fixed schema, a recursive union of

    0 null · 1 boolean · 2 long · 3 double · 4 bytes · 5 string · 6 array of values · 7 map of values

(Apache Avro 1.11 specification, "Binary Encoding" and "Single-object encoding".) A definition keeps the
envelope as it came and shows it so; the target gets its content. Bytes, which JSON has no
word for, become base64 text.

Read by hand, because the usual library follows a nested blob down its C stack until the process dies.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from horarium.core.document.json_values import DOCUMENT, Json
from horarium.core.policy.names import PolicyError

CODEC = "avro"
MAGIC: Final = bytes.fromhex("c301")
FINGERPRINT: Final = bytes.fromhex("e2a33dff55802237")

_LONG = 2**63
# A 64-bit number takes ten groups of seven bits at most.
_MAX_VARINT_BYTES = 10


def is_envelope(value: object) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"codec", "blob"}


def decode_input(value: Json) -> Json:
    """The input itself; what is in no envelope of ours is returned as it is. Raises PolicyError for a bad blob."""
    if not is_envelope(value) or value["codec"] != CODEC:
        return value
    blob = value["blob"]
    try:
        if not isinstance(blob, str):
            raise ValueError("it must be a base64 string")
        return _large(blob) if len(blob) > _LARGE else _small(blob)
    except ValueError as wrong:
        raise PolicyError("blob", f"is not an encoded value: {wrong}") from None


def shown_input(value: Json) -> Json:
    """The same for showing: what cannot be decoded is shown as it is stored."""
    try:
        return decode_input(value)
    except PolicyError:
        return value


def _decoded(blob: str) -> Json:
    return _Datum(_payload(blob)).whole()


# A revision never changes, and is launched, claimed and shown many times. What is remembered is bounded in bytes too.
_LARGE = 8_192
_small = lru_cache(maxsize=1_024)(_decoded)
_large = lru_cache(maxsize=16)(_decoded)


def _payload(blob: str) -> bytes:
    try:
        raw = base64.b64decode(blob.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise ValueError("it is not base64") from None
    if not raw.startswith(MAGIC):
        raise ValueError("it does not begin with the marker of Avro's single-object encoding")
    begin = len(MAGIC) + len(FINGERPRINT)
    if raw[len(MAGIC) : begin] != FINGERPRINT:
        raise ValueError("its schema is unknown")
    return raw[begin:]


class _Datum:
    """One pass over the bytes; every bound is checked before anything is taken."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0
        self._values = 0
        self._depth = 0
        # In the order of the union.
        self._branches: tuple[Callable[[], Json], ...] = (
            self._null,
            self._boolean,
            self._long,
            self._double,
            self._bytes,
            self._string,
            self._array,
            self._map,
        )

    def whole(self) -> Json:
        value = self._value()
        if self._at != len(self._raw):
            raise ValueError("it contains bytes after its end")
        return value

    def _value(self) -> Json:
        self._values += 1
        if self._values > DOCUMENT.values:
            raise ValueError(f"it contains more than {DOCUMENT.values} values")
        branch = self._long()
        if not 0 <= branch < len(self._branches):
            raise ValueError(f"the value type {branch} is unknown")
        return self._branches[branch]()

    def _take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._raw) - self._at:
            raise ValueError("it ends too early")
        taken = self._raw[self._at : self._at + count]
        self._at += count
        return taken

    def _null(self) -> None:
        return None

    def _boolean(self) -> bool:
        byte = self._take(1)[0]
        if byte > 1:
            raise ValueError("a boolean is neither true nor false")
        return byte == 1

    def _long(self) -> int:
        """Seven bits a byte, the lowest first; the sign is the lowest bit of all (zig-zag)."""
        number = 0
        for group in range(_MAX_VARINT_BYTES):
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << (7 * group)
            if byte < 0x80:
                break
        else:
            raise ValueError("a number is longer than 64 bits")
        signed = (number >> 1) ^ -(number & 1)
        if not -_LONG <= signed < _LONG:
            raise ValueError("a number is longer than 64 bits")
        return signed

    def _double(self) -> float:
        number: float = struct.unpack("<d", self._take(8))[0]
        if not math.isfinite(number):
            raise ValueError("it contains NaN or an infinite number, which is not valid JSON")
        return number

    def _bytes(self) -> str:
        return base64.b64encode(self._take(self._long())).decode("ascii")

    def _string(self) -> str:
        try:
            text = self._take(self._long()).decode()
        except UnicodeDecodeError:
            raise ValueError("a string is not UTF-8") from None
        if "\x00" in text:
            raise ValueError("a string contains the character U+0000, which cannot be stored")
        return text

    def _array(self) -> list[Json]:
        items: list[Json] = []
        self._blocks(lambda: items.append(self._value()))
        return items

    def _map(self) -> dict[str, Json]:
        entries: dict[str, Json] = {}

        def entry() -> None:
            key = self._string()
            entries[key] = self._value()

        self._blocks(entry)
        return entries

    def _blocks(self, read: Callable[[], None]) -> None:
        """Blocks of a count and so many items; a negative count is followed by the block's size in bytes."""
        self._depth += 1
        if self._depth > DOCUMENT.depth:
            raise ValueError(f"it is nested deeper than {DOCUMENT.depth} levels")
        while count := self._long():
            if count < 0:
                self._long()
            # Every item takes a byte at least, so the end of the bytes ends a count that lies.
            for _ in range(abs(count)):
                read()
        self._depth -= 1
