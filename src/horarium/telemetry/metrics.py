"""What can be graphed: counters, gauges and histograms in a registry of their own.

No label ever names a schedule, a run or a tenant: the number of series stays the same, however many
of them there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from horarium.schedule.reason import Reason
from horarium.schedule.run import FINAL, Origin, RunState

CONTENT_TYPE = CONTENT_TYPE_LATEST
# From 0 on: a histogram that could be negative has no sum. What is early is counted apart.
_DRIFT = (0, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600, 86_400)
_DELAY = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3_600)
_WRITE = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """One for each process. Series whose labels are known beforehand exist from the start, at zero."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._counters()
        self._gauges()
        self._histograms()

    def render(self) -> bytes:
        """The text exposition, for `/metrics`."""
        return generate_latest(self.registry)

    def set_queue_depth(self, by_state: Mapping[str, int]) -> None:
        for state in sorted(frozenset(RunState) - FINAL):
            self.queue_depth.labels(state.value).set(by_state.get(state.value, 0))

    def watch_last_tick(self, age_seconds: Callable[[], float]) -> None:
        """Asked when somebody looks, so that a ticker that hangs shows its age."""
        self.last_completed_tick_age.set_function(age_seconds)

    def _counters(self) -> None:
        self.emitted = self._counter("runs_emitted", "Runs born, by what asked for them.", "origin", Origin)
        self.skipped = self._counter("runs_skipped", "Occurrences that had no run, by reason.", "reason", Reason)
        self.missed = self._counter("runs_missed", "Occurrences in missed ranges, by reason.", "reason", Reason)
        self.skipped_overlap = Counter(
            "horarium_runs_skipped_overlap", "Occurrences skipped because a run was active.", registry=self.registry
        )
        self.failed_launch = Counter(
            "horarium_runs_failed_launch", "Runs that never reached their target.", registry=self.registry
        )
        self.ends = self._counter("run_ends", "Runs that ended, by final state.", "state", sorted(FINAL))
        self.unreadable_rows = Counter(
            "horarium_unreadable_rows",
            "Stored rows that could not be read, each counted once by a process.",
            registry=self.registry,
        )
        self.lease_expiries = Counter(
            "horarium_lease_expiries", "Leases whose holder was not heard of in time.", registry=self.registry
        )
        self.fires_early = Counter(
            "horarium_fires_early",
            "Fires decided before their planned time, which would be a defect.",
            registry=self.registry,
        )
        self.partitions_made = Counter(
            "horarium_partitions_made", "Tables of a week that were made, on PostgreSQL.", registry=self.registry
        )
        self.partitions_dropped = Counter(
            "horarium_partitions_dropped", "Tables of a week that were dropped, on PostgreSQL.", registry=self.registry
        )
        self.ticks = Counter("horarium_ticks", "Steps of the ticker that were completed.", registry=self.registry)

    def _gauges(self) -> None:
        self.schedules_due = self._gauge("schedules_due", "Schedules claimed by the last step of the ticker.")
        self.schedules_broken = self._gauge("schedules_broken", "Schedules set aside because they cannot be planned.")
        self.oldest_undecided = self._gauge(
            "oldest_undecided_seconds", "How long the oldest due occurrence has waited for its decision."
        )
        self.last_completed_tick_age = self._gauge(
            "last_completed_tick_age_seconds", "How long ago the ticker of this process completed a step."
        )
        self.queue_depth = Gauge(
            "horarium_queue_depth", "Runs that are not final, by state.", ["state"], registry=self.registry
        )
        self.set_queue_depth({})
        self.feed_lag = Gauge(
            "horarium_feed_lag_seconds",
            "How long the oldest entry of the feed has waited that no reader may see yet.",
            registry=self.registry,
        )
        self.subscriptions_parked = Gauge(
            "horarium_subscriptions_parked",
            "Subscriptions that cannot be read and receive no messages.",
            registry=self.registry,
        )
        self.workflow_changes_pending = self._gauge(
            "workflow_changes_pending", "Ends of steps that their workflows have not taken note of."
        )
        self.approvals_waiting = self._gauge("approvals_waiting", "Questions that nobody has answered yet.")
        self.tzdata = Info("horarium_tzdata", "The time zone data in use.", registry=self.registry)

    def _histograms(self) -> None:
        self.drift = Histogram(
            "horarium_drift_seconds",
            "From the planned time to the decision to fire.",
            buckets=_DRIFT,
            registry=self.registry,
        )
        self.start_delay = Histogram(
            "horarium_start_delay_seconds",
            "From the decision to fire to the start of the work.",
            buckets=_DELAY,
            registry=self.registry,
        )

        self.write_seconds = Histogram(
            "horarium_write_seconds",
            "From the begin of a write transaction to its end. On SQLite all writes wait for it.",
            buckets=_WRITE,
            registry=self.registry,
        )

    def _counter(self, name: str, text: str, label: str, values: Iterable[StrEnum]) -> Counter:
        counter = Counter(f"horarium_{name}", text, [label], registry=self.registry)
        for value in values:
            counter.labels(value.value)
        return counter

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"horarium_{name}", text, registry=self.registry)
