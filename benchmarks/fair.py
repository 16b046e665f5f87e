"""Whether one tenant's trouble is another tenant's delay: a quiet schedule beside a crowd that hangs.

The tenant `quiet` has one schedule that fires each second to a target that answers at once. The tenant `crowd` has
10,000 runs that are ready, to 50 targets that accept every request and never answer, and some hundreds more to hosts
whose names take seconds to resolve and then do not. One process, `horarium up` with its default settings; only its
resolver is changed, so that names under `.slow.test` are slow without a network.

**Lateness** is measured at the quiet target, by the machine's one clock: from the nominal second until the request
has arrived. An occurrence that never came counts with all the time that it had. The target is that the crowd costs
the quiet one no more than 250 ms: p99 with it, compared with p99 alone.

    python benchmarks/fair.py [--seconds 60] [--crowd 10000] [--targets 50] [--dialect sqlite]
"""

from __future__ import annotations

import argparse
import math
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ground import DIALECTS, console, database, load, progress, seed_ready
from process import Up, up
from rich.table import Table
from targets import answering, hanging, read_arrivals

from horarium.client.client import Client
from horarium.instant import SECOND, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

MOST_MILLISECONDS = 250
SLOW_SECONDS = 5
_SLOW_NAME = ".slow.test"
_SLOW_HOSTS = 25
# Of the crowd, one in so many goes to a host whose name is slow.
_SLOW_EACH = 20
# The process has taken what it can of the crowd by then.
_LEAD_SECONDS = 10
_TAIL_SECONDS = 3


@dataclass(frozen=True, slots=True)
class Late:
    """In milliseconds, in order; `missing` of them never came."""

    milliseconds: list[float]
    missing: int
    load: str

    def rank(self, share: float) -> float:
        """The nearest rank, so every figure is one that was measured."""
        return self.milliseconds[math.ceil(share * len(self.milliseconds)) - 1]


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        _child(sys.argv[2:])
        return
    arguments = _arguments()
    title = f"lateness in ms of one schedule that fires each second, {arguments.seconds} s"
    table = Table(title=f"{title}\ntarget: a crowd adds at most {MOST_MILLISECONDS} to p99")
    for heading in ("database", "beside", "never came", "p50", "p99", "worst", "added", "load"):
        table.add_column(heading, justify="left" if heading in ("database", "beside") else "right")
    for dialect in arguments.dialect or DIALECTS:
        alone = _measured(dialect, 0, arguments.targets, arguments.seconds)
        crowded = _measured(dialect, arguments.crowd, arguments.targets, arguments.seconds)
        added = crowded.rank(0.99) - alone.rank(0.99)
        table.add_row(dialect, "nobody", *_figures(alone), "", alone.load)
        table.add_row(dialect, f"{arguments.crowd:,}", *_figures(crowded), f"{added:+,.0f}", crowded.load)
    console.print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--crowd", type=int, default=10_000, help="runs that are ready to targets that hang")
    parser.add_argument("--targets", type=int, default=50, help="that hang")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    return parser.parse_args()


def _figures(late: Late) -> list[str]:
    return [f"{late.missing} of {len(late.milliseconds)}", *(f"{late.rank(share):,.0f}" for share in (0.5, 0.99, 1))]


# ── the measurement ──────────────────────────────────────────────────────────────────────────────────


def _measured(dialect: str, crowd: int, count: int, seconds: int) -> Late:
    with tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder, database(dialect) as opened:
        arrivals = Path(folder) / "arrivals"
        with answering(folder, arrivals=arrivals) as quick, hanging(folder, count) as hang:
            if crowd:
                _seed_crowd(opened, crowd, hang)
            title = f"{dialect}: beside {crowd:,}" if crowd else f"{dialect}: alone"
            first, last = _live(opened, folder, f"{quick}/quiet", seconds, title)
        return lateness(arrivals, first, last)


def _seed_crowd(opened: Database, crowd: int, hang: Sequence[str]) -> None:
    def action(number: int) -> dict[str, Any]:
        slow = number % _SLOW_EACH == 0
        host = f"http://host-{number % _SLOW_HOSTS}{_SLOW_NAME}" if slow else hang[number % len(hang)]
        return {"kind": "http", "url": f"{host}/crowd", "input": {"size": 3}}

    more = crowd // (_SLOW_EACH - 1)
    seed_ready(opened, crowd + more, action, title=f"{opened.dialect}: seeding the crowd", namespace="crowd")


def _live(opened: Database, folder: str, target: str, seconds: int, title: str) -> tuple[Instant, Instant]:
    """The first and the last nominal second that count."""
    clock = SystemClock()
    with up(opened, folder, [str(Path(__file__).absolute()), "--child"]) as service:
        create_quiet(service, target)
        first = clock.now() // SECOND * SECOND + _LEAD_SECONDS * SECOND
        last = first + (seconds - 1) * SECOND
        with progress() as bars:
            bar = bars.add_task(title, total=seconds)
            while (now := clock.now()) < last + _TAIL_SECONDS * SECOND:
                bars.update(bar, completed=max(0, min(seconds, (now - first) // SECOND + 1)))
                time.sleep(0.5)
    return first, last


def create_quiet(service: Up, target: str) -> str:
    """Through the door, as a tenant does: with a token of its own, which is given back."""
    with Client(service.address, token=service.token) as admin:
        admin.create_namespace("quiet")
    with Client(service.address, token=service.token, namespace="quiet") as admin:
        issued = admin.issue_token("bench", "owner")
    with Client(service.address, token=issued.secret, namespace="quiet") as quiet:
        quiet.create_schedule(
            schedule_id="quiet",
            cron_expressions=["* * * * * *"],
            action={"kind": "http", "url": target, "input": {"size": 3}},
            overlap_policy="allow_all",
        )
    return issued.secret


def lateness(arrivals: Path, first: Instant, last: Instant) -> Late:
    """What came when the service was told to stop came too late."""
    until = last + _TAIL_SECONDS * SECOND
    came: dict[Instant, Instant] = {}
    for arrival in read_arrivals(arrivals):
        if arrival.at <= until:
            came.setdefault(arrival.nominal, arrival.at)
    wanted = range(first, last + 1, SECOND)
    late = sorted((came.get(nominal, until) - nominal) / 1_000 for nominal in wanted)
    return Late(late, sum(nominal not in came for nominal in wanted), load())


# ── the service, with a slow resolver ────────────────────────────────────────────────────────────────


def _child(words: Sequence[str]) -> None:
    from horarium.cli.main import main as command_line

    known = socket.getaddrinfo

    def resolve(host: Any, *rest: Any, **named: Any) -> Any:
        if isinstance(host, str) and host.endswith(_SLOW_NAME):
            time.sleep(SLOW_SECONDS)
            raise socket.gaierror(socket.EAI_AGAIN, "nobody answers")
        return known(host, *rest, **named)

    socket.getaddrinfo = resolve
    sys.argv[1:] = words
    command_line()


if __name__ == "__main__":
    main()
