"""How tests end runs as they like: by the one writer, past what would have led to it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection

from horarium.core.document.states import FINAL
from horarium.core.lifecycle.outcome import Change, End, Nothing, NothingCause
from horarium.features.runs.transition_rows import change_runs
from horarium.features.runs.work_rows import RunWork
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import Instant


class Asked(NamedTuple):
    """A run that a test wants ended; `epoch` is the lease under which it says so, None = nobody's."""

    run_id: bytes
    end: End
    epoch: int | None = None


def end_runs(connection: Connection, asked: Sequence[Asked], *, now: Instant) -> list[bytes]:
    """Those that ended now."""
    judged = [(each.run_id, partial(_judge, each)) for each in asked]
    return [each.run.run_id for each in change_runs(connection, Plannings(), judged, now=now) if each.counted]


def end_run(connection: Connection, run_id: bytes, end: End, *, now: Instant) -> bool:
    return bool(end_runs(connection, [Asked(run_id, end)], now=now))


def _judge(asked: Asked, run: RunWork) -> Change:
    late = run.state in FINAL or asked.epoch not in (None, run.lease_epoch)
    return Nothing(NothingCause.TOO_LATE) if late else asked.end
