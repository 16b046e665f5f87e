"""A service inside the benchmark's own process, as it is shipped, whose engine does what it is told and no more.

Its clock stands where it is set, so that a database answers the same whenever it is asked. What is measured here is
what the doors do, without HTTP around it, which costs every question the same and would flatter the slow ones.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from ground import progress
from rich.table import Table

from horarium.features.resources import Resources
from horarium.features.runs import reports as runs_reports
from horarium.features.runs.reports import Claimed
from horarium.instant import Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Database
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.ids import id_text
from horarium.platform.settings import Settings
from horarium.platform.wire import Role
from horarium.serve.service import Service, open_service
from horarium.testing.doubles import FakeClock

CALLER = Caller("bench", Role.ADMIN, DEFAULT_NAMESPACE, "bench", everywhere=True, confirmed=True)

TARGET = 1.5
"""How many times as long an answer may take where much more is stored."""

Question: TypeAlias = Callable[[int], float]
"""Asked for the n-th time; milliseconds that it took."""


@dataclass(frozen=True, slots=True)
class Inside:
    service: Service
    clock: FakeClock
    loop: asyncio.Runner

    @property
    def resources(self) -> Resources:
        return self.service.resources

    @property
    def database(self) -> Database:
        return self.service.database

    def decide(self) -> int:
        """One batch of what is due, in one transaction; how many runs were born."""
        tick = self.service.engine.ticker.step()
        return sum(len(decided.entry.runs) for decided in tick.decided)

    def hand_over(self, at_least: int | None = None) -> int:
        """What is ready goes to its queue, all of it or as many; how many they were."""
        handed = 0
        while (at_least is None or handed < at_least) and (
            number := self.loop.run(self.service.engine.dispatcher.step())
        ):
            handed += number
        return handed

    def claim(self, queue: str, limit: int = 1) -> list[Claimed]:
        return runs_reports.claim(self.resources, CALLER, queue, worker="bench", limit=limit)

    def report(self, claimed: Claimed, state: str = "succeeded", **said: Any) -> None:
        told = {"state": state, "lease_epoch": claimed.lease_epoch, **said}
        run_id = id_text(claimed.run.row.run_id)
        runs_reports.report(self.resources, CALLER, run_id, runs_reports.parse_report(told))


@contextmanager
def inside(url: str, now: Instant, settings: Mapping[str, Any] | None = None) -> Iterator[Inside]:
    clock = FakeClock(now)
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
        chosen: dict[str, Any] = {"data_dir": folder, "database": url, **(settings or {})}
        with (
            (Path(folder) / "log").open("w", encoding="utf-8") as log,
            open_service(Settings(**chosen), clock=clock, log_to=log, key=b"horarium-bench") as opened,
            asyncio.Runner() as loop,
        ):
            opened.engine.stay_in_one_thread()
            yield Inside(opened, clock, loop)


# A question is asked so many times at least, and then for so long at most.
_LEAST = 3
_MOST_SECONDS = 40.0

# ── taking turns ─────────────────────────────────────────────────────────────────────────────────────


def milliseconds(ask: Callable[[], object]) -> float:
    started = time.perf_counter()
    ask()
    return 1_000 * (time.perf_counter() - started)


class Took(NamedTuple):
    """Milliseconds: the median, and below what a quarter lies, which a busy machine disturbs less."""

    median: float
    quarter: float


def measured(
    parties: Sequence[Mapping[str, Question]], times: int, *, title: str, warm_up: int = 3
) -> list[dict[str, Took]]:
    """Of each question, party by party: all of them take turns, so that a noisy machine disturbs them alike."""
    took: list[dict[str, list[float]]] = [{name: [] for name in party} for party in parties]
    with progress() as bars:
        bar = bars.add_task(title, total=len(parties[0]))
        for name in parties[0]:
            gc.collect()
            begun = time.perf_counter()
            for number in range(warm_up + times):
                if number >= warm_up + _LEAST and time.perf_counter() - begun > _MOST_SECONDS:
                    break  # whatever takes so long is known well enough
                # Who comes first in one turn comes last in the next.
                turn = range(len(parties)) if number % 2 else reversed(range(len(parties)))
                for place in turn:
                    found = parties[place][name](number)
                    if number >= warm_up:
                        took[place][name].append(found)
            bars.advance(bar)
    return [{name: _took(each) for name, each in party.items()} for party in took]


def _took(found: Sequence[float]) -> Took:
    return Took(statistics.median(found), statistics.quantiles(found, n=4)[0])


def compared(title: str, small: tuple[str, Mapping[str, Took]], large: tuple[str, Mapping[str, Took]]) -> Table:
    """Two parties side by side, with what the second is held to."""
    table = Table(title=f"{title}; ms")
    quarter = "ratio of the quickest quarter"
    for heading in ("question", small[0], large[0], "ratio", f"target {TARGET}", quarter):
        table.add_column(heading, justify="left" if heading == "question" else "right")
    for name, before in small[1].items():
        after = large[1][name]
        ratio = after.median / before.median
        verdict = "held" if ratio <= TARGET else "missed"
        least = f"{after.quarter / before.quarter:.2f}"
        table.add_row(name, f"{before.median:.2f}", f"{after.median:.2f}", f"{ratio:.2f}", verdict, least)
    return table
