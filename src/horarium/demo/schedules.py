"""Schedules that show what Horarium can do, and fire within seconds.

Each has a note that says what to look for: `GET /api/schedules/{id}` shows it, the log tells what
fired, what was skipped and why.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from horarium.app import Horarium
from horarium.client.discover import DEMO_DIR
from horarium.clock import Clock
from horarium.demo.prompts import put_prompts, serving
from horarium.instant import MINUTE, Instant
from horarium.job.job import Job
from horarium.operations import agents, schedules, workflows
from horarium.operations.assignments import ASSIGNMENTS
from horarium.operations.caller import Caller, internal
from horarium.operations.resources import Resources
from horarium.serve.admin import make_data_dir
from horarium.serve.process import UP, run
from horarium.serve.service import Service
from horarium.settings import Settings

SLOW_SECONDS = 8
# Nobody who stops a demonstration wants to wait for its slow task.
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
    """Takes longer than the time between two occurrences; it looks now and then whether it should stop."""
    until = time.monotonic() + SLOW_SECONDS
    while time.monotonic() < until and not context.cancelled():
        time.sleep(0.1)
    return "done at last"


def flaky(context: Job) -> str:
    if context.attempt == 0:
        raise RuntimeError("the first attempt always fails")
    return f"worked at attempt {context.attempt + 1}"


def collect() -> dict[str, list[str]]:
    return {"names": ["Ada", "Grace", "Edsger"]}


def compose(names: list[str], day: str) -> dict[str, str]:
    return {"text": f"Good morning, {', '.join(names)}. It is {day[:10]}."}


def send(text: str) -> dict[str, str]:
    """Nothing is sent; in the demonstration it is enough that somebody had to agree."""
    return {"sent": text}


# ── the schedules ────────────────────────────────────────────────────────────────────────────────────


def _declare_times(app: Horarium) -> None:
    app.schedule("@every PT5S", schedule_id="demo-every-five-seconds", note="The simplest: an interval.")(greet)
    app.schedule(
        "*/10 * * * * *",
        schedule_id="demo-cron-with-seconds",
        timezone="Europe/Istanbul",
        note="Six fields: the first one is for seconds.",
    )(greet)
    app.schedule(
        "@every PT20S",
        schedule_id="demo-jitter",
        spec={"jitter_seconds": 5},
        note="Up to five seconds late, each time by a delay of its own, the same after any restart.",
    )(greet)
    app.schedule(
        "30 2 * * *",
        schedule_id="demo-half-past-two-at-night",
        timezone="America/New_York",
        note="Look at its next fire times in March: that night has no 02:30.",
    )(greet)


def _declare_guards(app: Horarium) -> None:
    for days in ("weekdays", "weekends"):
        app.schedule(
            "@every PT15S",
            schedule_id=f"demo-{days}",
            calendars=[days, "us-federal-holidays-2026"],
            note="Today one of the two, weekdays and weekends, is skipped by its calendar.",
        )(greet)
    app.schedule(
        "@every PT10S",
        schedule_id="demo-condition",
        pre_dispatch_condition={"/last_24h_stats/total": {"lt": 3}},
        note="Fires while there were fewer than three runs in a day; then its condition fails.",
    )(greet)
    app.schedule(
        "@every PT6S",
        schedule_id="demo-rotation",
        inputs_rotation=[{"name": "Ada"}, {"name": "Grace"}, {"name": "Edsger"}],
        note="Each run takes the next input.",
    )(greet)
    app.schedule(
        "@every PT6S", schedule_id="demo-max-runs", max_runs=3, note="Three runs, then the schedule is deleted."
    )(greet)


def _declare_policies(app: Horarium) -> None:
    app.schedule(
        "@every PT5S",
        schedule_id="demo-overlap-skip",
        overlap_policy="skip",
        note=f"Its task takes {SLOW_SECONDS} seconds: every other occurrence finds it busy.",
    )(slow)
    app.schedule(
        "@every PT5S",
        schedule_id="demo-overlap-buffer-one",
        overlap_policy="buffer_one",
        note="One occurrence waits for the slow task to end; the next one finds the buffer full.",
    )(slow)
    app.schedule(
        "@every PT30S",
        schedule_id="demo-retry",
        retry_policy={"max_retries": 2, "backoff_ms": 1_000},
        note="Its first attempt fails; the second one works.",
    )(flaky)


def _catchup(_url: str) -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-catchup",
        "cron_expressions": ["@every PT1M"],
        "action": {"kind": "python", "callable": "demo.greet"},
        "catchup_policy": "fire_once",
        "overlap_policy": "allow_all",
        "note": f"Written as if {_MISSED_MINUTES} minutes ago, before a downtime: one run covers what was missed.",
    }


def _call_ourselves(url: str) -> Mapping[str, Any]:
    return {
        "schedule_id": "demo-http",
        "cron_expressions": ["@every PT10S"],
        "action": {"kind": "http", "method": "GET", "url": f"{url}/healthz"},
        "note": "An HTTP call, here to our own health check.",
    }


# ── a workflow that asks ─────────────────────────────────────────────────────────────────────────────


def declare_brief(app: Horarium) -> None:
    app.task(name="demo.collect")(collect)
    app.task(name="demo.compose")(compose)
    app.task(name="demo.send")(send)


_WRITER, _BRIEF, _ASSIGNMENT = "demo-writer", "demo-brief", "demo-brief-by-writer"

_BRIEF_WORKFLOW: Mapping[str, Any] = {
    "name": "Morning brief",
    "description": "Three steps; the last one touches the outside, and waits for somebody's yes.",
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
    """Whoever tries the demonstration is alone with one token, so `allow_requester` lets it answer itself."""
    return {
        "schedule_id": "demo-approval",
        "cron_expressions": ["@every PT15S"],
        "action": {"kind": "workflow", "workflow_id": _BRIEF, "version": "latest"},
        "workflow_assignment_id": _ASSIGNMENT,
        "approval_policy": {"requires_approval": False, "mode": "sensitive_actions", "allow_requester": True},
        "note": "Its last step waits for a yes, and what comes meanwhile finds it busy: `horarium approval list`, then "
        "`horarium approval approve ID`. You are alone here, so its policy lets whoever asked agree (allow_requester); "
        "elsewhere that takes somebody else.",
    }


def put_brief(resources: Resources, caller: Caller) -> None:
    """An agent, a workflow, who does it, and when."""
    agents.put(resources, caller, _WRITER, {"name": "The writer", "policies": {"budget": {"max_daily_runs": 1_000}}})
    workflows.put(resources, caller, _BRIEF, _BRIEF_WORKFLOW)
    assignment = {"workflow_id": _BRIEF, "assignee_type": "agent", "assignee_id": _WRITER}
    ASSIGNMENTS.put(resources, caller, _ASSIGNMENT, {**assignment, "retry_policy": {"max_retries": 2}})
    schedules.upsert(resources, caller, _asking())


# ── the process ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Behind:
    """A clock that is late."""

    clock: Clock
    by: Instant

    def now(self) -> Instant:
        return self.clock.now() - self.by

    def monotonic(self) -> float:
        return self.clock.monotonic()


def run_demo(settings: Settings, *, say: Callable[[str], None], to_terminal: bool = False) -> None:
    """In a directory of its own: a service that starts without the demonstration could not do its schedules' work.

    It calls itself, and its agents on loopback: `up` allows that where it listens there itself, unless told otherwise.
    """
    make_data_dir(settings)  # with its mode: what is made on the way to another directory has the usual one
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
    """What cannot be declared beforehand: it needs our address, an earlier time, or rows beside schedules."""
    caller = internal("demo")
    schedules.upsert(service.resources, caller, _call_ourselves(url))
    earlier = replace(service.resources, clock=Behind(service.resources.clock, _MISSED_MINUTES * MINUTE))
    schedules.upsert(earlier, caller, _catchup(url))
    put_brief(service.resources, caller)
    put_prompts(service.resources, caller, addresses)
