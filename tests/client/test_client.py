"""The client against a real service, by both drivers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from client.drivers import Driver

from horarium.client.client import AsyncClient, Client
from horarium.errors import HorariumError, InvalidDefinition
from horarium.platform.client import errors
from horarium.platform.client.exchange import NEVER
from horarium.testing import TestService
from horarium.testing.service import TOKEN

NIGHTLY: dict[str, Any] = {
    "schedule_id": "nightly",
    "spec": {"cron_expressions": ["0 2 * * *"]},
    "action": {"workflow_type": "report", "task_queue": "reports", "input": [1]},
    "overlap_policy": "allow_all",
}


@pytest.fixture
def nightly(driver: Driver) -> Driver:
    driver.run(lambda c: c.create_schedule(NIGHTLY))
    return driver


def at(day: int, hour: int = 0) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


def test_creating_answers_what_was_written(driver: Driver) -> None:
    written = driver.run(lambda c: c.create_schedule(NIGHTLY, note="every night"))
    assert (written.schedule_id, written.outcome, written.version) == ("nightly", "created", 1)
    assert written.next_fire_at == at(1, 2)
    again = driver.run(lambda c: c.upsert_schedule(NIGHTLY, note="every night"))
    assert again.outcome == "unchanged"


def test_describing_gives_typed_values_and_the_raw_answer(nightly: Driver) -> None:
    described = nightly.run(lambda c: c.describe_schedule("nightly"))
    assert (described.schedule_id, described.status, described.overlap_policy) == ("nightly", "active", "allow_all")
    assert described.spec == {"cron_expressions": ["0 2 * * *"]}
    assert described.next_fire_at == described.next_fire_times[0] == at(1, 2)
    assert described.created_at == at(1)
    assert described.fires_count == 0
    assert described.raw["state"]["status"] == "active"


def test_an_edit_by_version(nightly: Driver) -> None:
    assert nightly.run(lambda c: c.update_schedule("nightly", note="a", if_version=1)).version == 2
    with pytest.raises(errors.PreconditionFailed) as caught:
        nightly.run(lambda c: c.patch_schedule("nightly", {"note": None}, if_version=1))
    assert (caught.value.status, caught.value.version) == (412, 2)
    assert nightly.run(lambda c: c.patch_schedule("nightly", {"note": None}, if_version=2)).version == 3
    assert nightly.run(lambda c: c.describe_schedule("nightly")).note is None


def test_a_handle_goes_through_a_life(nightly: Driver, horarium: TestService) -> None:
    handle = nightly.client.schedule_handle("nightly")
    assert nightly.run(lambda _: handle.pause(note="audit")).outcome == "paused"
    assert nightly.run(lambda _: handle.describe()).pause_reason == "audit"
    assert nightly.run(lambda _: handle.resume()).outcome == "resumed"
    assert nightly.run(lambda _: handle.update(note="x")).outcome == "updated"
    horarium.advance(days=2)
    assert [run.nominal for run in nightly.run(lambda _: handle.runs())] == [at(2, 2), at(1, 2)]
    assert [run.nominal for run in nightly.run(lambda _: handle.iter_runs(page_size=1))] == [at(2, 2), at(1, 2)]
    assert nightly.run(lambda _: handle.delete()).outcome == "deleted"
    history = nightly.run(lambda _: handle.iter_history(limit=2))
    assert [event.sequence for event in history] == list(range(1, len(history) + 1))
    assert history[0].event_type == "ScheduleCreated"
    assert len(nightly.run(lambda _: handle.history(limit=2))) == 2


def test_a_trigger_with_a_key_is_one_trigger(nightly: Driver) -> None:
    first = nightly.run(lambda c: c.trigger_schedule("nightly", idempotency_key="k"))
    again = nightly.run(lambda c: c.trigger_schedule("nightly", idempotency_key="k"))
    other = nightly.run(lambda c: c.trigger_schedule("nightly"))
    assert (first.outcome, first.repeated, again.repeated) == ("triggered", False, True)
    assert first.run_id == again.run_id != other.run_id


def test_a_backfill_runs_what_was_before(nightly: Driver, horarium: TestService) -> None:
    nightly.run(lambda c: c.pause_schedule("nightly"))
    horarium.advance(days=3)
    planned = nightly.run(lambda c: c.backfill_schedule("nightly", at(1), at(3), dry_run=True))
    assert (planned.fires_attempted, planned.fires_started, planned.dry_run) == (2, 2, True)
    done = nightly.run(lambda c: c.backfill_schedule("nightly", at(1), at(3)))
    assert [row.fire_time for row in done.results] == [at(1, 2), at(2, 2)]
    assert {row.outcome for row in done.results} == {"started"}


def test_runs_are_seen_claimed_beaten_and_reported(nightly: Driver, horarium: TestService) -> None:
    horarium.advance(hours=2)
    [run] = nightly.run(lambda c: c.claim_runs("reports", worker="w", limit=5))
    assert (run.workflow_type, run.inputs, run.action["workflow_type"]) == ("report", [1], "report")
    beat = nightly.run(lambda c: c.heartbeat_run(run.run_id, run.lease_epoch))
    assert beat.stop_requested is False
    with pytest.raises(errors.LeaseLost):
        nightly.run(lambda c: c.heartbeat_run(run.run_id, run.lease_epoch + 1))
    with pytest.raises(errors.ReportUnproven):
        nightly.run(lambda c: c.report_run(run.run_id, "failed"))
    said = {"result": {"rows": 3}, "cost": 0.25, "report_token": run.report_token}
    told = nightly.run(lambda c: c.report_run(run.run_id, "succeeded", **said))
    assert (told.outcome, told.state) == ("recorded", "succeeded")
    ended = nightly.run(lambda c: c.get_run(run.run_id))
    assert (ended.is_final, ended.result, ended.cost, ended.status) == (True, {"rows": 3}, 0.25, "SUCCESS")
    events = nightly.run(lambda c: c.iter_run_events(run.run_id, limit=2))
    assert [event.event_type for event in events[:2]] == ["ScheduleTriggered", "run.created"]
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert nightly.run(lambda c: c.cancel_run(run.run_id)).outcome == "unchanged"
    assert nightly.run(lambda c: c.terminate_run(run.run_id)).state == "succeeded"


def test_lists_go_on_by_themselves(driver: Driver, horarium: TestService) -> None:
    wanted = {horarium.create(schedule_id=f"s{number}", cron_expressions=["0 2 * * *"], workflow_type="w")
              for number in range(250)}  # fmt: skip
    found = driver.run(lambda c: c.iter_schedules(page_size=100))
    assert len(found) == 250
    assert {schedule.schedule_id for schedule in found} == wanted
    page = driver.run(lambda c: c.list_schedules())
    assert len(page) == 50
    assert page.cursor is not None
    assert [each.schedule_id for each in page] == [each.schedule_id for each in page.items]
    assert len(driver.run(lambda c: c.iter_schedules(), most=3)) == 3


def test_what_the_house_says_about_itself(driver: Driver) -> None:
    assert driver.run(lambda c: c.health()).ok
    assert driver.run(lambda c: c.liveness()).ok
    assert driver.run(lambda c: c.cluster_info()).server == "horarium"
    assert "horarium_" in driver.run(lambda c: c.metrics())


def test_a_service_that_does_not_tick_is_an_answer_not_an_error(driver: Driver) -> None:
    readiness = driver.run(lambda c: c.readiness())
    assert (readiness.ok, readiness.ready) == (False, False)
    assert {check.name for check in readiness.checks}


@pytest.mark.parametrize(
    ("ask", "kind", "status"),
    [
        (lambda c: c.describe_schedule("ghost"), errors.ScheduleNotFound, 404),
        (lambda c: c.get_run("ghost"), errors.RunNotFound, 404),
        (lambda c: c.create_schedule(NIGHTLY), errors.ScheduleAlreadyExists, 409),
        (lambda c: c.list_schedules(page_size=999), errors.ValidationFailed, 422),
        (lambda c: c.send(_unknown_route()), errors.NotFound, 404),
    ],
    ids=["schedule", "run", "exists", "invalid", "route"],
)
def test_a_refusal_is_an_exception_of_its_own(
    nightly: Driver, ask: Any, kind: type[errors.ClientError], status: int
) -> None:
    with pytest.raises(kind) as caught:
        nightly.run(ask)
    assert type(caught.value) is kind
    assert isinstance(caught.value, HorariumError)
    assert caught.value.status == status
    assert caught.value.body["reason"] == caught.value.reason


def _unknown_route() -> Any:
    from horarium.platform.client.call import Call

    return Call("GET", "/api/nowhere", str)


def test_every_bad_field_is_named(driver: Driver) -> None:
    with pytest.raises(errors.ValidationFailed) as caught:
        driver.run(lambda c: c.create_schedule(cron_expressions=["0 25 * * *"], workflow_type="w", nope=1))
    assert "nope" in caught.value.errors
    assert any("cron" in path for path in caught.value.errors)
    assert caught.value.reason == "validation_failed"


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, errors.Unauthorized),
        ({"token": "hor_wrong"}, errors.Unauthorized),
        ({"token": TOKEN, "namespace": "nowhere"}, errors.NamespaceNotFound),
    ],
    ids=["no-token", "wrong-token", "no-namespace"],
)
def test_who_may_not_come_in(
    make_driver: Callable[..., Driver], horarium: TestService, options: dict[str, str], kind: type
) -> None:
    stranger = make_driver(app=horarium.parts.api, **options)
    with pytest.raises(kind):
        stranger.run(lambda c: c.list_schedules())


def test_without_a_namespace_the_token_says_it(make_driver: Callable[..., Driver], horarium: TestService) -> None:
    driver = make_driver(app=horarium.parts.api, token=TOKEN, namespace=None)
    assert driver.run(lambda c: c.list_schedules()).raw["namespace"] == "default"


@pytest.mark.parametrize(
    "wrong",
    [{"base_url": "ftp://x"}, {"base_url": "nowhere"}, {"base_url": "http://x/?a=b"}, {"base_url": "http://x:port"},
     {"token": "a\nb"}, {"token": "ü"}, {"namespace": "a\r\nX: y"}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_a_client_that_could_not_work_is_not_made(kind: type, wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidDefinition):
        kind(**wrong)


def test_a_prefix_of_the_address_stays(make_driver: Callable[..., Driver]) -> None:
    with Client("http://x/tenant/a/") as made:
        assert str(made._http.build_request("GET", "/api/runs").url) == "http://x/tenant/a/api/runs"


def test_a_server_that_is_not_there_is_unavailable() -> None:
    with socket.socket() as taken:  # nobody listens, and nobody else can meanwhile
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        url = f"http://127.0.0.1:{port}"
        with Client(url, retries=NEVER) as made, pytest.raises(errors.ServerUnavailable) as caught:
            made.health()
    assert (caught.value.reason, caught.value.status) == ("unreachable", None)
    assert str(port) in caught.value.message
