"""Base of all wire types, outcomes, problems, roles and permissions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

import msgspec
from msgspec import Meta, Struct

from horarium.instant import Instant, from_datetime, to_datetime

Object: TypeAlias = Mapping[str, Any]
"""A JSON object with arbitrary members."""

Time = Annotated[datetime, Meta(tz=True)]
"""An aware datetime; RFC 3339 text in JSON."""

TYPES = "x-types"
"""In a JSON Schema: types that differ in JSON but are one type in Python."""

Amount = Annotated[float, Meta(extra_json_schema={TYPES: ["number", "string"]})]
"""An amount in credits. A value that a float cannot represent exactly is sent as text."""


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """The base of all answers."""

    HIDDEN: ClassVar[frozenset[str]] = frozenset()
    """Fields that are hidden when the value is printed."""

    @property
    def raw(self) -> Object:
        """The JSON object as it came, where it came from a server: also what this program does not know yet."""
        found: Object = self.__dict__.get("raw", {})
        return found

    @property
    def unreadable_rows(self) -> tuple[UnreadableRow, ...]:
        """The rows of a list that the service could not read, which the list itself leaves out."""
        return unreadable_rows_of(self.raw)

    def __reduce__(self) -> tuple[Any, ...]:
        """With what came beyond the fields."""
        return _made_again, (type(self), {name: getattr(self, name) for name in self.__struct_fields__}, dict(self.raw))

    def __copy__(self) -> Answer:
        make, values = self.__reduce__()
        made: Answer = make(*values)
        return made

    def __repr__(self) -> str:
        shown = (name for name in self.__struct_fields__ if name not in self.HIDDEN)
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"


A = TypeVar("A", bound=Answer)

ROWS = "x-rows"
"""In a JSON Schema: an array of stored rows, each of which may be an `UnreadableRow` instead."""

Rows: TypeAlias = Annotated[tuple[A, ...], Meta(extra_json_schema={ROWS: True})]
"""The rows of a list. A client reads those that it can read; `Answer.unreadable_rows` has the others."""


class UnreadableRow(Answer, frozen=True, kw_only=True):
    """A row of a list that cannot be read. `detail` has the cause. Other rows are not affected."""

    id: str
    unreadable: Annotated[bool, Meta(extra_json_schema={"const": True})]
    detail: str


def is_unreadable(value: object) -> bool:
    """Tell an `UnreadableRow` in JSON from a row; a row has more members."""
    return (
        isinstance(value, dict) and value.get("unreadable") is True and value.keys() == {"id", "unreadable", "detail"}
    )


def unreadable_rows_of(raw: Object) -> tuple[UnreadableRow, ...]:
    """Return the rows in the lists of an answer that the service could not read."""
    lists = (value for value in raw.values() if isinstance(value, list))
    return tuple(
        UnreadableRow(id=str(each.get("id")), unreadable=True, detail=str(each["detail"]))
        for rows in lists
        for each in rows
        if is_unreadable(each)
    )


def _made_again(kind: type[Answer], values: dict[str, Any], raw: Object) -> Answer:
    made = kind(**values)
    if raw:
        with_raw(made, raw)
    return made


def with_raw(answer: Answer, raw: Object) -> None:
    """Only for whoever has just made the answer."""
    answer.__dict__["raw"] = raw


def encode(answer: object) -> bytes:
    """Never raises for what JSON can hold: after a commit there must be an answer."""
    try:
        return msgspec.json.encode(answer)
    except (OverflowError, ValueError):  # whole numbers beyond 64 bits, lone surrogates
        plain = msgspec.to_builtins(answer, enc_hook=_text_of)
        return json.dumps(plain, ensure_ascii=True, allow_nan=False).encode("ascii")


def merge(*objects: object) -> msgspec.Raw:
    """The JSON text of one object with the members of several, no name of which stands in two."""
    inside = (encode(each)[1:-1] for each in objects)
    return msgspec.Raw(b"{" + b",".join(each for each in inside if each) + b"}")


def time_of(instant: Instant | None) -> datetime | None:
    return None if instant is None else to_datetime(instant)


def instant_of(time: datetime | None) -> Instant | None:
    return None if time is None else from_datetime(time)


def _text_of(value: object) -> Any:
    if isinstance(value, msgspec.Raw):
        return json.loads(bytes(value))
    raise TypeError(f"a {type(value).__name__} is no part of an answer")


class WriteOutcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"


class TriggerOutcome(StrEnum):
    TRIGGERED = "triggered"
    BUFFERED = "buffered"
    BUFFER_FULL = "buffer_full"
    SKIPPED = "skipped"


class FillOutcome(StrEnum):
    """Outcome of one occurrence of a backfill."""

    STARTED = "started"
    BUFFERED = "buffered"
    SKIPPED = "skipped"


class BackfillOutcome(StrEnum):
    STARTED = "backfill_started"
    PLANNED = "backfill_planned"  # a dry run


class ExplainedOutcome(StrEnum):
    """Outcome of an occurrence. `fires`, `skips` and `nothing` are predicted, the others recorded."""

    FIRES = "fires"
    SKIPS = "skips"
    NOTHING = "nothing"  # no occurrence is at this moment
    FIRED = "fired"
    HELD = "held"
    SKIPPED = "skipped"
    MISSED = "missed"
    COVERED = "covered"  # another run stood for it
    RECORDED = "recorded"


class ExplainedSource(StrEnum):
    PREDICTION = "prediction"
    HISTORY = "history"


class StopOutcome(StrEnum):
    CANCELLED = "cancelled"
    TERMINATED = "terminated"
    REQUESTED = "cancel_requested"  # whoever has it will be told
    UNCHANGED = "unchanged"  # it has ended already


class ReportOutcome(StrEnum):
    RECORDED = "recorded"
    RETRIED = "retried"
    BLOCKED = "blocked"
    UNCHANGED = "unchanged"  # it was said before
    LATE = "late"  # the run has ended otherwise, or the attempt is over; written down, and nothing more


class StartOutcome(StrEnum):
    STARTED = "started"
    ALREADY_STARTED = "already_started"


class RemovalOutcome(StrEnum):
    """Outcome of deleting a namespace."""

    DELETED = "deleted"  # nothing of it is left
    DELETING = "deleting"  # nobody gets in any more; the rest of its rows goes by itself
    PLANNED = "planned"  # a dry run


class RedeliverOutcome(StrEnum):
    QUEUED = "queued"
    UNCHANGED = "unchanged"  # there is nothing to send again


class RevokeOutcome(StrEnum):
    REVOKED = "revoked"
    UNCHANGED = "unchanged"


class Problem(Answer, frozen=True, kw_only=True):
    """A problem document (RFC 9457). `message` and `reason` are for programs, `errors` for forms. Some reasons have
    more members.

    `error` is present only on the paths of workspaces and admins.
    """

    type: str
    title: str
    status: int
    detail: str
    message: str
    reason: str
    errors: Mapping[str, tuple[str, ...]] = {}
    validation_errors: Mapping[str, tuple[str, ...]] = {}
    field: str | None = None
    error: str | None = None


class Role(StrEnum):
    ADMIN = "admin"
    OWNER = "owner"
    OPERATOR = "operator"
    VIEWER = "viewer"
    AGENT = "agent"


class Permission(StrEnum):
    LOOK = "look"  # which server this is, and single runs: an agent sees its own, whoever may read sees all
    READ = "read"
    WRITE = "write"  # create, change and delete what is one's own; start runs; give a trigger other inputs
    OPERATE = "operate"  # pause, resume, trigger, backfill, stop
    APPROVE = "approve"  # decide what waits for a yes
    SCHEDULE = "schedule"  # write the schedules of a workspace: an agent those of its own
    RUN = "run"  # start one of them now
    WORK = "work"  # take runs from a queue and report on them
    ADMINISTER = "administer"  # tokens, namespaces, what belongs to others
