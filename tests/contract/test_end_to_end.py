"""From the published client to a worker and back: a workflow that nothing here knows is done by whoever claims it."""

from __future__ import annotations

import time
from typing import Any

import httpx
from contract.published import Published


def claim(http: httpx.Client, queue: str) -> dict[str, Any]:
    """The run comes to its queue as soon as the engine has seen it."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        if found := http.post(f"/api/queues/{queue}/claim", json={"worker": "worker-1"}).json()["runs"]:
            return dict(found[0])
        time.sleep(0.05)
    raise AssertionError("nothing came to the queue")


def report(http: httpx.Client, run: dict[str, Any], **said: Any) -> None:
    answer = http.post(f"/api/runs/{run['run_id']}/report", json={"lease_epoch": run["lease_epoch"], **said})
    assert answer.status_code == 200, answer.text


def test_a_triggered_run_is_claimed_done_and_told_in_both_streams(published: Published, http: httpx.Client) -> None:
    action = {"workflow_type": "billing.InvoiceSync", "task_queue": "php-workers", "input": ["nightly", {"limit": 5}]}
    spec = {"cron_expressions": ["0 2 * * *"], "timezone": "America/New_York"}
    published.create_schedule(schedule_id="sync", spec=spec, action=action, memo={"origin": "scheduled"})
    started = published.of("sync").trigger()

    run = claim(http, "php-workers")
    assert (run["run_id"], run["workflow_instance_id"]) == (started["run_id"], started["workflow_id"])
    assert (run["workflow_type"], run["inputs"]) == ("billing.InvoiceSync", ["nightly", {"limit": 5}])
    assert (run["memo"], run["state"]) == ({"origin": "scheduled"}, "running")
    beat = http.post(f"/api/runs/{run['run_id']}/heartbeat", json={"lease_epoch": run["lease_epoch"]}).json()
    assert beat["stop_requested"] is False
    report(http, run, state="succeeded", result={"synced": 3})
    report(http, run, state="succeeded", result={"synced": 3})  # as a worker would that got no answer

    done = http.get(f"/api/runs/{run['run_id']}").json()
    assert (done["state"], done["result"]) == ("succeeded", {"synced": 3})
    [triggered] = [event for event in published.of("sync").iter_history() if event["event_type"] == "ScheduleTriggered"]
    assert triggered["workflow_run_id"] == run["run_id"]
    first, *rest = http.get(f"/api/runs/{run['run_id']}/events").json()["events"]
    lineage = first["payload"]
    assert first["event_type"] == "ScheduleTriggered"
    assert (lineage["schedule_id"], lineage["trigger_number"]) == ("sync", 1)
    assert (lineage["cron_expression"], lineage["timezone"]) == ("0 2 * * *", "America/New_York")
    assert lineage["occurrence_time"] == triggered["payload"]["occurrence_time"]
    assert [event["event_type"] for event in rest][-1] == "run.completed"
    told = published.describe_schedule(schedule_id="sync")
    assert (told["fires_count"], told["failures_count"], told["status"]) == (1, 0, "active")


def test_a_due_occurrence_comes_to_the_queue_by_itself(published: Published, http: httpx.Client) -> None:
    action = {"workflow_type": "ping", "task_queue": "due", "input": []}
    published.create_schedule(schedule_id="ping", spec={"intervals": [{"every": "PT1S"}]}, action=action, max_runs=1)
    run = claim(http, "due")
    assert (run["origin"], run["schedule_id"], run["inputs"]) == ("scheduled", "ping", [])
    assert run["workflow_instance_id"].startswith("schedule:ping:")
    report(http, run, state="succeeded")
    events = [event["event_type"] for event in published.iter_schedule_history(schedule_id="ping")]
    assert events == ["ScheduleCreated", "ScheduleTriggered", "ScheduleDeleted"]
    assert http.get(f"/api/runs/{run['run_id']}").json()["state"] == "succeeded"


def test_a_buffered_trigger_is_released_by_the_end_of_the_one_before(published: Published, http: httpx.Client) -> None:
    published.create_schedule(
        schedule_id="one",
        spec={"cron_expressions": ["0 2 * * *"]},
        action={"workflow_type": "w", "task_queue": "buffered"},
        overlap_policy="buffer_one",
    )
    handle = published.of("one")
    first, second = handle.trigger(), handle.trigger()
    assert (first["outcome"], second["outcome"]) == ("triggered", "buffered")
    report(http, claim(http, "buffered"), state="succeeded")
    released = claim(http, "buffered")
    assert released["run_id"] == second["run_id"]
    report(http, released, state="succeeded")
    assert handle.describe()["fires_count"] == 2
