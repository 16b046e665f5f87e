"""Quotas of a namespace that a definition may not exceed, and the choice of the write for a large definition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from horarium.core.policy.limits import Quotas, definitions_exceed, gap_exceeds
from horarium.core.recurrence.lint import shortest_gap
from horarium.core.recurrence.spec import Spec
from horarium.features.resources import Resources
from horarium.features.schedules.write_rows import NewRevision
from horarium.features.tenants import quota_rows
from horarium.instant import Instant
from horarium.platform.database import Connection
from horarium.platform.database import limits as database_limits
from horarium.platform.database.columns import to_text
from horarium.platform.database.limits import RowLimit
from horarium.platform.errors import QuotaExceeded, Refused

# Occurrences are whole seconds: no spec is closer than that.
_ALWAYS = 1


def check_definitions(
    resources: Resources,
    connection: Connection,
    namespace: str,
    revisions: Sequence[NewRevision],
    *,
    new: int,
    specs: Sequence[Spec] = (),
    now: Instant,
) -> None:
    """Raises QuotaExceeded, and writes down what is added: `new` schedules and the bytes of these definitions.

    `specs` are those that are new.
    """
    if not revisions:
        return
    size = sum(len(to_text(each.document)) for each in revisions)
    limits = _check(resources, connection, namespace, quota_rows.Growth(schedules=new, bytes=size), now)
    if limits is not None:
        for spec in specs:
            check_gap(namespace, limits, spec, now)


def check_bytes(
    resources: Resources,
    connection: Connection,
    namespace: str,
    document: Mapping[str, Any],
    now: Instant,
    *,
    before: Mapping[str, Any] | None = None,
) -> None:
    """Raises QuotaExceeded, and writes down what is added: a document that takes the place of `before`."""
    size = len(to_text(document)) - (0 if before is None else len(to_text(before)))
    if size > 0:
        _check(resources, connection, namespace, quota_rows.Growth(bytes=size), now)


def check_stored(resources: Resources, connection: Connection, namespace: str, size: int, now: Instant) -> None:
    """Raise QuotaExceeded for `size` bytes beside documents; write down that they are stored."""
    _check(resources, connection, namespace, quota_rows.Growth(bytes=size), now)


def check_rows(connection: Connection, rows: RowLimit, namespace: str) -> None:
    """Raise Refused where the namespace has as many of these rows as one namespace may have."""
    if database_limits.is_full(connection, rows, namespace):
        raise Refused(f"the namespace has {rows.most} {rows.what}, the maximum; delete some first")


def require_room(
    resources: Resources, connection: Connection, revision: NewRevision, namespace: str, *, new: int, now: Instant
) -> Quotas | None:
    """The limits, as `check_definitions` asks for one definition; nothing is written."""
    size = len(to_text(revision.document))
    return _limits(resources, connection, namespace, quota_rows.Growth(schedules=new, bytes=size), now)


def _check(
    resources: Resources, connection: Connection, namespace: str, growth: quota_rows.Growth, now: Instant
) -> Quotas | None:
    limits = _limits(resources, connection, namespace, growth, now)
    if limits is not None:
        quota_rows.add_growth(connection, {namespace: growth}, now)
    return limits


def _limits(
    resources: Resources, connection: Connection, namespace: str, growth: quota_rows.Growth, now: Instant
) -> Quotas | None:
    """Raises QuotaExceeded; None = whoever writes into a namespace that is gone is told so elsewhere."""
    standing = resources.quotas.standing(connection, namespace, now, new=growth.schedules)
    if standing is None:
        return None
    found = definitions_exceed(standing.limits, standing.usage, schedules=growth.schedules, size=growth.bytes)
    if found is not None:
        raise QuotaExceeded(namespace, found)
    return standing.limits


def check_gap(namespace: str, limits: Quotas, spec: Spec, now: Instant) -> None:
    least = limits.shortest_gap_seconds
    if least is None or least <= _ALWAYS:
        return
    found = gap_exceeds(limits, shortest_gap(spec, after=now, enough=least))
    if found is not None:
        raise QuotaExceeded(namespace, found)


T = TypeVar("T")

LARGE_BYTES = 16_384
"""From this size of its JSON on, a definition is planned before the writer is taken."""


class Write(Protocol):
    """`Database.write` or `Database.write_planned`."""

    def __call__(self, work: Callable[[Connection], T]) -> T: ...


def write_of(resources: Resources, document: object) -> Write:
    """Plan what a large document changes before the writer is taken; write the others at once, which costs less."""
    database = resources.database
    return database.write_planned if len(to_text(document)) > LARGE_BYTES else database.write
