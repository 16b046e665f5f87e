"""Template language of prompts and inputs: `{{ name }}`, dotted paths, and `date` for times.

    {{ nominal }}                       a fact of the run, in RFC 3339
    {{ nominal | date("%Y-%m-%d") }}    a time in the schedule's zone
    {{ inputs.topics.0.title }}         a value of the run's inputs
    {{ "{{" }}                          a literal text

A text is parsed into literals and expressions, and rendered against a context. There are no loops, conditions or
calls. Values are inserted as they are: what a value contains is never parsed. Rendering takes time in proportion to
the size of the result, which is bounded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol, TypeAlias

from horarium.core.document.json_values import Json, joined
from horarium.core.policy.queue import PolicyError, shown
from horarium.core.recurrence.zone import Zone
from horarium.instant import SECOND, Instant, to_rfc3339

MAX_RENDERED_BYTES: Final = 100_000
"""The rendered prompt, input and arguments of one run together, literal parts included, as UTF-8."""
MAX_EXPRESSIONS: Final = 200
"""The expressions in one text, and in one action."""
TOO_MANY: Final = f"has more than {MAX_EXPRESSIONS} expressions"

INPUTS: Final = "inputs"
RESULTS: Final = "results"
TIMES: Final = ("nominal", "previous_nominal", "due", "created_at")
FACTS: Final = ("run_id", "schedule_id", "schedule_name", "namespace", "origin", "timezone")
NAMES: Final = (*TIMES, *FACTS, INPUTS)
"""The names of a schedule's template."""
NODE_NAMES: Final = (*NAMES, RESULTS)
"""The names of a template in a node of a workflow."""

_OPEN, _CLOSE = "{{", "}}"
# Every repetition is bounded or possessive, so a match takes linear time.
_EXPRESSION = re.compile(
    r"""\{\{\s*+(?:
        (?P<literal>"[^"\n]{0,200}"|'[^'\n]{0,200}')
      | (?P<path>[A-Za-z_][A-Za-z0-9_-]*+(?:\.[A-Za-z0-9_-]++)*+)\s*+
        (?:\|\s*+(?P<filter>[A-Za-z_][A-Za-z0-9_]*+)\s*+(?:\(\s*+(?P<format>"[^"\n]{0,200}"|'[^'\n]{0,200}')\s*+\))?+)?+
    )\s*+\}\}""",
    re.ASCII | re.VERBOSE,
)
_DATE: Final = "date"


class TemplateError(PolicyError):
    """An error in a template, or in the value that one of its expressions names."""


# ── parsing ───────────────────────────────────────────────────────────────────────────────────────


class Expression(NamedTuple):
    """`source` is its text and `position` where it begins, for errors; `format` is the argument of `date`."""

    path: tuple[str, ...]
    format: str | None
    source: str
    position: str

    @property
    def name(self) -> str:
        return self.path[0]

    def wrong(self, text: str) -> TemplateError:
        return TemplateError("", f"{self.source} at {self.position}: {text}")


Piece: TypeAlias = str | Expression


def parse(text: str) -> tuple[Piece, ...]:
    """Split a text into literals and expressions. Raises TemplateError with the position."""
    return _parse_large(text) if len(text) > _LARGE else _parse_small(text)


def _parse(text: str) -> tuple[Piece, ...]:
    pieces: list[Piece] = []
    number, start = 0, 0
    while (found := text.find(_OPEN, start)) >= 0:
        if found > start:
            pieces.append(text[start:found])
        match = _EXPRESSION.match(text, found)
        if match is None:
            raise _unreadable(text, found)
        literal = match["literal"]
        pieces.append(_expression(match, _position(text, found)) if literal is None else literal[1:-1])
        number, start = number + 1, match.end()
        if number > MAX_EXPRESSIONS:
            raise TemplateError("", TOO_MANY)
    if start < len(text):
        pieces.append(text[start:])
    return tuple(pieces)


# What is remembered is bounded in bytes too: a text may have a megabyte.
_LARGE: Final = 8_192
_parse_small = lru_cache(maxsize=1_024)(_parse)
_parse_large = lru_cache(maxsize=16)(_parse)


def _position(text: str, at: int) -> str:
    line_start = text.rfind("\n", 0, at) + 1
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - line_start + 1}"


def _unreadable(text: str, at: int) -> TemplateError:
    end = text.find(_CLOSE, at)
    if end < 0:
        return TemplateError(
            "", f'{_position(text, at)}: "{{{{" is never closed; write {{{{ "{{{{" }}}} for literal text'
        )
    source = shown(text[at : end + len(_CLOSE)])
    example = '{{ inputs.topic }} or {{ nominal | date("%Y-%m-%d") }}'
    return TemplateError("", f"{_position(text, at)}: {source} is not an expression such as {example}")


def _expression(match: re.Match[str], position: str) -> Expression:
    source = match[0] if len(match[0]) <= 80 else f"{match[0][:77]}..."
    form = match["format"]
    found = Expression(tuple(match["path"].split(".")), form[1:-1] if form else None, source, position)
    name = match["filter"]
    if name is None:
        return found
    if name != _DATE:
        raise found.wrong(f"unknown filter {shown(name)}; allowed: {_DATE}")
    if form is None:
        raise found.wrong(f'{_DATE} needs a format, such as {_DATE}("%Y-%m-%d")')
    _check_format(found, form[1:-1])
    return found


def check_names(expression: Expression, known: tuple[str, ...] = NAMES) -> None:
    """Raises TemplateError for an unknown name, a path into a fact and a date of something that is no time."""
    name = expression.name
    if name not in known:
        raise expression.wrong(f"unknown name {shown(name)}; allowed: {', '.join(known)}")
    if len(expression.path) > 1 and name not in (INPUTS, RESULTS):
        raise expression.wrong(f"{name} has no fields")
    if expression.format is not None and name not in TIMES:
        raise expression.wrong(
            f"{_DATE} formats only times, which are: {', '.join(each for each in TIMES if each in known)}"
        )


def templates_in(value: Json, path: str = "") -> Iterator[tuple[str, str]]:
    """The texts of a JSON value that hold expressions, with their paths."""
    if isinstance(value, str):
        if _OPEN in value:
            yield path, value
    elif isinstance(value, Mapping):
        if not _is_reference(value):
            for key, item in value.items():
                yield from templates_in(item, joined(path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from templates_in(item, f"{path}.{index}" if path else str(index))


def expressions_of(text: str) -> list[Expression]:
    """Raises TemplateError."""
    return [piece for piece in parse(text) if isinstance(piece, Expression)]


# A secret or a pointer of a workflow is filled in by others, and its text is no template.
_REFERENCES: Final = frozenset({"$secret", "$from"})


def _is_reference(value: Mapping[str, Json]) -> bool:
    return not _REFERENCES.isdisjoint(value)


# ── dates ─────────────────────────────────────────────────────────────────────────────────────────

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def _offset(seconds: int) -> str:
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02}{minutes % 60:02}"


# POSIX strftime in English, whatever the locale of the process: the same text on every machine.
_DIRECTIVES: Final[Mapping[str, Callable[[datetime, int], str]]] = {
    "Y": lambda at, _: f"{at.year:04}",
    "y": lambda at, _: f"{at.year % 100:02}",
    "m": lambda at, _: f"{at.month:02}",
    "d": lambda at, _: f"{at.day:02}",
    "j": lambda at, _: f"{at.timetuple().tm_yday:03}",
    "H": lambda at, _: f"{at.hour:02}",
    "I": lambda at, _: f"{at.hour % 12 or 12:02}",
    "M": lambda at, _: f"{at.minute:02}",
    "S": lambda at, _: f"{at.second:02}",
    "p": lambda at, _: "AM" if at.hour < 12 else "PM",
    "a": lambda at, _: _DAYS[at.weekday()][:3],
    "A": lambda at, _: _DAYS[at.weekday()],
    "b": lambda at, _: _MONTHS[at.month - 1][:3],
    "B": lambda at, _: _MONTHS[at.month - 1],
    "u": lambda at, _: str(at.isoweekday()),
    "G": lambda at, _: f"{at.isocalendar().year:04}",
    "V": lambda at, _: f"{at.isocalendar().week:02}",
    "z": lambda _, offset: _offset(offset),
    "%": lambda _at, _: "%",
}
DIRECTIVES: Final = tuple(_DIRECTIVES)
_DIRECTIVE = re.compile(r"%(.?)", re.DOTALL)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _check_format(expression: Expression, form: str) -> None:
    for directive in _DIRECTIVE.findall(form):
        if directive not in _DIRECTIVES:
            known = " ".join(f"%{each}" for each in DIRECTIVES)
            raise expression.wrong(f"unknown directive {shown('%' + directive)}; allowed: {known}")


@lru_cache(maxsize=1_024)  # a template names the same time often, and each entry of a rotation is rendered at a write
def format_date(instant: Instant, form: str, zone: Zone) -> str:
    second = instant // SECOND
    offset = zone.offset_at(second)
    local = _EPOCH + timedelta(seconds=second + offset)
    return _DIRECTIVE.sub(lambda found: _DIRECTIVES[found[1]](local, offset), form)


# ── rendering ─────────────────────────────────────────────────────────────────────────────────────


class NotKnownYet(Exception):
    """A fact that a forecast cannot know, such as the id of a run that does not exist."""


class TemplateContext(Protocol):
    """Values by name. `value` raises LookupError for a name without a value here, or NotKnownYet."""

    @property
    def zone(self) -> Zone: ...

    def value(self, name: str) -> Json: ...


Literals: TypeAlias = Mapping[int, int]
"""The sizes of containers without expressions, by their identity. They are the same in every rendering."""


def literals_in(*values: Json) -> Literals:
    """The containers in JSON values that hold no expressions. They count only while the values are alive."""
    found: dict[int, int] = {}
    for value in values:
        _add_literals(value, found)
    return found


def _add_literals(value: Json, found: dict[int, int]) -> int | None:
    """Return the size of a value; None where it holds an expression."""
    if isinstance(value, str):
        return None if _OPEN in value else _size(value)
    if isinstance(value, Mapping):
        if _is_reference(value):
            return None
        keys, members = sum(map(_size, value)), tuple(value.values())
    elif isinstance(value, list | tuple):
        keys, members = 0, tuple(value)
    else:
        return _size(_as_text(value))
    sizes = [_add_literals(item, found) for item in members]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        return None
    found[id(value)] = size = keys + len(known) + sum(known)
    return size


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


class Rendering:
    """Renders the texts of one run, whose sizes count together. `literals` save the time to look into them."""

    def __init__(self, context: TemplateContext, literals: Literals = MappingProxyType({})) -> None:
        self._context = context
        self._literals = literals
        self._left = MAX_RENDERED_BYTES

    def text(self, text: str) -> str:
        """A text in which every expression became text."""
        parts: list[str] = []
        for piece in parse(text) if _OPEN in text else (text,):
            part = piece if isinstance(piece, str) else _as_text(self._value(piece))
            self._count(_size(part))
            parts.append(part)
        return "".join(parts)

    def json(self, value: Json, path: str = "") -> Json:
        """A JSON value whose texts are rendered. A text that is one expression becomes the value, with its type.

        Raises TemplateError under the path of the text.
        """
        size = self._literals.get(id(value))
        if size is not None:
            self._count(size, path)
            return value
        if isinstance(value, str):
            try:
                return self._json_text(value)
            except TemplateError as wrong:
                raise TemplateError(path, wrong.text) from None
        if isinstance(value, Mapping):
            if _is_reference(value):
                return self.reference(value)
            self._count(len(value) + sum(map(_size, value)), path)
            return {key: self.json(item, joined(path, key)) for key, item in value.items()}
        if isinstance(value, list | tuple):
            self._count(len(value), path)
            return [self.json(item, f"{path}.{index}") for index, item in enumerate(value)]
        self._count(_size(_as_text(value)), path)
        return value

    def reference(self, value: Mapping[str, Json]) -> Json:
        """Return the value for a secret or a pointer, whose texts are not templates."""
        return value

    def _json_text(self, text: str) -> Json:
        pieces = parse(text) if _OPEN in text else ()
        if len(pieces) != 1 or not isinstance(pieces[0], Expression):
            return self.text(text)
        found = self._value(pieces[0])
        self._count(_size(_as_text(found)))
        return found

    def _value(self, expression: Expression) -> Json:
        try:
            found = self._context.value(expression.name)
        except NotKnownYet:
            return expression.source
        except LookupError as wrong:
            raise expression.wrong(str(wrong.args[0])) from None
        if expression.name in TIMES:
            if found is None:
                return None
            if expression.format is None:
                return to_rfc3339(found)
            return format_date(found, expression.format, self._context.zone)
        found = _at(expression, found)
        if _has_secret(found):
            raise expression.wrong("the value references a secret, which templates cannot read")
        return found

    def _count(self, size: int, path: str = "") -> None:
        self._left -= size
        if self._left < 0:
            raise TemplateError(path, f"the rendered texts of a run exceed {MAX_RENDERED_BYTES} bytes")


def _at(expression: Expression, value: Json) -> Json:
    for depth, step in enumerate(expression.path[1:], start=2):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and step.isdigit() and len(step) < 10 and int(step) < len(value):
            value = value[int(step)]
        else:
            raise expression.wrong(f"{'.'.join(expression.path[:depth])} does not exist")
    return value


def _has_secret(value: Json) -> bool:
    if isinstance(value, Mapping):
        return "$secret" in value or any(_has_secret(item) for item in value.values())
    return isinstance(value, list | tuple) and any(_has_secret(item) for item in value)


def _as_text(value: Json) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=dict)
