"""Which schedules may be doing badly: for each word of health a condition that an index answers.

A sign is no judgement. Of whoever shows one `decision/health.py` says what holds; whoever shows none is well, or has
never run, and nobody looks for those among a hundred thousand.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa

from horarium.decision.health_status import HealthStatus
from horarium.policy.approval import ApprovalDecision
from horarium.schedule.planning import FAILING_AFTER_DIGITS, FAILING_AFTER_KEY
from horarium.schedule.position import Status
from horarium.store.tables import approvals, plannings, positions, runs
from horarium.store.tables.schedules import FAILED

# As text: PostgreSQL takes a partial index only for a condition that it can read.
AT_REST: Final = sa.text("status <> 'active' AND status <> 'deleted'")
ACTIVE: Final = sa.text("status = 'active'")

SIGNED: Final = (
    HealthStatus.BROKEN,
    HealthStatus.PAUSED,
    HealthStatus.WAITING_FOR_APPROVAL,
    HealthStatus.FAILING,
    HealthStatus.STALE,
    HealthStatus.LATE,
)
"""The words that have a sign."""


def sign(
    status: HealthStatus,
    namespace: sa.ColumnElement[str] | None,
    now: sa.ColumnElement[int],
    failing_after: sa.ColumnElement[int],
) -> sa.ColumnElement[bool]:
    """Return the condition on rows of `positions`; `failing_after` is the setting, None stands for all namespaces."""
    mine = sa.true() if namespace is None else positions.c.namespace == namespace
    match status:
        case HealthStatus.BROKEN:
            return sa.and_(mine, AT_REST, positions.c.status == Status.BROKEN.value)
        case HealthStatus.PAUSED:
            return sa.and_(mine, AT_REST, positions.c.status == Status.PAUSED.value)
        case HealthStatus.WAITING_FOR_APPROVAL:
            return sa.and_(mine, positions.c.schedule_uid.in_(waiting(namespace)))
        case HealthStatus.FAILING:
            return sa.and_(mine, failing(failing_after))
        case HealthStatus.STALE | HealthStatus.LATE:
            return sa.and_(mine, ACTIVE, sa.or_(positions.c.next_due <= now, positions.c.next_due.is_(None)))
        case HealthStatus.NEVER_RUN | HealthStatus.OK:
            raise LookupError(f"no index covers schedules in status {status}")


# Where a schedule says it, it stands first in its planning text, which no other text can imitate.
_OWN_THRESHOLD: Final = f'{{"{FAILING_AFTER_KEY}":"'


def failing(failing_after: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
    """Return the condition on `positions` that enough runs in a row have failed; `failing_after` is the setting."""
    at, text = len(_OWN_THRESHOLD) + 1, plannings.c.text
    own = (
        sa.select(sa.func.substr(text, at, FAILING_AFTER_DIGITS))
        .where(plannings.c.planning == positions.c.planning, sa.func.substr(text, 1, at - 1) == _OWN_THRESHOLD)
        .scalar_subquery()
    )
    return sa.and_(
        sa.text(FAILED), _digits(positions.c.failures_in_a_row) >= sa.func.coalesce(own, _digits(failing_after))
    )


def _digits(number: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    """Write a number as it stands in a planning text: no text that is compared with it can raise an error."""
    return sa.func.substr(sa.cast(sa.cast(number, sa.BigInteger) + 10**FAILING_AFTER_DIGITS, sa.Text), 2)


def waiting(namespace: sa.ColumnElement[str] | None) -> sa.Select[tuple[bytes]]:
    """The schedules of questions that nobody has answered; None = of all namespaces."""
    return (
        sa.select(runs.c.schedule_uid)
        .join_from(approvals, runs, runs.c.run_id == approvals.c.run_id)
        .where(
            approvals.c.decision == ApprovalDecision.PENDING.value,
            sa.true() if namespace is None else approvals.c.namespace == namespace,
            runs.c.schedule_uid.is_not(None),
        )
        .distinct()
    )
