"""Prompts find their agent, keep what it calls them, and are gone on with by whoever comes after."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa
from engine.agents import PROMPT, Agents, add_agent, add_prompts, add_team, agents_of, left_behind, world_of
from engine.builders import World
from engine.workflows import Flow, node, store
from world import FakeClock

from horarium.core.lifecycle.outcome import (
    ApprovalGiven,
    Asked,
    Finished,
    Outcome,
    RunCancelled,
    RunFailed,
    Terminated,
    Unknown,
)
from horarium.engine.dispatcher import Dispatcher
from horarium.engine.loop import Pulse
from horarium.features.runs.retention_rows import delete_runs
from horarium.features.runs.starts import start_run
from horarium.features.runs.transition_rows import record_event
from horarium.features.schedules.due_rows import Plannings
from horarium.features.secrets import rows as secret_rows
from horarium.instant import SECOND
from horarium.launchers.launcher import AgentLine, CardSeen, LaunchRequest
from horarium.platform.database import Database
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.installation import Sealer
from horarium.platform.database.tables import agents, approvals, runs
from horarium.serve.preparers import preparers_with
from horarium.testing import service


def taking(reference: str, outcome: Outcome) -> Callable[[LaunchRequest], Any]:
    """An agent that gives the prompt a name of its own, and then answers."""

    async def answer(request: LaunchRequest) -> Outcome:
        assert request.holder is not None
        await request.holder.taken(reference)
        return outcome

    return answer


def one(world: World) -> Any:
    (run,) = world.runs()
    return run


def lose(world: World) -> None:
    """As if the process that holds the run were gone."""
    world.clock.move(31)
    world.tidy()
    world.clock.move(5)


def claim_and_die(world: World, *references: str) -> None:
    """Claimed, taken by the agent under these names, and never heard of again."""
    claimed = asyncio.run(world.dispatcher.claim())
    for each, reference in zip(claimed.taken, references, strict=False):
        asyncio.run(world.dispatcher._desk.name(each, reference))


# ── whom it goes to ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_a_prompt_is_launched_with_its_agent_and_the_token_is_shown_nowhere(database: Database) -> None:
    sealer = Sealer(b"k" * 32)
    world = world_of(database, lambda request: Finished({"text": f"as {request.agent.token} told me"}))  # type: ignore[union-attr]  # a prompt has one
    world.dispatcher = Dispatcher(database, world.clock, world.registry, "test", preparers=preparers_with(sealer))
    add_agent(world, context="schedule", protocol="0.3")
    add_prompts(world)
    keep = ("default", "agent.writer.token", "s3cret-token", ["http://writer.test:80"], True, world.clock.now())
    world.write(lambda connection: secret_rows.put(connection, sealer, *keep))
    world.dispatch()
    (request,) = world.launcher.deliveries
    line = request.agent
    assert line is not None
    assert (line.agent_id, line.url, line.protocol, line.context, line.token) == (
        "writer", "http://writer.test/", "0.3", "schedule", "s3cret-token",
    )  # fmt: skip
    assert line.token_hosts == ("http://writer.test:80",)
    assert (request.reference, request.heard, request.answer) == (None, False, None)
    run = one(world)
    assert (run.state, run.target) == ("succeeded", "prompt:agent/writer")
    assert "s3cret-token" not in run.result


def test_a_prompt_carries_the_pins_of_the_secrets_in_its_input(database: Database) -> None:
    """By them its launcher leaves out what the card of the agent may point to."""
    sealer = Sealer(b"k" * 32)
    world = world_of(database)
    world.dispatcher = Dispatcher(database, world.clock, world.registry, "test", preparers=preparers_with(sealer))
    add_agent(world, allowed_hosts=("other.test",))
    inputs = {"a": {"$secret": "pinned"}, "b": {"$secret": "free"}}
    add_prompts(world, action={"input": inputs})
    for name, hosts in {"pinned": ["http://writer.test:80"], "free": None}.items():
        keep = ("default", name, "sesame", hosts, False, world.clock.now())
        world.write(lambda connection, keep=keep: secret_rows.put(connection, sealer, *keep))
    world.dispatch()
    (request,) = world.launcher.deliveries
    assert request.agent is not None
    assert request.inputs == {"a": "sesame", "b": "sesame"}
    assert request.agent.input_hosts == (("http://writer.test:80",),)


BROKEN: dict[str, tuple[Callable[[World], None], str]] = {
    "gone": (lambda world: None, "Agent 'writer' does not exist"),
    "no url": (lambda world: add_agent(world, url=None), "Agent 'writer' has no url"),
    "sealed for another key": (lambda world: _with_token(world, "agent.writer.token"), "cannot be decrypted"),
    "for another host": (
        lambda world: _with_token(world, "agent.writer.token", "old.test"),
        "may be sent to old.test only, not to http://writer.test:80",
    ),
    "for https": (
        lambda world: _with_token(world, "agent.writer.token", "writer.test"),
        "not to http://writer.test:80",
    ),
}


def _with_token(world: World, name: str, host: str = "http://writer.test:80") -> None:
    add_agent(world)
    other = Sealer(b"o" * 32)
    world.write(lambda c: secret_rows.put(c, other, "default", name, "t", [host], True, world.clock.now()))


@pytest.mark.both_databases
@pytest.mark.parametrize("name", BROKEN)
def test_a_prompt_that_cannot_reach_its_agent_says_why(database: Database, name: str) -> None:
    prepare, said = BROKEN[name]
    world = world_of(database)
    world.dispatcher = Dispatcher(
        database, world.clock, world.registry, "test", preparers=preparers_with(Sealer(b"k" * 32))
    )
    prepare(world)
    add_prompts(world)
    world.dispatch()
    run = one(world)
    assert (run.state, run.error_class, world.launcher.deliveries) == ("launch_failed", "refused", [])
    assert said in run.error


def test_an_agent_whose_row_was_damaged_is_the_trouble_of_its_prompts(database: Database) -> None:
    world = world_of(database)
    for name in ("writer", "other"):
        add_agent(world, name)
        add_prompts(world, 1, name)
    damaged = sa.update(agents).where(agents.c.agent_id == "writer").values(document='{"capacity": "many"}')
    world.write(lambda c: c.execute(damaged))
    world.dispatch()
    assert {run.target: run.state for run in world.runs()} == {
        "prompt:agent/writer": "launch_failed",
        "prompt:agent/other": "succeeded",
    }


@pytest.mark.parametrize("assignee", [None, "team"])
def test_a_prompt_that_names_nobody_is_refused(database: Database, assignee: str | None) -> None:
    world = world_of(database)
    add_prompts(
        world, **({"assignee_type": None, "assignee_id": None} if assignee is None else {"assignee_type": "team"})
    )
    world.dispatch()
    run = one(world)
    assert run.state == "launch_failed"
    assert "has no recipient" in run.error


def test_a_team_sends_the_member_whose_turn_it_is(database: Database) -> None:
    world = world_of(database)
    for name in ("a", "b"):
        add_agent(world, name)
    add_team(world, "desk", "a", "b")
    add_prompts(world, 3, "desk", assignee_type="team")
    assert sorted(run.target for run in world.runs()) == ["prompt:agent/a", "prompt:agent/a", "prompt:agent/b"]
    assert all(run.target == f"prompt:agent/{run.member}" for run in world.runs())


def test_a_step_that_is_a_prompt_goes_to_its_own_worker_for_five_minutes(database: Database) -> None:
    flow = Flow(database)
    for name in ("a", "b", "writer"):
        add_agent(flow, name)
    add_team(flow, "desk", "a", "b")
    prompts = {"first": ("agent", "writer"), "second": ("team", "desk"), "third": ("team", "desk")}
    nodes = [node(name, action=PROMPT, assignee_type=kind, assignee_id=who) for name, (kind, who) in prompts.items()]
    store(database, "w", *nodes)
    root = flow.begin(approval_policy={"requires_approval": False})
    found = {step.node_id: (step.target, step.assignee, step.timeout_seconds) for step in flow.steps(root)}
    assert found.pop("first") == ("prompt:agent/writer", "writer", 300)
    assert sorted(found.values()) == [("prompt:agent/a", "desk", 300), ("prompt:agent/b", "desk", 300)]


def test_a_prompt_that_is_started_without_a_schedule_goes_to_the_member_whose_turn_it_is() -> None:
    with service() as horarium:
        http = horarium.http()
        agent, team = {"id": "a", "url": "http://a.test/"}, {"team_id": "desk", "members": ["a"]}
        assert http.post("/api/agents", json=agent).status_code == 201
        assert http.post("/api/teams", json=team).status_code == 201
        start_run(
            horarium.resources,
            horarium.caller,
            PROMPT,
            key=None,
            beside={"assignee_type": "team", "assignee_id": "desk", "approval_policy": {"requires_approval": False}},
        )
        horarium.settle()
        (request,) = horarium.launcher.deliveries
        assert request.agent == AgentLine("a", "http://a.test/")


# ── what the agent calls it ──────────────────────────────────────────────────────────────────────────


@pytest.mark.both_databases
def test_the_name_of_a_task_is_kept_before_there_is_an_answer(database: Database) -> None:
    seen: list[Any] = []

    async def answer(request: LaunchRequest) -> Outcome:
        assert request.holder is not None
        await request.holder.taken("t1")
        seen.append(one(world))
        assert not request.holder.stop_wanted()
        return Finished({"text": "done"})

    world = world_of(database, answer)
    add_agent(world)
    add_prompts(world)
    world.dispatch()
    assert [(run.state, run.reference) for run in seen] == [("running", "t1")]
    assert seen[0].lease_until is not None
    assert one(world).state == "succeeded"
    assert left_behind(world) == []
    world.account()


def test_a_name_waits_while_the_database_is_away(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    world = world_of(database, taking("t1", Unknown("gone")))
    add_agent(world)
    add_prompts(world)
    desk, away = world.dispatcher._desk, iter([True, True, False])
    really = desk.name

    async def sometimes(*given: Any) -> None:
        if next(away):
            raise StoreUnavailable("away")
        await really(*given)

    monkeypatch.setattr(desk, "name", sometimes)
    monkeypatch.setattr("horarium.engine.dispatcher._PAUSES", (0.001,))
    world.dispatch()
    assert next(away, None) is None
    assert "run.started" in world.events(one(world).run_id)


@pytest.mark.both_databases
@pytest.mark.parametrize("reference", ["", "x" * 2_000, "a\x00b", "\ud800"])
def test_a_name_that_no_row_can_hold_costs_the_run_nothing(database: Database, reference: str) -> None:
    world = world_of(database, taking(reference, Finished({"text": "done"})))
    add_agent(world)
    add_prompts(world)
    world.dispatch()
    assert (one(world).state, one(world).reference) == ("succeeded", None)


@pytest.mark.both_databases
def test_a_card_is_kept_when_it_is_new_and_not_at_every_prompt(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    card = {"name": "Writer", "version": "2", "url": "http://writer.test/", "protocolVersion": "0.3.0", "skills": []}
    known, refused = CardSeen(card, '"e"', None, "0.3"), CardSeen(None, error="refused")
    line = AgentLine("writer", "http://writer.test/")
    names = ("card", "card_etag", "card_error", "dialect", "card_at", "last_seen_at")
    start, found = world.clock.now(), []
    for seen in (known, known, refused, known):
        asyncio.run(world.dispatcher._desk.see("default", line, seen))
        row = world.database.read(lambda c: c.execute(sa.select(*(agents.c[name] for name in names))).one())
        found.append((*row[:4], *((at - start) // SECOND for at in row[4:])))
        world.clock.move(10)
    text = found[0][0]
    assert json.loads(text) == {"name": "Writer", "version": "2", "protocol": "0.3.0"}  # the rest is large
    assert found == [
        (text, '"e"', None, "0.3", 0, 0),
        (text, '"e"', None, "0.3", 0, 0),
        (text, '"e"', "refused", "0.3", 20, 0),
        (text, '"e"', None, "0.3", 30, 30),
    ]
    other = AgentLine("writer", "http://elsewhere.test/")
    asyncio.run(world.dispatcher._desk.see("default", other, CardSeen(None, error="who?")))
    assert world.database.read(lambda c: c.execute(sa.select(agents.c.card_error)).scalar_one()) is None


# ── who comes after ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("delivery", ["at_least_once", "at_most_once"])
def test_a_lost_prompt_is_followed_under_its_name_and_within_its_time(database: Database, delivery: str) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, action={"delivery": delivery})
    claim_and_die(world, "t1")
    deadline = one(world).deadline
    lose(world)
    run = one(world)
    assert (run.state, run.reference, run.heard, run.deadline) == ("ready", "t1", True, deadline)
    world.dispatch()
    (request,) = world.launcher.deliveries
    assert (request.reference, request.heard, request.once) == ("t1", True, delivery == "at_most_once")
    assert request.deadline == deadline
    assert (one(world).state, left_behind(world)) == ("succeeded", [])
    world.account()


@pytest.mark.both_databases
def test_one_whose_name_is_not_known_is_looked_for(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, action={"delivery": "at_most_once"})
    claim_and_die(world)
    lose(world)
    world.dispatch()
    (request,) = world.launcher.deliveries
    assert (request.reference, request.heard, request.once) == (None, True, True)


def test_a_holder_that_was_only_slow_says_where_to_look(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    (held,) = asyncio.run(world.dispatcher.claim()).taken
    lose(world)
    asyncio.run(world.dispatcher._desk.name(held, "t1"))
    assert (one(world).state, one(world).reference, one(world).lease_until) == ("ready", "t1", None)
    world.dispatch()
    assert world.launcher.deliveries[0].reference == "t1"


def test_a_lease_that_is_lost_after_the_deadline_is_looked_at_before_it_is_called_late(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, action={"timeout_seconds": 20})
    claim_and_die(world, "t1")
    world.clock.move(25)  # past the deadline, and the holder may still be there
    assert world.tidy().total == 0
    lose(world)
    assert (one(world).state, one(world).reference) == ("ready", "t1")


def test_what_is_stopped_with_its_process_is_left_to_who_follows(database: Database) -> None:
    wanted: list[bool] = []

    async def until_cancelled(request: LaunchRequest) -> Outcome:
        assert request.holder is not None
        assert request.cancelled is not None
        await request.holder.taken("t1")
        stop.set()
        await request.cancelled.wait()
        wanted.append(request.holder.stop_wanted())
        return RunCancelled("let go")

    world = world_of(database, until_cancelled)
    add_agent(world)
    add_prompts(world)
    stop = asyncio.Event()
    asyncio.run(world.dispatcher.run(stop, asyncio.Event(), 0.2, Pulse()))
    run = one(world)
    assert (wanted, run.state, run.reference, run.heard) == ([False], "ready", "t1", True)


def test_who_is_asked_to_stop_knows_that_it_is_wanted(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    (held,) = asyncio.run(world.dispatcher.claim()).taken
    world.dispatcher._in_flight[held.key] = held
    world.write(lambda c: c.execute(sa.update(runs).values(stop_requested_at=world.clock.now())))
    asyncio.run(world.dispatcher.renew())
    assert (held.cancelled.is_set(), held.unwanted, held.lost) == (True, True, False)


def test_a_task_that_the_agent_has_lost_is_sent_anew(database: Database) -> None:
    world = world_of(database, taking("t1", Unknown("no such task")), Finished({"text": "done"}))
    add_agent(world)
    add_prompts(world)
    world.dispatch()
    world.clock.move(60)
    world.dispatch()
    first, second = world.launcher.deliveries
    assert (second.reference, second.heard, second.key) == (None, True, first.key)


# ── questions ────────────────────────────────────────────────────────────────────────────────────────


def answer_question(world: World, modifications: str | None) -> None:
    run, now = one(world), world.clock.now()
    assert run.state == "awaiting_approval"

    def decide(connection: Any) -> None:
        row = connection.execute(sa.select(approvals).order_by(approvals.c.requested_at.desc())).first()
        decision = "approved" if modifications is None else "modified"
        values = {"decision": decision, "modifications": modifications, "decided_at": now}
        connection.execute(sa.update(approvals).where(approvals.c.approval_id == row.approval_id).values(values))
        record_event(connection, Plannings(), run.run_id, ApprovalGiven(row.approval_id), now=now)

    world.write(decide)


@pytest.mark.parametrize(
    ("gate", "modifications", "reply"),
    [("agent_input", '{"reply": "the red one"}', "the red one"), ("agent_auth", None, "approved")],
)
def test_the_answer_to_a_question_goes_back_with_its_task(
    database: Database, gate: str, modifications: str | None, reply: str
) -> None:
    world = world_of(database, Asked(gate, "Which?", "t1"), taking("t1", RunFailed("no", "agent_failed")))
    add_agent(world)
    add_prompts(world, retry_policy={"max_retries": 1, "retry_on": ["provider_error"]})
    world.dispatch()
    assert (one(world).reference, one(world).lease_until) == ("t1", None)
    answer_question(world, modifications)
    world.dispatch()
    first, second = world.launcher.deliveries
    assert (first.answer, second.answer, second.reference, second.heard) == (None, reply, "t1", False)
    assert second.key != first.key


def test_an_answer_is_not_sent_to_a_task_that_is_over(database: Database) -> None:
    world = world_of(database, Asked("agent_input", "Which?", "t1"), RunFailed("x", "provider_error"))
    add_agent(world)
    add_prompts(world)
    world.dispatch()
    answer_question(world, '{"reply": "red"}')
    world.dispatch()
    world.clock.move(600)
    world.dispatch()
    third = world.launcher.deliveries[2]
    assert (third.attempt, third.answer, third.reference, third.heard) == (1, None, None, False)


# ── what nobody wants any more ───────────────────────────────────────────────────────────────────────


def stop_ready(world: World) -> None:
    lose(world)
    world.write(lambda c: c.execute(sa.update(runs).values(stop_requested_at=world.clock.now())))
    world.tidy()


def terminate(world: World) -> None:
    run_id, ended = one(world).run_id, Terminated("enough")
    world.write(lambda c: record_event(c, Plannings(), run_id, ended, now=world.clock.now()))


def time_out(world: World) -> None:
    world.write(lambda c: c.execute(sa.update(runs).values(lease_until=world.clock.now() + 3_600 * SECOND)))
    world.clock.move(331)
    world.tidy()


@pytest.mark.parametrize(
    ("end", "state"), [(stop_ready, "cancelled"), (terminate, "terminated"), (time_out, "timed_out")]
)
def test_the_task_of_a_run_that_others_ended_is_called_off(
    database: Database, end: Callable[[World], None], state: str
) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    claim_and_die(world, "t1")
    end(world)
    assert (one(world).state, left_behind(world)) == (state, [("writer", "t1", 0)])
    world.follow()
    assert (agents_of(world).told, left_behind(world)) == ([("writer", "t1")], [])
    world.account()


@pytest.mark.both_databases
def test_a_run_that_ended_while_it_was_sent_has_its_task_called_off(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    (held,) = asyncio.run(world.dispatcher.claim()).taken
    terminate(world)
    assert left_behind(world) == []  # nobody could know its name
    asyncio.run(world.dispatcher._desk.name(held, "t1"))
    assert left_behind(world) == [("writer", "t1", 0)]


def test_an_agent_that_does_not_listen_is_told_five_times(database: Database) -> None:
    world = world_of(database)
    agents_of(world).listens = lambda: False
    add_agent(world)
    add_prompts(world)
    claim_and_die(world, "t1")
    terminate(world)
    start, tries = world.clock.now(), []
    for _ in range(160):
        before = len(agents_of(world).told)
        world.follow()
        if len(agents_of(world).told) > before:
            tries.append((world.clock.now() - start) // SECOND)
        world.clock.move(1)
    assert (tries, left_behind(world)) == ([0, 1, 6, 36, 156], [])


@pytest.mark.both_databases
def test_a_task_that_is_wanted_again_is_not_called_off(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world, retry_policy={"max_retries": 1, "backoff_ms": 100, "retry_on": ["timeout"]})
    claim_and_die(world, "t1")
    time_out(world)
    assert left_behind(world) == [("writer", "t1", 0)]
    world.clock.move(60)
    claim_and_die(world, "t1")  # it knew the message again
    world.follow()
    assert (agents_of(world).told, left_behind(world)) == ([], [])


def test_nobody_is_told_by_an_agent_that_is_gone(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    claim_and_die(world, "t1")
    terminate(world)
    world.write(lambda c: c.execute(sa.delete(agents)))
    world.follow()
    assert (agents_of(world).told, left_behind(world)) == ([], [])


@pytest.mark.both_databases
def test_two_processes_tell_an_agent_once(database: Database, open_another: Callable[[], Database]) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    claim_and_die(world, "t1")
    terminate(world)
    other = World(open_another(), world.clock, launcher=Agents(FakeClock(world.clock.now())))
    other.launcher.told = agents_of(world).told  # type: ignore[attr-defined]  # both are agents
    world.follow()
    other.follow()
    assert agents_of(world).told == [("writer", "t1")]


@pytest.mark.both_databases
def test_what_was_to_be_told_goes_with_its_run(database: Database) -> None:
    world = world_of(database)
    add_agent(world)
    add_prompts(world)
    claim_and_die(world, "t1")
    terminate(world)
    run_id = one(world).run_id
    world.write(lambda c: delete_runs(c, [run_id]))
    assert (world.runs(), left_behind(world)) == ([], [])
