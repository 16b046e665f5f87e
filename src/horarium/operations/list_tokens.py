"""Where the next page of a list of schedules begins: a token that is good for one namespace and one set of filters.

    base64url({version, namespace, filter_fingerprint, cursor {created_at, schedule_id}}) "." checksum

What is in it is no secret, and whoever forges one can only skip rows of a list that is readable anyway. So the
checksum needs no key; it tells a token that was cut or mistyped from one that we gave.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from horarium.instant import DAY
from horarium.operations.list_errors import ForeignPageToken, MalformedPageToken, OtherFilters
from horarium.store.schedules.lists import Cursor

FIELD = "next_page_token"
MAX_LENGTH = 8_192
_VERSION = 1
# Within the years that can be shown: a forged token must be an error of its author, not of ours.
_LAST_CREATION = 2_900_000 * DAY
_MAX_ID = 128


def fingerprint(filters: Mapping[str, Any]) -> str:
    """Hash of the filters that are set; the page size may change between pages."""
    given = {name: value for name, value in filters.items() if value is not None}
    return sha256(orjson.dumps(given, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


def make_list_token(namespace: str, filters: str, cursor: Cursor) -> str:
    """`filters` is their fingerprint."""
    content = {
        "version": _VERSION,
        "namespace": namespace,
        "filter_fingerprint": filters,
        "cursor": {"created_at": cursor.created_at, "schedule_id": cursor.schedule_id},
    }
    text = base64.urlsafe_b64encode(orjson.dumps(content)).decode().rstrip("=")
    return f"{text}.{_checksum(text)}"


def read_list_token(token: str, namespace: str, filters: str) -> Cursor:
    """Raises MalformedPageToken, ForeignPageToken or OtherFilters."""
    content = _content(token)
    match content:
        case {
            "version": 1,
            "namespace": str(whose),
            "filter_fingerprint": str(of),
            "cursor": {"created_at": int(created_at), "schedule_id": str(schedule_id)},
        } if _is_creation(created_at) and len(schedule_id) <= _MAX_ID and schedule_id.isprintable():
            cursor = Cursor(created_at, schedule_id)
        case _:
            raise _malformed()
    if whose != namespace:
        raise ForeignPageToken(FIELD, "this token belongs to a list of another namespace")
    if of != filters:
        raise OtherFilters(FIELD, "this token belongs to a list with other filters; start with the first page", cursor)
    return cursor


def _is_creation(number: int) -> bool:
    """True is a number to Python, and none to PostgreSQL."""
    return not isinstance(number, bool) and 0 <= number < _LAST_CREATION


def _content(token: str) -> object:
    text, _, checksum = token.partition(".")
    if len(token) > MAX_LENGTH or not token.isascii() or checksum != _checksum(text):
        raise _malformed()
    try:
        return orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError):
        raise _malformed() from None


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _malformed() -> MalformedPageToken:
    return MalformedPageToken(FIELD, "is not a valid page token")
