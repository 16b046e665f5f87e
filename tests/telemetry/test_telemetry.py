"""What the log says and the metrics count."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Any

import pytest

from horarium.core.decision.facts import Covers, Decision, Fire, Hold, Missed, Skip
from horarium.core.document.states import FINAL, Origin, Reason, RunState
from horarium.instant import SECOND, from_rfc3339
from horarium.platform.telemetry.metrics import Installation, Metrics
from horarium.platform.telemetry.telemetry import Telemetry, make_logger

TWO = from_rfc3339("2026-11-15T02:00:00Z")


class _Clock:
    def __init__(self) -> None:
        self.seconds = 100.0

    def now(self) -> int:
        return TWO

    def monotonic(self) -> float:
        return self.seconds


@dataclass(frozen=True)
class _Decided:
    decisions: tuple[Decision, ...]
    namespace: str = "default"
    schedule_id: str = "nightly-report"


@dataclass(frozen=True)
class _Tick:
    decided: tuple[_Decided, ...] = ()
    parked: tuple[tuple[str, str, str], ...] = ()
    claimed: int = 1


def _watched(*, per_second: int = 50, **options: Any) -> tuple[Telemetry, io.StringIO, _Clock]:
    stream, clock = io.StringIO(), _Clock()
    return (
        Telemetry(clock, logger=make_logger(stream=stream, **options), decisions_per_second=per_second),
        stream,
        clock,
    )


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    registries = (metrics.registry, metrics.engine, metrics.installation)
    found = (each.get_sample_value(name, labels) for each in registries)
    return next((value for value in found if value is not None), None)


LINES: dict[str, tuple[Decision, str]] = {
    "fired": (Fire(TWO, TWO), "fired  nightly-report  nominal 02:00:00Z  +0.012 s"),
    "covering": (
        Fire(TWO, TWO, covers=Covers(TWO, TWO, 3)),
        "fired  nightly-report  nominal 02:00:00Z  +0.012 s  covers=3",
    ),
    "held": (Hold(TWO, TWO + SECOND), "held  nightly-report  nominal 02:00:00Z  -0.988 s"),
    "skipped": (Skip(TWO, Reason.CALENDAR), "skipped  nightly-report  nominal 02:00:00Z  reason=calendar"),
    "missed": (
        Missed(TWO, TWO + 5 * SECOND, 6, Reason.MISSED),
        "missed  nightly-report  nominal 02:00:00Z  last=2026-11-15T02:00:05Z  count=6  reason=missed",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("decision", "line"), LINES.values(), ids=LINES)
def test_a_person_reads_one_short_line_for_each_decision(decision: Decision, line: str) -> None:
    telemetry, stream, _ = _watched()
    telemetry.tick(_Tick((_Decided((decision,)),)), TWO + 12_000)
    assert stream.getvalue() == line + "\n"


def test_a_program_reads_json() -> None:
    telemetry, stream, _ = _watched(format="json")
    telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO)
    said = json.loads(stream.getvalue())
    assert {name: said[name] for name in ("event", "namespace", "schedule_id", "nominal")} == {
        "event": "fired",
        "namespace": "default",
        "schedule_id": "nightly-report",
        "nominal": "2026-11-15T02:00:00Z",
    }


def test_a_name_cannot_forge_a_second_line() -> None:
    telemetry, stream, _ = _watched()
    telemetry.log.info("fired", schedule_id="a\nERROR  b")
    assert stream.getvalue().count("\n") == 1


def test_what_is_below_the_level_is_not_said() -> None:
    telemetry, stream, _ = _watched(level="error")
    telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO)
    assert stream.getvalue() == ""


def test_under_load_a_second_is_summed_up_in_one_line() -> None:
    telemetry, stream, clock = _watched(per_second=2)
    busy = _Tick((_Decided((*(Fire(TWO + i, TWO + i) for i in range(50)), Skip(TWO, Reason.CALENDAR))),))
    telemetry.tick(busy, TWO)
    assert stream.getvalue().count("\n") == 2
    clock.seconds += 1
    telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO)
    lines = stream.getvalue().splitlines()
    assert lines[2] == "decisions  fired=48  skipped=1"
    assert lines[3].startswith("fired")
    assert _value(telemetry.metrics, "horarium_runs_emitted_total", origin="scheduled") == 51


def test_what_was_not_said_is_said_at_the_end() -> None:
    telemetry, stream, _ = _watched(per_second=0)
    telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO)
    telemetry.flush()
    telemetry.flush()
    assert stream.getvalue() == "decisions  fired=1\n"


def test_a_parked_schedule_is_an_error_line() -> None:
    telemetry, stream, _ = _watched()
    telemetry.tick(_Tick(parked=(("default", "bad", "no such zone"),)), TWO)
    assert stream.getvalue() == "ERROR  schedule_broken  bad  error=no such zone\n"
    telemetry, stream, _ = _watched(format="json")
    telemetry.tick(_Tick(parked=(("team-a", "bad", "no such zone"),)), TWO)
    told = json.loads(stream.getvalue())
    assert (told["namespace"], told["schedule_id"]) == ("team-a", "bad")


def test_a_name_outside_of_the_default_namespace_stands_behind_its_namespace() -> None:
    telemetry, stream, _ = _watched()
    telemetry.log.warning("failed", namespace="team-a", schedule_id="nightly", run_id="01JQ", error="no")
    telemetry.log.warning("failed", namespace="team-a", run_id="01JR")
    telemetry.log.warning("refused", namespace="team-a")
    assert stream.getvalue().splitlines() == [
        "WARNING  failed  team-a/nightly  01JQ  error=no",
        "WARNING  failed  team-a/01JR",
        "WARNING  refused  namespace=team-a",
    ]


def test_each_decision_moves_its_own_counter() -> None:
    telemetry, _, _ = _watched(level="error")
    decisions = (
        Fire(TWO, TWO),
        Hold(TWO, TWO),
        Skip(TWO, Reason.OVERLAP_POLICY_SKIP),
        Missed(TWO, TWO + 9 * SECOND, 10, Reason.CATCHUP_CAP),
    )
    telemetry.tick(_Tick((_Decided(decisions),), claimed=7), TWO + SECOND)
    metrics = telemetry.metrics
    assert _value(metrics, "horarium_schedules_due") == 7
    assert _value(metrics, "horarium_runs_emitted_total", origin="scheduled") == 2
    assert _value(metrics, "horarium_runs_skipped_total", reason="overlap_policy_skip") == 1
    assert _value(metrics, "horarium_runs_skipped_overlap_total") == 1
    assert _value(metrics, "horarium_runs_missed_total", reason="catchup_cap") == 10
    assert _value(metrics, "horarium_drift_seconds_count") == 1


def test_a_trigger_by_hand_has_no_drift() -> None:
    telemetry, _, _ = _watched(level="error")
    telemetry.decided("default", "a", (Fire(TWO, TWO),), TWO, Origin.MANUAL)
    assert _value(telemetry.metrics, "horarium_runs_emitted_total", origin="manual") == 1
    assert _value(telemetry.metrics, "horarium_drift_seconds_count") == 0


def test_drift_has_a_sum_and_a_count() -> None:
    telemetry, _, _ = _watched(level="error")
    for late in (SECOND // 4, 2 * SECOND):
        telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO + late)
    shown = telemetry.metrics.render().decode()
    assert "horarium_drift_seconds_sum 2.25" in shown
    assert "horarium_drift_seconds_count 2.0" in shown
    assert _value(telemetry.metrics, "horarium_drift_seconds_bucket", le="0.25") == 1
    assert _value(telemetry.metrics, "horarium_fires_early_total") == 0


def test_an_early_fire_is_counted_apart_and_takes_nothing_from_the_sum() -> None:
    telemetry, _, _ = _watched(level="error")
    telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO - SECOND // 2)
    assert _value(telemetry.metrics, "horarium_fires_early_total") == 1
    assert _value(telemetry.metrics, "horarium_drift_seconds_sum") == 0
    assert _value(telemetry.metrics, "horarium_drift_seconds_bucket", le="0.0") == 1


def test_every_histogram_has_a_sum() -> None:
    metrics = Metrics()
    families = [
        each for registry in (metrics.registry, metrics.engine, metrics.installation) for each in registry.collect()
    ]
    histograms = [family for family in families if family.type == "histogram"]
    assert len(histograms) >= 2
    for family in histograms:
        assert {f"{family.name}_sum", f"{family.name}_count"} <= {sample.name for sample in family.samples}


def test_the_age_of_the_last_tick_grows_while_nothing_happens() -> None:
    telemetry, _, clock = _watched()
    telemetry.tick(_Tick(), TWO)
    clock.seconds += 40
    assert _value(telemetry.metrics, "horarium_last_completed_tick_age_seconds") == 40


@pytest.mark.parametrize("state", sorted(FINAL))
def test_every_end_is_counted_by_its_state(state: RunState) -> None:
    telemetry, _, _ = _watched()
    telemetry.ended(state)
    assert _value(telemetry.metrics, "horarium_run_ends_total", state=state.value) == 1
    failed = 1 if state is RunState.LAUNCH_FAILED else 0
    assert _value(telemetry.metrics, "horarium_runs_failed_launch_total") == failed


def test_what_only_the_database_knows_is_shown() -> None:
    metrics = Metrics()
    metrics.set_installation(Installation(3.5, 1.0, 2, 5, {"ready": 4}, 8, 9, 0.0, 0))
    metrics.set_installation(Installation(1.5, 1.0, 1, 5, {"held": 1}, 3, 4, 0.0, 0))
    assert _value(metrics, "horarium_oldest_undecided_seconds") == 1.5
    assert _value(metrics, "horarium_schedules_broken") == 1
    assert _value(metrics, "horarium_queue_depth", state="ready") == 0
    assert _value(metrics, "horarium_queue_depth", state="held") == 1
    assert _value(metrics, "horarium_workflow_changes_pending") == 3
    assert _value(metrics, "horarium_approvals_waiting") == 4
    assert _value(metrics, "horarium_schedules_failing") == 5


def test_a_process_exports_what_it_does_alone() -> None:
    metrics, figures = Metrics(), Installation(1.5, 1.0, 1, 5, {"held": 1}, 3, 4, 0.0, 0)

    def shown(**parts: Any) -> set[str]:
        return {line.split()[2] for line in metrics.render(**parts).decode().splitlines() if line.startswith("# TYPE")}

    server, worker = shown(engine=False, installation=figures), shown(engine=True)
    assert {"horarium_last_completed_tick_age_seconds", "horarium_drift_seconds"} <= worker - server
    assert {"horarium_queue_depth", "horarium_schedules_failing"} <= server - worker
    assert {"horarium_runs_emitted_total", "horarium_tzdata_info"} <= server & worker
    assert shown(engine=True, installation=figures) == server | worker


def test_launches_and_lost_leases_are_counted() -> None:
    telemetry, _, _ = _watched()
    telemetry.launched(fired_at=TWO, started_at=TWO + SECOND)
    telemetry.lease_expired(2)
    assert _value(telemetry.metrics, "horarium_start_delay_seconds_sum") == 1.0
    assert _value(telemetry.metrics, "horarium_lease_expiries_total") == 2


def test_the_exposition_names_the_time_zone_data_and_no_schedule() -> None:
    telemetry, _, _ = _watched(level="error")
    telemetry.tick(_Tick((_Decided((Fire(TWO, TWO),)),)), TWO)
    text = telemetry.metrics.render().decode()
    assert "horarium_tzdata_info{version=" in text
    assert "nightly-report" not in text


def test_two_services_in_one_process_do_not_count_together() -> None:
    one, other = Metrics(), Metrics()
    one.ticks.inc()
    assert _value(other, "horarium_ticks_total") == 0


def test_every_reason_has_its_series_from_the_start() -> None:
    metrics = Metrics()
    assert all(_value(metrics, "horarium_runs_skipped_total", reason=reason.value) == 0 for reason in Reason)
