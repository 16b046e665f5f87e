"""Workflows from their birth to their end: data flow, branches, failures, stops, caps, and what a crash leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from types import ModuleType
from typing import Any

import pytest
import sqlalchemy as sa
from engine.workflows import Flow, called, node, store

from horarium.core.document.states import step_key
from horarium.core.lifecycle.outcome import Accepted, Event, Finished, Reported, ReportedState, RunFailed, Terminated
from horarium.engine import advancer, step_drafts
from horarium.engine.capacity import Limits
from horarium.engine.claimer import DispatcherOptions
from horarium.features.runs import open_rows
from horarium.features.runs import step_rows as run_step_rows
from horarium.features.runs.step_rows import StepChange
from horarium.features.runs.transition_rows import ReportedEvent, record_event, record_events
from horarium.features.schedules.due_rows import Plannings
from horarium.platform.database import Connection, Database
from horarium.platform.database.statements import event_text
from horarium.platform.database.tables import approvals, runs, workflows
from horarium.platform.database.wakeups import READY
from horarium.platform.ids import id_text

FAILS = RunFailed("it went wrong", "bad_input")
# Where the databases have nothing to differ about.
on_sqlite = pytest.mark.parametrize("dialect", ["sqlite"])
LARGE = ["x" * 3_000]
HALT = {"failure_policy": {"mode": "halt"}}


def inputs(flow: Flow, root: bytes) -> dict[str, Any]:
    return {row.node_id: json.loads(row.inputs) for row in flow.steps(root) if row.inputs is not None}


@pytest.mark.both_databases
def test_five_steps_are_run_in_their_order_and_hand_on_what_they_find(database: Database) -> None:
    store(
        database,
        "w",
        node("fetch"),
        node("left", "fetch", input={"rows": {"$from": "/results/fetch/of"}, "day": {"$from": "/run/nominal"}}),
        node("right", "fetch", input=[{"$from": "/inputs/who"}, {"$from": "/inputs/nobody", "default": 3}]),
        node("join", "left", "right"),
        node("send", "join", input={"$from": "/results/join"}),
    )
    flow = Flow(database)
    root = flow.begin(action={"input": {"who": "ada"}})
    run = flow.run(root)
    assert (run.state, run.progress, run.workflow_version) == ("succeeded", "sssss", 1)
    assert json.loads(run.result) == {"send": {"of": "send"}}
    order = [called(each) for each in flow.launcher.deliveries]
    assert (order[0], sorted(order[1:3]), order[3:]) == ("fetch", ["left", "right"], ["join", "send"])
    given = inputs(flow, root)
    assert given["fetch"] == {"inputs": {"who": "ada"}, "results": {}}
    assert given["left"] == {"rows": "fetch", "day": "2026-03-02T01:00:00Z"}
    assert given["right"] == ["ada", 3]
    assert given["join"]["results"] == {name: {"of": name} for name in ("fetch", "left", "right")}
    assert given["send"] == {"of": "join"}
    assert [each.key for each in flow.launcher.deliveries[:1]] == [step_key(id_text(root), "fetch")]
    assert flow.events(flow.step(root, "send").run_id) == ["node.queued", "node.started", "node.completed"]
    assert flow.events(root)[0] == "run.started"
    flow.account()


@on_sqlite
def test_a_branch_is_taken_by_what_its_source_answered(database: Database) -> None:
    edges = [
        {"from": "ask", "to": "yes", "condition": {"/result/of": {"eq": "ask"}}},
        {"from": "ask", "to": "no", "condition": {"/result/of": {"neq": "ask"}}},
        {"from": "yes", "to": "end", "condition": {}},
        {"from": "no", "to": "end", "condition": {}},
    ]
    store(database, "w", node("ask"), node("yes"), node("no"), node("end"), edges=edges)
    flow = Flow(database)
    root = flow.begin()
    assert flow.run(root).state == "succeeded"
    assert flow.nodes(root) == {"ask": "succeeded", "yes": "succeeded", "no": "skipped", "end": "succeeded"}
    never = flow.step(root, "no")
    assert (never.cause, flow.events(never.run_id)) == ("branch_not_taken", ["node.skipped"])


@pytest.mark.parametrize(
    ("policy", "states", "end"),
    [
        (
            {},
            {"bad": "failed", "behind": "skipped", "slow": "succeeded", "last": "succeeded"},
            ("failed", "step_failed"),
        ),
        (
            HALT,
            {"bad": "failed", "behind": "skipped", "slow": "cancelled", "last": "skipped"},
            ("failed", "step_failed"),
        ),
        (
            {"failure_policy": {"mode": "fallback", "fallback_assignee_id": "spare"}},
            {"bad": "succeeded", "behind": "succeeded", "slow": "succeeded", "last": "succeeded"},
            ("succeeded", None),
        ),
    ],
    ids=["isolate", "halt", "fallback"],
)
def test_a_failure_is_isolated_halts_or_is_given_to_somebody_else(
    database: Database, policy: dict[str, Any], states: dict[str, str], end: tuple[str, str | None]
) -> None:
    store(database, "w", node("bad"), node("behind", "bad"), node("slow"), node("last", "slow"))
    asked: list[str] = []

    def bad(request: Any) -> Any:
        asked.append(request.key)
        return FAILS if len(asked) == 1 else Finished()

    flow = Flow(database, {"bad": bad, "slow": Accepted("ref")})
    root = flow.begin(**policy)
    if policy != HALT:
        report(flow, flow.step(root, "slow").run_id)
    run = flow.run(root)
    assert (run.state, run.cause) == end
    assert flow.nodes(root) == states
    if len(asked) > 1:
        spare = flow.step(root, "bad")
        assert (spare.fallback, spare.assignee, asked[1]) == (True, "spare", f"{asked[0]}:fallback")
    flow.account()


@on_sqlite
def test_a_sub_workflow_that_somebody_else_takes_over_is_not_the_same_work_to_its_targets(database: Database) -> None:
    store(database, "inner", node("c1"))
    store(database, "w", node("sub", action={"kind": "workflow", "workflow_id": "inner"}))
    asked: list[str] = []

    def fails_twice(request: Any) -> Any:
        asked.append(request.key)
        return FAILS if len(asked) < 3 else Finished()

    flow = Flow(database, {"c1": fails_twice})
    root = flow.begin(failure_policy={"mode": "fallback", "fallback_assignee_id": "spare"})
    first = step_key(id_text(root), "sub/c1")
    assert asked == [first, f"{first}:fallback", step_key(id_text(root), "sub!fallback/c1")]
    assert flow.run(root).state == "succeeded"


def report(flow: Flow, run_id: bytes, **said: Any) -> None:
    done = Reported(**{"state": ReportedState.SUCCEEDED, "proven": True, **said})
    flow.write(lambda connection: record_event(connection, Plannings(), run_id, done, now=flow.clock.now()))
    flow.settle()


@on_sqlite
def test_what_a_step_is_to_be_given_and_is_not_there_fails_it(database: Database) -> None:
    store(database, "w", node("a"), node("b", "a", input={"$from": "/results/a/no/such"}), node("c", "b"))
    flow = Flow(database)
    root = flow.begin()
    broken = flow.step(root, "b")
    assert (broken.state, broken.error_class, broken.launches) == ("failed", "contract_violated", 0)
    assert "'/results/a/no/such' matches no value" in broken.error
    assert flow.events(broken.run_id) == ["node.failed"]
    assert (flow.run(root).state, flow.nodes(root)["c"]) == ("failed", "skipped")


@on_sqlite
def test_a_result_opens_no_secret(database: Database) -> None:
    """What a target answers would else be sent on with whatever secret it names."""
    store(database, "w", node("a"), node("b", "a", input={"x": {"$from": "/results/a"}}))
    flow = Flow(database, {"a": Finished({"deep": [{"$secret": "password"}]})})
    root = flow.begin()
    assert flow.step(root, "b").error_class == "contract_violated"


@on_sqlite
def test_what_is_sent_to_a_workflow_opens_no_secret(database: Database) -> None:
    store(database, "w", node("a"))
    flow = Flow(database, {"a": Accepted("1")})
    flow.add("s", cron_expressions=["0 * * * *"], action={"kind": "workflow", "workflow_id": "w"})
    flow.clock.move(3_600)
    flow.tick()
    named = json.dumps({"x": {"$secret": "password"}})
    flow.write(lambda connection: connection.execute(sa.update(runs).values(inputs=named)))
    flow.settle()
    assert [(row.error_class, row.state) for row in flow.runs() if row.node_id] == [("contract_violated", "failed")]


@on_sqlite
def test_a_step_is_not_given_more_than_fits(database: Database) -> None:
    names = [f"n{place}" for place in range(9)]
    store(database, "w", *map(node, names), node("all", *names), node("one", *names, input={"$from": "/results/n1"}))
    flow = Flow(database, dict.fromkeys(names, Finished("x" * 1_000_000)))
    root = flow.begin()
    for _ in range(2):
        flow.settle()
    assert flow.nodes(root)["one"] == "succeeded"
    assert "too large in total" in flow.step(root, "all").error


@pytest.mark.both_databases
def test_open_steps_are_given_no_more_than_one_transaction_may_write(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_drafts, "MAX_BYTES", 1_000)
    monkeypatch.setattr(step_drafts, "MAX_OPEN_BYTES", 10_000)
    written: list[object] = []

    def noted(value: object) -> str:
        written.append(value)
        return event_text(value)

    monkeypatch.setattr(step_drafts, "event_text", noted)
    later = (node(f"n{place}", "second") for place in range(1, 4))
    store(database, "w", node("first", input={}), node("n0", "first"), node("second", "first", input={}), *later)
    flow = Flow(database, {"n0": Accepted(), "n1": Accepted()})
    root = flow.begin(action={"input": ["x" * 4_000]})
    refused = [flow.step(root, name) for name in ("n2", "n3")]
    assert [flow.nodes(root)[name] for name in ("n0", "n1")] == ["running"] * 2
    assert [(row.state, row.error_class) for row in refused] == [("failed", "contract_violated")] * 2
    assert all("open steps exceed" in row.error for row in refused)
    assert len(written) == 4, "of first, n0 and second, and once of those that are alike"


@pytest.mark.both_databases
@pytest.mark.parametrize(
    ("module", "bound", "transactions"), [(advancer, "_BYTES_AT_ONCE", 3), (step_drafts, "MAX_OPEN_BYTES", 4)]
)
def test_large_workflows_are_moved_on_in_transactions_of_their_own(
    database: Database, monkeypatch: pytest.MonkeyPatch, module: ModuleType, bound: str, transactions: int
) -> None:
    """A transaction that has turned out to be too large is one more."""
    monkeypatch.setattr(module, bound, 5_000)
    store(database, "w", node("a"), description="x" * 3_000)
    flow = Flow(database)
    for name in "abc":
        flow.add(name, cron_expressions=["0 * * * *"], action={"kind": "workflow", "workflow_id": "w", "input": LARGE})
    flow.clock.move(3_600)
    flow.tick()
    flow.dispatch()
    held: list[float] = []
    database.watch_writes(held.append)
    assert flow.advance() == 3
    assert len(held) == transactions
    flow.settle()
    assert {row.state for row in flow.runs()} == {"succeeded"}


@on_sqlite
def test_the_result_of_a_workflow_is_cut_where_that_of_any_run_is(database: Database) -> None:
    store(database, "w", *map(node, "abc"))
    flow = Flow(database, dict.fromkeys("abc", Finished("x" * 400_000)))
    run = flow.run(flow.begin())
    result = json.loads(run.result)
    assert (run.state, result["truncated"], result["limit_bytes"]) == ("succeeded", True, 1_048_576)
    assert result["text"].startswith('{"a":"xxx')
    assert len(run.result) < 100_000


def test_a_sub_workflow_has_steps_of_its_own(database: Database) -> None:
    store(database, "inner", node("c1", input={"$from": "/inputs/n"}), node("c2", "c1"))
    store(database, "inner", node("other"), version=2)
    sub = {"kind": "workflow", "workflow_id": "inner", "version": 1}
    store(database, "w", node("a"), node("sub", "a", action=sub, input={"n": 5}), node("z", "sub"))
    flow = Flow(database)
    root = flow.begin()
    assert flow.run(root).state == "succeeded"
    child = flow.step(root, "sub")
    assert (child.workflow_version, child.progress, child.root_run_id) == (1, "ss", root)
    assert json.loads(child.result) == {"c2": {"of": "c2"}}
    inside = flow.step(child.run_id, "c1")
    assert (inside.node_path, inside.root_run_id, json.loads(inside.inputs)) == ("sub/c1", root, 5)
    key = next(each.key for each in flow.launcher.deliveries if called(each) == "c1")
    assert key == step_key(id_text(root), "sub/c1")


@on_sqlite
def test_sub_workflows_end_somewhere(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each within the other, and each with as many steps as it likes."""
    sub = {"kind": "workflow", "workflow_id": "w"}
    store(database, "w", node("again", action=sub), node("a"))
    flow = Flow(database)
    root = flow.begin()
    assert flow.run(root).state == "failed"
    refused = [row for row in flow.runs() if row.state == "launch_failed"]
    assert [(row.node_path.count("again"), row.error) for row in refused] == [
        (9, "Workflows are nested more than 8 levels deep")
    ]
    monkeypatch.setattr(step_drafts, "MAX_STEPS", 6)
    root = flow.begin("w", schedule_id="t")
    below = [row for row in flow.runs() if row.root_run_id == root]
    assert len(below) == 8, "six, and those that were refused"
    assert {row.error for row in below if row.state == "launch_failed"} == {
        "A run has at most 6 steps, including the steps of sub-workflows"
    }
    flow.account()


@on_sqlite
def test_a_failed_step_is_tried_again_by_its_own_policy(database: Database) -> None:
    store(database, "w", node("a", retry_policy={"max_retries": 1, "backoff_ms": 10}))
    tries: list[str] = []

    def twice(request: Any) -> Any:
        tries.append(request.key)
        return Finished() if len(tries) > 1 else RunFailed("once", "provider_error")

    flow = Flow(database, {"a": twice})
    root = flow.begin()
    flow.clock.move(1)
    flow.settle()
    assert flow.run(root).state == "succeeded"
    assert tries == [tries[0], f"{tries[0]}:1"]
    assert "node.retried" in flow.events(flow.step(root, "a").run_id)


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────


def nested(database: Database) -> Flow:
    store(database, "inner", node("deep"), node("after", "deep"))
    sub = {"kind": "workflow", "workflow_id": "inner"}
    store(database, "w", node("sub", action=sub), node("gated", gates=["publish"]), node("late", "sub"))
    return Flow(database, {"deep": Accepted("ref")})


GATED: dict[str, Any] = {"approval_policy": {"gates": ["publish"]}}


@pytest.mark.both_databases
def test_a_wish_to_cancel_reaches_all_the_way_down(database: Database) -> None:
    flow = nested(database)
    root = flow.begin(**GATED)
    child = flow.step(root, "sub")
    assert (flow.nodes(root), flow.nodes(child.run_id)) == (
        {"sub": "running", "gated": "awaiting_approval"},
        {"deep": "running"},
    )
    flow.write(lambda connection: open_rows.ask_to_stop(connection, [root], flow.clock.now()))
    flow.settle()
    run = flow.run(root)
    assert (run.state, run.cause) == ("cancelled", "cancel_requested")
    assert flow.nodes(root) == {"sub": "cancelled", "gated": "cancelled", "late": "skipped"}
    assert flow.nodes(child.run_id) == {"deep": "cancelled", "after": "skipped"}
    assert [called(each) for each, _ in flow.launcher.cancels] == ["deep"], "its target was told"
    questions = sa.select(approvals.c.decision, approvals.c.reason)
    assert flow.write(lambda c: [tuple(row) for row in c.execute(questions)]) == [("expired", "run_cancelled")]
    flow.account()


@pytest.mark.both_databases
def test_a_run_that_is_terminated_takes_everything_below_with_it(database: Database) -> None:
    flow = nested(database)
    root = flow.begin(**GATED)
    child = flow.step(root, "sub")
    flow.write(lambda c: record_event(c, Plannings(), root, Terminated("now"), now=flow.clock.now()))
    assert flow.run(root).state == "terminated"
    assert flow.nodes(root) == {"sub": "terminated", "gated": "cancelled"}
    assert flow.nodes(child.run_id) == {"deep": "terminated"}
    flow.settle()
    assert flow.nodes(root) == {"sub": "terminated", "gated": "cancelled", "late": "skipped"}
    assert flow.nodes(child.run_id) == {"deep": "terminated", "after": "skipped"}
    assert flow.noted() == 0
    flow.account()


@pytest.mark.both_databases
def test_what_steps_have_used_counts_for_a_run_that_ends_before_it_took_note_of_it(database: Database) -> None:
    """At every depth: what was spent was spent, and a budget has to know."""
    flow = nested(database)
    root = flow.begin(**GATED)
    child = flow.step(root, "sub").run_id
    said = Reported(ReportedState.RUNNING, tokens=7, proven=True)
    over = Terminated("now")
    for run_id, event in ((flow.step(child, "deep").run_id, said), (root, over)):
        flow.write(
            lambda c, run_id=run_id, event=event: record_event(c, Plannings(), run_id, event, now=flow.clock.now())
        )
    assert [flow.run(run_id).tokens for run_id in (child, root)] == [7, 7]


@pytest.mark.parametrize("of_step", [Terminated("now"), Reported(ReportedState.RUNNING, tokens=7, proven=True)])
def test_a_run_may_end_together_with_its_steps(database: Database, of_step: Event) -> None:
    """As when all of a namespace goes, or several deadlines pass at once; whichever is told first."""
    flow = nested(database)
    root = flow.begin(**GATED)
    child = flow.step(root, "sub").run_id
    deep = flow.step(child, "deep").run_id
    for told in ([(deep, of_step), (root, Terminated("now"))], [(root, Terminated("now")), (deep, of_step)]):
        with suppress(_Undone):
            flow.write(lambda c, told=told: _end_all(c, flow, told, [deep, child, root]))


class _Undone(Exception):
    """So that the other order finds everything as it was."""


def _end_all(connection: Connection, flow: Flow, told: Sequence[tuple[bytes, Event]], gone: Sequence[bytes]) -> None:
    happened = [ReportedEvent(run_id, event) for run_id, event in told]
    record_events(connection, Plannings(), happened, now=flow.clock.now())
    ended = sa.select(runs.c.run_id).where(runs.c.run_id.in_(gone), runs.c.state == "terminated")
    assert {row.run_id for row in connection.execute(ended)} == set(gone)
    raise _Undone


@pytest.mark.both_databases
def test_a_cap_sums_what_steps_use_while_they_are_at_work(database: Database) -> None:
    store(database, "w", node("a"), node("b"), node("c", "a", "b"))
    flow = Flow(database, {"a": Accepted("1"), "b": Accepted("2")})
    root = flow.begin(limits={"tokens": 100})
    for name in ("a", "b"):
        report(flow, flow.step(root, name).run_id, state=ReportedState.RUNNING, tokens=60)
    run = flow.run(root)
    assert (run.state, run.cause, run.tokens) == ("failed", "tokens_cap", 120)
    assert flow.nodes(root) == {"a": "terminated", "b": "terminated", "c": "skipped"}


@on_sqlite
def test_a_step_has_a_time_of_its_own_and_its_workflow_none_that_nobody_wrote(database: Database) -> None:
    store(database, "w", node("a", timeout_seconds=5), node("b"))
    flow = Flow(database, {"a": Accepted("1"), "b": Accepted("2")})
    root = flow.begin()
    assert flow.run(root).deadline is None
    flow.clock.move(6)
    flow.settle()
    assert flow.nodes(root) == {"a": "timed_out", "b": "running"}


@on_sqlite
def test_the_time_of_the_whole_run_ends_its_steps(database: Database) -> None:
    store(database, "w", node("a"), node("b", "a"))
    flow = Flow(database, {"a": Accepted("1")})
    root = flow.begin(limits={"runtime_seconds": 30})
    flow.clock.move(31)
    flow.settle()
    run = flow.run(root)
    assert (run.state, run.cause) == ("failed", "runtime_cap")
    flow.settle()
    assert flow.nodes(root) == {"a": "terminated", "b": "skipped"}
    assert (flow.step(root, "b").cause, flow.run(root).progress) == ("workflow_ended", "oc")
    assert flow.noted() == 0


# ── what may go wrong ────────────────────────────────────────────────────────────────────────────────


@on_sqlite
@pytest.mark.parametrize(
    ("version", "error"),
    [(7, "version 7 of the workflow 'w' not found"), ("latest", None)],
    ids=["missing", "latest"],
)
def test_a_version_that_is_not_there_cannot_be_launched(
    database: Database, version: int | str, error: str | None
) -> None:
    store(database, "w", node("a"))
    flow = Flow(database)
    root = flow.begin(action={"version": version})
    run = flow.run(root)
    assert (run.state, run.error) == ("succeeded" if error is None else "launch_failed", error)
    flow.account()


@on_sqlite
def test_a_run_whose_workflow_cannot_be_read_any_more_is_its_own_trouble(database: Database) -> None:
    store(database, "w", node("a"), node("b", "a"))
    flow = Flow(database, {"a": Accepted("1")})
    root = flow.begin()
    damage = sa.update(workflows).values(document="{", created_at=99)
    flow.write(lambda connection: connection.execute(damage))
    report(flow, flow.step(root, "a").run_id)
    run = flow.run(root)
    assert (run.state, run.error_class) == ("failed", "unreadable_workflow")
    assert flow.noted() == 0


@pytest.mark.both_databases
def test_what_a_crash_leaves_between_two_transactions_is_taken_up(database: Database) -> None:
    store(database, "w", node("a"), node("b", "a"))
    flow = Flow(database)
    flow.add("s", cron_expressions=["0 * * * *"], action={"kind": "workflow", "workflow_id": "w"})
    flow.clock.move(3_600)
    flow.tick()
    asyncio.run(flow.dispatcher.step())
    assert flow.noted() == 1, "it was handed over, and then its process was killed"
    other = Flow(database)
    other.clock.move(3_600)
    other.dispatch()
    assert other.advancer.step().runs == 1
    other.dispatch()
    again = sa.select(runs.c.run_id, runs.c.parent_run_id).where(runs.c.node_id == "a")
    step, root = other.write(lambda connection: tuple(connection.execute(again).one()))
    # Told twice: as if somebody had noted it before it was taken, and once more after.
    other.write(lambda connection: run_step_rows.add_changes(connection, [StepChange(root, step), StepChange(root)]))
    other.settle()
    assert (other.run(root).state, other.nodes(root)) == ("succeeded", {"a": "succeeded", "b": "succeeded"})
    assert len(other.launcher.deliveries) == 2
    other.write(lambda connection: run_step_rows.add_changes(connection, [StepChange(b"0" * 16)]))
    other.settle()
    assert other.noted() == 0, "of a run that is there no more"


@on_sqlite
def test_a_thousand_nodes_end_with_a_thousand_steps(database: Database) -> None:
    names = [f"n{place}" for place in range(998)]
    store(
        database,
        "w",
        node("first"),
        *(node(name, "first", input=1) for name in names),
        node("last", *names, input={"$from": "/results/n7/of"}),
    )
    at_once = Limits(process=1_000, namespace=1_000, target=1_000)
    flow = Flow(database, dispatcher=DispatcherOptions(limits=at_once, batch=1_000))
    root = flow.begin()
    assert flow.run(root).state == "succeeded"
    assert json.loads(flow.step(root, "last").inputs) == "n7"
    assert len(flow.steps(root)) == 1_000


@on_sqlite
def test_whoever_moves_workflows_on_hears_at_once_that_one_has_begun(database: Database) -> None:
    store(database, "w", node("only"))
    flow = Flow(database)
    flow.add("s", cron_expressions=["0 * * * *"], action={"kind": "workflow", "workflow_id": "w"})
    flow.clock.move(3_600)
    flow.tick()
    heard: list[str] = []
    listener = database.listen([READY], heard.append)
    flow.dispatch()
    listener.close()
    assert heard == [READY]
