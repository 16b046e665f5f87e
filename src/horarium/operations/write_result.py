"""What became of a schedule that somebody wanted changed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from horarium.instant import Instant
from horarium.operations.resources import Opened
from horarium.schedule.position import Status


class Outcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    PAUSED = "paused"
    RESUMED = "resumed"
    DELETED = "deleted"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True)
class WriteResult:
    """`changed` are the top-level names of the document that differ; `version` is the ETag from now on."""

    schedule_uid: bytes
    namespace: str
    schedule_id: str
    outcome: Outcome
    version: int
    status: Status
    next_due: Instant | None
    changed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def unchanged(opened: Opened) -> WriteResult:
    row = opened.row
    return WriteResult(
        row.schedule_uid, row.namespace, row.schedule_id, Outcome.UNCHANGED, row.version, row.status, row.next_due
    )
