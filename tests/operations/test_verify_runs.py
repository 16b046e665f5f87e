"""Verify looks at runs as well: silent about sound ones, loud about counts and rows that were tampered with."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from operations.desks import ADMIN, Office
from sqlalchemy import Connection
from store.rows import add_run

from horarium.core.lifecycle.live_run import Unsound
from horarium.core.policy.approval import input_hash
from horarium.features.cluster import verification
from horarium.features.cluster.verification import DoubleStep, Finding, Miscounted, UnsoundRun, verify
from horarium.platform.caller import Caller
from horarium.platform.database.tables import approvals, counters, positions, runs, step_changes
from horarium.platform.ids import new_id
from horarium.platform.wire import Role

pytestmark = pytest.mark.both_databases


def _verify(office: Office, **given: Any) -> list[Finding]:
    return list(verify(office.resources, ADMIN, **given))


def _sql(office: Office, statement: Any) -> None:
    def work(connection: Connection) -> None:
        connection.execute(statement)

    office.resources.database.write(work)


def _change(office: Office, run_id: bytes, **values: Any) -> None:
    _sql(office, sa.update(runs).where(runs.c.run_id == run_id).values(**values))


def _add(office: Office, state: str, **given: Any) -> bytes:
    return add_run(office.resources.database, state, **given)


def _workflow(office: Office, state: str = "running") -> bytes:
    return _add(office, state, workflow="brief", workflow_version=1, kind="workflow")


def _step(office: Office, parent: bytes, state: str = "running", **given: Any) -> bytes:
    return _add(office, state, parent_run_id=parent, root_run_id=parent, **{"node_id": "a", "origin": "step"} | given)


def _approve(office: Office, run_id: bytes, inputs: object, decision: str = "approved") -> bytes:
    approval_id = new_id()
    row: dict[str, Any] = {
        "approval_id": approval_id,
        "namespace": "default",
        "run_id": run_id,
        "input_hash": input_hash(inputs),
    }
    row |= {"gates": "[]", "decision": decision, "requested_at": 0, "expires_at": 10**18}
    _sql(office, sa.insert(approvals).values(**row))
    return approval_id


def test_counts_that_differ_from_what_they_count_are_found(office: Office) -> None:
    uid = office.create(overlap_policy="buffer_all", concurrency_key="k", concurrency_limit=9).schedule_uid
    for _ in range(3):
        office.tick(60)
    assert _verify(office) == []
    _sql(office, sa.update(positions).where(positions.c.schedule_uid == uid).values(active=5, held=0))
    _sql(office, sa.update(counters).where(counters.c.kind == "key").values(value=7))
    counts = [Miscounted("nightly", "active", 5, 1), Miscounted("nightly", "held", 0, 2)]
    assert _verify(office) == [*counts, Miscounted(None, "key:default k", 7, 1)]
    assert _verify(office, schedule_id="nightly") == counts


def test_a_step_is_counted_by_no_schedule(office: Office) -> None:
    uid = office.create().schedule_uid
    office.tick(60)
    [run] = office.runs()
    _change(office, run.run_id, state="running", workflow_version=1)
    _step(office, run.run_id, schedule_uid=uid)
    assert _verify(office) == []


def test_a_workflow_that_can_neither_move_nor_end_is_found(office: Office) -> None:
    moves, waits, ended, stuck = (_workflow(office, state) for state in ("running", "running", "succeeded", "running"))
    _step(office, moves)
    _step(office, stuck, "succeeded")
    nothing = {"cost": 0, "tokens": 0, "tool_calls": 0, "finish": False}
    _sql(office, sa.insert(step_changes).values(change_id=new_id(), run_id=waits, **nothing))
    assert _verify(office) == [UnsoundRun(None, stuck, Unsound.STUCK)]
    late = _step(office, ended)
    assert UnsoundRun(None, late, Unsound.OUTLIVES) in _verify(office)


def test_a_run_that_waits_for_an_answer_that_nobody_was_asked_for_is_found(office: Office) -> None:
    office.create(approval_policy={"requires_approval": True})
    office.tick(60)
    [run] = office.runs()
    assert (run.state, _verify(office)) == ("awaiting_approval", [])
    _sql(office, sa.delete(approvals))
    assert _verify(office) == [UnsoundRun("nightly", run.run_id, Unsound.STUCK)]


def test_a_run_that_nobody_said_yes_to_is_found(office: Office) -> None:
    asked = {"needs_approval": True, "started_at": 1}
    good, other, refused = (_add(office, "held", inputs='{"a":1}', **asked) for _ in range(3))
    for run_id, inputs, decision in (
        (good, {"a": 1}, "approved"),
        (other, {"a": 2}, "approved"),
        (refused, {"a": 1}, "rejected"),
    ):
        _change(office, run_id, state="succeeded", approval_id=_approve(office, run_id, inputs, decision))
    assert _verify(office) == [UnsoundRun(None, each, Unsound.UNAPPROVED) for each in (other, refused)]
    _change(office, good, inputs='{"a":')
    assert UnsoundRun(None, good, Unsound.UNAPPROVED) in _verify(office), "a damaged text is not what was approved"


def test_inputs_that_only_the_definition_says_are_held_against_the_answer(office: Office) -> None:
    office.create(action={"workflow_type": "report", "input": {"a": 1}}, approval_policy={"requires_approval": True})
    office.tick(60)
    [run] = office.runs()
    _sql(office, sa.update(approvals).values(decision="approved"))
    approval_id = sa.select(approvals.c.approval_id).scalar_subquery()
    _change(office, run.run_id, state="running", approval_id=approval_id)
    assert _verify(office) == []
    _sql(office, sa.update(approvals).values(input_hash="other"))
    assert _verify(office) == [UnsoundRun("nightly", run.run_id, Unsound.UNAPPROVED)]


def test_a_node_that_was_run_twice_is_found(office: Office) -> None:
    _sql(office, sa.text("DROP INDEX runs_one_per_node"))
    parent = _workflow(office)
    for fallback in (False, True):
        _step(office, parent, fallback=fallback)
    assert _verify(office) == []
    _step(office, parent)
    assert _verify(office) == [DoubleStep(parent, "a")]


def test_a_tenant_is_told_of_its_own_runs_only_and_pages_are_walked_to_the_end(
    office: Office, monkeypatch: Any
) -> None:
    monkeypatch.setattr(verification, "_PAGE", 2)
    stuck = [_workflow(office) for _ in range(5)]
    assert _verify(office) == [UnsoundRun(None, each, Unsound.STUCK) for each in stuck]
    assert list(verify(office.resources, Caller("root", Role.ADMIN, "other"))) == []
    assert len(_verify(office, everywhere=True)) == 5
