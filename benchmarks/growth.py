"""What one tick costs as the number of stored schedules grows: 500 are due each time, the others are not.

The real ticker decides 500 due schedules in one transaction (claim, plan, record). The databases of both
kinds and all sizes exist side by side and take turns, tick by tick, so that a noisy machine disturbs them
alike. The due schedules lie evenly among the others, and a tick meets rows that no tick before has touched,
as far as there are enough of them. Time stands still during a tick.

    python benchmarks/growth.py [--stored 1000 --stored 10000 …] [--million] [--ticks 20] [--plot FILE]
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ground import DIALECTS, HERD, Pattern, console, database, load, pattern, progress, rest, seed_each
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from rich.table import Table

from horarium.engine.ticker import Ticker, TickerOptions
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant, from_rfc3339
from horarium.platform.database import Database
from horarium.testing.doubles import FakeClock

DUE = 500
STORED = (1_000, 10_000, 100_000, 500_000)
MILLION = 1_000_000
# A connection, a compiled spec, a prepared statement: what only the first ticks pay for.
WARM_UP = 2
START = from_rfc3339("2026-11-02T12:00:00Z")
PLOT = Path(__file__).parents[1] / "docs" / "images" / "tick-cost-over-stored.png"


@dataclass(frozen=True, slots=True)
class Party:
    """One database of one size. In minute g of each hour its group g is due, and nothing else."""

    dialect: str
    stored: int
    groups: int
    ticker: Ticker
    clock: FakeClock
    milliseconds: list[float] = field(default_factory=list)


def main() -> None:
    arguments = _arguments()
    sizes = sorted({*(arguments.stored or STORED), *([MILLION] if arguments.million else [])})
    table = Table(title=f"one tick with {DUE} due; median, and the middle half of {arguments.ticks} ticks")
    table.add_column("database")
    for heading in ("stored", "ms per tick", "middle half", "µs per due schedule", "to the smallest", "load average"):
        table.add_column(heading, justify="right")
    parties = _measure(arguments.dialect or DIALECTS, sizes, arguments.ticks)
    busy = load()
    smallest = {party.dialect: statistics.median(party.milliseconds) for party in parties if party.stored == sizes[0]}
    for party in parties:
        low, middle, high = statistics.quantiles(party.milliseconds, n=4)
        table.add_row(
            party.dialect,
            f"{party.stored:,}",
            f"{middle:.1f}",
            f"{low:.1f}–{high:.1f}",
            f"{1_000 * middle / DUE:.0f}",
            f"{middle / smallest[party.dialect]:.2f}",
            busy,
        )
    console.print(table)
    _plot(parties, arguments.plot)
    console.print(f"plot: {arguments.plot}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stored", type=int, action="append", help=f"sizes, at least {DUE} each")
    parser.add_argument("--million", action="store_true", help="a million too")
    parser.add_argument("--ticks", type=int, default=20)
    parser.add_argument("--plot", type=Path, default=PLOT)
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    return parser.parse_args()


# ── measuring ────────────────────────────────────────────────────────────────────────────────────────


def _measure(dialects: Sequence[str], sizes: Sequence[int], ticks: int) -> list[Party]:
    with ExitStack() as stack:
        parties = [
            _party(stack.enter_context(database(dialect)), size, WARM_UP + ticks)
            for dialect in dialects
            for size in sizes
        ]
        with progress() as bars:
            bar = bars.add_task("ticks", total=(WARM_UP + ticks) * len(parties))
            for number in range(WARM_UP + ticks):
                for party in parties:
                    milliseconds = _tick(party, number)
                    if number >= WARM_UP:
                        party.milliseconds.append(milliseconds)
                    bars.advance(bar)
    return parties


def _party(opened: Database, stored: int, ticks: int) -> Party:
    clock = FakeClock(START - SECOND)
    groups = min(ticks, stored // DUE, 60)  # a minute of the hour for each
    _seed(opened, stored, groups)
    return Party(opened.dialect, stored, groups, Ticker(opened, clock, "bench", TickerOptions(batch=DUE)), clock)


def _seed(opened: Database, stored: int, groups: int) -> None:
    """Every `stride`-th schedule belongs to a group; the others wait for months, each for a time of its own."""
    now = START - SECOND
    likes = [_pattern(f"{group} * * * *", now) for group in range(groups)]
    other = _pattern("0 0 1 1 *", now)
    stride = stored // (groups * DUE)

    def choose(number: int) -> tuple[Pattern, Instant]:
        place, between = divmod(number, stride)
        if between or place >= groups * DUE:
            return other, START + 60 * DAY + number
        group = place % groups
        return likes[group], START + group * MINUTE

    seed_each(opened, stored, choose, now=now, title=f"{opened.dialect}: seeding {stored:,}")
    rest(opened)


def _pattern(cron: str, now: Instant) -> Pattern:
    return pattern({**HERD, "cron_expr": cron, "overlap_policy": "allow_all"}, now=now)


def _tick(party: Party, number: int) -> float:
    hour, group = divmod(number, party.groups)
    party.clock.set(START + hour * HOUR + group * MINUTE)
    party.ticker.beat()  # a transaction of its own, every few seconds; not part of a tick
    gc.collect()
    began = time.perf_counter()
    tick = party.ticker.step()
    took = time.perf_counter() - began
    births = sum(len(decided.entry.runs) for decided in tick.decided)
    assert births == DUE, f"{births} runs were born, not {DUE}"
    return 1_000 * took


# ── drawing ──────────────────────────────────────────────────────────────────────────────────────────


def _plot(parties: Sequence[Party], file: Path) -> None:
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for dialect in dict.fromkeys(party.dialect for party in parties):
        ours = [party for party in parties if party.dialect == dialect]
        quartiles = [statistics.quantiles(party.milliseconds, n=4) for party in ours]
        sizes = [party.stored for party in ours]
        [line] = axes.plot(sizes, [middle for _, middle, _ in quartiles], marker="o", label=dialect)
        lows, highs = [low for low, _, _ in quartiles], [high for _, _, high in quartiles]
        axes.fill_between(sizes, lows, highs, color=line.get_color(), alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylim(bottom=0)
    axes.set_xlabel("schedules stored")
    axes.set_ylabel("milliseconds per tick")
    axes.set_title(f"What one tick of {DUE} due costs, over schedules stored (median and middle half)")
    axes.grid(alpha=0.3)
    axes.legend()
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120)


if __name__ == "__main__":
    main()
