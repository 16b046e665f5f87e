"""Workflows for tests of the engine: stored as the door would store them, with a target that answers by node."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import sqlalchemy as sa
from engine.builders import World
from world import FakeClock

from horarium.core.document.stored_workflow import workflow_document
from horarium.core.document.workflow import parse_workflow
from horarium.core.lifecycle.outcome import Finished, Outcome
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.recording import RecordingLauncher
from horarium.platform.database import Database
from horarium.platform.database.tables import runs, step_changes, workflows

Answer = Outcome | Callable[[LaunchRequest], Outcome]


def node(node_id: str, *needs: str, **fields: Any) -> dict[str, Any]:
    """A call of http://target.test/<id>, unless it has an action of its own."""
    action = {"kind": "http", "url": f"http://target.test/{node_id}"}
    return {"id": node_id, "needs": list(needs), "action": action, **fields}


def called(request: LaunchRequest) -> str:
    """The node that a delivery is for."""
    return str(request.action.target["url"]).rpartition("/")[2]


def store(database: Database, workflow_id: str, *nodes: dict[str, Any], version: int = 1, **fields: Any) -> None:
    parsed = parse_workflow({"workflow_id": workflow_id, "version": version, "nodes": list(nodes), **fields})
    text = json.dumps(workflow_document(parsed))
    values = {"workflow_id": workflow_id, "version": version, "document": text, "created_at": version}
    database.write(lambda c: c.execute(workflows.insert().values(namespace="default", **values)))


class Flow(World):
    """A world with one schedule that runs a workflow, each of whose nodes says what `answers` has for it."""

    def __init__(self, database: Database, answers: Mapping[str, Answer] | None = None, **options: Any) -> None:
        clock = FakeClock("2026-03-02T00:00:00Z")
        self.answers = dict(answers or {})
        launcher = RecordingLauncher(clock, kind="http", otherwise=self._answer)
        super().__init__(database, clock, launcher=launcher, **options)

    def _answer(self, request: LaunchRequest) -> Outcome:
        found = self.answers.get(called(request), Finished({"of": called(request)}))
        return found if isinstance(found, Outcome) else found(request)

    def begin(self, workflow_id: str = "w", **fields: Any) -> bytes:
        """The run of a schedule that falls due now, moved on as far as it goes by itself."""
        action = {"kind": "workflow", "workflow_id": workflow_id, **fields.pop("action", {})}
        self.add(fields.pop("schedule_id", "s"), cron_expressions=["0 * * * *"], action=action, **fields)
        self.clock.move(3_600)
        self.tick()
        self.settle()
        roots = sa.select(runs.c.run_id).where(runs.c.parent_run_id.is_(None)).order_by(runs.c.run_id.desc())
        root: bytes = self.database.read(lambda connection: connection.execute(roots.limit(1)).scalar_one())
        return root

    def settle(self) -> None:
        """Until nothing moves by itself."""
        for _ in range(100):
            if not self.dispatch() + self.advance() + self.tidy().total + self.follow():
                return
        raise AssertionError("it never comes to rest")

    def nodes(self, parent: bytes) -> dict[str, str]:
        """States by node; a fallback stands for the one whose place it took."""
        return {row.node_id: row.state for row in self.steps(parent)}

    def steps(self, parent: bytes) -> list[Any]:
        mine = sa.select(runs).where(runs.c.parent_run_id == parent).order_by(runs.c.fallback, runs.c.run_id)
        return self.database.read(lambda connection: list(connection.execute(mine)))

    def step(self, parent: bytes, node_id: str) -> Any:
        return [row for row in self.steps(parent) if row.node_id == node_id][-1]

    def noted(self) -> int:
        count = sa.select(sa.func.count()).select_from(step_changes)
        return self.database.read(lambda connection: int(connection.execute(count).scalar_one()))
