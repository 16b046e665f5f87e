"""Whatever is done to schedules, workflows and approvals, and whenever the process dies: what must be true stays true.

No run that had to ask is launched without a recorded yes to the inputs that it is handed, no step that has ended is
run again, counts are those of the rows, and in the end everything has ended.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from acceptance.workflow_house import PEOPLE, House
from databases import migrated_postgres
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from horarium.core.document.states import FINAL
from horarium.core.lifecycle.outcome import Accepted, Busy, Finished, Outcome, RunFailed, Unknown, Unreachable
from horarium.instant import DAY, HOUR, to_rfc3339
from horarium.platform.ids import id_text

pytestmark = pytest.mark.repeats

HTTP = {"kind": "http", "url": "http://target.test/hook"}
SUB: dict[str, Any] = {
    "nodes": [
        {"id": "c1", "action": HTTP},
        {"id": "c2", "needs": ["c1"], "gates": ["publish"], "action": HTTP, "input": {"of": {"$from": "/results/c1"}}},
    ]
}
WORKFLOWS = ("w0", "w1")
PARTS = ("tick", "launch", "launch", "advance", "advance", "tidy", "follow", "all")

# ── what may be drawn ────────────────────────────────────────────────────────────────────────────────

numbers = st.integers(0, 30)
results = st.sampled_from([{"ok": True}, {"ok": False}, None])
outcomes: st.SearchStrategy[Outcome] = st.sampled_from(
    [
        Accepted(),
        Finished({"ok": True}, tokens=3, cost=0.25),
        Finished({"ok": True}),
        Finished({"ok": False}),
        RunFailed("it failed", "provider_error", tokens=2),
        RunFailed("it failed", "of its own"),
        Unreachable("nobody there"),
        Unknown("who knows"),
        Busy(1.0),
    ]
)


@st.composite
def nodes(draw: st.DrawFn) -> list[dict[str, Any]]:
    """One to five in a graph without cycles; some with a gate, an assignee, a template or a sub-workflow."""
    made: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 5))):
        before = [node["id"] for node in made]
        node: dict[str, Any] = {"id": f"n{number}", "action": HTTP}
        node["needs"] = draw(st.lists(st.sampled_from(before), unique=True, max_size=2)) if before else []
        if draw(st.integers(0, 4)) == 0:
            node["action"] = {"kind": "workflow", "workflow_id": "sub"}
        if gates := draw(st.sampled_from([[], [], ["publish"], ["own"]])):
            node["gates"] = gates
        if draw(st.integers(0, 5)) == 0:
            node |= {"assignee_type": "agent", "assignee_id": draw(st.sampled_from(["calm", "strict"]))}
        if node["needs"] and draw(st.booleans()):
            node["input"] = {"seen": {"$from": f"/results/{node['needs'][0]}/ok", "default": None}}
        if draw(st.booleans()):
            node["retry_policy"] = {"max_retries": draw(st.integers(0, 2)), "backoff_ms": 1_000}
        made.append(node)
    return made


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    made = draw(nodes())
    document: dict[str, Any] = {"nodes": made}
    edges = [
        {"from": source, "to": node["id"], "condition": {"/result/ok": {"eq": True}}}
        for node in made
        for source in node["needs"]
        if draw(st.integers(0, 2)) == 0
    ]
    if edges:
        document["edges"] = edges
    if floor := draw(st.sampled_from([None, None, None, {"requires_approval": True}, {"gates": ["own"]}])):
        document["approval_policy"] = floor
    return document


approvals = st.sampled_from(
    [
        {},
        {"requires_approval": True},
        {"requires_approval": False},
        {"requires_approval": True, "approvals_required": 2},
        {"requires_approval": True, "while_waiting": "supersede"},
        {"requires_approval": True, "while_waiting": "ignore", "expires_after_seconds": 7_200},
        {"mode": "every_node"},
        {"mode": "on_block", "gates": ["publish"]},
        {"gates": ["own"], "allow_requester": True},
    ]
)
failures = st.sampled_from(
    [{"mode": "isolate"}, {"mode": "halt"}, {"mode": "fallback", "fallback_assignee_id": "calm"}]
)
assignees = st.sampled_from([{}, {}, *({"assignee_type": "agent", "assignee_id": name} for name in ("calm", "strict"))])


@st.composite
def schedules(draw: st.DrawFn) -> dict[str, Any]:
    """Hourly, and at most four runs, so that an end is in sight."""
    workflow = {"kind": "workflow", "workflow_id": draw(st.sampled_from(WORKFLOWS)), "version": "latest"}
    return {
        "intervals": [{"every": "PT1H"}],
        "action": {**draw(st.sampled_from([HTTP, workflow, workflow])), "input": {"size": draw(numbers)}},
        "overlap_policy": draw(
            st.sampled_from(["skip", "buffer_one", "buffer_all", "allow_all", "cancel_other", "terminate_other"])
        ),
        "max_runs": 4,
        "approval_policy": draw(approvals),
        "failure_policy": draw(failures),
        "retry_policy": {"max_retries": draw(st.integers(0, 1)), "backoff_ms": 1_000},
        **draw(assignees),
        **draw(st.sampled_from([{}, {}, {"limits": {"tokens": 5}}, {"limits": {"runtime_seconds": 30_000}}])),
    }


# ── the machine ──────────────────────────────────────────────────────────────────────────────────────


class WorkflowMachine(RuleBasedStateMachine):
    def __init__(self, places: Callable[[], Any]) -> None:
        super().__init__()
        self._place = places()
        self.house = House(self._place.__enter__())
        self.names = 0

    @initialize(
        first=workflows(),
        second=workflows(),
        documents=st.lists(schedules(), min_size=3, max_size=3),
        usual=st.sampled_from([Accepted(), Finished({"ok": True}, tokens=1, cost=0.25)]),
    )
    def begin(
        self, first: dict[str, Any], second: dict[str, Any], documents: list[dict[str, Any]], usual: Outcome
    ) -> None:
        """Some of everything, and an hour of it: a play that makes nothing would show nothing."""
        self.house.target.usual = usual
        strict = {"approval_policy": {"requires_approval": True, "gates": ["own"]}}
        for name, policies in (("calm", {}), ("strict", strict)):
            body = {"id": name, "name": name, "url": f"http://{name}.test", "policies": policies}
            assert self.house.ask("POST", "/api/agents", json=body).status_code == 201
        for name, document in (("sub", SUB), ("w0", first), ("w1", second)):
            answer = self.house.ask("PUT", f"/api/workflows/{name}", json=document)
            assert answer.status_code == 201, answer.text
        for document in documents:
            self.create(document, None)
        for name in WORKFLOWS:
            self.start(name, 1, {}, "ann")
        self.wait(3_601)

    # what people do

    @rule(document=schedules(), by=st.sampled_from([None, *PEOPLE]))
    def create(self, document: dict[str, Any], by: str | None) -> None:
        self.names += 1
        last = to_rfc3339(self.house.service.now + 2 * DAY)
        body = {"schedule_id": f"s{self.names}", "end_at": last, **document}
        answer = self.house.ask("POST", "/api/schedules", json=body, by=by)
        assert answer.status_code in (201, 403), answer.text

    @rule(name=st.sampled_from(WORKFLOWS), document=workflows())
    def put(self, name: str, document: dict[str, Any]) -> None:
        assert self.house.ask("PUT", f"/api/workflows/{name}", json=document).status_code == 200

    @rule(number=numbers, change=approvals, size=numbers)
    def edit(self, number: int, change: dict[str, Any], size: int) -> None:
        body = {"approval_policy": change, "action": {"input": {"size": size}}}
        self._of_a_schedule("PATCH", number, "", json=body)

    @rule(number=numbers, by=st.sampled_from([None, *PEOPLE]), overlap=st.sampled_from([None, "allow_all"]))
    def trigger(self, number: int, by: str | None, overlap: str | None) -> None:
        self._of_a_schedule("POST", number, "/trigger", by=by, json={"overlap_policy": overlap} if overlap else {})

    @rule(number=numbers, policy=st.sampled_from(["skip", "allow_all"]))
    def backfill(self, number: int, policy: str) -> None:
        now = self.house.service.now
        window = {"start_time": to_rfc3339(now - 5 * HOUR), "end_time": to_rfc3339(now - 2 * HOUR)}
        body = {**window, "overlap_policy": policy}
        self._of_a_schedule("POST", number, "/backfill", json=body)

    @rule(name=st.sampled_from(WORKFLOWS), size=numbers, assignee=assignees, by=st.sampled_from(PEOPLE))
    def start(self, name: str, size: int, assignee: dict[str, Any], by: str) -> None:
        body = {"inputs": {"size": size}, **assignee}
        assert self.house.ask("POST", f"/api/workflows/{name}/runs", json=body, by=by).status_code in (201, 403, 409)

    @rule(number=numbers, what=st.sampled_from(["/pause", "/resume", "/resume", ""]))
    def hold_or_remove(self, number: int, what: str) -> None:
        self._of_a_schedule("POST" if what else "DELETE", number, what)

    @rule(number=numbers, how=st.sampled_from(["cancel", "terminate"]))
    def stop(self, number: int, how: str) -> None:
        if found := [run for run in self.house.books().runs.values() if run.state not in FINAL]:
            run = found[number % len(found)]
            self.house.ask("POST", f"/api/runs/{id_text(run.run_id)}/{how}")

    @rule(number=numbers, by=st.sampled_from(PEOPLE), decision=st.sampled_from(["approve", "approve", "reject"]))
    def decide(self, number: int, by: str, decision: str) -> None:
        self._decide(number, by, {"decision": decision})

    @rule(number=numbers, by=st.sampled_from(PEOPLE), size=numbers)
    def modify(self, number: int, by: str, size: int) -> None:
        self._decide(number, by, {"decision": "modify", "modifications": {"size": size, "changed": True}})

    def _decide(self, number: int, by: str, body: dict[str, Any]) -> None:
        waiting = self.house.ask("GET", "/api/approvals", params={"status": "pending"}, by=by).json()["approvals"]
        if waiting:
            path = f"/api/approvals/{waiting[number % len(waiting)]['approval_id']}/decision"
            answer = self.house.ask("POST", path, json=body, by=by)
            assert answer.status_code in (200, 403, 409, 410, 412), answer.text

    @rule(by=st.sampled_from(PEOPLE), decision=st.sampled_from(["approve", "approve", "reject"]))
    def decide_all(self, by: str, decision: str) -> None:
        waiting = self.house.ask("GET", "/api/approvals", params={"status": "pending"}, by=by).json()["approvals"]
        body = {"ids": [each["approval_id"] for each in waiting], "decision": decision}
        if waiting:
            assert self.house.ask("POST", "/api/approvals/decisions", json=body, by=by).status_code == 200

    @rule(number=numbers, what=st.sampled_from(["report", "decide", "edit"]))
    def try_to_get_round(self, number: int, what: str) -> None:
        """Every way to move what waits, without a decision of a person who may make one, is refused."""
        found = [run for run in self.house.books().runs.values() if run.state == "awaiting_approval"]
        if not found:
            return
        run = found[number % len(found)]
        name = id_text(run.run_id)
        if what == "report":
            token = self.house.service.resources.tokens.make(run.run_id, run.attempt)
            body = {"state": "succeeded", "report_token": token}
            assert self.house.ask("POST", f"/api/runs/{name}/report", json=body).status_code == 403
        elif what == "edit":
            self.edit(number, {"requires_approval": False}, number)
            assert self.house.books().runs[run.run_id].state == "awaiting_approval"
        else:
            asked = {"input_hash": "0" * 64}
            assert self.house.ask("POST", f"/api/runs/{name}/approve", json=asked, by="ann").status_code in (
                403,
                410,
                412,
            )

    def _of_a_schedule(self, method: str, number: int, what: str, **rest: Any) -> None:
        if self.names:
            self.house.ask(method, f"/api/schedules/s{1 + number % self.names}{what}", **rest)

    # what targets do

    @rule(outcome=outcomes)
    def answer_next(self, outcome: Outcome) -> None:
        self.house.target.coming.append(outcome)

    @rule(number=numbers, result=results)
    def finish(self, number: int, result: Any) -> None:
        self._report(number, state="succeeded", result=result, tokens=2, cost=0.5)

    @rule(number=numbers)
    def fail(self, number: int) -> None:
        self._report(number, state="failed", error="it failed", error_class="provider_error", tokens=1)

    @rule(number=numbers, gate=st.sampled_from(["publish", "own", "else"]))
    def block(self, number: int, gate: str) -> None:
        self._report(number, state="blocked", gate=gate)

    def _report(self, number: int, **said: Any) -> None:
        """The newest are the likeliest to be open; now and then somebody speaks of one that is over."""
        if accepted := self.house.target.accepted[-6:]:
            self.house.report(accepted[-1 - number % len(accepted)], **said)

    # what happens by itself

    @rule(part=st.sampled_from(PARTS))
    def live(self, part: str) -> None:
        self.house.step(part)

    @rule(seconds=st.sampled_from([2, 61, 3_600]))
    def wait(self, seconds: int) -> None:
        self.house.service.advance(seconds)

    @rule(seconds=st.sampled_from([31, 3_700, 90_000]))
    def sleep(self, seconds: int) -> None:
        self.house.service.sleep(seconds)

    @rule(part=st.sampled_from(PARTS), commits=st.integers(0, 5), after=st.booleans())
    def crash(self, part: str, commits: int, after: bool) -> None:
        self.house.step_and_die(part, commits, after=after)

    @rule()
    def lose_a_lease(self) -> None:
        self.house.step("claim")
        self.house.begin_again()
        self.house.service.sleep(31)

    # what must be true

    @invariant()
    def holds(self) -> None:
        self.house.check()

    def teardown(self) -> None:
        try:
            self.house.drive_to_the_end()
        finally:
            self.house.close()
            self._place.__exit__(None, None, None)


# ── on both databases ────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def places(request: pytest.FixtureRequest, dialect: str, tmp_path: Path) -> Callable[[], Any]:
    """A fresh, migrated database for each example."""
    if dialect == "postgresql":
        server, template = (request.getfixturevalue(name) for name in ("postgres_server", "postgres_template"))
        return lambda: migrated_postgres(server, template)

    @contextmanager
    def file() -> Iterator[str]:
        path = shutil.copy(request.getfixturevalue("sqlite_template"), tmp_path / "horarium.db")
        yield f"sqlite:///{path}"
        for left in tmp_path.glob("horarium.db*"):
            left.unlink()

    return file


def run_machine(places: Callable[[], Any], *, examples: int, steps: int, anew: bool) -> None:
    class Here(WorkflowMachine):
        def __init__(self) -> None:
            super().__init__(places)

    # To find a shorter play takes hundreds of them: what was done stands in the report.
    chosen = settings(
        derandomize=not anew,
        database=None,
        deadline=None,
        max_examples=examples,
        stateful_step_count=steps,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Here, settings=chosen)


def test_whatever_happens_to_workflows_and_approvals_what_must_be_true_stays_true(places: Callable[[], Any]) -> None:
    run_machine(places, examples=4, steps=30, anew=False)


@pytest.mark.long
def test_the_same_holds_in_plays_that_nobody_has_seen_before(places: Callable[[], Any]) -> None:
    run_machine(places, examples=150, steps=60, anew=True)
