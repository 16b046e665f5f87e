"""What schedules refer to and the house itself, against a real service, by both drivers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from client.drivers import Driver

from horarium.client.client import Client
from horarium.client.inprocess import InProcess
from horarium.platform.client import errors
from horarium.testing import TestService
from horarium.testing.service import TOKEN


@pytest.fixture
def nightly(driver: Driver) -> Driver:
    driver.run(
        lambda c: c.create_schedule(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
    )
    return driver


def at(day: int, hour: int = 2) -> datetime:
    return datetime(2026, 3, day, hour, tzinfo=UTC)


def test_a_calendar_is_cloned_changed_attached_and_deleted(nightly: Driver) -> None:
    assert nightly.run(lambda c: c.clone_calendar("weekends-only", "mine")).name == "mine"
    kept = nightly.run(
        lambda c: c.create_calendar(name="closed", kind="skip_dates", dates=["2026-03-02"], timezone="UTC")
    )
    assert (kept.version, kept.dates, kept.read_only) == (1, ("2026-03-02",), False)
    changed = nightly.run(lambda c: c.update_calendar("closed", dates=["2026-03-03"], if_version=1))
    assert changed.dates == ("2026-03-03",)
    names = {calendar.name for calendar in nightly.run(lambda c: c.list_calendars())}
    assert {"mine", "closed", "weekends-only"} <= names
    nightly.run(lambda c: c.set_calendars("nightly", ["closed"]))
    assert nightly.run(lambda c: c.describe_schedule("nightly")).calendars == ("closed",)
    with pytest.raises(errors.CalendarInUse):
        nightly.run(lambda c: c.delete_calendar("closed"))
    nightly.run(lambda c: c.clear_calendars("nightly"))
    assert nightly.run(lambda c: c.delete_calendar("closed")).outcome == "deleted"
    with pytest.raises(errors.CalendarNotFound):
        nightly.run(lambda c: c.get_calendar("closed"))
    with pytest.raises(errors.CalendarReadOnly):
        nightly.run(lambda c: c.delete_calendar("weekends-only"))


def test_deleted_schedules_are_listed_with_the_time_of_their_deletion(nightly: Driver) -> None:
    nightly.run(lambda c: c.delete_schedule("nightly"))
    [deleted] = nightly.run(lambda c: c.list_schedules(status="deleted"))
    assert (deleted.schedule_id, deleted.status) == ("nightly", "deleted")
    assert deleted.deleted_at == nightly.run(lambda c: c.describe_schedule("nightly", include_deleted=True)).deleted_at
    assert isinstance(deleted.deleted_at, datetime)


def test_a_rule_with_a_slash_in_its_name_is_found(driver: Driver) -> None:
    calendar = driver.run(lambda c: c.get_calendar("holidays:US@America/New_York", year=2026))
    assert calendar.timezone == "America/New_York"
    assert ("2026-07-03", "Independence Day (observed)") in [(day.date, day.name) for day in calendar.days]


def test_a_preview_and_an_explanation_say_why(nightly: Driver) -> None:
    nightly.run(lambda c: c.create_calendar(name="closed", kind="skip_dates", dates=["2026-03-02"], timezone="UTC"))
    nightly.run(lambda c: c.set_calendars("nightly", ["closed"]))
    first, second = nightly.run(lambda c: c.preview_schedule("nightly", n=2))
    assert (first.tick_at, first.decision, first.reason) == (at(1), "dispatch", None)
    assert (second.tick_at, second.decision, second.reason) == (at(2), "skip", "calendar")
    why = nightly.run(lambda c: c.explain_schedule("nightly", at(2)))
    assert (why.fires, why.on_spec, why.reason, why.source) == (False, True, "calendar", "prediction")
    assert {finding.question for finding in why.findings} >= {"spec", "calendar", "overlap"}
    assert why.sentence
    assert why.following == at(3)


def test_conditions_and_rotations_are_set_and_cleared(nightly: Driver) -> None:
    condition = {"/last_24h_stats/failed": {"eq": 0}}
    nightly.run(lambda c: c.set_condition("nightly", condition))
    nightly.run(lambda c: c.set_rotation("nightly", [{"a": 1}, {"a": 2}]))
    described = nightly.run(lambda c: c.describe_schedule("nightly"))
    assert described.pre_dispatch_condition == condition
    assert described.inputs_rotation == ({"a": 1}, {"a": 2})
    nightly.run(lambda c: c.clear_condition("nightly"))
    nightly.run(lambda c: c.clear_rotation("nightly"))
    described = nightly.run(lambda c: c.describe_schedule("nightly"))
    assert (described.pre_dispatch_condition, described.inputs_rotation) == (None, ())


def test_a_schedule_tells_how_it_is_doing(nightly: Driver) -> None:
    health = nightly.run(lambda c: c.schedule_handle("nightly").health())
    assert (health.schedule_id, health.expected_next_run) == ("nightly", at(1))
    assert health.status


def test_a_token_opens_its_namespace_until_it_is_revoked(
    driver: Driver, horarium: TestService, make_driver: Callable[..., Driver]
) -> None:
    assert driver.run(lambda c: c.create_namespace("acme", description="them")).namespace == "acme"
    assert {each.namespace for each in driver.run(lambda c: c.list_namespaces())} == {"acme", "default"}
    assert driver.run(lambda c: c.get_namespace("acme")).description == "them"
    with pytest.raises(errors.NamespaceAlreadyExists):
        driver.run(lambda c: c.create_namespace("acme"))
    admin = make_driver(app=horarium.parts.api, token=TOKEN, namespace="acme")
    issued = admin.run(lambda c: c.issue_token("reader", "viewer"))
    reader = make_driver(app=horarium.parts.api, token=issued.secret, namespace=None)
    assert reader.run(lambda c: c.list_schedules()).raw["namespace"] == "acme"
    assert reader.client.namespace == "acme"
    with pytest.raises(errors.Forbidden):
        reader.run(lambda c: c.list_tokens())
    assert issued.token_id in {token.token_id for token in admin.run(lambda c: c.list_tokens())}
    admin.run(lambda c: c.revoke_token(issued.token_id))
    with pytest.raises(errors.Unauthorized):
        reader.run(lambda c: c.list_schedules())


def test_all_namespaces_are_iterated_page_by_page(driver: Driver, horarium: TestService) -> None:
    for name in ("a", "b", "c"):
        driver.run(lambda c, name=name: c.create_namespace(name))
        body = {"schedule_id": "s", "cron_expressions": ["0 * * * *"], "workflow_type": "w"}
        assert horarium.http(namespace=name).post("/api/schedules", json=body).status_code == 201
        assert horarium.http(namespace=name).post("/api/schedules/s/trigger").is_success
    found = driver.run(lambda c: c.iter_runs(namespace="*", page_size=2))
    assert sorted(run.namespace for run in found) == ["a", "b", "c"]


def test_a_run_is_started_once_for_a_key(driver: Driver) -> None:
    first = driver.run(lambda c: c.start_run("report", idempotency_key="k", inputs=[1]))
    again = driver.run(lambda c: c.start_run("report", idempotency_key="k", inputs=[1]))
    assert (first.outcome, again.outcome) == ("started", "already_started")
    assert first.run_id == again.run_id


def test_a_key_is_good_for_one_request(driver: Driver) -> None:
    def document(name: str) -> dict[str, Any]:
        return {"schedule_id": name, "cron_expressions": ["0 2 * * *"], "workflow_type": "w"}

    first = driver.run(lambda c: c.create_schedule(document("a"), idempotency_key="k"))
    assert driver.run(lambda c: c.create_schedule(document("a"), idempotency_key="k")) == first
    with pytest.raises(errors.KeyReused):
        driver.run(lambda c: c.create_schedule(document("b"), idempotency_key="k"))


def test_the_feed_is_read_newest_first_page_by_page(nightly: Driver, horarium: TestService) -> None:
    horarium.advance(days=3)
    entries = nightly.run(lambda c: c.iter_feed(page_size=2))
    assert len(entries) >= 4
    assert [entry.at for entry in entries] == sorted((entry.at for entry in entries), reverse=True)
    assert {entry.schedule_id for entry in entries} == {"nightly"}


def test_what_happens_is_streamed_from_where_one_was(horarium: TestService) -> None:
    """By the ordinary client: the transport for coroutines gives an answer only when it is complete."""
    with Client("http://x", token=TOKEN, transport=InProcess(horarium.parts.api)) as client:
        client.create_schedule(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
        horarium.advance(days=1)
        oldest_first = list(reversed(client.get_feed().items))
        stream = client.events(last_event_id="0-0")
        assert [next(stream) for _ in oldest_first] == oldest_first
        stream.close()  # type: ignore[attr-defined]  # a generator
        later = client.events(last_event_id=oldest_first[0].id)
        assert next(later) == oldest_first[1]
        later.close()  # type: ignore[attr-defined]  # a generator
