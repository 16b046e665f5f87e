"""The schedules of the demo, which fire within seconds, its workflow, and its two agents with their prompts.

The note of each schedule describes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from horarium.app import Horarium
from horarium.demo.agent import V0_3, V1_0, AgentServer, DemoAgent
from horarium.features.agents import service as agent_service
from horarium.features.agents.teams import ASSIGNMENTS
from horarium.features.resources import Resources
from horarium.features.schedules import service as schedule_service
from horarium.features.workflows import service as workflow_service
from horarium.instant import MINUTE, Instant
from horarium.platform.caller import Caller, internal
from horarium.platform.client.connection import DEMO_DIR
from horarium.platform.clock import Clock
from horarium.platform.job import Job
from horarium.platform.settings import Settings
from horarium.serve.data_dir import make_data_dir
from horarium.serve.process import UP, run
from horarium.serve.service import Service

HERALD, CLERK = "demo-herald", "demo-clerk"
_GENERATIONS: Final = {HERALD: V1_0, CLERK: V0_3}
_NAMES: Final = {HERALD: "Herald", CLERK: "Clerk"}
_WORK_SECONDS = 1.0


@contextmanager
def serving() -> Iterator[Mapping[str, str]]:
    """Serve both agents in threads of this process and yield their URLs."""
    with ExitStack() as stack:
        servers = {
            agent_id: stack.enter_context(AgentServer(DemoAgent(_NAMES[agent_id], generation, _WORK_SECONDS)))
            for agent_id, generation in _GENERATIONS.items()
        }
        for server in servers.values():
            server.begin()
            stack.callback(server.shutdown)
        yield {agent_id: server.url for agent_id, server in servers.items()}


def put_prompts(resources: Resources, caller: Caller, addresses: Mapping[str, str]) -> None:
    """Register both agents at their current URLs and create their schedules."""
    for agent_id, url in addresses.items():
        agent_service.put(resources, caller, agent_id, {"name": _NAMES[agent_id], "url": url})
    for document in (_morning(), _question()):
        schedule_service.upsert(resources, caller, document)


def _morning() -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-prompt",
        "cron_expressions": ["@every PT1M"],
        "action": {"kind": "prompt", "prompt": "Say good morning to the team."},
        **_by(HERALD),
        "note": "A prompt to an agent with A2A 1.0. Its answer is the result of the run.",
    }


def _question() -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-prompt-question",
        "cron_expressions": ["@every PT2M"],
        "action": {"kind": "prompt", "prompt": "Order flowers. Ask first: which colour?"},
        **_by(CLERK),
        "note": "A prompt to an agent with A2A 0.3 that asks a question first. Run `horarium approval list`, then "
        """`horarium approval answer ID yellow`.""",
    }


def _by(agent_id: str) -> Mapping[str, Any]:
    """Return the assignee, without the approval that runs of agents require by default."""
    return {
        "assignee_type": "agent",
        "assignee_id": agent_id,
        "approval_policy": {"requires_approval": False, "allow_requester": True},
    }


SLOW_SECONDS = 8
# Do not wait long for the slow task.
_SHUTDOWN_SECONDS = 2.0
_MISSED_MINUTES = 10


def make_demo() -> Horarium:
    app = Horarium()
    app.task(name="demo.greet")(greet)
    app.task(name="demo.slow")(slow)
    app.task(name="demo.flaky")(flaky)
    declare_brief(app)
    _declare_times(app)
    _declare_guards(app)
    _declare_policies(app)
    return app


# ── the work ─────────────────────────────────────────────────────────────────────────────────────────


def greet(name: str = "world") -> dict[str, str]:
    return {"greeting": f"Hello, {name}!"}


def slow(context: Job) -> str:
    """Run longer than the interval of the schedule, and stop on cancellation."""
    until = time.monotonic() + SLOW_SECONDS
    while time.monotonic() < until and not context.cancelled():
        time.sleep(0.1)
    return "done"


def flaky(context: Job) -> str:
    if context.attempt == 0:
        raise RuntimeError("the first attempt always fails")
    return f"succeeded on attempt {context.attempt + 1}"


def collect() -> dict[str, list[str]]:
    return {"names": ["Ada", "Grace", "Edsger"]}


def compose(names: list[str], day: str) -> dict[str, str]:
    return {"text": f"Good morning, {', '.join(names)}. It is {day[:10]}."}


def send(text: str) -> dict[str, str]:
    """Return the text; the demo sends nothing."""
    return {"sent": text}


# ── the schedules ────────────────────────────────────────────────────────────────────────────────────


def _declare_times(app: Horarium) -> None:
    app.schedule("@every PT5S", schedule_id="demo-every-five-seconds", note="An interval of 5 seconds.")(greet)
    app.schedule(
        "*/10 * * * * *",
        schedule_id="demo-cron-with-seconds",
        timezone="Europe/Istanbul",
        note="A cron expression with six fields; the first one is seconds.",
    )(greet)
    app.schedule(
        "@every PT20S",
        schedule_id="demo-jitter",
        spec={"jitter_seconds": 5},
        note="A jitter of up to 5 seconds. The delay of each occurrence is deterministic.",
    )(greet)
    app.schedule(
        "30 2 * * *",
        schedule_id="demo-half-past-two-at-night",
        timezone="America/New_York",
        note="02:30 does not exist on the day in March when DST starts; see the next fire times.",
    )(greet)


def _declare_guards(app: Horarium) -> None:
    for days in ("weekdays", "weekends"):
        app.schedule(
            "@every PT15S",
            schedule_id=f"demo-{days}",
            calendars=[days, "us-federal-holidays-2026"],
            note="One of demo-weekdays and demo-weekends is skipped by its calendar today.",
        )(greet)
    app.schedule(
        "@every PT10S",
        schedule_id="demo-condition",
        pre_dispatch_condition={"/last_24h_stats/total": {"lt": 3}},
        note="Runs until there were three runs in 24 hours; then the condition is not met.",
    )(greet)
    app.schedule(
        "@every PT6S",
        schedule_id="demo-rotation",
        inputs_rotation=[{"name": "Ada"}, {"name": "Grace"}, {"name": "Edsger"}],
        note="Rotating inputs: each run uses the next one.",
    )(greet)
    app.schedule(
        "@every PT6S", schedule_id="demo-max-runs", max_runs=3, note="The schedule is deleted after three runs."
    )(greet)


def _declare_policies(app: Horarium) -> None:
    app.schedule(
        "@every PT5S",
        schedule_id="demo-overlap-skip",
        overlap_policy="skip",
        note=f"The task takes {SLOW_SECONDS} seconds, so every second occurrence is skipped.",
    )(slow)
    app.schedule(
        "@every PT5S",
        schedule_id="demo-overlap-buffer-one",
        overlap_policy="buffer_one",
        note="One occurrence is buffered while the slow task runs; further ones find the buffer full.",
    )(slow)
    app.schedule(
        "@every PT30S",
        schedule_id="demo-retry",
        retry_policy={"max_retries": 2, "backoff_ms": 1_000},
        note="The first attempt fails, the retry succeeds.",
    )(flaky)


def _catchup(_url: str) -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-catchup",
        "cron_expressions": ["@every PT1M"],
        "action": {"kind": "python", "callable": "demo.greet"},
        "catchup_policy": "fire_once",
        "overlap_policy": "allow_all",
        "note": f"Simulates a downtime of {_MISSED_MINUTES} minutes: one run covers the missed occurrences.",
    }


def _call_ourselves(url: str) -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-http",
        "cron_expressions": ["@every PT10S"],
        "action": {"kind": "http", "method": "GET", "url": f"{url}/healthz"},
        "note": "An HTTP request to the health check of this service.",
    }


# ── a workflow with an approval ─────────────────────────────────────────────────────────────────────────────


def declare_brief(app: Horarium) -> None:
    app.task(name="demo.collect")(collect)
    app.task(name="demo.compose")(compose)
    app.task(name="demo.send")(send)


_WRITER, _BRIEF, _ASSIGNMENT = "demo-writer", "demo-brief", "demo-brief-by-writer"

_BRIEF_WORKFLOW: Mapping[str, Any] = {
    "name": "Morning brief",
    "description": "Three steps; the last one requires approval for external_message.",
    "nodes": [
        {"id": "collect", "action": {"kind": "python", "task": "demo.collect"}, "input": {}},
        {
            "id": "compose",
            "needs": ["collect"],
            "action": {"kind": "python", "task": "demo.compose"},
            "input": {"names": {"$from": "/results/collect/names"}, "day": {"$from": "/run/nominal"}},
        },
        {
            "id": "send",
            "needs": ["compose"],
            "gates": ["external_message"],
            "action": {"kind": "python", "task": "demo.send"},
            "input": {"text": {"$from": "/results/compose/text"}},
        },
    ],
}


def _asking() -> Mapping[str, Any]:
    """Return a schedule with an approval; `allow_requester` lets the only user of the demo decide it."""
    return {
        "schedule_id": "demo-approval",
        "cron_expressions": ["@every PT15S"],
        "action": {"kind": "workflow", "workflow_id": _BRIEF, "version": "latest"},
        "workflow_assignment_id": _ASSIGNMENT,
        "approval_policy": {"requires_approval": False, "mode": "sensitive_actions", "allow_requester": True},
        "note": "The last step awaits approval; occurrences are skipped meanwhile. Run "
        "`horarium approval list`, then `horarium approval approve ID`. The demo has one user, so the policy sets "
        "allow_requester; without it, another user must approve.",
    }


def put_brief(resources: Resources, caller: Caller) -> None:
    """Create an agent, a workflow, its assignment and its schedule."""
    agent_service.put(resources, caller, _WRITER, {"name": "Writer", "policies": {"budget": {"max_daily_runs": 1_000}}})
    workflow_service.put(resources, caller, _BRIEF, _BRIEF_WORKFLOW)
    assignment = {"workflow_id": _BRIEF, "assignee_type": "agent", "assignee_id": _WRITER}
    ASSIGNMENTS.put(resources, caller, _ASSIGNMENT, {**assignment, "retry_policy": {"max_retries": 2}})
    schedule_service.upsert(resources, caller, _asking())


# ── the process ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Behind:
    """A clock that is behind by a fixed time."""

    clock: Clock
    by: Instant

    def now(self) -> Instant:
        return self.clock.now() - self.by

    def monotonic(self) -> float:
        return self.clock.monotonic()


def run_demo(settings: Settings, *, say: Callable[[str], None], to_terminal: bool = False) -> None:
    """Run the demo in a separate directory, because a service without it could not run its schedules.

    Its schedules call the service and its agents on loopback, which `up` allows on a loopback address.
    """
    make_data_dir(settings)  # with restricted permissions, unlike implicitly created parents
    own = {
        "data_dir": settings.data_dir / DEMO_DIR,
        "shutdown_seconds": min(settings.shutdown_seconds, _SHUTDOWN_SECONDS),
    }
    quick = settings.model_copy(update=own)
    with serving() as addresses:
        run(
            quick,
            UP,
            say=say,
            application=make_demo(),
            before=partial(prepare, addresses=addresses),
            to_terminal=to_terminal,
        )


def prepare(service: Service, url: str, *, addresses: Mapping[str, str]) -> None:
    """Create what needs the URL of the service, an earlier time, or other objects than schedules."""
    caller = internal("demo")
    schedule_service.upsert(service.resources, caller, _call_ourselves(url))
    earlier = replace(service.resources, clock=Behind(service.resources.clock, _MISSED_MINUTES * MINUTE))
    schedule_service.upsert(earlier, caller, _catchup(url))
    put_brief(service.resources, caller)
    put_prompts(service.resources, caller, addresses)
