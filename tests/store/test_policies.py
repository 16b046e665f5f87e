"""Whose policies hold, as the rows say it: one query a kind for many questions, and turns that nobody takes twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Connection, event

from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.effective_policies import PolicyOrigin
from horarium.core.policy.approval import UNASKED, ApprovalMode, ApprovalPolicy, FailurePolicy, RetryPolicy
from horarium.core.policy.limits import RunLimits
from horarium.features.agents.policy_rows import PolicyQuestion, effective_for, take_turns
from horarium.features.agents.rows import AGENTS, ASSIGNMENTS, TEAMS, NamedDocuments
from horarium.platform.database import Database
from horarium.platform.database.tables import agents

NOW = 1_000_000
ADA, DESK = Assignee(AssigneeType.AGENT, "ada"), Assignee(AssigneeType.TEAM, "desk")
OWN = PolicyQuestion(ApprovalPolicy(), UNASKED, FailurePolicy(), RunLimits(), None, None, None)


def keep(database: Database, rows: NamedDocuments, name: str, namespace: str = "default", **document: Any) -> None:
    more = {"turn": 0} if rows is TEAMS else {}
    called = "id" if rows is AGENTS else rows.key.name
    database.write(lambda c: rows.insert(c, namespace, name, {called: name, **document}, now=NOW, **more))


@pytest.fixture
def staff(database: Database) -> Database:
    halted, strict = {"failure_policy": {"mode": "halt"}}, {"approval_policy": {"requires_approval": True}}
    keep(database, AGENTS, "ada", policies={**halted, "limits": {"cost": 2}})
    keep(database, AGENTS, "bob", policies={"limits": {"cost": 1}})
    keep(database, AGENTS, "ada", namespace="other", policies=strict)
    keep(database, TEAMS, "desk", members=["ada", "bob"], strategy="round_robin", policies=strict)
    given = {"workflow_id": "w", "assignee_type": "team", "assignee_id": "desk"}
    keep(database, ASSIGNMENTS, "g", **given, retry_policy={"max_retries": 5})
    return database


def test_everybody_who_has_a_word_is_heard(staff: Database) -> None:
    asked = [
        OWN,
        OWN._replace(assignee=ADA, definition_approval=ApprovalPolicy(requires_approval=False)),
        OWN._replace(assignment_id="g", member="bob"),
        OWN._replace(assignee=DESK, member="ada"),
        OWN._replace(workflow_approval=ApprovalPolicy(gates=frozenset({"spend"}))),
    ]
    own, of_ada, given, of_desk, floor = staff.read(lambda c: effective_for(c, "default", asked))
    assert own is None
    assert of_ada is not None
    assert given is not None
    assert of_desk is not None
    assert floor is not None
    assert (of_ada.approval.requires_approval, of_ada.limits.cost) == (False, 2)  # the other tenant's ada demands a yes
    assert of_ada.origins["failure_policy"] is PolicyOrigin.AGENT
    assert (given.retry, given.limits.cost, given.approval.requires_approval) == (RetryPolicy(5), 1, True)
    assert given.origins["retry_policy"] is PolicyOrigin.ASSIGNMENT
    assert (of_desk.limits.cost, of_desk.approval.requires_approval) == (2, True)
    assert (floor.approval.gates, floor.approval.requires_approval) == (frozenset({"spend"}), False)


def test_many_questions_are_one_query_a_kind(staff: Database) -> None:
    asked = [OWN._replace(assignee=ADA), OWN._replace(assignment_id="g"), OWN._replace(assignee=DESK)] * 50
    told: list[str] = []

    def look(connection: Connection) -> None:
        def note(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            told.append(statement)

        event.listen(connection, "before_cursor_execute", note)
        effective_for(connection, "default", asked)
        effective_for(connection, "default", [OWN] * 50)
        event.remove(connection, "before_cursor_execute", note)

    staff.read(look)
    assert len(told) == 3


def test_an_agent_that_is_gone_leaves_work_that_waits(database: Database) -> None:
    [found] = database.read(lambda c: effective_for(c, "default", [OWN._replace(assignee=ADA)]))
    assert found is not None
    assert (found.approval.requires_approval, found.approval.mode) == (True, ApprovalMode.SENSITIVE_ACTIONS)


@pytest.mark.parametrize("document", ["{", "[]", "null", '{"id":"ada","policies":{"limits":{"cost":-1}}}'])
def test_what_cannot_be_read_demands_everything(staff: Database, document: str) -> None:
    broken = agents.update().where(agents.c.namespace == "default", agents.c.agent_id == "ada")
    staff.write(lambda c: c.execute(broken.values(document=document)))
    free = ApprovalPolicy(requires_approval=False)
    asked = [OWN._replace(assignee=who, definition_approval=free) for who in (ADA, Assignee(AssigneeType.AGENT, "bob"))]
    of_ada, of_bob = staff.read(lambda c: effective_for(c, "default", asked))
    assert of_ada is not None
    assert of_bob is not None
    assert (of_ada.approval.requires_approval, of_ada.approval.mode) == (True, ApprovalMode.EVERY_NODE)
    assert of_bob.approval.requires_approval is False


def test_a_row_that_was_written_by_hand_is_read(database: Database) -> None:
    text = json.dumps({"budget": {"max_daily_runs": 7}, "approval_policy": {"gates": ["publish"]}})
    row = {"namespace": "default", "agent_id": "ada", "document": text, "version": 1}
    database.write(lambda c: c.execute(agents.insert().values(**row, created_at=NOW, updated_at=NOW)))
    [found] = database.read(lambda c: effective_for(c, "default", [OWN._replace(assignee=ADA)]))
    assert found is not None
    assert found.approval.gates == frozenset({"publish"})


def test_turns_go_round_also_for_two_at_once(staff: Database, open_another: Callable[[], Database]) -> None:
    other = open_another()
    taken = [
        each.write(lambda c: take_turns(c, "default", ["desk", "nobody", "desk", "desk"]))
        for each in (staff, other, staff)
    ]
    assert [[who for who in turn if who is not None] for turn in taken] == [
        ["ada", "bob", "ada"],
        ["bob", "ada", "bob"],
        ["ada", "bob", "ada"],
    ]
    assert {turn[1] for turn in taken} == {None}
