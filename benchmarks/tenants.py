"""Whether a hostile tenant can hurt a quiet one: lateness and answers of the quiet one, alone and beside the other.

The tenant `quiet` has one schedule that fires each second to a target that answers at once, and a program that asks
the API for its schedule, its list and its runs, and writes the schedule again, one request after the other.

The tenant `hostile` has 100,000 schedules: 2,000 fire each second, the others all in one second of each minute, and
none minds overlap. 10,000 runs are ready, to targets that accept every request and never answer. Its programs hold 20
streams open, as many as a token may, and ask for dense backfills without a pause.

One process, `horarium up` with its default settings. **Lateness** is measured at the quiet target: from the nominal
second until the request has arrived. **Answers** are timed by the quiet program. The target is that both p99 are no
more than three times of what they are alone; the same run measures both.

    python benchmarks/tenants.py [--seconds 60] [--schedules 100000] [--ready 10000] [--dialect sqlite] [--only streams]

`--only` leaves out the other ways to be hostile, to see which one it is that hurts.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

import httpx
from fair import Late, create_quiet, lateness
from ground import DIALECTS, HERD, Pattern, console, database, pattern, progress, seed_each, seed_ready
from process import Up, talking, up
from rich.table import Table
from targets import answering, hanging, read_arrivals

from horarium.client.client import Client
from horarium.instant import DAY, MINUTE, SECOND, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database

MOST = 3.0
STREAMS = 20
WAYS = ("schedules", "ready", "backfills", "streams")
_HANGING = 50
_EACH_SECOND = 50  # one schedule in so many fires each second
_LEAD_SECONDS = 10
_TAIL_SECONDS = 3
_PAUSE_SECONDS = 0.02
_HERE = Path(__file__).absolute().parent
_HOSTILE = f"import sys; sys.path.insert(0, {str(_HERE)!r}); from tenants import hostile_program; hostile_program()"


@dataclass(frozen=True, slots=True)
class Answers:
    """In milliseconds, in order; `refused` of them were no good answer."""

    milliseconds: list[float]
    refused: int

    def rank(self, share: float) -> float:
        return self.milliseconds[math.ceil(share * len(self.milliseconds)) - 1]


@dataclass(frozen=True, slots=True)
class Measured:
    late: Late
    answers: Answers
    hostile: str  # what the other one got done meanwhile


def main() -> None:
    arguments = _arguments()
    table = Table(title=f"a quiet tenant, ms; target: both p99 within {MOST:.0f}x of alone")
    for heading in (
        "database",
        "beside",
        "late p50",
        "p99",
        "worst",
        "never came",
        "answer p50",
        "p99",
        "worst",
        "load",
    ):
        table.add_column(heading, justify="left" if heading in ("database", "beside") else "right")
    said: list[str] = []
    for dialect in arguments.dialect or DIALECTS:
        alone = _measured(dialect, arguments, hostile=False)
        beside = _measured(dialect, arguments, hostile=True)
        table.add_row(dialect, "nobody", *_figures(alone))
        table.add_row(dialect, f"{arguments.schedules:,} schedules", *_figures(beside))
        late, answer = (each(beside) / each(alone) for each in (_late_p99, _answer_p99))
        said.append(f"{dialect}: lateness p99 {late:.2f}x, answers p99 {answer:.2f}x; meanwhile {beside.hostile}")
    console.print(table)
    for line in said:
        console.print(line)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--ready", type=int, default=10_000, help="runs that are ready to targets that hang")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    parser.add_argument("--only", action="append", choices=WAYS)
    return parser.parse_args()


def _late_p99(measured: Measured) -> float:
    return measured.late.rank(0.99)


def _answer_p99(measured: Measured) -> float:
    return measured.answers.rank(0.99)


def _figures(measured: Measured) -> list[str]:
    late, answers = measured.late, measured.answers
    return [
        *(f"{late.rank(share):,.0f}" for share in (0.5, 0.99, 1)),
        f"{late.missing} of {len(late.milliseconds)}",
        *(f"{answers.rank(share):,.1f}" for share in (0.5, 0.99, 1)),
        late.load,
    ]


# ── the measurement ──────────────────────────────────────────────────────────────────────────────────


def _measured(dialect: str, arguments: argparse.Namespace, *, hostile: bool) -> Measured:
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="horarium-bench-"))
        opened = stack.enter_context(database(dialect))
        arrivals = Path(folder) / "arrivals"
        quick = stack.enter_context(answering(folder, arrivals=arrivals))
        hang = stack.enter_context(hanging(folder, _HANGING))
        if hostile:
            _seed_hostile(opened, arguments, hang)
        service = stack.enter_context(up(opened, folder))
        token = create_quiet(service, f"{quick}/quiet")
        ways = arguments.only or WAYS
        told = stack.enter_context(_hostile_programs(service, folder, ways)) if hostile else Path(folder) / "nothing"
        title = f"{dialect}: beside {arguments.schedules:,}" if hostile else f"{dialect}: alone"
        first, last, answers = _live(service, token, arguments.seconds, title)
        late = lateness(arrivals, first, last)
        assert read_arrivals(arrivals), "the quiet target was never called"
        return Measured(late, answers, told.read_text("utf-8") if told.exists() else "")


def _seed_hostile(opened: Database, arguments: argparse.Namespace, hang: list[str]) -> None:
    now = SystemClock().now()
    likes = _patterns(now)
    ways = arguments.only or WAYS
    soon = now + SECOND

    def choose(number: int) -> tuple[Pattern, Instant]:
        each_second = number % _EACH_SECOND == 0
        if "schedules" not in ways:
            return likes[each_second], now + DAY  # there to be filled, and silent
        return likes[each_second], soon if each_second else (now // MINUTE + 1) * MINUTE

    count = arguments.schedules if "schedules" in ways else _EACH_SECOND * 20
    title = f"{opened.dialect}: seeding the hostile one"
    seed_each(opened, count, choose, now=now, title=title, namespace="hostile")
    if "ready" not in ways:
        return
    seed_ready(
        opened,
        arguments.ready,
        lambda number: {"kind": "http", "url": f"{hang[number % len(hang)]}/ready", "input": {"size": 3}},
        title=f"{opened.dialect}: seeding what hangs",
        namespace="hostile",
        prefix="hanging",
    )


def _patterns(now: Instant) -> dict[bool, Pattern]:
    crons = {True: "* * * * * *", False: "* * * * *"}
    return {
        each_second: pattern({**HERD, "cron_expr": cron, "overlap_policy": "allow_all"}, now=now)
        for each_second, cron in crons.items()
    }


def _live(service: Up, token: str, seconds: int, title: str) -> tuple[Instant, Instant, Answers]:
    """The first and the last nominal second that count, and what the quiet program heard between them."""
    clock = SystemClock()
    first = clock.now() // SECOND * SECOND + _LEAD_SECONDS * SECOND
    last = first + (seconds - 1) * SECOND
    took: list[float] = []
    refused = 0
    headers = {"Authorization": f"Bearer {token}", "X-Namespace": "quiet"}
    asks = cycle(
        [
            ("GET", "/api/schedules/quiet", None),
            ("GET", "/api/schedules", None),
            ("GET", "/api/schedules/quiet/runs", None),
            ("PATCH", "/api/schedules/quiet", {"labels": {"team": "quiet"}}),
        ]
    )
    with progress() as bars, httpx.Client(base_url=service.address, headers=headers, timeout=60) as http:
        bar = bars.add_task(title, total=seconds)
        while (now := clock.now()) < last + _TAIL_SECONDS * SECOND:
            method, path, body = next(asks)
            began = time.perf_counter()
            answer = http.request(method, path, json=body)
            if first <= now <= last:
                took.append((time.perf_counter() - began) * 1_000)
                refused += not answer.is_success
            bars.update(bar, completed=max(0, min(seconds, (now - first) // SECOND + 1)))
            time.sleep(_PAUSE_SECONDS)
    return first, last, Answers(sorted(took), refused)


# ── the hostile programs ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def _hostile_programs(service: Up, folder: str, ways: Sequence[str]) -> Iterator[Path]:
    with Client(service.address, token=service.token, namespace="hostile") as admin:
        token = admin.issue_token("hostile", "owner").secret
    place = Path(folder) / "hostile"
    place.mkdir()
    with talking(["-c", _HOSTILE, service.address, token, str(place / "told"), *ways], str(place)):
        yield place / "told"


def hostile_program() -> None:
    parser = argparse.ArgumentParser()
    for name in ("address", "token", "told"):
        parser.add_argument(name)
    parser.add_argument("ways", nargs="+")
    arguments = parser.parse_args()
    asyncio.run(_attack(arguments.address, arguments.token, Path(arguments.told), arguments.ways))


async def _attack(address: str, token: str, told: Path, ways: Sequence[str]) -> None:
    headers = {"Authorization": f"Bearer {token}", "X-Namespace": "hostile"}
    limits = httpx.Limits(max_connections=STREAMS + 8)
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=None, limits=limits) as http:
        print("ready", flush=True)
        under_way = [_listen(http) for _ in range(STREAMS if "streams" in ways else 0)]
        if "backfills" in ways:
            under_way.append(_backfill(http, told))
        await asyncio.gather(*under_way, asyncio.Event().wait())


async def _listen(http: httpx.AsyncClient) -> None:
    while True:
        async with http.stream("GET", "/api/events") as answer:
            async for _line in answer.aiter_lines():
                pass
        await asyncio.sleep(1)


async def _backfill(http: httpx.AsyncClient, told: Path) -> None:
    """A thousand seconds of the last day each time, of one schedule that fires each second after the other."""
    asked: dict[int, int] = {}
    day = int(time.time()) // 86_400 * 86_400 - 86_400
    for number in range(10_000):
        start = day + number // 20 * 1_000
        window = {
            "start_time": _text(start),
            "end_time": _text(start + 1_000),
            "overlap_policy": "allow_all",
        }
        name = f"herd-{number % 20 * _EACH_SECOND}"
        answer = await http.post(f"/api/schedules/{name}/backfill", json=window)
        asked[answer.status_code] = asked.get(answer.status_code, 0) + 1
        told.write_text(f"backfills of 1,000 by answer: {asked}", "utf-8")


def _text(epoch: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(epoch))


if __name__ == "__main__":
    main()
