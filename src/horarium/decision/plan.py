"""What was decided: the closed union of decisions, and the plan that a tick makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from horarium.instant import Instant
from horarium.schedule.position import Position
from horarium.schedule.reason import Reason

Detail: TypeAlias = Mapping[str, Any]
"""What a guard saw, for people and for `explain`; JSON values only."""


@dataclass(frozen=True, slots=True)
class Covers:
    """The missed occurrences that one run stands for, itself included."""

    first: Instant
    last: Instant
    count: int


class Fire(NamedTuple):
    """A run is born and may start; with `terminate_active` the active ones end in the same transaction.

    `superseded` are those that wait for a yes, and end because this one asks in their place. `member` is the agent of
    its team that works.
    """

    nominal: Instant
    due: Instant
    rotation_index: int | None = None
    covers: Covers | None = None
    terminate_active: bool = False
    superseded: int = 0
    member: str | None = None


class Hold(NamedTuple):
    """A run is born and waits: for its turn, for a concurrency key, or (`release_at`) for a time."""

    nominal: Instant
    due: Instant
    rotation_index: int | None = None
    covers: Covers | None = None
    cancel_active: bool = False
    release_at: Instant | None = None
    member: str | None = None


class Skip(NamedTuple):
    nominal: Instant
    reason: Reason
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class Missed:
    """A range of occurrences that nobody will run, as one row: first, last and how many.

    `detail` is what a guard saw, where it saw the same each time.
    """

    first: Instant
    last: Instant
    count: int
    reason: Reason
    detail: Detail | None = None


Decision: TypeAlias = Fire | Hold | Skip | Missed
Birth: TypeAlias = Fire | Hold


class Plan(NamedTuple):
    """Decisions in nominal order, and the position after them. `more` says that due ones are left."""

    decisions: tuple[Decision, ...]
    position: Position
    more: bool = False
