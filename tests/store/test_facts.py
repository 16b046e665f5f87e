"""What decisions are told: each kind of fact, from one look at the database."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pytest
import sqlalchemy as sa
from engine.builders import ACTION, START, World, new_schedule
from sqlalchemy import Connection

from horarium.core.decision.facts import NO_FACTS, Facts, SharedFacts
from horarium.core.document.planning import compile_planning
from horarium.core.document.states import FINAL, Origin, RunState
from horarium.core.policy.limits import Budget
from horarium.features.schedules import fact_rows
from horarium.features.schedules.fact_rows import DecisionSubject
from horarium.instant import DAY, HOUR
from horarium.platform.database import Database
from horarium.platform.database.postgres import WRITERS
from horarium.platform.database.statements import (
    add_to_counters,
    assignee_owner,
    key_owner,
    lock_counters,
    schedule_owner,
)
from horarium.platform.database.tables import agents, calendars, counters, runs, schedules, workflows
from horarium.platform.ids import new_id

TODAY = START // DAY
KEYED: dict[str, Any] = {"concurrency_key": "agent-1", "overlap_policy": "allow_all"}


def subject(active: int = 0, held: int = 0, namespace: str = "default", **fields: Any) -> DecisionSubject:
    new = new_schedule("s", now=START, namespace=namespace, **fields)
    return DecisionSubject(new.schedule_uid, namespace, compile_planning(new.revision.planning), active, held)


def gather(
    database: Database, *subjects: DecisionSubject, **given: Any
) -> tuple[dict[bytes, Facts], dict[str, SharedFacts]]:
    return database.write(lambda c: fact_rows.gather(c, subjects, START, **given))


def one(database: Database, who: DecisionSubject) -> Facts:
    return gather(database, who)[0].get(who.schedule_uid, NO_FACTS)


def insert(database: Database, table: sa.Table, **values: Any) -> None:
    zeros: dict[str, Any] = {"TEXT": "x", "BOOLEAN": False}
    row = {column.name: zeros.get(str(column.type), 0) for column in table.columns if not column.nullable}
    database.write(lambda c: c.execute(sa.insert(table).values(**(row | values))))


def add_run(database: Database, **values: Any) -> None:
    given = {"run_id": new_id(), "namespace": "default", "origin": "manual", "state": "ready", "created_at": START}
    insert(database, runs, **(given | values))


# ── what nobody asks for is not looked up ────────────────────────────────────────────────────────────


@contextmanager
def asked_of(database: Database) -> Iterator[list[str]]:
    """The statements that are executed meanwhile."""
    asked: list[str] = []

    def listen(_c: object, _cursor: object, statement: str, *_rest: object) -> None:
        if not statement.startswith(("BEGIN", "COMMIT")) and str(WRITERS) not in statement:
            asked.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", listen)
    yield asked
    sa.event.remove(database.engine, "before_cursor_execute", listen)


def test_a_plain_schedule_costs_no_query(database: Database) -> None:
    with asked_of(database) as asked:
        known, shared = gather(database, subject(overlap_policy="allow_all"))
    assert (known, asked) == ({}, [])
    assert shared == {"default": SharedFacts()}


def test_counts_of_runs_come_from_the_claim(database: Database) -> None:
    who = subject(active=2, held=3)
    assert (one(database, who).active, one(database, who).held) == (2, 3)


# ── calendars ────────────────────────────────────────────────────────────────────────────────────────


def add_calendar(database: Database, name: str, namespace: str = "default", **document: Any) -> None:
    written = {"name": name, "timezone": "UTC", "kind": "skip_dates", "dates": ["2026-03-02"], **document}
    insert(database, calendars, namespace=namespace, name=name, document=json.dumps(written))


def test_own_and_shared_calendars_are_found_by_name(database: Database) -> None:
    add_calendar(database, "ours")
    add_calendar(database, "theirs", namespace="other")
    who = subject(calendars=["ours", "weekends-only", "holidays:US", "theirs"])
    assert set(one(database, who).calendars) == {"ours", "weekends-only", "holidays:US"}


def test_the_same_name_means_another_calendar_in_another_namespace(database: Database) -> None:
    add_calendar(database, "days", dates=["2026-01-01"])
    add_calendar(database, "days", namespace="other", dates=["2026-02-02"])
    ours, theirs = subject(calendars=["days"]), subject(calendars=["days"], namespace="other")
    known, _ = gather(database, ours, theirs)
    assert known[ours.schedule_uid].calendars["days"] != known[theirs.schedule_uid].calendars["days"]


# ── the context of conditions ────────────────────────────────────────────────────────────────────────

CONDITIONED: dict[str, Any] = {"pre_dispatch_condition": {"": {"neq": None}}}
WHOLE = {"prior_run_result", "last_24h_stats", "signal_rpc_result"}


@pytest.mark.parametrize(
    ("pointer", "members", "statements"),
    [
        ("/last_24h_stats/total", {"last_24h_stats"}, 1),
        ("/prior_run_result/status", {"prior_run_result"}, 1),
        ("/signal_rpc_result", {"signal_rpc_result"}, 0),
        ("/elsewhere", set(), 0),
        ("", WHOLE, 2),
    ],
    ids=["stats", "prior", "signal", "elsewhere", "whole"],
)
def test_of_the_context_only_what_the_condition_can_see_is_looked_up(
    database: Database, pointer: str, members: set[str], statements: int
) -> None:
    who = subject(pre_dispatch_condition={pointer: {"neq": 1}})
    with asked_of(database) as asked:
        context = one(database, who).context
    assert (set(context), len(asked)) == (members, statements)


def test_schedules_that_share_a_context_look_it_up_once(database: Database) -> None:
    action = {"kind": "workflow", "workflow_type": "report"}
    stats = subject(action=action, pre_dispatch_condition={"/last_24h_stats/total": {"lt": 9}})
    prior = subject(action=action, pre_dispatch_condition={"/prior_run_result": {"eq": None}})
    with asked_of(database) as asked:
        known, _ = gather(database, stats, prior)
    assert len([statement for statement in asked if "FROM runs" in statement]) == 2
    assert set(known[stats.schedule_uid].context) == {"last_24h_stats", "prior_run_result"}


def test_a_schedule_without_runs_has_an_empty_context(database: Database) -> None:
    context = one(database, subject(**CONDITIONED)).context
    assert context == {
        "prior_run_result": None,
        "last_24h_stats": {"succeeded": 0, "failed": 0, "total": 0},
        "signal_rpc_result": None,
    }


@pytest.mark.parametrize("state", sorted(RunState))
def test_every_state_counts_once_in_the_statistics(database: Database, state: RunState) -> None:
    who = subject(**CONDITIONED)
    add_run(database, schedule_uid=who.schedule_uid, state=state.value, needs_approval=False)
    context = one(database, who).context
    failed = state in {RunState.FAILED, RunState.TIMED_OUT, RunState.LAUNCH_FAILED}
    assert context["last_24h_stats"] == {
        "succeeded": int(state is RunState.SUCCEEDED),
        "failed": int(failed),
        "total": 1,
    }
    assert (context["prior_run_result"] is not None) == (state in FINAL)


def test_only_the_last_day_counts(database: Database) -> None:
    who = subject(**CONDITIONED)
    add_run(database, schedule_uid=who.schedule_uid, created_at=START - 25 * HOUR, nominal=1)
    add_run(database, schedule_uid=who.schedule_uid, created_at=START - 23 * HOUR, nominal=2)
    assert one(database, who).context["last_24h_stats"]["total"] == 1


def test_steps_and_runs_of_others_do_not_count(database: Database) -> None:
    who = subject(**CONDITIONED)
    add_run(database, schedule_uid=who.schedule_uid, parent_run_id=new_id(), state="succeeded")
    add_run(database, schedule_uid=new_id(), state="succeeded")
    assert one(database, who).context["last_24h_stats"]["total"] == 0
    assert one(database, who).context["prior_run_result"] is None


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        ({"ok": True, "status": "mine"}, {"ok": True, "status": "completed"}),
        ([1, 2], {"value": [1, 2], "status": "completed"}),
        (None, {"value": None, "status": "completed"}),
        (2**80, {"value": 2**80, "status": "completed"}),
    ],
    ids=["object", "list", "none", "big"],
)
def test_the_prior_result_is_an_object_with_its_status(database: Database, result: Any, shown: Any) -> None:
    who = subject(**CONDITIONED)
    text = None if result is None else json.dumps(result)
    add_run(database, schedule_uid=who.schedule_uid, state="succeeded", result=text)
    assert one(database, who).context["prior_run_result"] == shown


def test_the_newest_finished_run_is_the_prior_one(database: Database) -> None:
    who = subject(**CONDITIONED)
    for number, state in enumerate(["succeeded", "failed", "running"]):
        add_run(database, schedule_uid=who.schedule_uid, state=state, nominal=number)
    assert one(database, who).context["prior_run_result"]["status"] == "failed"


def test_runs_of_the_same_workflow_count_together(database: Database) -> None:
    who = subject(action={"kind": "workflow", "workflow_type": "report"}, **CONDITIONED)
    add_run(database, schedule_uid=new_id(), workflow="report", state="succeeded")
    add_run(database, schedule_uid=new_id(), workflow="report", state="failed", namespace="other")
    context = one(database, who).context
    assert (context["last_24h_stats"]["total"], context["prior_run_result"]["status"]) == (1, "completed")


# ── workflows and budgets ────────────────────────────────────────────────────────────────────────────


def test_a_cycle_of_the_newest_bad_version_is_shown(database: Database) -> None:
    who = subject(action={"kind": "workflow", "workflow_type": "loop"})
    assert one(database, who).cycle == ()
    insert(database, workflows, namespace="default", workflow_id="loop", version=1, cycle=json.dumps(["a", "b"]))
    insert(database, workflows, namespace="other", workflow_id="loop", version=1, cycle=json.dumps(["z"]))
    assert one(database, who).cycle == ("a", "b")


def test_the_owner_of_a_workflow_is_told_where_it_is_not_that_of_the_schedule(database: Database) -> None:
    mine, theirs, free = (subject(action={"kind": "workflow", "workflow_type": each}) for each in ("w", "v", "free"))
    owned = {"namespace": "default", "schedule_id": "s", "revision": 1, "version": 1}
    for who, owner in ((mine, "ada"), (theirs, None), (free, "ada")):
        named = {"schedule_uid": who.schedule_uid, "deleted_at": 1, "owner": owner}
        insert(database, schedules, **owned, **named)
    for workflow_id, version, owner in (
        ("w", 1, "eve"),
        ("w", 2, "ada"),
        ("v", 1, "ada"),
        ("v", 2, "eve"),
        ("free", 1, None),
    ):
        insert(database, workflows, namespace="default", workflow_id=workflow_id, version=version, owner=owner)
    insert(database, workflows, namespace="other", workflow_id="w", version=9, owner="mallory")
    found, _ = gather(database, mine, theirs, free)
    assert [found.get(who.schedule_uid, NO_FACTS).workflow_owner for who in (mine, theirs, free)] == [None, "eve", None]


ASSIGNED: dict[str, Any] = {
    "assignee_type": "agent",
    "assignee_id": "ada",
    "approval_policy": {"requires_approval": False},
}


def test_the_budget_of_an_assignee_is_the_agents_own(database: Database) -> None:
    who = subject(**ASSIGNED)
    assert one(database, who).assignee_budget == Budget()
    document = json.dumps({"budget": {"spending_limit_credits": 2.5, "max_daily_runs": 7}})
    insert(database, agents, namespace="default", agent_id="ada", document=document)
    insert(database, agents, namespace="other", agent_id="ada", document="{}")
    assert one(database, who).assignee_budget == Budget(Decimal("2.5"), 7)


# ── counters ─────────────────────────────────────────────────────────────────────────────────────────


def count(database: Database, kind: str, owner: str, value: int, day: int = TODAY) -> None:
    insert(database, counters, kind=kind, owner=owner, day=day, value=value)


def test_what_was_spent_and_run_today_is_told_per_schedule_and_per_assignee(database: Database) -> None:
    who = subject(budget={"spending_limit_credits": 5, "max_daily_runs": 5}, **ASSIGNED)
    own, theirs = schedule_owner(who.schedule_uid), assignee_owner("default", "ada")
    count(database, "spent", own, 1_500_000)
    count(database, "spent", own, 9_000_000, day=TODAY - 1)
    count(database, "runs", own, 3)
    count(database, "spent", theirs, 2_000_000)
    count(database, "runs", theirs, 4)
    known, shared = gather(database, who)
    mine = known[who.schedule_uid]
    assert (mine.spent_today, mine.runs_today) == (Decimal("1.5"), 3)
    assert shared["default"].spent_by_assignee == {"ada": Decimal(2)}
    assert shared["default"].runs_by_assignee == {"ada": 4}


def test_keys_are_counted_in_their_namespace(database: Database) -> None:
    count(database, "key", key_owner("default", "agent-1"), 2, day=0)
    ours, theirs = subject(**KEYED), subject(namespace="other", **KEYED)
    _, shared = gather(database, ours, theirs)
    assert shared["default"].active_by_key == {"agent-1": 2}
    assert shared["other"].active_by_key == {"agent-1": 0}


def test_whoever_only_looks_creates_and_locks_nothing(database: Database) -> None:
    who = subject(**KEYED)
    database.read(lambda c: fact_rows.gather(c, [who], START, lock=False))
    assert World(database).counters() == {}
    gather(database, who)
    assert World(database).counters() == {("key", "key:default agent-1", 0): 0}


def test_changes_add_up_and_zero_changes_nothing(database: Database) -> None:
    first, second = ("spent", "schedule:1", TODAY), ("runs", "schedule:1", TODAY)
    database.write(lambda c: add_to_counters(c, {first: 5, second: 0}))
    database.write(lambda c: add_to_counters(c, {first: -7}))
    assert World(database).counters() == {first: -2}


def test_a_batch_may_need_thousands_of_counters(database: Database) -> None:
    """SQLite refuses a chain of more than a thousand ORs, PostgreSQL a statement with 65,536 parameters."""
    wanted = [("runs", f"schedule:{number}", TODAY) for number in range(22_000)]
    values = database.write(lambda c: lock_counters(c, wanted))
    assert values == dict.fromkeys(wanted, 0)


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_the_last_place_of_a_key_is_seen_by_one_at_a_time(
    database: Database, open_another: Callable[[], Database]
) -> None:
    other, who = open_another(), subject(**KEYED)
    counter = ("key", key_owner("default", "agent-1"), 0)
    locked, seen = threading.Event(), []

    def second() -> None:
        assert locked.wait(60)
        seen.append(other.write(lambda c: lock_counters(c, [counter]))[counter])

    waiting = threading.Thread(target=second)
    waiting.start()

    def first(connection: Connection) -> None:
        fact_rows.gather(connection, [who], START)
        locked.set()
        waiting.join(0.3)
        assert seen == []
        add_to_counters(connection, {counter: 1})

    database.write(first)
    waiting.join(60)
    assert seen == [1]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_two_who_lock_the_same_counters_never_deadlock(
    database: Database, open_another: Callable[[], Database]
) -> None:
    wanted = [("runs", f"owner:{number}", TODAY) for number in range(30)]
    aborted: list[object] = []
    databases = [database, open_another()]

    def contend(one: Database, order: list[Any]) -> None:
        tries = [0]

        def work(connection: Connection) -> None:
            tries[0] += 1
            lock_counters(connection, order)

        for _ in range(20):
            one.write(work)
        if tries[0] != 20:
            aborted.append(tries[0])

    threads = [
        threading.Thread(target=contend, args=(each, order))
        for each, order in zip(databases, (wanted, wanted[::-1]), strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert aborted == []


def test_a_backfill_asks_no_condition(database: Database) -> None:
    known, _ = gather(database, subject(action=ACTION, **CONDITIONED), origin=Origin.BACKFILL)
    assert known == {}
