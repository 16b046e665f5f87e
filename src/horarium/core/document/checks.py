"""Checks of the value of one field: each returns the value that is stored, or says what is wrong with it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from horarium.condition import compile_condition
from horarium.core.document.definition import IntervalText
from horarium.core.document.json_values import MAX_URL, Json
from horarium.core.document.secrets import SECRET_KEY as SECRET
from horarium.core.document.secrets import checked_name, is_reference
from horarium.core.policy.names import PolicyError, checked_id, read_object, shown, whole_number
from horarium.core.recurrence.parts import parse_interval
from horarium.core.recurrence.spec import compile_spec
from horarium.core.recurrence.zone import load_zone
from horarium.errors import ConditionError, InvalidSpec
from horarium.instant import Instant, from_rfc3339

MAX_NAME = 255
MAX_KEY = 128
MAX_NOTE = 1_000
MAX_MEMO_BYTES = 262_144
MAX_ATTRIBUTE_BYTES = 2_048
MAX_JITTER_SECONDS = 86_400
MAX_PROMPT_BYTES = 100_000
MAX_HEADERS = 100
MAX_HEADER_VALUE = 8_192
MAX_COMMAND_ARGUMENTS = 1_000
METHODS: Final = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD")

# Twelve digits before the point and six after, as the amounts themselves.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# RFC 9110 section 5.6.2, `token`.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
# RFC 9110 section 5.5: visible ASCII, blanks and tabs; no line may begin inside a value.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
# These frame the message or choose its receiver; the launcher sets them.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


# ── texts and maps ────────────────────────────────────────────────────────────────────────────────


def any_text(most: int) -> Callable[[str, object], str]:
    """Text of a person: any characters, a bounded length."""

    def check(field: str, value: object) -> str:
        if not isinstance(value, str):
            raise PolicyError(field, f"must be a string, not {shown(value)}")
        if len(value) > most:
            raise PolicyError(field, f"has {len(value)} characters; at most {most} are allowed")
        return value

    return check


_short = any_text(MAX_NAME)
_spec_text = any_text(1_024)


def mapping(field: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(value)}")
    if not all(isinstance(key, str) for key in value):
        raise PolicyError(field, "has a key that is not a string")
    return value


def one_line(field: str, value: object) -> str:
    name = _short(field, value)
    if _CONTROL.search(name):
        raise PolicyError(field, "must be one line without control characters")
    return name


def entry_key(field: str, key: object) -> str:
    """The name of a label, or of a search attribute."""
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY:
        raise PolicyError(field, f"a key has between 1 and {MAX_KEY} characters")
    return key


def label(field: str, value: object) -> str:
    """Labels are texts; a number or a boolean is kept as JSON spells it."""
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= 64):
        return json.dumps(value)
    if not isinstance(value, str):
        raise PolicyError(field, f"must be a string, a number or a boolean, not {shown(value)}")
    return _bounded(field, value)


def attribute(field: str, value: object) -> Json:
    if isinstance(value, list | tuple):
        if not all(isinstance(item, str) for item in value):
            raise PolicyError(field, "an array must contain only strings")
        _bounded(field, "".join(value))
        return value
    if not isinstance(value, str | bool | int | float):
        raise PolicyError(field, f"must be a string, a number, a boolean or an array of strings, not {shown(value)}")
    return _bounded(field, value) if isinstance(value, str) else value


def _bounded(field: str, value: str) -> str:
    if len(value.encode("utf-8", "replace")) > MAX_ATTRIBUTE_BYTES:
        raise PolicyError(field, f"is longer than {MAX_ATTRIBUTE_BYTES} bytes")
    return value


def small_memo(field: str, value: object, _key: str) -> Mapping[str, object]:
    memo = mapping(field, value)
    size = len(json.dumps(memo, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_MEMO_BYTES:
        raise PolicyError(field, f"has {size} bytes as JSON; at most {MAX_MEMO_BYTES} are allowed")
    return memo


def calendar(field: str, value: object) -> str:
    """An id, or an id and a zone: `holidays:US@America/New_York`. Whether it exists is not for us to know."""
    if not isinstance(value, str) or "/" not in value:
        return checked_id(field, value)
    name, _, zone = value.partition("@")
    checked_id(field, name)
    load_zone(zone)
    return value


def condition(field: str, value: object) -> Mapping[str, object] | None:
    """No clauses and no condition mean the same."""
    return mapping(field, value) or None


def compiled_condition(field: str, value: object, _key: str) -> Mapping[str, object] | None:
    try:
        compile_condition(value)
    except ConditionError as wrong:
        raise PolicyError(field, wrong.message) from None
    return condition(field, value)


# ── when ──────────────────────────────────────────────────────────────────────────────────────────


def spec_text(field: str, value: object) -> str:
    return _spec_text(field, value)


def compiled_cron(field: str, value: object, key: str) -> str:
    text = _spec_text(field, value)
    compile_spec(cron_expressions=[text], key=key)
    return text


def interval(field: str, value: object) -> IntervalText:
    given = read_object(value, field, ("every", "offset"))
    if "every" not in given:
        raise PolicyError("every", "is required: an ISO-8601 duration such as PT30M")
    offset = given.get("offset")
    return IntervalText(_spec_text("every", given["every"]), None if offset is None else _spec_text("offset", offset))


def compiled_interval(field: str, value: object, _key: str) -> IntervalText:
    found = interval(field, value)
    try:
        parse_interval(found.every, found.offset)
    except InvalidSpec as wrong:
        raise PolicyError(wrong.field or field, without_prefix(wrong, wrong.field or "")) from None
    return found


def compiled_one_off(field: str, value: object, _key: str) -> str:
    text = _spec_text(field, value)
    compile_spec(at=[text])
    return text


def zone(field: str, value: object, _key: str) -> str:
    return load_zone(_spec_text(field, value)).key


def instant(field: str, value: object) -> Instant:
    if not isinstance(value, str):
        raise PolicyError(field, f"must be an RFC 3339 time such as 2026-03-08T07:00:00Z, not {shown(value)}")
    return from_rfc3339(value, field=field)


def jitter_ms(field: str, value: object) -> int:
    """Seconds, with up to three digits after the point."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise PolicyError(field, f"must be a number of seconds, not {shown(value)}")
    if not 0 <= value <= MAX_JITTER_SECONDS:
        raise PolicyError(field, f"must be between 0 and {MAX_JITTER_SECONDS} seconds")
    whole = round(value * 1_000)
    # Both sides are the float nearest to the same decimal, so equal means: no digit was lost.
    if whole / 1_000 != value:
        raise PolicyError(field, "must be a whole number of milliseconds")
    return whole


def without_prefix(wrong: InvalidSpec, field: str) -> str:
    """The message of a spec begins with the field; the path says it already."""
    return wrong.message.removeprefix(f"{field}: ") if field else wrong.message


# ── what ──────────────────────────────────────────────────────────────────────────────────────────


def version(field: str, value: object) -> int | str:
    if isinstance(value, str) and value.lower() == "latest":
        return "latest"
    if isinstance(value, str):
        raise PolicyError(field, f"must be a version number or latest, not {shown(value)}")
    return whole_number(field, value, least=1)


def prompt(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PolicyError(field, f"must be a non-blank string, not {shown(value)}")
    if len(value) > MAX_PROMPT_BYTES or len(value.encode("utf-8", "replace")) > MAX_PROMPT_BYTES:
        raise PolicyError(field, f"is longer than {MAX_PROMPT_BYTES} bytes")
    return value


def url(field: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_URL:
        raise PolicyError(field, f"must be a URL of at most {MAX_URL} characters")
    # Readers of URLs disagree about a backslash, and so about whose host it is.
    if not value.isascii() or not value.isprintable() or " " in value or "\\" in value:
        raise PolicyError(field, "must be ASCII without spaces and backslashes; percent-encode other characters")
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise PolicyError(field, f"{shown(value)} is not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise PolicyError(field, "must begin with http:// or https:// and contain a host")
    if "@" in parts.netloc:
        raise PolicyError(
            field, "contains a user name or password, which every reader of the schedule can see; use a header instead"
        )
    return value


def method(field: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= 16 and value.upper() in METHODS:
        return value.upper()
    raise PolicyError(field, f"must be one of {', '.join(METHODS)}, not {shown(value)}")


def headers(field: str, value: object) -> dict[str, Json]:
    """A value is a text, or names the secret that is sent in its place."""
    given = mapping(field, value)
    if len(given) > MAX_HEADERS:
        raise PolicyError(field, f"has {len(given)} headers; at most {MAX_HEADERS} are allowed")
    seen: set[str] = set()
    kept: dict[str, Json] = {}
    for name, item in given.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise PolicyError(field, f"{shown(name)} is not a valid header name")
        if name.lower() in _OWN_HEADERS or name.lower() in seen:
            raise PolicyError(
                f"{field}.{name}", "is set by the launcher" if name.lower() not in seen else "is specified twice"
            )
        seen.add(name.lower())
        kept[name] = _header_value(f"{field}.{name}", item)
    return kept


def _header_value(field: str, value: object) -> Json:
    if isinstance(value, Mapping) and is_reference(value):
        return {SECRET: checked_name(field, value)}
    if not isinstance(value, str) or len(value) > MAX_HEADER_VALUE or _HEADER_VALUE.fullmatch(value) is None:
        raise PolicyError(
            field, f"must be one line of at most {MAX_HEADER_VALUE} ASCII characters, or a reference to a secret"
        )
    return value


def array(field: str, value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    raise PolicyError(field, f"must be an array, not {shown(value)}")


def any_input(field: str, value: object) -> object:
    """An array of arguments, an object, or an encoded envelope, which is an object to us."""
    if isinstance(value, list | tuple | Mapping):
        return value
    raise PolicyError(field, f"must be an array or an object, not {shown(value)}")


def command_input(field: str, value: object) -> object:
    if not isinstance(value, list | tuple):
        return any_input(field, value)
    if len(value) > MAX_COMMAND_ARGUMENTS or not all(isinstance(item, str) for item in value):
        raise PolicyError(field, f"must be an array of at most {MAX_COMMAND_ARGUMENTS} strings")
    return value
