"""Namespaces, tokens, permissions, the feed and health."""

from __future__ import annotations

import time

import pytest
from operations.desks import ADMIN, ALICE, NOON, VIEWER, Office, document

from horarium.decision.health_status import HealthStatus
from horarium.errors import InvalidDefinition
from horarium.ids import id_text, new_id
from horarium.instant import SECOND
from horarium.operations import (
    health,
    history,
    lifecycles,
    liveness,
    namespaces,
    schedule_health,
    schedules,
    tokens,
    triggers,
)
from horarium.operations.caller import Caller
from horarium.operations.errors import Forbidden, NamespaceAlreadyExists, NamespaceNotFound, TokenNotFound
from horarium.schedule.position import Status
from horarium.store import leases
from horarium.store.history.feed import START
from horarium.store.schedules import positions, rows
from horarium.store.tables import step_changes
from horarium.wire.roles import Permission, Role

OTHER = Caller("root", Role.ADMIN, "other")


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────


def test_every_role_but_an_agent_s_may_read_and_only_an_admin_may_do_all() -> None:
    assert {role for role in Role if not Caller(None, role).may(Permission.READ)} == {Role.AGENT}
    allowed = {role for role in Role if all(Caller(None, role).may(each) for each in Permission)}
    assert allowed == {Role.ADMIN}


def test_namespaces_are_made_by_admins_once(office: Office) -> None:
    namespaces.create(office.resources, ADMIN, "other", "for tests")
    assert [row.namespace for row in namespaces.list_namespaces(office.resources, ADMIN)] == ["default", "other"]
    assert namespaces.get(office.resources, ADMIN, "other").description == "for tests"
    with pytest.raises(NamespaceAlreadyExists):
        namespaces.create(office.resources, ADMIN, "other")
    with pytest.raises(NamespaceNotFound):
        namespaces.get(office.resources, ADMIN, "third")
    with pytest.raises(Forbidden):
        namespaces.create(office.resources, ALICE, "mine")
    with pytest.raises(InvalidDefinition):
        namespaces.create(office.resources, ADMIN, "not ok")


def test_the_same_id_lives_in_two_namespaces(office: Office) -> None:
    namespaces.create(office.resources, ADMIN, "other")
    office.create()
    schedules.create(office.resources, OTHER, document())
    lifecycles.delete(office.resources, OTHER, "nightly")
    assert office.kinds() == ["Created"]


def test_a_token_is_shown_once_and_can_be_taken_back(office: Office) -> None:
    issued = tokens.issue(office.resources, ADMIN, name="ci", role="operator", subject="ci-bot")
    (row,) = tokens.list_tokens(office.resources, ADMIN)
    assert (row.name, row.role, row.subject) == ("ci", "operator", "ci-bot")
    assert issued.secret not in repr(issued)
    text = id_text(issued.token_id)
    assert tokens.revoke(office.resources, ADMIN, text)
    assert not tokens.revoke(office.resources, ADMIN, text)
    with pytest.raises(TokenNotFound):
        tokens.revoke(office.resources, ADMIN, id_text(new_id()))


@pytest.mark.parametrize(
    ("name", "role", "expires_at"),
    [("", "viewer", None), ("x", "king", None), ("x", "viewer", NOON)],
    ids=["no name", "no role", "expired"],
)
def test_a_token_that_makes_no_sense_is_refused(office: Office, name: str, role: str, expires_at: int | None) -> None:
    with pytest.raises(InvalidDefinition):
        tokens.issue(office.resources, ADMIN, name=name, role=role, expires_at=expires_at)


def test_tokens_are_for_admins(office: Office) -> None:
    with pytest.raises(Forbidden):
        tokens.issue(office.resources, ALICE, name="x", role="viewer")
    with pytest.raises(Forbidden):
        tokens.list_tokens(office.resources, ALICE)


# ── history and feed ─────────────────────────────────────────────────────────────────────────────────


def test_history_is_read_in_pages(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    for _ in range(4):
        office.tick(60)
    first = history.read(office.resources, VIEWER, "nightly", limit=2)
    rest = history.read(office.resources, VIEWER, "nightly", after_sequence=first.next_cursor or 0, limit=999)
    assert ([row.sequence for row in first.rows], first.next_cursor) == ([1, 2], 2)
    assert ([row.sequence for row in rest.rows], rest.next_cursor) == ([3, 4, 5], None)
    with pytest.raises(InvalidDefinition):
        history.read(office.resources, VIEWER, "nightly", after_sequence=-1)


def test_the_feed_is_that_of_the_namespace(office: Office) -> None:
    namespaces.create(office.resources, ADMIN, "other")
    office.create("a")
    schedules.create(office.resources, OTHER, document("b"))
    # The feed waits for older transactions, also those of other databases on the same server.
    deadline = time.monotonic() + 60
    while len(history.feed(office.resources, ADMIN, after=START, everywhere=True).rows) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    mine = history.feed(office.resources, VIEWER)
    assert [row.namespace for row in mine.rows] == ["default"]
    assert history.feed(office.resources, VIEWER, after=mine.cursor).rows == ()
    with pytest.raises(Forbidden):
        history.feed(office.resources, VIEWER, everywhere=True)


# ── health ───────────────────────────────────────────────────────────────────────────────────────────


def _beat(office: Office, **completed: int) -> None:
    now = office.clock.now()
    office.resources.database.write(lambda c: leases.beat(c, "process:p1", "p1", now, 30, completed))


def test_ready_needs_a_ticker_that_completes_its_steps(office: Office) -> None:
    assert not health.ready(office.resources).ready
    _beat(office, ticker=NOON)
    assert health.ready(office.resources).ready
    office.clock.move(60)
    _beat(office, ticker=NOON)  # the process lives, its ticker hangs
    failed = [check.name for check in health.ready(office.resources).checks if not check.passed]
    assert failed == ["ticking"]


def test_ready_needs_decisions_in_time(office: Office) -> None:
    office.create()
    office.clock.move(60 + 121)
    _beat(office, ticker=office.clock.now())
    failed = [check.name for check in health.ready(office.resources).checks if not check.passed]
    assert failed == ["deciding"]
    office.tick()
    assert health.ready(office.resources).ready


def test_liveness_tells_the_age_of_each_loop(office: Office) -> None:
    _beat(office, ticker=NOON - 3 * SECOND, janitor=NOON)
    told = {each.name: each.seconds_ago for each in liveness.liveness(office.resources, ADMIN).loops}
    assert told == {"ticker": 3.0, "janitor": 0.0}


def test_schedules_are_judged_by_their_own_spec(office: Office) -> None:
    office.create("quiet", spec={"cron_expressions": ["0 0 1 1 *"]})
    office.create("busy", overlap_policy="allow_all")
    office.create("resting", paused=True)
    office.create("broken")
    uid = office.resources.database.read(lambda c: rows.find(c, "default", "broken"))
    assert uid is not None
    office.resources.database.write(lambda c: positions.move(c, uid.schedule_uid, status=Status.BROKEN))
    office.tick(60)
    assert {
        each.row.schedule_id: each.health.status
        for each in schedule_health.examine_page(office.resources, VIEWER).examined
    } == {
        "quiet": HealthStatus.NEVER_RUN,
        "busy": HealthStatus.OK,
        "resting": HealthStatus.PAUSED,
        "broken": HealthStatus.BROKEN,
    }
    office.clock.move(600)
    late = next(
        each
        for each in schedule_health.examine_page(office.resources, VIEWER).examined
        if each.row.schedule_id == "busy"
    )
    assert (late.health.status, late.health.late_seconds) == (HealthStatus.STALE, 540.0)


def test_the_metrics_learn_what_only_the_database_knows(office: Office) -> None:
    office.create()
    office.create("asks", approval_policy={"requires_approval": True}, spec={"cron_expressions": ["0 12 * * *"]})
    triggers.trigger(office.resources, ADMIN, "asks")
    change = {"change_id": new_id(), "run_id": new_id(), "cost": 0, "tokens": 0, "tool_calls": 0, "finish": False}
    office.resources.database.write(lambda c: c.execute(step_changes.insert().values(**change)))
    office.tick(60)
    office.clock.move(100)
    health.observe(office.resources)
    registry = office.resources.telemetry.metrics.registry
    assert registry.get_sample_value("horarium_oldest_undecided_seconds") == 40.0
    assert registry.get_sample_value("horarium_queue_depth", {"state": "ready"}) == 1
    assert registry.get_sample_value("horarium_approvals_waiting") == 1
    assert registry.get_sample_value("horarium_workflow_changes_pending") == 1
