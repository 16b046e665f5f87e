"""The published client writes, reads, pauses and deletes schedules here as it does on its own server."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from contract.documents import NIGHTLY, REPORT, nightly
from contract.published import ClientError, Published

from horarium.instant import from_rfc3339


@pytest.fixture(params=["async", "sync"])
def client(request: pytest.FixtureRequest, published: Published) -> Published:
    return replace(published, sync=request.param == "sync")


# ── creating and describing ──────────────────────────────────────────────────────────────────────────


def test_creating_gives_a_handle(client: Published) -> None:
    assert client.create_schedule(**nightly()) == {"handle": "nightly"}


def test_an_id_is_made_where_the_client_sends_none(client: Published) -> None:
    made = client.create_schedule(**nightly(schedule_id=None))["handle"]
    assert made
    assert client.describe_schedule(schedule_id=made)["schedule_id"] == made


def test_describing_tells_every_flat_field(client: Published) -> None:
    client.create_schedule(
        **nightly(
            overlap_policy="buffer_one",
            jitter_seconds=60,
            max_runs=9,
            memo={"origin": {"deep": [1, None]}},
            search_attributes={"tenant": "42", "tags": ["a", "b"], "live": True},
            note="every night",
        )
    )
    told = client.describe_schedule(schedule_id="nightly")
    times = {name: told.pop(name) for name in ("next_fire_at", "created_at", "updated_at")}
    action = told.pop("action")
    assert action | REPORT == action
    assert isinstance(told.pop("info"), dict)
    assert told == {
        "schedule_id": "nightly",
        "status": "active",
        "spec": {**NIGHTLY, "jitter_seconds": 60},
        "overlap_policy": "buffer_one",
        "note": "every night",
        "memo": {"origin": {"deep": [1, None]}},
        "search_attributes": {"tenant": "42", "tags": ["a", "b"], "live": True},
        "jitter_seconds": 60,
        "max_runs": 9,
        "remaining_actions": 9,
        "fires_count": 0,
        "failures_count": 0,
        "last_fired_at": None,
        "latest_workflow_instance_id": None,
        "paused_at": None,
    }
    assert from_rfc3339(times["next_fire_at"]) > from_rfc3339(times["created_at"]) == from_rfc3339(times["updated_at"])


def test_counters_are_numbers_in_lists_too(client: Published) -> None:
    client.create_schedule(**nightly())
    [row] = client.list_schedules()["schedules"]
    assert (row["fires_count"], row["failures_count"]) == (0, 0)
    assert row["status"] == "active"
    assert row["next_fire_at"] is not None


def test_crons_and_intervals_unite(client: Published) -> None:
    spec = {
        "cron_expressions": ["0 12 * * *", "30 6 * * MON"],
        "intervals": [{"every": "PT6H"}, {"every": "PT1H", "offset": "PT5M"}],
        "timezone": "America/Chicago",
    }
    client.create_schedule(**nightly(spec=spec))
    assert client.describe_schedule(schedule_id="nightly")["spec"] == spec


@pytest.mark.parametrize("policy", ["skip", "buffer_one", "buffer_all", "allow_all", "cancel_other", "terminate_other"])
def test_every_overlap_policy_of_the_contract_is_known(published: Published, policy: str) -> None:
    published.create_schedule(**nightly(overlap_policy=policy))
    assert published.describe_schedule(schedule_id="nightly")["overlap_policy"] == policy


def test_timeouts_are_kept(published: Published) -> None:
    action = {**REPORT, "execution_timeout_seconds": 600, "run_timeout_seconds": 60}
    published.create_schedule(**nightly(action=action))
    told = published.describe_schedule(schedule_id="nightly")["action"]
    assert (told["execution_timeout_seconds"], told["run_timeout_seconds"]) == (600, 60)


def test_a_schedule_may_be_born_paused(client: Published) -> None:
    client.create_schedule(**nightly(paused=True))
    told = client.describe_schedule(schedule_id="nightly")
    assert told["status"] == "paused"
    assert told["paused_at"] is not None
    client.resume_schedule(schedule_id="nightly")
    assert client.describe_schedule(schedule_id="nightly")["status"] == "active"


def test_health_answers_an_object(published: Published) -> None:
    assert published.health()["status"] == "ok"


# ── changing ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_spec_replaces_the_whole_of_the_old_one(client: Published) -> None:
    client.create_schedule(**nightly(jitter_seconds=30))
    client.update_schedule(schedule_id="nightly", spec={"intervals": [{"every": "PT30M"}]})
    told = client.describe_schedule(schedule_id="nightly")
    assert told["spec"] == {"intervals": [{"every": "PT30M"}], "jitter_seconds": 30}
    assert told["jitter_seconds"] == 30


def test_a_new_action_is_merged_into_the_old_one(client: Published) -> None:
    client.create_schedule(**nightly(action={**REPORT, "run_timeout_seconds": 60}))
    client.update_schedule(schedule_id="nightly", action={"workflow_type": "summary"})
    told = client.describe_schedule(schedule_id="nightly")["action"]
    assert told | {"workflow_type": "summary", "task_queue": "reports", "run_timeout_seconds": 60} == told


def test_empty_objects_clear_memo_and_search_attributes(client: Published) -> None:
    client.create_schedule(**nightly(memo={"a": 1}, search_attributes={"tenant": "42"}))
    client.update_schedule(schedule_id="nightly", memo={}, search_attributes={})
    told = client.describe_schedule(schedule_id="nightly")
    assert not told["memo"]
    assert not told["search_attributes"]
    with pytest.raises(ClientError) as gone:
        client.list_schedules(query="tenant = '42'")
    assert gone.value.reason == "unsupported_schedule_visibility_field"


def test_every_field_of_an_update_arrives(client: Published) -> None:
    client.create_schedule(**nightly(note="old", max_runs=3))
    client.of("nightly").update(overlap_policy="allow_all", jitter_seconds=5, max_runs=20, note="new", memo={"b": 2})
    told = client.describe_schedule(schedule_id="nightly")
    wanted = {"overlap_policy": "allow_all", "jitter_seconds": 5, "max_runs": 20, "note": "new", "memo": {"b": 2}}
    assert {name: told[name] for name in wanted} == wanted
    assert told["remaining_actions"] == 20
    assert told["spec"]["cron_expressions"] == ["0 2 * * *"]


def test_zero_jitter_is_a_value(client: Published) -> None:
    client.create_schedule(**nightly(jitter_seconds=5))
    client.update_schedule(schedule_id="nightly", jitter_seconds=0)
    assert client.describe_schedule(schedule_id="nightly")["jitter_seconds"] == 0


def test_an_update_that_says_nothing_changes_nothing(client: Published) -> None:
    client.create_schedule(**nightly())
    before = client.describe_schedule(schedule_id="nightly")
    client.update_schedule(schedule_id="nightly")
    assert client.describe_schedule(schedule_id="nightly") == before


def test_an_update_of_the_note_leaves_the_next_fire_alone(published: Published) -> None:
    published.create_schedule(**nightly())
    before = published.describe_schedule(schedule_id="nightly")["next_fire_at"]
    published.update_schedule(schedule_id="nightly", note="later")
    assert published.describe_schedule(schedule_id="nightly")["next_fire_at"] == before


# ── pausing, resuming, deleting ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("note", [None, "audit"])
def test_pausing_and_resuming_by_handle(client: Published, note: str | None) -> None:
    client.create_schedule(**nightly())
    handle = client.of("nightly")
    assert handle.pause(note=note) is None
    told = handle.describe()
    assert (told["status"], told["next_fire_at"] is None) == ("paused", False)
    assert told["paused_at"] is not None
    assert handle.resume(note=note) is None
    told = handle.describe()
    assert (told["status"], told["paused_at"]) == ("active", None)
    assert told["next_fire_at"] is not None


def test_pausing_twice_and_resuming_twice_are_no_errors(client: Published) -> None:
    client.create_schedule(**nightly())
    for call in (client.pause_schedule, client.resume_schedule):
        call(schedule_id="nightly")
        call(schedule_id="nightly")


def test_a_deleted_schedule_is_gone_and_its_id_is_free(client: Published) -> None:
    client.create_schedule(**nightly())
    assert client.of("nightly").delete() is None
    with pytest.raises(ClientError) as gone:
        client.describe_schedule(schedule_id="nightly")
    assert (gone.value.type, gone.value.schedule_id) == ("ScheduleNotFound", "nightly")
    assert client.list_schedules()["schedules"] == []
    client.create_schedule(**nightly())
    assert client.describe_schedule(schedule_id="nightly")["fires_count"] == 0


# ── ids ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("schedule_id", ["a", "A-1", "team:billing@eu.nightly_2", "x" * 128, "workflow-nightly"])
def test_ids_that_a_path_can_carry_work_everywhere(published: Published, schedule_id: str) -> None:
    published.create_schedule(**nightly(schedule_id))
    handle = published.of(schedule_id)
    handle.pause()
    handle.resume()
    handle.update(note="x")
    assert handle.describe()["schedule_id"] == schedule_id
    assert handle.trigger()["schedule_id"] == schedule_id
    assert [event["schedule_id"] for event in [handle.history()]] == [schedule_id]
    handle.delete()


@pytest.mark.parametrize(
    "schedule_id", ["a/b", "a?b", "a#b", "..", ".a", "a b", "ü", "a%2Fb", "", "-a", "x" * 129, "a\n"], ids=repr
)
def test_ids_that_the_client_would_not_escape_are_refused(published: Published, schedule_id: str) -> None:
    """It puts an id into the path as it is: `a#b` would address the schedule `a`."""
    with pytest.raises(ClientError) as refused:
        published.create_schedule(**nightly(schedule_id))
    assert refused.value.type == "InvalidArgument"
    assert "schedule_id" in refused.value.errors


@pytest.mark.parametrize("part", ["memo", "search_attributes"])
@pytest.mark.parametrize("key", ["external_payload", "result_envelope"])
def test_keys_that_would_break_the_client_are_refused(published: Published, part: str, key: str) -> None:
    """It gives them a meaning at any depth of an answer: one schedule would spoil the list of all."""
    value: Any = {"deep": {key: {}}} if part == "memo" else {key: "x"}
    with pytest.raises(ClientError) as refused:
        published.create_schedule(**nightly(**{part: value}))
    assert refused.value.type == "InvalidArgument"
    assert published.list_schedules()["schedules"] == []
