"""Measure the views that forecast: previews, descriptions, lists, agendas, years and explanations.

    python -m benchmarks.forecasts [schedules]

Each figure is the least CPU time of several requests to a service in this process. The ratio compares it with a loop
that asks a spec for 200 instants and does nothing else, measured in the same run, so that figures of two machines, or
of two commits, can be compared.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import httpx

from horarium.core.recurrence.spec import compile_spec
from horarium.instant import from_rfc3339
from horarium.testing import service

CRONS: Final = ("*/5 * * * *", "0 * * * *", "30 2 * * *", "*/20 * * * *")
_REPEATS: Final = 25
_ROUNDS: Final = 4


def least(work: Callable[[], object], repeats: int) -> float:
    """Return the least CPU time of a call, in ms."""
    found = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found) * 1_000


def walk() -> int | None:
    """Ask a new spec for 200 instants, one after the other."""
    spec = compile_spec(cron_expressions=["* * * * *"])
    at: int | None = from_rfc3339("2026-03-01T00:00:30Z")
    for _ in range(200):
        assert at is not None
        at = spec.next_after(at)
    return at


def documents(count: int) -> Iterator[dict[str, Any]]:
    """Yield a fleet of which every tenth schedule has a calendar, and two dense schedules."""
    for number in range(count):
        document = {
            "schedule_id": f"s{number:05}",
            "cron_expressions": [CRONS[number % len(CRONS)]],
            "workflow_type": "report",
        }
        yield document if number % 10 else {**document, "calendars": ["weekdays"]}
    yield {"schedule_id": "second", "cron_expressions": ["* * * * * *"], "workflow_type": "report"}
    yield {
        "schedule_id": "minute",
        "cron_expressions": ["* * * * *"],
        "workflow_type": "report",
        "inputs_rotation": [{"n": 1}, {"n": 2}],
    }


def views(http: httpx.Client) -> dict[str, Callable[[], object]]:
    def get(path: str, **params: str | int) -> Callable[[], object]:
        def ask() -> object:
            answer = http.get(path, params=params)
            assert answer.status_code == 200, answer.text
            return answer

        return ask

    return {
        "preview of 200 rows": get("/api/schedules/minute/preview", n=200),
        "preview, every second": get("/api/schedules/second/preview", n=200),
        "describe": get("/api/schedules/minute"),
        "list of 200": get("/api/schedules", page_size=200),
        "agenda of 1,000 rows": get("/api/agenda"),
        "agenda of 5,000 rows": get("/api/agenda", limit=5_000),
        "explain": get("/api/schedules/minute/explain", at="2026-03-01T05:00:00Z"),
        "year": get("/api/schedules/minute/year"),
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    with service(at="2026-03-01T00:00:30Z") as horarium:
        for document in documents(count):
            horarium.create(document)
        horarium.advance(minutes=6)
        asked = views(horarium.http())
        for ask in asked.values():
            ask()
        figures = dict.fromkeys(asked, float("inf"))
        bare = float("inf")
        for _ in range(_ROUNDS):
            bare = min(bare, least(walk, _REPEATS))
            for name, ask in asked.items():
                figures[name] = min(figures[name], least(ask, _REPEATS // 3))
    print(f"{'bare loop of 200 instants':28}{bare:9.2f} ms")
    for name, figure in figures.items():
        print(f"{name:28}{figure:9.2f} ms {figure / bare:9.1f}")


if __name__ == "__main__":
    main()
