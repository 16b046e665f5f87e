"""The end of a standing approval: by time, by use, or with its grantor's credential, its schedule or its workflow."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from horarium.instant import DAY, Instant

DEFAULT_LIFE: Final = 90 * DAY
"""The life of a standing approval that names neither an end nor a number of uses."""


class StandingEnd(StrEnum):
    """The reasons for which a standing approval has ended."""

    EXPIRED = "expired"
    USED_UP = "used_up"
    CREDENTIAL_ENDED = "credential_ended"  # the grantor's token was revoked or has expired
    ROLE_CHANGED = "role_changed"
    SCHEDULE_DELETED = "schedule_deleted"
    SCHEDULE_CHANGED = "schedule_changed"
    WORKFLOW_DELETED = "workflow_deleted"
    WORKFLOW_CHANGED = "workflow_changed"


@dataclass(frozen=True, slots=True)
class Terms:
    """The limits that a standing approval was created with, and the uses so far."""

    created_at: Instant
    until: Instant | None
    max_uses: int | None
    uses: int


@dataclass(frozen=True, slots=True)
class Circumstances:
    """The present state of what a standing approval depends on.

    `credential_live` and `role_kept` are true where no token stands behind the approval. `gated_nodes_kept`: no gated
    node of its workflow was edited. `revision_kept`: the schedule is as it was; asked only where no gate is named.
    """

    credential_live: bool = True
    role_kept: bool = True
    schedule_there: bool = True
    revision_kept: bool = True
    workflow_there: bool = True
    gated_nodes_kept: bool = True


def expiry_of(terms: Terms) -> Instant | None:
    if terms.until is None and terms.max_uses is None:
        return terms.created_at + DEFAULT_LIFE
    return terms.until


def end_of(terms: Terms, seen: Circumstances, now: Instant) -> StandingEnd | None:
    """Return the first reason that applies; None = it is active."""
    expiry = expiry_of(terms)
    reasons = (
        (StandingEnd.CREDENTIAL_ENDED, not seen.credential_live),
        (StandingEnd.ROLE_CHANGED, not seen.role_kept),
        (StandingEnd.SCHEDULE_DELETED, not seen.schedule_there),
        (StandingEnd.WORKFLOW_DELETED, not seen.workflow_there),
        (StandingEnd.SCHEDULE_CHANGED, not seen.revision_kept),
        (StandingEnd.WORKFLOW_CHANGED, not seen.gated_nodes_kept),
        (StandingEnd.EXPIRED, expiry is not None and now >= expiry),
        (StandingEnd.USED_UP, terms.max_uses is not None and terms.uses >= terms.max_uses),
    )
    return next((reason for reason, applies in reasons if applies), None)
