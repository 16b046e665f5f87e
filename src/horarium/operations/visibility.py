"""How a list is asked for in one line: `WorkflowType = "report" AND tenant = 42`.

The language of the Durable Workflow contract, and no more than that:

    query   = clause *(AND clause)
    clause  = field "=" literal
    field   = ScheduleId | Status | WorkflowType | TaskQueue | Note | the name of a search attribute
    literal = "JSON string" | 'text' | true | false | a whole or decimal number
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Final

from horarium.operations.list_errors import InvalidQuery, UnsupportedPredicate

FIELD = "query"
MAX_LENGTH = 2_048
TEXT_FIELDS: Final = ("ScheduleId", "Status", "WorkflowType", "TaskQueue", "Note")

Literal = str | bool | int | float

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<json>"(?:[^"\\]|\\.)*") | (?P<text>'(?:[^'\\]|\\.)*')
      | (?P<number>-?\d+(?:\.\d+)?(?![\w.])) | (?P<word>[A-Za-z_][\w.:-]*)
      | (?P<other><>|[!<>]=|[<>=])
    )""",
    re.VERBOSE | re.ASCII,
)
# Other languages of this kind have them; ours says so instead of calling them a mistake.
_FOREIGN_WORDS = frozenset({"or", "not", "in", "like", "contains", "starts_with", "ends_with"})
_FOREIGN_SIGNS = frozenset({"!=", "<>", ">=", "<=", ">", "<"})


@dataclass(frozen=True, slots=True)
class Clause:
    field: str
    value: Literal


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parse_query(text: str) -> tuple[Clause, ...]:
    """Raises UnsupportedPredicate or InvalidQuery."""
    if len(text) > MAX_LENGTH:
        raise _wrong(f"is longer than {MAX_LENGTH} characters")
    tokens = _tokens(text)
    for token in tokens:
        if token.text in _FOREIGN_SIGNS or (token.kind == "word" and token.text.lower() in _FOREIGN_WORDS):
            raise UnsupportedPredicate(
                FIELD, f"{token.text} is not supported; use clauses `Field = literal` joined by AND"
            )
    clauses = [_clause(tokens[at : at + 3]) for at in range(0, len(tokens), 4)]
    joints = tokens[3::4]
    if any(joint.kind != "word" or joint.text.lower() != "and" for joint in joints):
        raise _wrong("clauses must be joined by AND")
    if len(joints) != len(clauses) - 1:
        raise _wrong("must not end with AND" if joints else "must not be empty")
    return tuple(clauses)


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    at, end = 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None or found.lastgroup is None:
            raise _wrong(f"syntax error at character {at + 1}")
        tokens.append(_Token(found.lastgroup, found[found.lastgroup]))
        at = found.end()
    return tokens


def _clause(tokens: list[_Token]) -> Clause:
    if len(tokens) < 3 or tokens[0].kind != "word" or tokens[1].text != "=":
        raise _wrong("a clause must have the form `Field = literal`")
    field, value = tokens[0].text, _literal(tokens[2])
    if field in TEXT_FIELDS and not isinstance(value, str):
        raise _wrong(f"{field} must be compared with a quoted string")
    return Clause(field, value)


def _literal(token: _Token) -> Literal:
    match token.kind, token.text.lower():
        case "json", _:
            return _json_text(token.text)
        case "text", _:
            return re.sub(r"\\(.)", r"\1", token.text[1:-1])
        case "number", digits:
            return float(digits) if "." in digits else int(digits)
        case "word", ("true" | "false") as word:
            return word == "true"
        case _:
            raise _wrong(f"{token.text[:40]} is not a literal; quote strings")


def _json_text(quoted: str) -> str:
    try:
        text = str(json.loads(quoted))
        text.encode()
    except ValueError:
        raise _wrong("contains a string that is not valid JSON") from None
    return text


def _wrong(message: str) -> InvalidQuery:
    return InvalidQuery(FIELD, message)
