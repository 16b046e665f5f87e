"""What the runs in our hands have said and nobody has kept yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from horarium.engine.claimer import InFlight
from horarium.job.run_log import RunLog
from horarium.launchers.launcher import LaunchRequest
from horarium.store.database import Connection
from horarium.store.runs import logs
from horarium.store.runs.logs import NewLines


def has_spoken(run: InFlight) -> bool:
    """Most runs never say anything, and are passed over without a lock."""
    log = _log_of(run)
    return log is not None and log.touched


def _log_of(run: InFlight) -> RunLog | None:
    return run.request.log if isinstance(run.request, LaunchRequest) else None


class Said(NamedTuple):
    """Lines of several runs, written at once; each log forgets its own when they are kept."""

    lines: tuple[NewLines, ...] = ()
    logs: tuple[RunLog, ...] = ()

    @classmethod
    def of(cls, runs: Iterable[InFlight], *, last: bool = False) -> Said:
        """With `last` these are all that will ever come."""
        lines: list[NewLines] = []
        spoken: list[RunLog] = []
        for run in runs:
            log = _log_of(run)
            if log is None or not log.touched:
                continue
            batch = log.peek(last=last)
            if batch.lines:
                lines.append(NewLines(run.work.run_id, run.work.lease_epoch, run.work.attempt, batch))
                spoken.append(log)
        return cls(tuple(lines), tuple(spoken))

    def append(self, connection: Connection, most: int) -> set[bytes]:
        return logs.append(connection, self.lines, most=most) if self.lines else set()

    def append_locked(self, connection: Connection, epochs: Mapping[bytes, int], most: int) -> None:
        """`epochs` are those of runs that the caller has locked: who has another has lost its run."""
        ours = [each for each in self.lines if epochs.get(each.run_id) == each.epoch]
        logs.append_locked(connection, ours, most=most)

    def done(self, kept: Collection[bytes] | None = None) -> None:
        """None = they all are."""
        for lines, log in zip(self.lines, self.logs, strict=True):
            if kept is None or lines.run_id in kept:
                log.done(lines.batch)


NOTHING_SAID = Said()
