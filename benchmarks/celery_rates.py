"""The tables of `benchmarks/celery.py`: who takes turns, what is printed, and what it is held against."""

from __future__ import annotations

import argparse
import tempfile

import celery_parties as parties
from celery_parties import Redis
from ground import console, load
from rich.table import Table

PARTS = ("handover", "end")
OF_BARE, TIMES_BEAT = "≥ 0.5", "≥ 20"


def main(explained: str | None) -> None:
    arguments = _arguments(explained)
    chosen = arguments.only or PARTS
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder, parties.redis_server(folder) as where:
        if "handover" in chosen:
            console.print(_handed_over(where, folder, arguments))
        if "end" in chosen:
            console.print(_end_to_end(where, folder, arguments.runs))


def _arguments(explained: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=explained, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fires", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=10_000, help="end to end")
    parser.add_argument("--beat-seconds", type=int, default=60, help="0 = without beat")
    parser.add_argument("--only", action="append", choices=PARTS)
    return parser.parse_args()


def _handed_over(where: Redis, folder: str, arguments: argparse.Namespace) -> Table:
    fires, before = arguments.fires, load()
    bare = parties.bare(where, fires)
    rates = {"bare apply_async": bare}
    for processes in (1, 2):
        where.empty()
        found = parties.horarium(where, fires, processes)
        rates[f"horarium, {processes} at work"] = found.to_redis
        rates["… queued on disk as well" + " " * (processes - 1)] = found.recorded
    where.empty()
    beat = parties.beat(where, fires, arguments.beat_seconds, folder) if arguments.beat_seconds else None
    if beat is not None:
        rates["celery beat"] = beat
    table = Table(title=f"{fires:,} fires due at once, handed to Redis, load average before {before}")
    for heading in ("party", "a second", f"of the bare loop\n{OF_BARE}", f"times beat\n{TIMES_BEAT}"):
        table.add_column(heading, justify="left" if heading == "party" else "right")
    for party, rate in rates.items():
        times = "–" if not beat else f"{rate / beat:,.0f}"
        table.add_row(party, f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}", f"{rate / bare:.2f}", times)
    return table


def _end_to_end(where: Redis, folder: str, runs: int) -> Table:
    before = load()
    where.empty()
    peer = parties.alone(where, runs, folder)
    where.empty()
    ours = parties.end_to_end(where, runs, folder)
    table = Table(title=f"{runs:,} fires until each result is kept, load average before {before}")
    for heading in ("party", "a second", "of Celery alone"):
        table.add_column(heading, justify="left" if heading == "party" else "right")
    table.add_row("Celery alone", f"{peer:,.0f}", "1.00")
    table.add_row("horarium and Celery", f"{ours:,.0f}", f"{ours / peer:.2f}")
    return table
