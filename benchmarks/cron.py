"""What one `next` costs: this engine, cronsim and croniter on the same expressions, zones and instants.

    python benchmarks/cron.py [--instants 40] [--rounds 3]

All engines take turns in one run, expression by expression, so a noisy machine disturbs them alike; each
figure is the best of the rounds. "Fresh" asks for the next fire after a given instant; a peer has to build
its iterator for that. "Iterated" goes on from the last answer, and building is not counted. The ratio is to
whichever of the two is cheaper for cronsim. Our caches are warm (text parsed, zone surveyed); what that costs
the first time is printed at the end.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from importlib import resources
from itertools import islice
from time import perf_counter
from typing import Any
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from horarium.condition import compile_condition
from horarium.core.decision.facts import Facts, SharedFacts
from horarium.core.decision.tick import Due, PlanTime, plan_tick
from horarium.core.document.calendar import BUILT_IN
from horarium.core.document.planning import Planning
from horarium.core.document.states import Position
from horarium.core.policy.limits import Budget
from horarium.core.policy.queue import Overlap, OverlapPolicy
from horarium.core.recurrence.cron import compile_cron
from horarium.core.recurrence.parts import CronSchedule
from horarium.core.recurrence.spec import compile_spec
from horarium.core.recurrence.zone import Zone, load_zone
from horarium.instant import DAY, SECOND, from_rfc3339

# Where croniter writes it otherwise, its form stands beside ours.
EXPRESSIONS: dict[str, str | None] = {
    "*/5 * * * *": None,
    "0 * * * *": None,
    "30 2 * * *": None,
    "0 9 * * 1-5": None,
    "*/15 9-17 * * 1-5": None,
    "0 0 1 * *": None,
    "15 14 1,15 * *": None,
    "0 0 L * *": None,
    "0 9 * * 1#2": None,
    "0 17 * * 5L": "0 17 * * L5",
    "0 6 * 1-3 0": None,
}
ZONES = (
    "UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Casablanca",
    "Asia/Kolkata", "Pacific/Apia", "Europe/Dublin", "Antarctica/Troll",
)  # fmt: skip
START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
STOP = int(datetime(2029, 1, 1, tzinfo=UTC).timestamp())
NEAR = 2 * 86_400
ENGINES = ("ours, integers", "ours, datetimes", "cronsim", "croniter")
# The golden ratio spreads any number of points evenly, without chance.
GOLDEN = 0.618_033_988_749_895


@dataclass
class Tally:
    """Seconds and calls by (engine, way of asking)."""

    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    calls: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, engine: str, way: str, seconds: float, calls: int) -> None:
        self.seconds[engine, way] = self.seconds.get((engine, way), 0.0) + seconds
        self.calls[engine, way] = self.calls.get((engine, way), 0) + calls

    def micros(self, engine: str, way: str) -> float:
        return self.seconds[engine, way] / self.calls[engine, way] * 1e6

    def cheapest(self, engine: str) -> float:
        return min(self.micros(engine, way) for way in ("fresh", "iterated"))


@dataclass(frozen=True)
class Job:
    """One expression in one zone, ready for every engine."""

    expr: str
    croniter_expr: str
    schedule: CronSchedule
    info: ZoneInfo
    instants: tuple[int, ...]
    datetimes: tuple[datetime, ...]


def next_datetime(schedule: CronSchedule, info: ZoneInfo, moment: datetime) -> datetime:
    found = schedule.next_after(int(moment.timestamp()))
    assert found is not None
    return datetime.fromtimestamp(found, info)


def seconds_for(rounds: int, work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(rounds):
        begin = perf_counter()
        work()
        best = min(best, perf_counter() - begin)
    return best


def fresh(job: Job) -> dict[str, Callable[[], Sequence[object]]]:
    def croniters() -> list[object]:
        return [croniter(job.croniter_expr, moment).get_next(datetime) for moment in job.datetimes]

    return {
        "ours, integers": lambda: [job.schedule.next_after(t) for t in job.instants],
        "ours, datetimes": lambda: [next_datetime(job.schedule, job.info, moment) for moment in job.datetimes],
        "cronsim": lambda: [next(CronSim(job.expr, moment)) for moment in job.datetimes],
        "croniter": croniters,
    }


def iterated(job: Job, steps: int) -> dict[str, Callable[[], object]]:
    """Every engine walks `steps` fires from the same few instants; peers were built beforehand."""
    starts = range(0, len(job.instants), steps)

    def integers() -> None:
        for start in starts:
            t: int | None = job.instants[start]
            for _ in range(steps):
                assert t is not None
                t = job.schedule.next_after(t)

    def datetimes() -> None:
        for start in starts:
            moment = job.datetimes[start]
            for _ in range(steps):
                moment = next_datetime(job.schedule, job.info, moment)

    return {"ours, integers": integers, "ours, datetimes": datetimes}


def iterated_peers(job: Job, steps: int, rounds: int) -> Iterator[tuple[str, float]]:
    starts = range(0, len(job.instants), steps)
    best = {"cronsim": float("inf"), "croniter": float("inf")}
    for _ in range(rounds):
        walkers = [CronSim(job.expr, job.datetimes[start]) for start in starts]
        begin = perf_counter()
        for walker in walkers:
            for _fire in islice(walker, steps):
                pass
        best["cronsim"] = min(best["cronsim"], perf_counter() - begin)
        others = [croniter(job.croniter_expr, job.datetimes[start]) for start in starts]
        begin = perf_counter()
        for other in others:
            for _ in range(steps):
                other.get_next(datetime)
        best["croniter"] = min(best["croniter"], perf_counter() - begin)
    yield from best.items()


def measure(job: Job, tally: Tally, rounds: int, steps: int = 5) -> int:
    """Adds one job to the tally; answers in which cronsim differs are counted and returned."""
    answers: dict[str, Sequence[object]] = {}
    for engine, work in fresh(job).items():
        answers[engine] = work()
        tally.add(engine, "fresh", seconds_for(rounds, work), len(job.instants))
    walked = len(range(0, len(job.instants), steps)) * steps
    for engine, walk in iterated(job, steps).items():
        tally.add(engine, "iterated", seconds_for(rounds, walk), walked)
    for engine, seconds in iterated_peers(job, steps, rounds):
        tally.add(engine, "iterated", seconds, walked)
    theirs = [moment.timestamp() for moment in answers["cronsim"] if isinstance(moment, datetime)]
    return sum(ours != other for ours, other in zip(answers["ours, integers"], theirs, strict=True))


def changes(zone: Zone) -> list[int]:
    found, segment = [], zone.segment_at(START)
    while segment.stop < STOP:
        segment = zone.segment_at(segment.stop)
        if segment.before != segment.offset:
            found.append(segment.start)
    return found


def spread(count: int) -> list[int]:
    return [START + int((STOP - START) * (n * GOLDEN % 1)) for n in range(count)]


def near_changes(zone: Zone, count: int) -> list[int]:
    around = changes(zone)
    return [around[n % len(around)] - NEAR + int(2 * NEAR * (n * GOLDEN % 1)) for n in range(count)] if around else []


def pinned_zone(name: str) -> ZoneInfo:
    """From the tzdata package, as ours: `ZoneInfo(name)` would ask the machine, which may know other rules."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


def jobs(choose: Callable[[Zone], list[int]]) -> list[Job]:
    made = []
    for name in ZONES:
        zone, info = load_zone(name), pinned_zone(name)
        instants = tuple(choose(zone))
        datetimes = tuple(datetime.fromtimestamp(t, info) for t in instants)
        for expr, other in EXPRESSIONS.items():
            if instants:
                schedule = CronSchedule(compile_cron(expr), zone)
                made.append(Job(expr, other or expr, schedule, info, instants, datetimes))
    return made


def report(console: Console, title: str, rows: Sequence[tuple[str, Tally]]) -> None:
    table = Table(title=title, title_justify="left")
    table.add_column("µs per next")
    for engine in ENGINES:
        table.add_column(f"{engine}\nfresh / iterated", justify="right")
    table.add_column("cronsim ÷ ours\nintegers / datetimes", justify="right")
    table.add_column("croniter ÷ ours\nintegers", justify="right")
    for name, tally in rows:
        cells = [f"{tally.micros(e, 'fresh'):.2f} / {tally.micros(e, 'iterated'):.2f}" for e in ENGINES]
        integers, datetimes = tally.micros("ours, integers", "fresh"), tally.micros("ours, datetimes", "fresh")
        cronsim, other = tally.cheapest("cronsim"), tally.cheapest("croniter")
        ratios = f"{cronsim / integers:.1f}× / {cronsim / datetimes:.1f}×"
        table.add_row(name, *cells, ratios, f"{other / integers:.1f}×", end_section=name == rows[-2][0])
    console.print(table)


def run(console: Console, title: str, work: list[Job], rounds: int, by: Callable[[Job], str]) -> None:
    whole, parts, differing = Tally(), dict[str, Tally](), 0
    with Progress(console=console, transient=True) as progress:
        for job in progress.track(work, description=title):
            own = Tally()
            differing += measure(job, own, rounds)
            for tally in (whole, parts.setdefault(by(job), Tally())):
                for (engine, way), seconds in own.seconds.items():
                    tally.add(engine, way, seconds, own.calls[engine, way])
    report(console, title, [*parts.items(), ("all", whole)])
    asked = whole.calls["cronsim", "fresh"]
    console.print(f"cronsim gives another answer in {differing} of {asked} questions.\n")


def cold_costs(console: Console) -> None:
    """Texts and zones that nothing has seen before."""
    texts = [
        f"{m} {h} {d} * {w}" for m in range(0, 60, 6) for h in (3, 17) for d in ("L", "1,15") for w in ("1#2", "*")
    ]
    compile_cold = compile_cron.__wrapped__
    parse = seconds_for(3, lambda: [compile_cold(text) for text in texts]) / len(texts)
    begin = perf_counter()
    zones = [load_zone.__wrapped__(name) for name in ZONES]
    load = (perf_counter() - begin) / len(zones)
    begin = perf_counter()
    for zone in zones:
        zone.segment_at(START)
    survey = (perf_counter() - begin) / len(zones)
    console.print(
        f"Cold, once each: {parse * 1e6:.0f} µs to parse a new text, {load * 1e6:.0f} µs to load a zone, "
        f"{survey * 1e6:.0f} µs to survey 388 days of it."
    )


def _thousand_ticks(due: Due, facts: Facts, moment: PlanTime) -> None:
    for _ in range(1_000):
        plan_tick(due, facts, SharedFacts(), moment)


def tick_costs(console: Console, rounds: int) -> None:
    """What one schedule costs a tick before anything is written: plan, with guards and overlap, and nothing else."""
    now = from_rfc3339("2026-11-16T09:00:00Z")
    plain = Planning(spec=compile_spec(cron_expressions=["0 9 * * 1-5"], timezone="UTC"))
    guarded = Planning(
        spec=compile_spec(cron_expressions=["0 9 * * 1-5"], timezone="UTC", start_at=now - DAY),
        calendars=("us-federal-holidays-2026",),
        condition=compile_condition({"/last_24h_stats/failed": {"lt": 3}}),
        rotation=3,
        budget=Budget(100, 10),
        overlap=Overlap(OverlapPolicy.BUFFER_ONE),
        max_runs=1_000,
    )
    facts = Facts(calendars=dict(BUILT_IN), context={"last_24h_stats": {"failed": 1}})
    table = Table(title="one tick of one schedule, no I/O", title_justify="left")
    table.add_column("schedule")
    table.add_column("µs", justify="right")
    for title, planning in (("cron and overlap only", plain), ("seven guards, rotation, buffer", guarded)):
        due = Due(b"benchmark uid 16", planning, Position(now - SECOND, now))
        taken = seconds_for(rounds, partial(_thousand_ticks, due, facts, PlanTime(now, now - DAY)))
        table.add_row(title, f"{taken * 1e3:.1f}")
    console.print(table)


COUNTED: dict[str, dict[str, Any]] = {
    "two crons of seconds": {"cron_expressions": ["*/2 * * * * *", "*/3 * * * * *"]},
    "a hundred crons": {"cron_expressions": [f"{n % 60} {n % 24} {1 + n % 28} * *" for n in range(100)]},
    "every minute and every 97 seconds": {"cron_expressions": ["* * * * *"], "intervals": [{"every": "PT97S"}]},
    "97 and 89 seconds": {"intervals": [{"every": "PT97S"}, {"every": "PT89S"}]},
}


def count_costs(console: Console) -> None:
    """What it costs to count the occurrences of several parts, the first time and again."""
    now = from_rfc3339("2026-11-16T09:00:00Z")
    table = Table(title="count of several parts, New York", title_justify="left")
    for heading in ("spec", "years", "occurrences", "ms", "ms again"):
        table.add_column(heading, justify="left" if heading == "spec" else "right")
    for title, parts in COUNTED.items():
        spec = compile_spec(**parts, timezone="America/New_York")
        for years in (1, 100):
            after = now - years * 365 * DAY
            first, again = (seconds_for(1, partial(spec.count, after, now)) for _ in range(2))
            table.add_row(title, str(years), f"{spec.count(after, now):,}", f"{first * 1e3:.1f}", f"{again * 1e3:.1f}")
    console.print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description="µs per next: ours, cronsim, croniter")
    parser.add_argument("--instants", type=int, default=40, help="instants for each expression and zone")
    parser.add_argument("--rounds", type=int, default=3, help="each figure is the best of so many")
    chosen = parser.parse_args()
    console = Console()
    everywhere = jobs(lambda zone: spread(chosen.instants))
    run(console, "2026 to 2028, by expression (warm caches)", everywhere, chosen.rounds, lambda job: job.expr)
    heavy = jobs(lambda zone: near_changes(zone, chosen.instants))
    title = "DST-heavy: within two days of a clock change, by zone (warm caches)"
    run(console, title, heavy, chosen.rounds, lambda job: job.schedule.zone.key)
    cold_costs(console)
    tick_costs(console, chosen.rounds)
    count_costs(console)


if __name__ == "__main__":
    main()
