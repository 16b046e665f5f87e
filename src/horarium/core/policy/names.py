"""Names, numbers, ids and JSON values of policy objects: how each is read, and the error that names the wrong field.

Names may have any case, numbers are checked by kind and bound, unknown keys are refused. An id has ASCII letters,
digits and `. _ : @ -`, begins with a letter or digit, and has at most 128 characters: ids travel in URLs, log lines
and instance ids, so they hold no blank, slash or quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from json import JSONEncoder
from types import MappingProxyType
from typing import Any, TypeVar, cast

Name = TypeVar("Name", bound=StrEnum)

# What an INTEGER column of PostgreSQL holds.
MAX_WHOLE = 2**31 - 1
# What a BIGINT column holds.
MAX_LONG = 2**63 - 1
MAX_TEXT_LENGTH = 256

_MAX_NAME_LENGTH = 64
_CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class PolicyError(ValueError):
    """`field` is the key that is wrong, `text` what is wrong with it."""

    def __init__(self, field: str, text: str) -> None:
        super().__init__(f"{field}: {text}")
        self.field = field
        self.text = text


def parse_name(enum_cls: type[Name], aliases: Mapping[str, Name], value: object, what: str) -> Name:
    """`BufferOne`, `bufferOne`, `BUFFER_ONE`, `buffer-one` and `bufferone` are all `buffer_one`."""
    exact = enum_cls._value2member_map_.get(value) if isinstance(value, str) else None
    if exact is not None:
        return cast("Name", exact)
    allowed = {name.value: name for name in enum_cls} | dict(aliases)
    if isinstance(value, str) and len(value) <= _MAX_NAME_LENGTH and value.isascii():
        wanted = value.lower().replace("-", "_")
        for spelling, name in allowed.items():
            if wanted in (spelling, spelling.replace("_", "")):
                return name
    raise PolicyError(what, f"must be one of {', '.join(allowed)}, not {shown(value)}")


def read_object(
    value: object,
    what: str,
    keys: Iterable[str],
    aliases: Mapping[str, str] | None = None,
    nulls: Mapping[str, object] = MappingProxyType({}),
) -> dict[str, object]:
    """The given fields by their snake_case names; an unknown key is an error.

    A null counts as not given, but for the fields in `nulls`, which say what it stands for.
    """
    if not isinstance(value, Mapping):
        raise PolicyError(what, f"must be an object, not {shown(value)}")
    names = {key: key for key in keys} | dict(aliases or {})
    found: dict[str, object] = {}
    for key, item in value.items():
        name = names.get(snake(key)) if isinstance(key, str) else None
        if name is None:
            namable = isinstance(key, str) and 1 <= len(key) <= _MAX_NAME_LENGTH and key.isprintable()
            field = key if namable else what
            raise PolicyError(field, f"unknown key {shown(key)}; allowed: {', '.join(names)}")
        if name in found:
            raise PolicyError(name, "is specified twice in different spellings")
        item = nulls.get(name) if item is None else item
        if item is not None:
            found[name] = item
    return found


def whole_number(field: str, value: object, *, least: int = 0, most: int = MAX_WHOLE) -> int:
    """A bool is an int to Python, not to us; 3.0 is refused too."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise PolicyError(field, f"must be an integer, not {shown(value)}")
    if not least <= value <= most:
        raise PolicyError(field, f"must be between {least} and {most}")
    return value


def whole_or_none(field: str, value: object, *, least: int = 0, most: int = MAX_WHOLE) -> int | None:
    return None if value is None else whole_number(field, value, least=least, most=most)


def flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise PolicyError(field, f"must be true or false, not {shown(value)}")
    return value


def flag_or_none(field: str, value: object) -> bool | None:
    return None if value is None else flag(field, value)


def text(field: str, value: object) -> str:
    if not isinstance(value, str):
        raise PolicyError(field, f"must be a string, not {shown(value)}")
    if not 1 <= len(value) <= MAX_TEXT_LENGTH:
        raise PolicyError(field, f"must have between 1 and {MAX_TEXT_LENGTH} characters")
    # Control characters and half surrogates have no place in a name, and the store cannot keep them all.
    if not value.isprintable() or value != value.strip():
        raise PolicyError(field, "must be printable and have no spaces at the beginning or end")
    return value


def texts(field: str, value: object, *, most: int = 100) -> tuple[str, ...]:
    """In the order given, without doubles."""
    if not isinstance(value, list | tuple | set | frozenset):
        raise PolicyError(field, f"must be an array of strings, not {shown(value)}")
    if len(value) > most:
        raise PolicyError(field, f"must have at most {most} entries")
    return tuple(dict.fromkeys(text(field, item) for item in value))


def shown(value: object) -> str:
    """Short and printable whatever the value is; a long integer is not even converted."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return repr(value if len(value) <= 40 else value[:37] + "...")
        case int() if value.bit_length() > 64:
            return "a very large number"
        case int() | float():
            return repr(value)
        case Mapping():
            return "an object"
        case list() | tuple():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def snake(key: str) -> str:
    return _CAMEL_HUMP.sub("_", key).lower() if len(key) <= _MAX_NAME_LENGTH else ""


MAX_ID = 128
_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:@-]{{0,{MAX_ID - 1}}}", re.ASCII)


def checked_id(field: str, value: object) -> str:
    if value is None:
        raise PolicyError(field, "is required")
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise PolicyError(
            field,
            f"{shown(value)} is not a valid ID: use 1 to {MAX_ID} of A-Z a-z 0-9 . _ : @ -, a letter or digit first",
        )
    return value


# Made once: `json.dumps` would make one for every text.
_CANONICAL_ENCODER = JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: object) -> str:
    """Raises ValueError for NaN and TypeError for what JSON has no word for."""
    return _CANONICAL_ENCODER.encode(value)


def merge_patched(target: object, patch: object) -> Any:
    """A new value; neither of the two is changed."""
    if not isinstance(patch, Mapping):
        return patch
    result: dict[str, Any] = dict(target) if isinstance(target, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge_patched(result.get(key), value)
    return result
