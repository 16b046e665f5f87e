"""The tables of `benchmarks/celery.py`: who takes turns, what is printed, and what it is held against."""

from __future__ import annotations

import argparse
import tempfile

import celery_parties as parties
from celery_parties import Rate, Redis
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
    rates = {"bare apply_async": parties.bare(where, fires)}
    for processes, words in ((1, "one process"), (2, "two processes")):
        where.empty()
        rates[f"horarium, {words}"] = parties.horarium(where, fires, processes)
    where.empty()
    if arguments.beat_seconds:
        rates["celery beat"] = parties.beat(where, fires, arguments.beat_seconds, folder)
    table = Table(title=f"{fires:,} fires due at once, handed to Redis, load average before {before}")
    headings = (
        "a second",
        "processor, µs each",
        "on disk too",
        f"of the bare loop\n{OF_BARE}",
        f"times beat\n{TIMES_BEAT}",
    )
    table.add_column("party")
    for heading in headings:
        table.add_column(heading, justify="right")
    for party, rate in rates.items():
        _add(table, party, rate, rates["bare apply_async"], rates.get("celery beat"))
    return table


def _add(table: Table, party: str, rate: Rate, bare: Rate, beat: Rate | None) -> None:
    table.add_row(
        party,
        f"{rate.a_second:,.0f}" if rate.a_second >= 100 else f"{rate.a_second:.1f}",
        "–" if rate.microseconds is None else f"{rate.microseconds:,.0f}",
        "–" if rate.recorded is None else f"{rate.recorded:,.0f}",
        f"{rate.a_second / bare.a_second:.2f}",
        "–" if beat is None else f"{rate.a_second / max(beat.a_second, 1e-9):,.0f}",
    )


def _end_to_end(where: Redis, folder: str, runs: int) -> Table:
    before = load()
    where.empty()
    peer = parties.alone(where, runs, folder).a_second
    where.empty()
    ours = parties.end_to_end(where, runs, folder).a_second
    table = Table(title=f"{runs:,} fires until each result is kept, load average before {before}")
    for heading in ("party", "a second", "of Celery alone"):
        table.add_column(heading, justify="left" if heading == "party" else "right")
    table.add_row("Celery alone", f"{peer:,.0f}", "1.00")
    table.add_row("horarium and Celery", f"{ours:,.0f}", f"{ours / peer:.2f}")
    return table
