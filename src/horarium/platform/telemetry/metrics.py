"""Counters, gauges and histograms of a process, and gauges of the whole installation.

A process exports its own metrics: those of ticker and dispatcher if it runs them, the gauges of the installation if
it serves requests. No label names a schedule, a run or a tenant: the number of series stays the same, however many
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from horarium.core.document.states import FINAL, Origin, Reason, RunState

CONTENT_TYPE = CONTENT_TYPE_LATEST
# From 0 on: a histogram that could be negative has no sum. What is early is counted apart.
_DRIFT = (0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400)
_DELAY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600)
_WRITE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


@dataclass(frozen=True, slots=True)
class Installation:
    """Figures of the whole installation, read from its database. Each field is the gauge `horarium_<field>`."""

    oldest_undecided_seconds: float
    newest_tick_age_seconds: float
    schedules_broken: int
    schedules_failing: int
    queue_depth: Mapping[str, int]
    workflow_changes_pending: int
    approvals_waiting: int
    feed_lag_seconds: float
    subscriptions_parked: int


_INSTALLATION: Final[Mapping[str, str]] = MappingProxyType(
    {
        "oldest_undecided_seconds": "Seconds that the oldest due occurrence has waited for a decision.",
        "newest_tick_age_seconds": "Seconds since any process completed a tick; +Inf before the first tick.",
        "schedules_broken": "Schedules in status broken: their definition cannot be evaluated.",
        "schedules_failing": "Schedules whose health is failing.",
        "queue_depth": "Open runs, by state. The count of each state stops at 50,000.",
        "workflow_changes_pending": "Finished steps that their workflows have not processed yet.",
        "approvals_waiting": "Pending approval requests.",
        "feed_lag_seconds": "Seconds that the oldest event has waited until readers can see it.",
        "subscriptions_parked": "Subscriptions that cannot be read and receive no events.",
    }
)


class Metrics:
    """The metrics of a process. Series whose labels are known beforehand exist from the start, at zero."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.engine = CollectorRegistry()
        self.installation = CollectorRegistry()
        self._counters()
        self._engine_counters()
        self._gauges()
        self._histograms()

    def render(self, *, engine: bool = True, installation: Installation | None = None) -> bytes:
        """Return the text exposition for `/metrics`.

        Without figures of the installation its gauges are left out: old values would look like good ones.
        """
        shown = [self.registry, *([self.engine] if engine else [])]
        if installation is not None:
            self.set_installation(installation)
            shown.append(self.installation)
        return b"".join(map(generate_latest, shown))

    def set_installation(self, figures: Installation) -> None:
        for each in fields(Installation):
            gauge, value = self._of_installation[each.name], getattr(figures, each.name)
            if isinstance(value, Mapping):
                for state in sorted(frozenset(RunState) - FINAL):
                    gauge.labels(state.value).set(value.get(state.value, 0))
            else:
                gauge.set(value)

    def watch_last_tick(self, age_seconds: Callable[[], float]) -> None:
        """Asked when somebody looks, so that a ticker that hangs shows its age."""
        self.last_completed_tick_age.set_function(age_seconds)

    def _counters(self) -> None:
        self.emitted = self._labelled("runs_emitted", "Runs created, by origin.", "origin", Origin)
        self.skipped = self._labelled("runs_skipped", "Occurrences skipped, by reason.", "reason", Reason)
        self.skipped_overlap = Counter(
            "horarium_runs_skipped_overlap",
            "Occurrences skipped because a previous run was active.",
            registry=self.registry,
        )
        self.ends = self._labelled("run_ends", "Runs that ended, by final state.", "state", sorted(FINAL))
        self.unreadable_rows = Counter(
            "horarium_unreadable_rows",
            "Stored rows that could not be read. Each process counts a row once.",
            registry=self.registry,
        )

    def _engine_counters(self) -> None:
        self.missed = self._labelled("runs_missed", "Occurrences missed, by reason.", "reason", Reason, self.engine)
        self.failed_launch = self._of_engine("runs_failed_launch", "Runs whose launch failed.")
        self.lease_expiries = self._of_engine("lease_expiries", "Leases that expired without a heartbeat.")
        self.fires_early = self._of_engine("fires_early", "Occurrences fired before their scheduled time. Must stay 0.")
        self.partitions_made = self._of_engine("partitions_made", "Weekly partitions created on PostgreSQL.")
        self.partitions_dropped = self._of_engine("partitions_dropped", "Weekly partitions dropped on PostgreSQL.")
        self.ticks = self._of_engine("ticks", "Completed ticks.")

    def _gauges(self) -> None:
        self.schedules_due = Gauge(
            "horarium_schedules_due", "Schedules claimed by the last tick.", registry=self.engine
        )
        self.last_completed_tick_age = Gauge(
            "horarium_last_completed_tick_age_seconds",
            "Seconds since this process completed a tick.",
            registry=self.engine,
        )
        self.tzdata = Info("horarium_tzdata", "Time zone data in use.", registry=self.registry)
        self._of_installation = {
            name: Gauge(
                f"horarium_{name}", text, ["state"] if name == "queue_depth" else [], registry=self.installation
            )
            for name, text in _INSTALLATION.items()
        }

    def _histograms(self) -> None:
        self.drift = Histogram(
            "horarium_drift_seconds",
            "Seconds from the scheduled time to the decision to fire.",
            buckets=_DRIFT,
            registry=self.engine,
        )
        self.start_delay = Histogram(
            "horarium_start_delay_seconds",
            "Seconds from the decision to fire to the start of the run.",
            buckets=_DELAY,
            registry=self.registry,
        )

        self.write_seconds = Histogram(
            "horarium_write_seconds",
            "Duration of write transactions, in seconds. On SQLite, writes are serialised.",
            buckets=_WRITE,
            registry=self.registry,
        )

    def _labelled(
        self, name: str, text: str, label: str, values: Iterable[StrEnum], registry: CollectorRegistry | None = None
    ) -> Counter:
        counter = Counter(f"horarium_{name}", text, [label], registry=registry or self.registry)
        for value in values:
            counter.labels(value.value)
        return counter

    def _of_engine(self, name: str, text: str) -> Counter:
        return Counter(f"horarium_{name}", text, registry=self.engine)
