"""Namespaces, tokens, permissions, the feed and health."""

from __future__ import annotations

import asyncio
import threading
import time
from math import inf

import pytest
from operations.desks import ADMIN, ALICE, NOON, VIEWER, Office, document

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.states import Status
from horarium.errors import InvalidDefinition
from horarium.features.cluster import health
from horarium.features.cluster import probes as cluster_probes
from horarium.features.cluster import service as cluster_service
from horarium.features.cluster.health import Readiness
from horarium.features.cluster.probes import ProbeCache
from horarium.features.history import service as history_service
from horarium.features.history.entry_rows import START
from horarium.features.schedules import (
    due_rows,
    lifecycle,
    lists,
    triggers,
    write_rows,
)
from horarium.features.schedules import (
    health as schedules_health,
)
from horarium.features.schedules import rows as schedule_rows
from horarium.features.schedules import (
    service as schedule_service,
)
from horarium.features.tenants import service as tenant_service
from horarium.instant import SECOND, to_rfc3339
from horarium.platform.caller import Caller
from horarium.platform.database import processes
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.tables import step_changes
from horarium.platform.errors import Forbidden, NamespaceAlreadyExists, NamespaceNotFound, TokenNotFound
from horarium.platform.ids import id_text, new_id
from horarium.platform.wire import Permission, Role

OTHER = Caller("root", Role.ADMIN, "other")


# ── who may ──────────────────────────────────────────────────────────────────────────────────────────


def test_every_role_but_an_agent_s_may_read_and_only_an_admin_may_do_all() -> None:
    assert {role for role in Role if not Caller(None, role).may(Permission.READ)} == {Role.AGENT}
    allowed = {role for role in Role if all(Caller(None, role).may(each) for each in Permission)}
    assert allowed == {Role.ADMIN}


def test_namespaces_are_made_by_admins_once(office: Office) -> None:
    tenant_service.create_namespace(office.resources, ADMIN, "other", "for tests")
    assert [row.namespace for row in tenant_service.list_namespaces(office.resources, ADMIN)] == ["default", "other"]
    assert tenant_service.get_namespace(office.resources, ADMIN, "other").description == "for tests"
    with pytest.raises(NamespaceAlreadyExists):
        tenant_service.create_namespace(office.resources, ADMIN, "other")
    with pytest.raises(NamespaceNotFound):
        tenant_service.get_namespace(office.resources, ADMIN, "third")
    with pytest.raises(Forbidden):
        tenant_service.create_namespace(office.resources, ALICE, "mine")
    with pytest.raises(InvalidDefinition):
        tenant_service.create_namespace(office.resources, ADMIN, "not ok")


def test_the_same_id_lives_in_two_namespaces(office: Office) -> None:
    tenant_service.create_namespace(office.resources, ADMIN, "other")
    office.create()
    schedule_service.create(office.resources, OTHER, document())
    lifecycle.delete(office.resources, OTHER, "nightly")
    assert office.kinds() == ["Created"]


def test_a_token_is_shown_once_and_can_be_taken_back(office: Office) -> None:
    issued = tenant_service.issue_token(office.resources, ADMIN, name="ci", role="operator", subject="ci-bot")
    (row,) = tenant_service.list_tokens(office.resources, ADMIN)
    assert (row.name, row.role, row.subject) == ("ci", "operator", "ci-bot")
    assert issued.secret not in repr(issued)
    text = id_text(issued.token_id)
    assert tenant_service.revoke_token(office.resources, ADMIN, text)
    assert not tenant_service.revoke_token(office.resources, ADMIN, text)
    with pytest.raises(TokenNotFound):
        tenant_service.revoke_token(office.resources, ADMIN, id_text(new_id()))


@pytest.mark.parametrize(
    ("name", "role", "expires_at"),
    [("", "viewer", None), ("x", "king", None), ("x", "viewer", NOON)],
    ids=["no name", "no role", "expired"],
)
def test_a_token_that_makes_no_sense_is_refused(office: Office, name: str, role: str, expires_at: int | None) -> None:
    with pytest.raises(InvalidDefinition):
        tenant_service.issue_token(office.resources, ADMIN, name=name, role=role, expires_at=expires_at)


def test_tokens_are_for_admins(office: Office) -> None:
    with pytest.raises(Forbidden):
        tenant_service.issue_token(office.resources, ALICE, name="x", role="viewer")
    with pytest.raises(Forbidden):
        tenant_service.list_tokens(office.resources, ALICE)


# ── history and feed ─────────────────────────────────────────────────────────────────────────────────


def test_history_is_read_in_pages(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    for _ in range(4):
        office.tick(60)
    first = history_service.read_history(office.resources, VIEWER, "nightly", limit=2)
    rest = history_service.read_history(
        office.resources, VIEWER, "nightly", after_sequence=first.next_cursor or 0, limit=999
    )
    assert ([row.sequence for row in first.rows], first.next_cursor) == ([1, 2], 2)
    assert ([row.sequence for row in rest.rows], rest.next_cursor) == ([3, 4, 5], None)
    with pytest.raises(InvalidDefinition):
        history_service.read_history(office.resources, VIEWER, "nightly", after_sequence=-1)


@pytest.mark.both_databases
def test_the_feed_is_that_of_the_namespace(office: Office) -> None:
    tenant_service.create_namespace(office.resources, ADMIN, "other")
    office.create("a")
    schedule_service.create(office.resources, OTHER, document("b"))
    # The feed waits for older transactions, also those of other databases on the same server.
    deadline = time.monotonic() + 60
    while len(history_service.feed_rows(office.resources, ADMIN, after=START, everywhere=True).rows) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    mine = history_service.feed_rows(office.resources, VIEWER)
    assert [row.namespace for row in mine.rows] == ["default"]
    assert history_service.feed_rows(office.resources, VIEWER, after=mine.cursor).rows == ()
    with pytest.raises(Forbidden):
        history_service.feed_rows(office.resources, VIEWER, everywhere=True)


# ── health ───────────────────────────────────────────────────────────────────────────────────────────


def _beat(office: Office, **completed: int) -> None:
    now = office.clock.now()
    office.resources.database.write(lambda c: processes.beat_lease(c, "process:p1", "p1", now, 30, completed))


def _ready(office: Office, *, decides: bool = True) -> Readiness:
    return asyncio.run(ProbeCache(office.resources, decides=decides).readiness())


def _failing(found: Readiness) -> list[str]:
    return [check.name for check in found.checks if not check.passed]


def test_ready_needs_a_ticker_that_completes_its_steps(office: Office) -> None:
    assert not _ready(office).ready
    _beat(office, ticker=NOON)
    assert _ready(office).ready
    office.clock.move(60)
    _beat(office, ticker=NOON)  # the process lives, its ticker hangs
    assert _failing(_ready(office)) == ["ticking"]


def test_ready_needs_decisions_in_time(office: Office) -> None:
    office.create()
    office.clock.move(60 + 31)
    _beat(office, ticker=office.clock.now())
    assert (_failing(_ready(office)), _ready(office).ready) == (["deciding"], False)
    office.tick()
    assert _ready(office).ready


def test_a_process_that_does_not_decide_reports_what_is_late_and_is_ready(office: Office) -> None:
    office.create()
    office.clock.move(60 + 31)
    found = _ready(office, decides=False)
    assert (_failing(found), found.ready) == (["ticking", "deciding"], True)


@pytest.mark.parametrize(("decides", "waits", "ready"), [(True, 2, True), (True, 6, False), (False, 6, True)])
def test_while_the_database_hangs_a_probe_is_answered_from_figures_that_grow_old(
    office: Office, monkeypatch: pytest.MonkeyPatch, decides: bool, waits: float, ready: bool
) -> None:
    monkeypatch.setattr(cluster_probes, "PATIENCE_SECONDS", 60)
    _beat(office, ticker=NOON)
    probes, free = ProbeCache(office.resources, decides=decides), threading.Event()
    assert asyncio.run(probes.readiness()).ready
    monkeypatch.setattr(due_rows, "earliest_due", lambda _connection: free.wait(60) and None)
    office.clock.advance(1)
    monkeypatch.setattr(cluster_probes, "PATIENCE_SECONDS", 0.05)
    asyncio.run(probes.readiness())
    office.clock.advance(waits)
    found = asyncio.run(probes.readiness())
    free.set()
    if (asking := probes._figures.begin()) is not None:
        asking.result(60)
    assert (_failing(found), found.ready) == ([] if waits < 5 else ["deciding"], ready)


def test_scrapes_wait_together_for_a_database_that_hangs(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that comes when the look has hung for long waits no more: each would keep a thread of the requests."""
    waited, free = list[float](), threading.Event()
    monkeypatch.setattr(cluster_probes, "wait", lambda _asking, *, timeout: waited.append(timeout))
    monkeypatch.setattr(due_rows, "earliest_due", lambda _connection: free.wait(60) and None)
    probes = ProbeCache(office.resources)
    for seconds in (0, 3, 60):
        office.clock.advance(seconds)
        assert probes.installation() is None
    asking = probes._gauges.begin()
    free.set()
    assert asking is not None
    asking.result(60)
    assert waited == [5, 2, 0]
    assert probes.installation() is not None


def test_a_probe_that_finds_no_connection_says_so(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def crowded(_resources: object) -> None:
        raise StoreUnavailable("no connection became free", busy=True)

    monkeypatch.setattr(health, "schema_check", crowded)
    found = _ready(office, decides=False)
    assert (_failing(found), found.ready) == (["database"], False)


@pytest.mark.both_databases
def test_health_tells_until_when_all_is_decided_after_the_clock_was_ahead(office: Office) -> None:
    office.create(overlap_policy="allow_all")
    office.world.tick()
    office.clock.move(3_600)
    office.world.tick()
    office.clock.move(-3_600)
    office.world.tick()
    _beat(office, ticker=office.clock.now())
    found = _ready(office)
    [clock] = [check for check in found.checks if check.name == "clock"]
    assert (clock.passed, found.ready) == (False, True)
    assert to_rfc3339(NOON + 3_605 * SECOND) in clock.detail
    office.clock.move(3_606)
    office.world.tick()
    _beat(office, ticker=office.clock.now())
    assert _failing(_ready(office)) == []


def test_a_step_that_a_dead_process_completed_on_a_clock_that_was_ahead_is_no_sign_of_life(office: Office) -> None:
    _beat(office, ticker=NOON + 3_600 * SECOND)
    assert _failing(_ready(office)) == ["ticking"]


def test_liveness_tells_the_age_of_each_loop(office: Office) -> None:
    _beat(office, ticker=NOON - 3 * SECOND, janitor=NOON)
    told = {each.name: each.seconds_ago for each in cluster_service.liveness(office.resources, ADMIN).loops}
    assert told == {"ticker": 3.0, "janitor": 0.0}


def test_schedules_are_judged_by_their_own_spec(office: Office) -> None:
    office.create("quiet", spec={"cron_expressions": ["0 0 1 1 *"]})
    office.create("busy", overlap_policy="allow_all")
    office.create("resting", paused=True)
    office.create("broken")
    uid = office.resources.database.read(lambda c: schedule_rows.find(c, "default", "broken"))
    assert uid is not None
    office.resources.database.write(lambda c: write_rows.move_position(c, uid.schedule_uid, status=Status.BROKEN))
    office.tick(60)
    assert {
        each.row.schedule_id: each.health.status
        for each in schedules_health.examine_page(office.resources, VIEWER).examined
    } == {
        "quiet": HealthStatus.NEVER_RUN,
        "busy": HealthStatus.OK,
        "resting": HealthStatus.PAUSED,
        "broken": HealthStatus.BROKEN,
    }
    office.clock.move(600)
    late = next(
        each
        for each in schedules_health.examine_page(office.resources, VIEWER).examined
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
    found = health.read_installation(office.resources)
    assert (found.oldest_undecided_seconds, found.newest_tick_age_seconds) == (40.0, inf)
    assert {state: count for state, count in found.queue_depth.items() if count} == {"ready": 1, "awaiting_approval": 1}
    assert (found.approvals_waiting, found.workflow_changes_pending, found.schedules_failing) == (1, 1, 0)
    row = lists.describe(office.resources, ADMIN, "asks").row
    office.resources.database.write(lambda c: write_rows.move_position(c, row.schedule_uid, failures_in_a_row=3))
    assert health.read_installation(office.resources).schedules_failing == 1
