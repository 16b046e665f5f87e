"""A request for a yes is bound to its run and its inputs, and nothing gets round it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import START, World

from horarium.core.document.states import FINAL, RunState
from horarium.core.policy.approval import input_hash
from horarium.features.approvals import request_rows as store
from horarium.instant import DAY, HOUR
from horarium.platform.database import Database
from horarium.platform.database.errors import DataError
from horarium.platform.database.tables import approvals, runs

ACTION = {"kind": "http", "url": "http://target.test/", "input": {"n": 1}}
ASSIGNED: dict[str, Any] = {"assignee_type": "agent", "assignee_id": "ada", "action": ACTION}
_MAY_WAIT = FINAL | {RunState.HELD, RunState.AWAITING_APPROVAL}


def awaiting(world: World, **fields: Any) -> Any:
    uid = world.add(needs_approval=True, **ASSIGNED, **fields)
    world.clock.move(60)
    world.tick()
    return world.runs(uid)[0]


def requests(database: Database) -> list[Any]:
    return database.read(lambda c: list(c.execute(sa.select(approvals))))


def test_a_request_is_bound_to_the_inputs_of_its_revision(database: Database) -> None:
    world = World(database)
    run = awaiting(world)
    (request,) = requests(database)
    assert (request.run_id, request.namespace, request.decision) == (run.run_id, "default", "pending")
    assert request.input_hash == input_hash({"n": 1})
    assert (request.requested_at, request.expires_at) == (world.clock.now(), world.clock.now() + DAY)
    assert json.loads(request.gates) == []


def test_gates_and_expiry_come_from_the_policy(database: Database) -> None:
    world = World(database)
    awaiting(world, approval_policy={"gates": ["spend", "publish"], "expires_after_seconds": 3_600})
    (request,) = requests(database)
    assert json.loads(request.gates) == ["publish", "spend"]
    assert request.expires_at == world.clock.now() + HOUR


def test_a_rotated_input_is_the_one_that_is_approved(database: Database) -> None:
    world = World(database)
    uid = world.add(needs_approval=True, inputs_rotation=[{"n": 1}, {"n": 2}], overlap_policy="allow_all", **ASSIGNED)
    world.clock.move(120)
    world.tick()
    by_run = {request.run_id: request.input_hash for request in requests(database)}
    assert [by_run[run.run_id] for run in world.runs(uid)] == [input_hash({"n": 1}), input_hash({"n": 2})]


def test_a_callers_own_inputs_win(database: Database) -> None:
    world = World(database)
    run = awaiting(world)
    world.write(lambda c: c.execute(sa.delete(approvals)))
    world.write(lambda c: c.execute(sa.update(runs).values(inputs='{"n":7}')))
    world.write(lambda c: store.request(c, [run.run_id], START))
    assert requests(database)[0].input_hash == input_hash({"n": 7})


def test_no_run_needs_no_request(database: Database) -> None:
    database.write(lambda c: store.request(c, [], START))
    assert requests(database) == []


def test_no_claim_sees_a_run_that_awaits_approval(database: Database) -> None:
    world = World(database)
    awaiting(world)
    world.clock.move(3_600)
    assert world.dispatch() == 0
    assert world.launcher.deliveries == []


@pytest.mark.parametrize("state", sorted(RunState))
def test_plain_sql_cannot_launch_what_nobody_approved(database: Database, state: RunState) -> None:
    world = World(database)
    run = awaiting(world)

    def force() -> None:
        statement = sa.update(runs).where(runs.c.run_id == run.run_id).values(state=state.value)
        world.write(lambda c: c.execute(statement))

    if state in _MAY_WAIT:
        force()
        assert world.run(run.run_id).state == state.value
        return
    with pytest.raises(DataError):
        force()
    assert world.run(run.run_id).state == "awaiting_approval"


def test_with_an_approval_on_record_the_run_may_go(database: Database) -> None:
    world = World(database)
    run = awaiting(world)
    (request,) = requests(database)
    yes = sa.update(runs).values(approval_id=request.approval_id, state="ready")
    world.write(lambda c: c.execute(yes))
    assert world.dispatch() == 1
    assert world.run(run.run_id).state == "succeeded"
    world.account()


def test_nobody_answering_in_time_ends_the_run_as_expired(database: Database) -> None:
    world = World(database)
    run = awaiting(world)
    world.clock.move(86_399)
    assert world.tidy().expired_approvals == 0
    world.clock.move(1)
    assert world.tidy().expired_approvals == 1
    assert world.run(run.run_id).state == "expired"
    assert (requests(database)[0].decision, requests(database)[0].decided_at) == ("expired", world.clock.now())
    assert world.tidy().expired_approvals == 0


def test_a_late_expiry_does_not_touch_a_run_that_has_gone_on(database: Database) -> None:
    world = World(database)
    run = awaiting(world)
    world.write(lambda c: c.execute(sa.update(runs).values(approval_id=b"?" * 16, state="ready")))
    world.clock.move(86_400)
    assert world.tidy().expired_approvals == 0
    assert world.run(run.run_id).state == "ready"


def test_a_released_run_asks_for_its_approval_then(database: Database) -> None:
    world = World(database)
    uid = world.add(needs_approval=True, overlap_policy="buffer_all", **ASSIGNED)
    world.clock.move(120)
    world.tick()
    first, second = world.runs(uid)
    assert (first.state, second.state) == ("awaiting_approval", "held")
    assert [request.run_id for request in requests(database)] == [first.run_id]
    world.clock.move(86_400)
    world.tidy()
    assert world.states(uid)[:2] == ["expired", "awaiting_approval"]
    assert requests(database)[-1].run_id == second.run_id


# ── while a run waits ────────────────────────────────────────────────────────────────────────────────


def test_a_newer_occurrence_asks_in_the_place_of_what_waits(database: Database) -> None:
    world = World(database)
    uid = world.add(needs_approval=True, approval_policy={"while_waiting": "supersede"}, **ASSIGNED)
    world.clock.move(180)  # three occurrences in one tick
    world.tick()
    world.clock.move(60)
    world.tick()
    assert world.states(uid) == ["expired", "expired", "expired", "awaiting_approval"]
    assert [world.run(run.run_id).cause for run in world.runs(uid)] == ["superseded"] * 3 + [None]
    asked = requests(database)
    assert [(each.decision, each.reason) for each in asked] == [("expired", "superseded"), ("pending", None)]
    world.account()


def test_what_waits_is_in_nobody_s_way_if_the_schedule_says_so(database: Database) -> None:
    world = World(database)
    uid = world.add(needs_approval=True, approval_policy={"while_waiting": "ignore"}, **ASSIGNED)
    for _ in range(3):
        world.clock.move(60)
        world.tick()
    assert world.states(uid) == ["awaiting_approval"] * 3
    yes = sa.update(runs).where(runs.c.run_id == world.runs(uid)[0].run_id)
    yes = yes.values(approval_id=requests(database)[0].approval_id, state="ready")
    world.write(lambda c: c.execute(yes))
    world.clock.move(60)
    world.tick()  # what was agreed to is busy now
    assert world.states(uid) == ["ready"] + ["awaiting_approval"] * 2
    world.account()


def test_what_is_let_go_asks_in_the_place_of_what_waits(database: Database) -> None:
    world = World(database)
    policy = {"while_waiting": "supersede"}
    uid = world.add(needs_approval=True, overlap_policy="buffer_all", approval_policy=policy, **ASSIGNED)
    world.clock.move(60)
    world.tick()
    (first,) = world.runs(uid)
    yes = sa.update(runs).values(approval_id=requests(database)[0].approval_id, state="ready")
    world.write(lambda c: c.execute(yes))
    world.clock.move(120)
    world.tick()
    assert world.states(uid) == ["ready", "held", "held"]
    world.dispatch()
    for _ in range(3):
        world.tidy()
    assert world.run(first.run_id).state == "succeeded"
    assert world.states(uid) == ["succeeded", "expired", "awaiting_approval"]
    world.account()
