"""The published client triggers and backfills, and reads every outcome."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from contract.documents import nightly
from contract.published import ClientError, Published

# Nobody claims from it: what is started stays open.
IDLE = {"workflow_type": "w", "task_queue": "nobody-claims-this"}
HOURLY = {"cron_expressions": ["0 * * * *"]}
DAY = {"start_time": "2026-03-01T00:00:00Z", "end_time": "2026-03-01T03:00:00Z"}


@pytest.fixture(params=["async", "sync"])
def client(request: pytest.FixtureRequest, published: Published) -> Published:
    return replace(published, sync=request.param == "sync")


def make(client: Published, **more: Any) -> Published:
    client.create_schedule(**nightly(**{"action": IDLE, "spec": HOURLY, **more}))
    return client.of("nightly")


def test_a_trigger_starts_a_run(client: Published) -> None:
    handle = make(client)
    done = handle.trigger()
    assert (done["schedule_id"], done["outcome"], done["reason"]) == ("nightly", "triggered", None)
    assert done["workflow_id"] == f"schedule:nightly:manual:{done['run_id']}"
    told = handle.describe()
    assert (told["fires_count"], told["latest_workflow_instance_id"]) == (1, done["workflow_id"])
    assert told["last_fired_at"] is not None


def test_a_busy_schedule_skips(client: Published) -> None:
    handle = make(client)
    handle.trigger()
    done = handle.trigger()
    assert (done["outcome"], done["reason"], done["run_id"]) == ("skipped", "overlap_policy_skip", None)


def test_a_busy_schedule_buffers_one_and_is_full_then(client: Published) -> None:
    handle = make(client, overlap_policy="buffer_one")
    outcomes = [handle.trigger() for _ in range(3)]
    assert [each["outcome"] for each in outcomes] == ["triggered", "buffered", "buffer_full"]
    assert outcomes[1]["buffer_depth"] == 1
    assert outcomes[2]["reason"]


def test_a_busy_schedule_buffers_all(client: Published) -> None:
    handle = make(client, overlap_policy="buffer_all")
    assert [handle.trigger()["buffer_depth"] for _ in range(4)] == [None, 1, 2, 3]


@pytest.mark.parametrize("policy", ["allow_all", "terminate_other"])
def test_a_trigger_may_bring_its_own_policy(client: Published, policy: str) -> None:
    handle = make(client)
    handle.trigger()
    assert handle.trigger(overlap_policy=policy)["outcome"] == "triggered"


def test_cancel_other_waits_for_those_that_it_cancels(client: Published) -> None:
    handle = make(client)
    handle.trigger()
    assert handle.trigger(overlap_policy="cancel_other")["outcome"] in ("triggered", "buffered")


def test_a_paused_schedule_is_not_triggerable(client: Published) -> None:
    done = make(client, paused=True).trigger()
    assert (done["outcome"], done["reason"]) == ("skipped", "status_not_triggerable")


def test_the_last_run_deletes_the_schedule(client: Published) -> None:
    handle = make(client, max_runs=1)
    assert handle.trigger()["outcome"] == "triggered"
    skipped = handle.trigger()
    assert (skipped["outcome"], skipped["reason"]) == ("skipped", "remaining_actions_exhausted")
    with pytest.raises(ClientError) as gone:
        handle.describe()
    assert gone.value.type == "ScheduleNotFound"


def test_an_unknown_policy_is_refused(client: Published) -> None:
    with pytest.raises(ClientError) as refused:
        make(client).trigger(overlap_policy="sometimes")
    assert (refused.value.type, list(refused.value.errors)) == ("InvalidArgument", ["overlap_policy"])


# ── backfill ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_backfill_begins_with_its_start_and_ends_before_its_end(client: Published) -> None:
    done = make(client, overlap_policy="allow_all").backfill(**DAY)
    assert (done["schedule_id"], done["outcome"], done["fires_attempted"]) == ("nightly", "backfill_started", 3)
    assert [row["fire_time"] for row in done["results"]] == [f"2026-03-01T0{hour}:00:00Z" for hour in range(3)]
    assert [row["outcome"] for row in done["results"]] == ["started"] * 3
    assert done["results"][0]["workflow_id"] == "schedule:nightly:backfill:1772323200"


def test_asking_twice_for_a_backfill_is_harmless(client: Published) -> None:
    """The client repeats a request that it got no answer to."""
    handle = make(client, overlap_policy="allow_all")
    handle.backfill(**DAY)
    again = handle.backfill(**DAY)
    assert [(row["outcome"], row["reason"]) for row in again["results"]] == [("skipped", "already_exists")] * 3
    assert handle.describe()["fires_count"] == 3


@pytest.mark.parametrize("policy", ["buffer_one", "buffer_all"])
def test_a_backfill_buffers_nothing(client: Published, policy: str) -> None:
    done = make(client).backfill(**DAY, overlap_policy=policy)
    assert [row["outcome"] for row in done["results"]] == ["started"] * 3


def test_a_backfill_under_skip_runs_one_after_the_other(client: Published) -> None:
    done = make(client).backfill(**DAY)
    assert [row["outcome"] for row in done["results"]] == ["started", "buffered", "buffered"]


def test_a_backfill_stops_when_the_runs_are_used_up(client: Published) -> None:
    done = make(client, overlap_policy="allow_all", max_runs=2).backfill(**DAY)
    assert len(done["results"]) == 2


def test_a_window_without_occurrences_is_an_empty_backfill(client: Published) -> None:
    done = make(client).backfill(start_time="2026-03-01T00:10:00Z", end_time="2026-03-01T00:20:00Z")
    assert (done["outcome"], done["fires_attempted"], done["results"]) == ("backfill_started", 0, [])


@pytest.mark.parametrize(
    ("window", "field"),
    [
        ({"start_time": DAY["end_time"], "end_time": DAY["start_time"]}, "end_time"),
        ({"start_time": DAY["start_time"], "end_time": DAY["start_time"]}, "end_time"),
        ({"start_time": "yesterday", "end_time": DAY["end_time"]}, "start_time"),
        ({"start_time": DAY["start_time"], "end_time": ""}, "end_time"),
    ],
    ids=["reversed", "empty", "no time", "blank"],
)
def test_a_window_that_is_none_is_refused(client: Published, window: dict[str, str], field: str) -> None:
    with pytest.raises(ClientError) as refused:
        make(client).backfill(**window)
    assert (refused.value.type, list(refused.value.errors)) == ("InvalidArgument", [field])


def test_a_backfill_of_too_much_is_refused_before_anything_starts(client: Published) -> None:
    handle = make(client, overlap_policy="allow_all")
    with pytest.raises(ClientError) as refused:
        handle.backfill(start_time="2026-01-01T00:00:00Z", end_time="2026-06-01T00:00:00Z")
    assert refused.value.type == "InvalidArgument"
    assert handle.describe()["fires_count"] == 0
