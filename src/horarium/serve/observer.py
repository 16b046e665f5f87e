"""Log and count what the engine has committed."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.engine.batch import Tick
from horarium.engine.janitor import Tidied
from horarium.engine.partitions import Upkept
from horarium.instant import SECOND, Instant
from horarium.life.change import Again, End
from horarium.schedule.run import RunState
from horarium.store.runs.log_fields import Settled, fields_of_run
from horarium.store.runs.work import Work
from horarium.telemetry.telemetry import Telemetry

_GOOD = frozenset({RunState.SUCCEEDED, RunState.CANCELLED, RunState.SKIPPED})
_SHOWN_ERROR = 200


class TelemetryObserver:
    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._log = telemetry.log.bind()  # once: a logger that is not bound binds itself anew for every line

    def ticked(self, tick: Tick, now: Instant) -> None:
        self._telemetry.tick(tick, now)

    def settled(self, runs: Sequence[Settled], now: Instant) -> None:
        for run, change, schedule_id in runs:
            self._telemetry.launched(fired_at=run.created_at, started_at=run.started_at or now)
            if isinstance(change, End):
                self._telemetry.ended(change.state)
                self._tell_end(run, change, schedule_id, now)
            elif isinstance(change, Again):
                self._log.info(
                    "run_retry_scheduled",
                    **fields_of_run(run.run_id, run.namespace, schedule_id),
                    in_seconds=round((change.ready_at - now) / SECOND, 1),
                    error=_in_short(change.error),
                )

    def tidied(self, tidied: Tidied, now: Instant) -> None:
        if tidied.lost_leases:
            self._telemetry.lease_expired(tidied.lost_leases)
        for state in tidied.ended:
            self._telemetry.ended(state)

    def upkept(self, upkept: Upkept, now: Instant) -> None:
        self._telemetry.kept_by_weeks(made=upkept.made, dropped=upkept.dropped)

    def _tell_end(self, run: Work, end: End, schedule_id: str | None, now: Instant) -> None:
        tell = self._log.debug if end.state in _GOOD else self._log.warning
        took = round((now - (run.started_at or now)) / SECOND, 3)
        about = fields_of_run(run.run_id, run.namespace, schedule_id)
        tell(f"run_{end.state.value}", **about, took_seconds=took, error=_in_short(end.error))


def _in_short(error: str | None) -> str | None:
    """Shorten an error; of a traceback the last line has the cause."""
    return None if not error else error.strip().splitlines()[-1][:_SHOWN_ERROR]
