"""JSON values: bounds, checks whether they can be stored, problems by path, and encoded envelopes.

Bounds are by the source or the destination of the JSON. Documents are checked once, on their way in, so that writing
them out again cannot fail: a number that JSON has no word for, half a surrogate pair, or a nesting that overflows the
writer's stack. `check_storable` comes first, so everything after it may recurse and print; it stops at the first bound
that is passed. `Problems` collects everything that is wrong with a document, each problem under the path that its
author wrote. Stored values that cannot be read are marked as damaged: JSON inside of a row, and whole rows of a list.

An envelope has encoded inputs in the form of the Durable Workflow client, `{"codec": "avro", "blob": base64}`. The blob
is Avro's single-object encoding: two bytes of magic, the eight of the schema's CRC-64 fingerprint, and one datum of one
fixed schema, a recursive union of

    0 null · 1 boolean · 2 long · 3 double · 4 bytes · 5 string · 6 array of values · 7 map of values

(Apache Avro 1.11 specification, "Binary Encoding" and "Single-object encoding".) A definition stores and shows the
envelope unchanged; the target gets its content, with bytes as base64 text. The reader is our own, because the usual
library follows a nested blob down its C stack until the process dies.
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

from horarium.core.policy.queue import PolicyError
from horarium.errors import InvalidDefinition

# ── Bounds ────────────────────────────────────────────────────────────────────────────────────────────


Json: TypeAlias = Any
"""A JSON value; it is never changed in place."""

MAX_URL: Final = 2_048


class JsonLimit(NamedTuple):
    """`values` are counted besides the bytes: a megabyte of `[0,0,…` is half a million values."""

    depth: int
    values: int


DOCUMENT: Final = JsonLimit(64, 20_000)
"""What is written down: schedules, also what is in an encoded input, so that nothing can be smuggled in."""
WORKFLOW: Final = JsonLimit(64, 100_000)
"""Workflows, of a thousand nodes and ten thousand edges."""
OBJECT: Final = JsonLimit(32, 10_000)
"""Small objects inside a workflow or a report, checked one by one."""
OUTGOING: Final = JsonLimit(200, 1_000_000)
"""What a target is handed or answers. orjson writes at most 254 levels; the envelope round a value takes a few."""


# ── Values ────────────────────────────────────────────────────────────────────────────────────────────


# Below the length at which Python refuses to print an integer (4,300 digits).
MAX_INTEGER_BITS = 4_096


def checked_object(field: str, value: object) -> dict[str, object]:
    """A shallow copy of an object all of whose parts are JSON; raises PolicyError."""
    if not isinstance(value, Mapping):
        raise PolicyError(field, "must be an object")
    waiting: list[tuple[object, int]] = [(value, 1)]
    seen = 0
    while waiting:
        item, depth = waiting.pop()
        seen += 1
        if seen > OBJECT.values:
            raise PolicyError(field, f"has more than {OBJECT.values} values")
        if depth > OBJECT.depth:
            raise PolicyError(field, f"is nested more than {OBJECT.depth} deep")
        waiting.extend((child, depth + 1) for child in _children(field, item))
    return {str(key): item for key, item in value.items()}


def _children(field: str, value: object) -> list[object]:
    match value:
        case None | bool():
            return []
        case str():
            check_text(field, value)
            return []
        case int():
            if value.bit_length() > MAX_INTEGER_BITS:
                raise PolicyError(field, "contains an integer of more than 64 bits")
            return []
        case float():
            if not math.isfinite(value):
                raise PolicyError(field, "contains NaN or an infinite number, which is not valid JSON")
            return []
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    raise PolicyError(field, f"contains a key of type {type(key).__name__}; keys must be strings")
                check_text(field, key)
            return list(value.values())
        case list() | tuple():
            return list(value)
        case _:
            raise PolicyError(field, f"contains a {type(value).__name__}, which is not valid JSON")


def check_text(field: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PolicyError(field, "contains an unpaired surrogate character") from None


# ── Problems ──────────────────────────────────────────────────────────────────────────────────────────


# A document of ten thousand mistakes is answered with the first ones: nobody reads on.
MAX_PROBLEMS = 50
_MAX_KEY = 64


class GivenValue(NamedTuple):
    """A value and the path it was written under; `single` = written alone where we keep an array."""

    path: str
    value: object
    single: bool = False

    def item(self, index: int) -> str:
        return self.path if self.single else f"{self.path}.{index}"


Places: TypeAlias = Mapping[str, GivenValue]
"""What is given, by its canonical place: `spec.timezone`, `action.url`, `overlap_policy`."""


class DocumentProblems:
    """Collects; nothing is raised before everything was read."""

    def __init__(self) -> None:
        self._found: dict[str, list[str]] = {}
        self._count = 0
        self._error = InvalidDefinition

    @property
    def full(self) -> bool:
        return self._count >= MAX_PROBLEMS

    @property
    def any(self) -> bool:
        return bool(self._found)

    @property
    def found(self) -> Mapping[str, list[str]]:
        """By path."""
        return self._found

    @property
    def count(self) -> int:
        return self._count

    def add(self, path: str, text: str, error: type[InvalidDefinition] = InvalidDefinition) -> None:
        """The most special error is what is raised: it has a reason of its own."""
        if issubclass(error, self._error):
            self._error = error
        if not self.full:
            self._count += 1
            self._found.setdefault(path or "document", []).append(text)

    def raise_any(self) -> None:
        if self.any:
            raise self._error(self._found)


def shown_key(key: object) -> str:
    """A key as a part of a path: short, and made of characters that any answer can carry."""
    text = key if isinstance(key, str) else type(key).__name__
    cut = text if len(text) <= _MAX_KEY else text[: _MAX_KEY - 3] + "..."
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def joined(parent: str, key: object) -> str:
    return f"{parent}.{shown_key(key)}" if parent else shown_key(key)


# ── Storable documents ────────────────────────────────────────────────────────────────────────────────


MAX_BYTES = 1_048_576
# The Durable Workflow client gives these keys a meaning at any depth of an answer: one schedule that
# carries them would break the listing of all.
RESERVED: Final = frozenset({"external_payload", "external_storage", "result_envelope"})

_LONG = 2**63


class _TooMuch(Exception):
    """A bound of the whole document is passed; there is no use in going on."""


def check_storable(document: object, problems: DocumentProblems, limit: JsonLimit = DOCUMENT) -> None:
    try:
        _StorableWalk(problems, limit).look(document)
    except _TooMuch as bound:
        problems.add("document", str(bound))


class _StorableWalk:
    """Depth first, so that no more than one branch is held at a time."""

    def __init__(self, problems: DocumentProblems, limit: JsonLimit) -> None:
        self._problems = problems
        self._limit = limit
        self._bytes = 0
        self._values = 0
        self._path: list[object] = []

    def look(self, value: object) -> None:
        match value:
            case None | bool():
                pass
            case str():
                self._text(value)
            case int():
                if not -_LONG <= value < _LONG:
                    self._problem("the number does not fit in 64 bits")
            case float():
                if not math.isfinite(value):
                    self._problem("NaN and infinite numbers are not JSON")
            case dict() | list() | tuple() | Mapping():
                self._enter(value)
            case _:
                self._problem(f"a {type(value).__name__} is not JSON")

    def _enter(self, container: Mapping[Any, object] | list[object] | tuple[object, ...]) -> None:
        if len(self._path) >= self._limit.depth:
            raise _TooMuch(f"is nested deeper than {self._limit.depth} levels")
        self._values += len(container)
        if self._values > self._limit.values:
            raise _TooMuch(f"contains more than {self._limit.values} values")
        self._size(4 * len(container))
        keyed = isinstance(container, Mapping)
        pairs: Iterable[tuple[object, object]] = (
            container.items() if isinstance(container, Mapping) else enumerate(container)
        )
        for key, item in pairs:
            self._path.append(key)
            if keyed:
                self._key(key)
            self.look(item)
            self._path.pop()

    def _key(self, key: object) -> None:
        if not isinstance(key, str):
            self._problem(f"the key is a {type(key).__name__}; keys must be strings")
        elif key in RESERVED:
            self._problem("the key is reserved for the Durable Workflow client")
        else:
            self._text(key)

    def _text(self, text: str) -> None:
        self._size(len(text))
        # PostgreSQL stores neither; the size bounds what is searched and encoded here.
        if "\x00" in text:
            self._problem("contains the character U+0000, which cannot be stored")
        if not text.isascii():
            try:
                self._size(len(text.encode()) - len(text))
            except UnicodeEncodeError:
                self._problem("contains an unpaired surrogate character")

    def _size(self, more: int) -> None:
        self._bytes += more
        if self._bytes > MAX_BYTES:
            raise _TooMuch(f"is larger than {MAX_BYTES} bytes")

    def _problem(self, text: str) -> None:
        self._problems.add(".".join(str(key) if isinstance(key, int) else shown_key(key) for key in self._path), text)
        if self._problems.full:
            raise _TooMuch("has more problems, which are not listed")


def is_storable(value: object) -> bool:
    problems = DocumentProblems()
    check_storable(value, problems)
    return not problems.any


def same_json(one: object, other: object) -> bool:
    """1 is 1.0 but not true, unlike in Python."""
    match one, other:
        case bool(), bool():
            return one is other
        case (bool(), _) | (_, bool()):
            return False
        case Mapping(), Mapping():
            return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
        case ((list() | tuple()), (list() | tuple())):
            return len(one) == len(other) and all(same_json(a, b) for a, b in zip(one, other, strict=True))
        case _:
            return one == other


# ── Damaged values ────────────────────────────────────────────────────────────────────────────────────


_DAMAGED: Final = "damaged"
UNREADABLE: Final = ("\N{NULL}unreadable",)
"""A substitute for unreadable names that no principal has, so it grants no access."""


def known(names: tuple[str, ...]) -> tuple[str, ...]:
    """Those that could be read."""
    return () if names == UNREADABLE else names


class _Damage(dict[str, Any]):
    """A class of its own, since somebody's honest value may look the same."""


def damaged(why: object) -> dict[str, Any]:
    return _Damage({_DAMAGED: str(why)[:200]})


def damage_of(value: object) -> str | None:
    """None = it could be read; whether it makes sense is another question."""
    if isinstance(value, _Damage):
        return str(value[_DAMAGED])
    return "the stored names cannot be read" if value in (UNREADABLE, list(UNREADABLE)) else None


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """A row of a list that cannot be read: the name by which it is known, and what is wrong with it."""

    key: object
    detail: str


class MarkedRow:
    """The mark of a row of which some columns cannot be read and hold stand-ins."""

    unreadable: UnreadableEntry


def mark_unreadable(row: MarkedRow, unreadable: UnreadableEntry) -> None:
    """Set the mark; rows are frozen."""
    object.__setattr__(row, "unreadable", unreadable)


def unreadable_of(item: object) -> UnreadableEntry | None:
    """Return why an item of a list cannot be shown; it may be or hold a marked row. None = it can be read."""
    if isinstance(item, UnreadableEntry):
        return item
    for each in (item, *(getattr(item, name, None) for name in ("row", "run", "event"))):
        if isinstance(each, MarkedRow):
            return each.unreadable
    return None


CODEC = "avro"
MAGIC: Final = bytes.fromhex("c301")
FINGERPRINT: Final = bytes.fromhex("e2a33dff55802237")

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
