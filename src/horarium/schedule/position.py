"""How far the engine has got with one schedule: the narrow row that a decision reads and moves."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from horarium.instant import Instant


class Status(StrEnum):
    ACTIVE = "active"
    PAUSED = "paused"
    FINISHED = "finished"  # its last occurrence is decided; a trigger by hand still works
    DELETED = "deleted"
    BROKEN = "broken"  # it cannot be planned or recorded; its error is shown everywhere


def status_at(status: Status, paused_until: Instant | None, at: Instant) -> Status:
    """That of a coming moment: a pause whose end is known is over then."""
    over = status is Status.PAUSED and paused_until is not None and at >= paused_until
    return Status.ACTIVE if over else status


class Position(NamedTuple):
    """Every occurrence up to and including `decided_until` has its decision, and none after it has one.

    `generation` counts the specs that this schedule has had, so that an audit knows which one to ask.
    """

    decided_until: Instant
    next_due: Instant | None
    status: Status = Status.ACTIVE
    generation: int = 1
    runs_born: int = 0
    rotation_index: int = 0
