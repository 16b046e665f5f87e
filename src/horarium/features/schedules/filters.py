"""Filters of lists of schedules, the query language of lists, page tokens, and the errors of each."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from typing import Any, Final

import orjson

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.states import Status
from horarium.features.schedules.list_rows import Cursor, Filter
from horarium.features.schedules.references import field_attribute, searchable
from horarium.features.schedules.write_rows import Attribute
from horarium.instant import DAY, to_rfc3339
from horarium.platform.database.statements import to_text
from horarium.platform.errors import OperationError


class ListRefused(OperationError):
    """`parameter` is to blame; `last_safe_cursor` is the row up to which the caller has seen the list, if we know."""

    def __init__(self, parameter: str, message: str, seen: Cursor | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.last_safe_cursor = seen and {"created_at": to_rfc3339(seen.created_at), "schedule_id": seen.schedule_id}


class MalformedPageToken(ListRefused):
    reason = "malformed_schedule_page_token"
    status = 400


class ForeignPageToken(ListRefused):
    reason = "schedule_page_token_namespace_mismatch"
    status = 403


class OtherFilters(ListRefused):
    reason = "schedule_page_token_filter_mismatch"
    status = 409


class StalePageToken(ListRefused):
    reason = "stale_schedule_page_token"
    status = 409


class UnsupportedFilter(ListRefused):
    reason = "unsupported_schedule_list_filter"
    status = 422


class UnsupportedPredicate(ListRefused):
    reason = "unsupported_schedule_visibility_predicate"
    status = 422


class UnsupportedField(ListRefused):
    reason = "unsupported_schedule_visibility_field"
    status = 422


class InvalidQuery(ListRefused):
    reason = "invalid_schedule_visibility_query"
    status = 422


QUERY_FIELD = "query"
MAX_QUERY_LENGTH = 2_048
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
class FilterClause:
    field: str
    value: Literal


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def parse_query(text: str) -> tuple[FilterClause, ...]:
    """Raises UnsupportedPredicate or InvalidQuery."""
    if len(text) > MAX_QUERY_LENGTH:
        raise _wrong(f"is longer than {MAX_QUERY_LENGTH} characters")
    tokens = _tokens(text)
    for token in tokens:
        if token.text in _FOREIGN_SIGNS or (token.kind == "word" and token.text.lower() in _FOREIGN_WORDS):
            raise UnsupportedPredicate(
                QUERY_FIELD, f"{token.text} is not supported; use clauses `Field = literal` joined by AND"
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


def _clause(tokens: list[_Token]) -> FilterClause:
    if len(tokens) < 3 or tokens[0].kind != "word" or tokens[1].text != "=":
        raise _wrong("a clause must have the form `Field = literal`")
    field, value = tokens[0].text, _literal(tokens[2])
    if field in TEXT_FIELDS and not isinstance(value, str):
        raise _wrong(f"{field} must be compared with a quoted string")
    return FilterClause(field, value)


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
    return InvalidQuery(QUERY_FIELD, message)


TOKEN_FIELD = "next_page_token"
MAX_TOKEN_LENGTH = 8_192
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
        raise ForeignPageToken(TOKEN_FIELD, "this token belongs to a list of another namespace")
    if of != filters:
        raise OtherFilters(
            TOKEN_FIELD, "this token belongs to a list with other filters; start with the first page", cursor
        )
    return cursor


def _is_creation(number: int) -> bool:
    """True is a number to Python, and none to PostgreSQL."""
    return not isinstance(number, bool) and 0 <= number < _LAST_CREATION


def _content(token: str) -> object:
    text, _, checksum = token.partition(".")
    if len(token) > MAX_TOKEN_LENGTH or not token.isascii() or checksum != _checksum(text):
        raise _malformed()
    try:
        return orjson.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, orjson.JSONDecodeError):
        raise _malformed() from None


def _checksum(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _malformed() -> MalformedPageToken:
    return MalformedPageToken(TOKEN_FIELD, "is not a valid page token")


LISTED: Final = {status.value: status for status in Status if status is not Status.DELETED}


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """None = any."""

    statuses: Collection[Status] | None = None
    workflow: str | None = None
    owner: str | None = None
    source: str | None = None
    bundle: str | None = None
    text: str | None = None
    schedule_ids: tuple[str, ...] | None = None
    labels: Mapping[str, str] | None = None
    search_attributes: Mapping[str, object] | None = None
    query: tuple[FilterClause, ...] = ()
    include_deleted: bool = False
    health: HealthStatus | None = None
    calendar: str | None = None
    assignee: str | None = None
    assignee_type: AssigneeType | None = None

    @property
    def attributes(self) -> frozenset[str]:
        """The search attributes that the query names."""
        return frozenset(clause.field for clause in self.query if clause.field not in TEXT_FIELDS)

    def fingerprint(self) -> str:
        """The same for the same filters, in whatever order they come."""
        statuses = None if self.statuses is None else sorted(self.statuses)
        query = sorted(f"{clause.field}={type(clause.value).__name__}:{clause.value}" for clause in self.query)
        return fingerprint(asdict(self) | {"statuses": statuses, "query": query or None})

    def filter(self) -> Filter | None:
        """For the store; None where two filters contradict each other, so that nothing can fit."""
        attributes = [Attribute("label", name, value) for name, value in (self.labels or {}).items()]
        attributes += [_search(name, value) for name, value in (self.search_attributes or {}).items()]
        found: Filter | None = Filter(
            statuses=self.statuses,
            workflow=self.workflow,
            owner=self.owner,
            source=self.source,
            bundle=self.bundle,
            text=self.text,
            schedule_ids=self.schedule_ids,
            attributes=attributes,
            include_deleted=self.include_deleted,
            health=self.health,
            mentions=tuple(self._mentions()),
        )
        for clause in self.query:
            found = None if found is None else _narrowed(found, clause)
        return found

    def _mentions(self) -> Iterator[str]:
        """Texts that each matching document contains, as documents are spelled; others may contain them too."""
        if self.calendar is not None:
            yield to_text(self.calendar)
        if self.assignee is not None:
            yield f'"assignee_id":{to_text(self.assignee)}'
        if self.assignee_type is not None:
            yield f'"assignee_type":{to_text(self.assignee_type.value)}'

    def fits(self, document: Mapping[str, Any]) -> bool:
        """Tell whether a document uses the calendar and names the assignee; a damaged one does not."""
        calendars = document.get("calendars")
        return (
            (self.calendar is None or (isinstance(calendars, list) and self.calendar in calendars))
            and self.assignee in (None, document.get("assignee_id"))
            and self.assignee_type in (None, document.get("assignee_type"))
        )


EVERYTHING = ScheduleFilter()


def _narrowed(given: Filter, clause: FilterClause) -> Filter | None:
    text = str(clause.value)
    match clause.field:
        case "Status":
            status = _status(text)
            fits = given.statuses is None or status in given.statuses
            return replace(given, statuses=[status]) if fits else None
        case "ScheduleId":
            return replace(given, schedule_id=text) if given.schedule_id in (None, text) else None
        case "WorkflowType":
            return replace(given, workflow=text) if given.workflow in (None, text) else None
        case "TaskQueue" | "Note":
            return replace(given, attributes=[*given.attributes, field_attribute(clause.field, text)])
        case name:
            return replace(given, attributes=[*given.attributes, _search(name, clause.value)])


def _search(name: str, value: object) -> Attribute:
    return Attribute("search_attribute", name, searchable(value))


def _status(text: str) -> Status:
    found = LISTED.get(text.lower())
    if found is None:
        raise InvalidQuery(QUERY_FIELD, f"Status must be one of {', '.join(LISTED)}")
    return found
