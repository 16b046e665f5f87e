"""A run that is given to a real Celery worker ends as its task did, and each task is executed once."""

from __future__ import annotations

from agents.house import House, name, until
from celery_workers.conftest import WORKER
from celery_workers.house import start, task_id
from celery_workers.running import Bench


def test_a_task_is_executed_once_and_its_result_is_the_run_s(house: House, bench: Bench) -> None:
    run = house.ended(start(house, "look", kwargs={"region": "eu"}, priority=7, timeout_seconds=60))
    told = run["result"]
    assert run["state"] == "succeeded"
    assert told["id"] == run["key"]
    assert bench.executed(run["key"]) == ["look"]
    assert told["given"] == {"region": "eu"}
    assert {each: told["header"][each] for each in ("run_id", "namespace", "attempt")} == {
        "run_id": run["run_id"],
        "namespace": "default",
        "attempt": 0,
    }
    assert told["priority"] == 2, "Redis serves 0 first"
    hard, soft = told["timelimit"]
    assert 0 < soft < hard <= 60
    assert told["expires"] is not None


def test_a_task_that_raises_is_tried_again_under_an_id_of_its_own(house: House, bench: Bench) -> None:
    retry = {"max_retries": 1, "backoff_ms": 1, "retry_on": ["provider_error"]}
    run = house.ended(start(house, "fail", ["no money"], retry_policy=retry))
    assert (run["state"], run["error_class"]) == ("failed", "ValueError")
    assert "no money" in run["error"]
    assert [bench.executed(task_id(house, run["run_id"], attempt)) for attempt in (0, 1, 2)] == [["fail"], ["fail"], []]


def test_what_is_no_json_is_told_as_text_and_celery_s_own_retries_are_one_attempt(house: House, bench: Bench) -> None:
    strange, again = start(house, "strange"), start(house, "again", [2])
    assert house.ended(strange)["result"] == "{1, 2}"
    run = house.ended(again)
    assert (run["state"], run["result"], run["attempt"]) == ("succeeded", 2, 0)
    assert bench.executed(run["key"]) == ["again"] * 3


def test_a_task_that_the_worker_does_not_know_fails(house: House) -> None:
    run = house.ended(start(house, "nobody.knows"))
    assert (run["state"], run["error_class"]) == ("failed", "NotRegistered")


def test_what_is_cancelled_revoked_or_expired_before_it_began_is_never_executed(house: House, bench: Bench) -> None:
    queue = name("later")
    cancelled, revoked = (start(house, "add", [1, 2], queue=queue) for _ in range(2))
    expired = start(house, "add", [1, 2], queue=queue, timeout_seconds=1)
    ids = {run_id: task_id(house, run_id) for run_id in (cancelled, revoked, expired)}
    until(lambda: len(bench.waiting(queue)) == 3)
    house.ask("POST", f"/api/runs/{cancelled}/cancel", {})
    with bench.control() as control:
        control.revoke(ids[revoked])
    assert house.ended(cancelled)["state"] == "cancelled"
    assert house.ended(expired)["state"] == "timed_out"
    bench.consume(queue, WORKER)
    assert house.ended(revoked)["state"] == "cancelled"
    assert house.ended(start(house, "add", [1, 2], queue=queue))["result"] == 3
    assert [bench.executed(each) for each in ids.values()] == [[], [], []]


def test_what_is_terminated_or_takes_too_long_is_stopped_where_it_runs(house: House, bench: Bench) -> None:
    """By its soft limit if it listens, else by the hard one, its run's deadline: its places are free again."""
    soft, hard = start(house, "obedient", timeout_seconds=29), start(house, "stubborn", timeout_seconds=2)
    ends = [house.ended(run_id) for run_id in (soft, hard)]
    assert [run["state"] for run in ends] == ["timed_out", "timed_out"]
    assert "SoftTimeLimitExceeded" in ends[0]["error"]
    unwanted = start(house, "hold", [name("never")])
    house.until(unwanted, "running")
    house.ask("POST", f"/api/runs/{unwanted}/terminate", {})
    assert house.ended(unwanted)["state"] == "terminated"
    pair = {each: start(house, "hold", [each]) for each in (name("left"), name("right"))}
    for run_id in pair.values():
        house.until(run_id, "running")  # the worker has two places, and each of them needs one
    for each, run_id in pair.items():
        bench.release(each)
        assert house.ended(run_id)["result"] == each
