"""What is left to other processes: runs of a kind that has no launcher here, while somebody who has one is alive.

Not every machine has every package, and they are installed one after the other. Where nobody has it the run is taken
all the same, and its end says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from horarium.decision.process_state import SILENT_AFTER_SECONDS, silent_seconds
from horarium.instant import Instant
from horarium.launchers.served import read_served
from horarium.store.database import Connection
from horarium.store.processes import process_rows
from horarium.store.runs.claims import ReadyTarget


def without_those_of_others(
    connection: Connection, ready: Sequence[ReadyTarget], is_foreign: Callable[[ReadyTarget], str | None], now: Instant
) -> list[ReadyTarget]:
    """`is_foreign` names the kind of a target that nothing here can launch; None = it is ours to take."""
    foreign = {each: kind for each in ready if (kind := is_foreign(each)) is not None}
    if not foreign:
        return list(ready)
    there = [row for row in process_rows(connection) if silent_seconds(row.beat_at, now) <= SILENT_AFTER_SECONDS]
    others = [read_served(row.process.serves) for row in there]
    left = {target for target, kind in foreign.items() if any(each.serves(kind, target.namespace) for each in others)}
    return [each for each in ready if each not in left]
