"""A condition is a set of clauses that must all hold: a JSON pointer, one of five operators, an operand.

    {"/last_24h_stats/failed": {"lt": 3}, "/prior_run_result/status": {"eq": "completed"}}

The whole filter is read before any clause is asked, so a bad clause is an error even where an earlier
one is already false. A null filter has no clauses and always holds. Values are those that the `json`
module makes: dict, list, str, int, float, bool, None.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Final, TypeAlias, assert_never

from horarium.errors import ConditionError

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

MAX_CLAUSES = 100
MAX_POINTER_LENGTH = 1_024
MAX_OPERAND_DEPTH = 32
# Counted over all operands of a filter, so that the cost of reading one is bounded as a whole.
MAX_OPERAND_VALUES = 10_000
# Far above any id or amount, and below the length at which Python refuses to print an integer.
MAX_INTEGER_BITS = 4_096

_BAD_ESCAPE = re.compile(r"~(?![01])")
# RFC 6901 section 4: no sign, no leading zero, ASCII digits only.
_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""Result of a pointer without a value; differs from null."""


class Operator(StrEnum):
    EQ = "eq"
    NEQ = "neq"
    GT = "gt"
    LT = "lt"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class ClauseResult:
    """Result of one clause: `value` is None where the pointer found nothing."""

    pointer: str
    operator: Operator
    operand: Json
    found: bool
    value: object
    holds: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """`path` is the pointer, split and unescaped; `compile_condition` makes both agree."""

    pointer: str
    path: tuple[str, ...]
    operator: Operator
    operand: Json

    def holds(self, context: object) -> bool:
        return _holds(self.operator, self.operand, _resolve(self.path, context))

    def explain(self, context: object) -> ClauseResult:
        seen = _resolve(self.path, context)
        found = seen is not MISSING
        return ClauseResult(
            self.pointer,
            self.operator,
            self.operand,
            found,
            seen if found else None,
            _holds(self.operator, self.operand, seen),
        )


@dataclass(frozen=True, slots=True)
class Condition:
    clauses: tuple[Clause, ...]

    def evaluate(self, context: object) -> bool:
        return all(clause.holds(context) for clause in self.clauses)

    def explain(self, context: object) -> tuple[ClauseResult, ...]:
        """Every clause with the value it saw, also those after the first that does not hold."""
        return tuple(clause.explain(context) for clause in self.clauses)

    def reads(self, member: str) -> bool:
        """Tell whether a clause reads that member of the context, a part of it, or the whole context."""
        return any(not clause.path or clause.path[0] == member for clause in self.clauses)

    def document(self) -> dict[str, Json]:
        """The filter that it was made of."""
        return {clause.pointer: {clause.operator.value: clause.operand} for clause in self.clauses}


def evaluate_condition(filter: object, context: object) -> bool:
    """True if every clause of the filter holds; a malformed filter raises ConditionError."""
    return compile_condition(filter).evaluate(context)


def compile_condition(filter: object) -> Condition:
    """Read the whole filter, or raise a ConditionError that names the clause."""
    if filter is None:
        return Condition(())
    if not isinstance(filter, dict):
        raise ConditionError(f"the condition must be an object of clauses, not {_kind(filter)}")
    if len(filter) > MAX_CLAUSES:
        raise ConditionError(f"the condition has {len(filter)} clauses; at most {MAX_CLAUSES} are allowed")
    reader = _OperandReader()
    return Condition(tuple(_compile_clause(pointer, body, reader) for pointer, body in filter.items()))


def find(path: tuple[str, ...], context: object) -> object:
    """The value at a path that `parse_pointer` gave, or MISSING."""
    return _resolve(path, context)


def _compile_clause(pointer: object, body: object, reader: _OperandReader) -> Clause:
    if not isinstance(pointer, str):
        raise ConditionError(f"the name of a clause must be a JSON pointer, not {_kind(pointer)}")
    where = f"clause {_shown(pointer)}"
    path = parse_pointer(pointer, where)
    if not isinstance(body, dict):
        raise ConditionError(f'{where}: must be an object such as {{"eq": 1}}, not {_kind(body)}')
    if len(body) != 1:
        raise ConditionError(f"{where}: must have exactly one operator, not {len(body)}")
    [(word, operand)] = body.items()
    return Clause(pointer, path, _parse_operator(word, where), reader.read(operand, where))


def parse_pointer(pointer: str, where: str) -> tuple[str, ...]:
    """RFC 6901 section 3, the JSON string form; the URI fragment form (`#/a`) is not read."""
    if len(pointer) > MAX_POINTER_LENGTH:
        raise ConditionError(f"{where}: the pointer is longer than {MAX_POINTER_LENGTH} characters")
    if not _is_unicode(pointer):
        raise ConditionError(f"{where}: the pointer contains an unpaired surrogate")
    if pointer == "":
        return ()
    if not pointer.startswith("/"):
        raise ConditionError(f'{where}: a pointer is "" or starts with "/"')
    if _BAD_ESCAPE.search(pointer):
        raise ConditionError(f'{where}: "~" must be written "~0" and "/" inside a key "~1"')
    # Section 4 gives the order: the other way round "~01" would become "/".
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer[1:].split("/"))


def _parse_operator(word: object, where: str) -> Operator:
    for operator in Operator:
        if word == operator.value:
            return operator
    shown = _shown(word) if isinstance(word, str) else _kind(word)
    raise ConditionError(f"{where}: unknown operator {shown}; use one of {', '.join(Operator)}")


class _OperandReader:
    """Copies operands, so that nobody can change a compiled condition, and counts what it copies."""

    def __init__(self) -> None:
        self._left = MAX_OPERAND_VALUES

    def read(self, operand: object, where: str) -> Json:
        self._count(1, where)
        return self._copy(operand, where, 0)

    def _count(self, values: int, where: str) -> None:
        self._left -= values
        if self._left < 0:
            raise ConditionError(f"{where}: the operands have more than {MAX_OPERAND_VALUES} values")

    def _copy(self, value: object, where: str, depth: int) -> Json:
        if isinstance(value, dict | list):
            # The members are counted before they are read, so that a long array costs nothing.
            self._count(len(value), where)
            if depth >= MAX_OPERAND_DEPTH:
                raise ConditionError(f"{where}: the operand has more than {MAX_OPERAND_DEPTH} levels")
        match value:
            case dict():
                return {self._key(key, where): self._copy(item, where, depth + 1) for key, item in value.items()}
            case list():
                return [self._copy(item, where, depth + 1) for item in value]
            case bool() | None:
                return value
            case int() if value.bit_length() > MAX_INTEGER_BITS:
                raise ConditionError(f"{where}: the operand contains an integer of more than {MAX_INTEGER_BITS} bits")
            case float() if not math.isfinite(value):
                raise ConditionError(f"{where}: the operand contains NaN or Infinity, which are not valid JSON")
            case str() if not _is_unicode(value):
                raise ConditionError(f"{where}: the operand contains an unpaired surrogate")
            case int() | float() | str():
                return value
            case _:
                raise ConditionError(f"{where}: the operand contains {_kind(value)}, which is not a JSON value")

    def _key(self, key: object, where: str) -> str:
        if isinstance(key, str) and _is_unicode(key):
            return key
        raise ConditionError(f"{where}: the operand has an object key that is not a string")


def _resolve(path: tuple[str, ...], context: object) -> object:
    seen = context
    for key in path:
        if isinstance(seen, dict):
            if key not in seen:
                return MISSING
            seen = seen[key]
        elif isinstance(seen, list):
            if not _ARRAY_INDEX.fullmatch(key) or int(key) >= len(seen):
                return MISSING
            seen = seen[int(key)]
        else:
            return MISSING
    return seen


def _holds(operator: Operator, operand: Json, seen: object) -> bool:
    match operator:
        case Operator.EQ:
            return _equal(operand, seen)
        case Operator.NEQ:
            return not _equal(operand, seen)
        case Operator.GT:
            return _is_number(operand) and _is_number(seen) and seen > operand  # type: ignore[operator]  # both are numbers
        case Operator.LT:
            return _is_number(operand) and _is_number(seen) and seen < operand  # type: ignore[operator]  # both are numbers
        case Operator.CONTAINS:
            return _contains(operand, seen)
        case _:
            assert_never(operator)


def _contains(operand: Json, seen: object) -> bool:
    if isinstance(seen, str):
        return isinstance(operand, str) and operand in seen
    return isinstance(seen, list) and any(_covers(operand, member) for member in seen)


def _covers(wanted: Json, seen: object) -> bool:
    """Objects by subset, all else by equality; recursion follows `wanted`, whose depth is bounded."""
    if isinstance(wanted, dict):
        return isinstance(seen, dict) and all(
            key in seen and _covers(value, seen[key]) for key, value in wanted.items()
        )
    return _equal(wanted, seen)


def _equal(wanted: Json, seen: object) -> bool:
    """Python's `==` would say that 1 is True, and would follow the context as deep as it goes."""
    match wanted:
        case dict():
            return (
                isinstance(seen, dict)
                and len(seen) == len(wanted)
                and all(key in seen and _equal(value, seen[key]) for key, value in wanted.items())
            )
        case list():
            return (
                isinstance(seen, list)
                and len(seen) == len(wanted)
                and all(_equal(value, item) for value, item in zip(wanted, seen, strict=True))
            )
        case bool() | None:
            return seen is wanted
        case int() | float():
            # Python compares int with float exactly, without rounding the int first.
            return _is_number(seen) and seen == wanted
        case str():
            return isinstance(seen, str) and seen == wanted
        case _:
            assert_never(wanted)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_unicode(text: str) -> bool:
    """Half a surrogate pair can be in a Python str but in no UTF-8, so it could never be stored."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list():
            return "an array"
        case _:
            return f"a {type(value).__name__}"


def _shown(text: str) -> str:
    # repr escapes what cannot be printed, half surrogates included.
    return repr(text if len(text) <= 64 else text[:61] + "...")
