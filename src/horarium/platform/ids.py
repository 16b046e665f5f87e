"""Ids: UUIDv7, stored as 16 bytes and shown as 26 characters that sort by creation time.

The text is the one of ULIDs: Crockford's base 32, most significant bits first, two zero bits in front
of the 128. Small letters are accepted; `I L O U` are not in the alphabet and are refused.
"""

from __future__ import annotations

import re

from uuid_utils import uuid7

from horarium.errors import InvalidDefinition
from horarium.instant import Instant

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_SHIFTS = tuple(range(120, -1, -10))
_VALUES = {character: value for value, character in enumerate(_ALPHABET)}
# 26 characters hold 130 bits: the first one may only use three of its five.
_TEXT = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}", re.ASCII)
# RFC 9562 section 5.7: 48 bits of milliseconds, then version 7 and variant 2 among what may be random.
_LATEST_MILLISECOND = (1 << 48) - 1
_LOWEST_REST = bytes([0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, 0])


def new_id() -> bytes:
    """Later ids of one process are greater, even within one millisecond."""
    return uuid7().bytes


def id_text(identity: bytes) -> str:
    number = int.from_bytes(identity, "big")
    return "".join([_PAIRS[(number >> shift) & 1023] for shift in _SHIFTS])


def parse_id(text: object, field: str) -> bytes:
    """Raises InvalidDefinition, which is a ValueError, with one message for `field`."""
    spelled = text.upper() if isinstance(text, str) and len(text) == 26 else ""
    if _TEXT.fullmatch(spelled) is None:
        raise InvalidDefinition(
            {field: [f"{_shown(text)} is not an ID: 26 characters of 0-9 A-Z without I L O U, at most 7ZZ…"]}
        )
    number = 0
    for character in spelled:
        number = number << 5 | _VALUES[character]
    return number.to_bytes(16, "big")


def id_at(instant: Instant) -> bytes:
    """The lowest id of the instant's millisecond: `id >= id_at(t)` is "born at t or later".

    Instants that no id can have give the nearest one that it can.
    """
    millisecond = min(max(instant // 1000, 0), _LATEST_MILLISECOND)
    return millisecond.to_bytes(6, "big") + _LOWEST_REST


def created_at(identity: bytes) -> Instant:
    """The millisecond that an id names: the inverse of `id_at`."""
    return int.from_bytes(identity[:6], "big") * 1000


def _shown(value: object) -> str:
    if not isinstance(value, str):
        return f"a value of type {type(value).__name__}"
    return ascii(value if len(value) <= 64 else value[:61] + "...")
