"""What a definition may not exceed: the schedules and bytes of its namespace, and how often it may fire."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.instant import Instant
from horarium.operations.errors import QuotaExceeded
from horarium.operations.resources import Resources
from horarium.policy.quotas import Quotas, definitions_exceed, gap_exceeds
from horarium.recurrence.gaps import shortest_gap
from horarium.recurrence.spec import Spec
from horarium.store import usage
from horarium.store.database import Connection
from horarium.store.database.json_text import to_text
from horarium.store.schedules.write import Revision

# Occurrences are whole seconds: no spec is closer than that.
_ALWAYS = 1


def check_definitions(
    resources: Resources,
    connection: Connection,
    namespace: str,
    revisions: Sequence[Revision],
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
    standing = resources.quotas.standing(connection, namespace, now, new=new)
    if standing is None:
        return  # whoever writes into a namespace that is gone is told so elsewhere
    size = sum(len(to_text(each.document)) for each in revisions)
    found = definitions_exceed(standing.limits, standing.usage, schedules=new, size=size)
    if found is not None:
        raise QuotaExceeded(namespace, found)
    for spec in specs:
        check_gap(namespace, standing.limits, spec, now)
    usage.add(connection, {namespace: usage.Growth(schedules=new, bytes=size)}, now)


def check_gap(namespace: str, limits: Quotas, spec: Spec, now: Instant) -> None:
    least = limits.shortest_gap_seconds
    if least is None or least <= _ALWAYS:
        return
    found = gap_exceeds(limits, shortest_gap(spec, after=now, enough=least))
    if found is not None:
        raise QuotaExceeded(namespace, found)
