"""Measure how long one request holds the writer of SQLite, at the largest size that a request may have.

All tenants share the writer, so the longest write transaction is what a write of another tenant waits for. Each line
names a request, its duration, the longest of its write transactions and their ratio. A request that plans before it
writes has a small ratio: the time goes into the plan, beside which others write.

    python benchmarks/writer.py [--only WORD]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from ground import console
from rich.table import Table

from horarium.core.document.workflow_parts import MAX_TRIGGERS
from horarium.features.bundles.document import MAX_DOCUMENTS
from horarium.instant import to_rfc3339
from horarium.testing import Accepted
from horarium.testing.service import TestService, service

_START = "2026-03-01T00:00:00Z"
_HTTP = {"kind": "http", "url": "http://example.com/hook"}


class Survey:
    """Requests against one service, and the write transactions of each."""

    def __init__(self, running: TestService, only: str) -> None:
        self.service, self.http = running, running.http()
        self.table = Table("request", "status", "whole, ms", "longest write, ms", "writes", "write / whole")
        self._only, self._held = only, list[float]()
        running.resources.database.watch_writes(self._held.append)

    def ask(self, name: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        with self.measured(name) as told:
            answer = self.http.request(method, path, json=body, headers=headers)
            told.append(str(answer.status_code))
        if answer.status_code >= 400:
            console.print(name, answer.text[:300])
        return answer

    def act(self, name: str, work: Callable[[], object]) -> None:
        with self.measured(name):
            work()

    @contextmanager
    def measured(self, name: str) -> Iterator[list[str]]:
        self._held.clear()
        told: list[str] = []
        began = time.perf_counter()
        yield told
        whole = time.perf_counter() - began
        if self._only in name:
            longest = max(self._held, default=0.0)
            ratio = f"{longest / whole:.3f}"
            self.table.add_row(
                name, *(told or ["-"]), f"{whole * 1e3:.0f}", f"{longest * 1e3:.1f}", str(len(self._held)), ratio
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="WORD", help="Print the requests whose name contains it.")
    only = parser.parse_args().only
    for part in (bundles, workflows, windows, many, lives):
        with service(at=_START, answer=Accepted()) as running:
            survey = Survey(running, only)
            part(survey)
            console.print(survey.table)


def _schedules(count: int, hour: int, **more: Any) -> list[dict[str, Any]]:
    return [
        {"schedule_id": f"s{n}", "spec": {"cron_expressions": [f"{n % 60} {hour} * * *"]}, "action": _HTTP, **more}
        for n in range(count)
    ]


def _workflow(name: str, triggers: int, hour: int = 1, nodes: int = 1) -> dict[str, Any]:
    return {
        "workflow_id": name,
        "nodes": [{"id": f"n{n}", "action": _HTTP} for n in range(nodes)],
        "triggers": [{"schedule": {"spec": {"cron_expressions": [f"{n % 60} {hour} * * *"]}}} for n in range(triggers)],
    }


def bundles(on: Survey) -> None:
    """Bundles of as many documents as one may have."""
    path, whole = "/api/apply?confirm=true", MAX_DOCUMENTS // (MAX_TRIGGERS + 1)
    for hour, what in ((1, "new"), (2, "changed")):
        body: dict[str, Any] = {
            "bundle": "w",
            "workflows": [_workflow(f"w{n}", MAX_TRIGGERS, hour) for n in range(whole)],
        }
        on.ask(f"dry run, {whole} x {MAX_TRIGGERS} triggers, {what}", "POST", path, {**body, "dry_run": True})
        on.ask(f"apply, {whole} x {MAX_TRIGGERS} triggers, {what}", "POST", path, body)
    for hour, what in ((1, "new"), (2, "changed"), (2, "equal")):
        body = {"bundle": "s", "schedules": _schedules(MAX_DOCUMENTS, hour)}
        key = {"Idempotency-Key": what} if what == "equal" else {}
        on.ask(f"apply, {MAX_DOCUMENTS} schedules, {what}", "POST", path, body, **key)
    calendars = [{"name": f"c{n}", "kind": "skip_dates", "dates": ["2026-12-25"]} for n in range(500)]
    agents = [{"id": f"a{n}", "url": "http://example.com/a"} for n in range(500)]
    body = {"bundle": "k", "calendars": calendars, "agents": agents}
    on.ask("apply, 500 calendars and 500 agents", "POST", path, body)
    body = {"bundle": "s", "prune": True, "schedules": _schedules(MAX_DOCUMENTS - 1_000, 2)}
    on.ask("apply, prunes 1000", "POST", path, body)


def workflows(on: Survey) -> None:
    """Workflows at their bounds."""
    for hour in (1, 2):
        body = _workflow("large", MAX_TRIGGERS, hour, 1_000)
        on.ask("put workflow, 100 triggers, 1000 nodes", "PUT", "/api/workflows/large?confirm=true", body)
    body = _workflow("large", MAX_TRIGGERS, 3, 1_000)
    on.ask("the same with a key", "PUT", "/api/workflows/large?confirm=true", body, **{"Idempotency-Key": "k"})
    on.ask("start a run of 1000 nodes", "POST", "/api/workflows/large/runs", {})
    on.act("the engine: 1000 steps of a workflow", on.service.settle)
    [run] = [each for each in on.service.runs() if not each.parent_run_id]
    on.ask("terminate a run of 1000 steps", "POST", f"/api/runs/{run.run_id}/terminate", {})
    on.act("the engine: after it", on.service.settle)
    on.ask("delete workflow, 100 triggers", "DELETE", "/api/workflows/large")


def windows(on: Survey) -> None:
    """Backfills, buffers and storms."""
    body: dict[str, Any] = {"spec": {"cron_expressions": ["* * * * *"]}, "action": _HTTP, "overlap_policy": "allow_all"}
    for name in ("b1", "b2", "b3"):
        on.http.post("/api/schedules", json={**body, "schedule_id": name}).raise_for_status()
    window = {"start_time": "2026-02-01T00:00:00Z", "end_time": "2026-02-01T16:40:00Z"}
    on.ask("backfill dry run, 1000", "POST", "/api/schedules/b1/backfill", {**window, "dry_run": True})
    on.ask("backfill, 1000", "POST", "/api/schedules/b1/backfill?confirm=true", window)
    on.ask("backfill, 1000, with a key", "POST", "/api/schedules/b2/backfill", window, **{"Idempotency-Key": "k"})
    on.ask("backfill, 1000 held", "POST", "/api/schedules/b3/backfill", {**window, "overlap_policy": "buffer_all"})
    on.act("the engine: hands out 3000 runs", on.service.settle)
    on.ask("pause", "POST", "/api/schedules/b3/pause", {})
    on.ask("resume with 1000 held", "POST", "/api/schedules/b3/resume?confirm=true", {})
    on.ask("delete with 1000 open runs", "DELETE", "/api/schedules/b1")
    on.ask("delete with 1000 held runs", "DELETE", "/api/schedules/b3")
    on.act("the engine: after deletes", on.service.settle)


def many(on: Survey) -> None:
    """A hundred at once, and the documents that are large."""
    on.http.post("/api/apply?confirm=true", json={"schedules": _schedules(1_000, 1)}).raise_for_status()
    for action in ("pause", "resume", "trigger", "label", "delete"):
        more = {"labels": {"a": "b"}} if action == "label" else {}
        on.ask(
            f"bulk {action}, 100", "POST", "/api/schedules/bulk?confirm=true", {"action": action, "all": True} | more
        )
    on.act("the engine: hands out 100 runs", on.service.settle)
    runs = [each.run_id for each in on.service.runs()][:100]
    on.ask("bulk terminate, 100 runs", "POST", "/api/runs/bulk", {"action": "terminate", "filter": {"ids": runs}})
    dates = [to_rfc3339(1_772_323_200_000_000 + n * 86_400_000_000)[:10] for n in range(10_000)]
    body: dict[str, Any] = {"kind": "skip_dates", "dates": dates}
    on.ask("create calendar, 10,000 dates", "POST", "/api/calendars", {"name": "large", **body})
    on.ask("put calendar, 10,000 dates", "PUT", "/api/calendars/large", {**body, "dates": dates[1:]})
    crons = [f"{n % 60} {n % 24} * * {n % 7}" for n in range(100)]
    body = {"schedule_id": "x", "spec": {"cron_expressions": crons}, "action": _HTTP, "calendars": ["large"]}
    on.ask("create, 100 crons", "POST", "/api/schedules", body)
    on.ask("change, 100 crons", "PUT", "/api/schedules/x", {"spec": {"cron_expressions": crons[1:]}})
    on.ask("change, 100 crons, key", "PUT", "/api/schedules/x", {"spec": body["spec"]}, **{"Idempotency-Key": "k"})


def lives(on: Survey) -> None:
    """Namespaces that end, and what the engine does by itself."""
    on.http.post("/api/namespaces", json={"namespace": "tenant"}).raise_for_status()
    tenant = on.service.http(namespace="tenant")
    body: dict[str, Any] = {"schedules": [{**each, "overlap_policy": "allow_all"} for each in _schedules(2_000, 1)]}
    tenant.post("/api/apply?confirm=true", json=body).raise_for_status()
    on.act("the engine: a day of 2000 schedules", lambda: on.service.advance(days=1))
    on.ask("delete a namespace, 2000 schedules and runs", "DELETE", "/api/namespaces/tenant?force=true")
    on.act("the engine: removes what is left", lambda: on.service.advance(hours=1))


if __name__ == "__main__":
    main()
