"""Whether runs are as they must be, and whether what counts them is right: a page at a time, each in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from horarium.life.soundness import Unsound, unsound
from horarium.operations.resources import Resources
from horarium.store.counters import key_owner
from horarium.store.database import Connection
from horarium.store.runs import checks
from horarium.store.runs.checks import Scope
from horarium.store.schedules import repair
from horarium.store.schedules.rows import ScheduleRow

_PAGE = 500
_MAX_FINDINGS = 1_000


@dataclass(frozen=True, slots=True)
class Miscounted:
    """A schedule, or a concurrency key (`schedule_id` None), that counts `told` runs where there are `really`."""

    schedule_id: str | None
    counter: str
    told: int
    really: int


@dataclass(frozen=True, slots=True)
class UnsoundRun:
    schedule_id: str | None
    run_id: bytes
    what: Unsound


@dataclass(frozen=True, slots=True)
class DoubleStep:
    """A node for which two runs of the same workflow run stand."""

    run_id: bytes
    node_id: str


RunFinding: TypeAlias = Miscounted | UnsoundRun | DoubleStep


def counts_of(connection: Connection, row: ScheduleRow) -> list[Miscounted]:
    """Wrong counts of a schedule."""
    really = repair.count_open(connection, row.schedule_uid)
    both = (("active", row.active, really.active), ("held", row.held, really.held))
    return [Miscounted(row.schedule_id, *each) for each in both if each[1] != each[2]]


def verify_runs(resources: Resources, scope: Scope) -> Iterator[RunFinding]:
    """At most 1,000 findings."""
    left = _MAX_FINDINGS
    after = b""
    while left > 0:
        found, last = resources.database.read(partial(_page, scope=scope, after=after))
        yield from found[:left]
        left -= len(found)
        if last is None:
            break
        after = last
    if scope.schedule_id is None:
        yield from resources.database.read(partial(_keys, scope=scope))[: max(left, 0)]


def _page(connection: Connection, scope: Scope, after: bytes) -> tuple[list[RunFinding], bytes | None]:
    """With where the next one begins; None = this was the last."""
    last = checks.last_of_page(connection, scope, after, _PAGE)
    if last is None:
        return [], None
    found: list[RunFinding] = [
        UnsoundRun(each.schedule_id, each.run_id, what)
        for each in checks.facts(connection, scope, after, last)
        for what in ((Unsound.UNREADABLE,) if each.facts is None else unsound(each.facts))
    ]
    found += [DoubleStep(*each) for each in checks.doubles(connection, scope, after, last)]
    return found, last


def _keys(connection: Connection, scope: Scope) -> list[Miscounted]:
    begin = "key:" if scope.namespace is None else key_owner(scope.namespace, "")
    differences = sorted(repair.key_differences(connection).items())
    return [Miscounted(None, owner, *numbers) for owner, numbers in differences if owner.startswith(begin)]
