"""What a million stored schedules cost, and three, and ten: looking for what is due, creating, listing, a tick.

A small database and one that grows stand side by side. At each size the two take turns, question by question, inside
one process, so that what is shown as growth is not the noise of the machine. Those that are due lie evenly among the
others, and a tick meets rows that no tick before has touched.

    python benchmarks/scale.py [--schedules 1000000 --schedules 3000000 …] [--times 15] [--dialect postgresql]

Many schedules take space: the program says how much, and does not begin where less would be left than 15 GB.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from ground import DIALECTS, HERD, Pattern, console, database, load, pattern, rest, seed_each
from inside import CALLER, Inside, Question, Took, compared, inside, measured, milliseconds
from rich.table import Table
from sqlalchemy import Connection, bindparam, text

from horarium.core.document.states import Status
from horarium.features.forecast import service as forecast_service
from horarium.features.schedules import due_rows, lists
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.filters import ScheduleFilter, make_list_token
from horarium.features.schedules.list_rows import Cursor
from horarium.instant import DAY, HOUR, Instant
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.ids import id_text, new_id

SMALL = 30_000
STORED = (300_000,)
DUE = 1_000
PAGE = 50
_WARM_UP = 3
# A group is due in an hour of its own, and the next day again.
_GROUPS = 24
_FAR = 60 * DAY
# Between two births, in microseconds.
_APART = 50
# Measured: rows, indexes, and the log that the load leaves.
_BYTES = 2_500
_KEPT_FREE = 15 * 10**9
_BATCH = 500

_NO_QUOTA = dict.fromkeys(("quota_schedules", "quota_bytes_stored", "quota_open_runs", "quota_runs_per_minute"), 10**15)
_SIZE = "SELECT pg_database_size(current_database())"
_LATER = "UPDATE positions SET next_due = :far WHERE next_due < :far"
_DUE = text(
    "UPDATE positions SET next_due = :at, decided_until = :at - 1, planning = :like WHERE schedule_uid IN "
    "(SELECT schedule_uid FROM schedules WHERE namespace = :namespace AND deleted_at IS NULL AND schedule_id IN :names)"
).bindparams(bindparam("names", expanding=True))
Ask: TypeAlias = Callable[[int], object]


@dataclass(slots=True)
class Party:
    """One database, with `stored` schedules; `begins` is the day on which its groups are due."""

    opened: Database
    begins: Instant
    likes: Sequence[Pattern]
    stored: int = 0
    days: int = 0
    names: list[str] = field(default_factory=list)


def main() -> None:
    arguments = _arguments()
    sizes = sorted({*(arguments.schedules or STORED)})
    for dialect in arguments.dialect or DIALECTS:
        if (dialect == "sqlite" and sizes[-1] > STORED[-1]) and not arguments.dialect:
            continue  # large ones are for PostgreSQL
        _check_space(sizes[-1])
        with ExitStack() as stack:
            small, large = (_party(stack.enter_context(database(dialect))) for _ in range(2))
            _grow(small, SMALL)
            for size in sizes:
                _grow(large, size)
                before = load()
                console.print(_told(_measured([small, large], arguments.times), large, before))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, action="append", help=f"sizes, more than {SMALL:,} each")
    parser.add_argument("--times", type=int, default=15, help=f"at most {_GROUPS - _WARM_UP}")
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    return parser.parse_args()


def _check_space(size: int) -> None:
    need, free = size * _BYTES, shutil.disk_usage(tempfile.gettempdir()).free
    console.print(f"{size:,} schedules need about {need / 1e9:.1f} GB; {free / 1e9:.0f} GB are free")
    if free - need < _KEPT_FREE:
        sys.exit(f"less than {_KEPT_FREE / 1e9:.0f} GB would be left")


# ── the databases ────────────────────────────────────────────────────────────────────────────────────


def _party(opened: Database) -> Party:
    begins = SystemClock().now() // DAY * DAY + DAY
    daily = {**HERD, "timezone": "UTC", "overlap_policy": "allow_all"}
    likes = [pattern({**daily, "cron_expr": f"0 {hour} * * *"}, now=begins - DAY) for hour in range(_GROUPS)]
    seed_each(
        opened, _GROUPS, lambda number: (likes[number], begins + _FAR), now=begins - DAY, title="forms", prefix="form"
    )
    return Party(opened, begins, likes)


def _grow(party: Party, size: int) -> None:
    """More of them, none of which is due for weeks; then others than before are due, among all of them."""
    opened, more = party.opened, size - party.stored
    first = party.stored
    far = party.begins + _FAR
    like = party.likes[0]
    title = f"{opened.dialect}: {size:,} schedules"
    seed_each(
        opened,
        more,
        lambda number: (like, far + first + number),
        now=party.begins - DAY + party.days * HOUR,
        title=title,
        prefix=f"part-{party.days}",
        apart=_APART,
    )
    party.names += [f"part-{party.days}-{number}" for number in range(more)]
    party.stored = size
    party.days += 1
    opened.write(partial(_choose, party))
    rest(opened)


def _choose(party: Party, connection: Connection) -> None:
    """A thousand for each group, evenly among all."""
    connection.execute(text(_LATER), {"far": party.begins + _FAR})
    stride = party.stored // DUE
    for group, like in enumerate(party.likes):
        at = party.begins + party.days * DAY + group * HOUR
        chosen = [party.names[place * stride + group * stride // _GROUPS] for place in range(DUE)]
        values = {"at": at, "like": like.digest, "names": chosen, "namespace": DEFAULT_NAMESPACE}
        assert connection.execute(_DUE, values).rowcount == DUE


# ── the questions ────────────────────────────────────────────────────────────────────────────────────


def _measured(parties: Sequence[Party], times: int) -> list[dict[str, Took]]:
    with ExitStack() as stack:
        asked = [stack.enter_context(_questions(party)) for party in parties]
        return measured(asked, times, title=f"{parties[0].opened.dialect}: asking", warm_up=_WARM_UP)


@contextmanager
def _questions(party: Party) -> Iterator[Mapping[str, Question]]:
    opened = party.opened
    with inside(opened.url, party.begins + party.days * DAY - HOUR, _NO_QUOTA) as service:
        known = Plannings()

        def look(number: int) -> float:
            return _claimed(opened, known, service.clock.now(), 0)

        def look_due(number: int) -> float:
            return _claimed(opened, known, opened.read(_next_due), DUE)

        def tick(number: int) -> float:
            service.clock.set(opened.read(_next_due))
            service.service.engine.ticker.beat()  # a transaction of its own, every few seconds; not part of a tick
            births: list[int] = []
            took = milliseconds(lambda: births.extend(service.decide() for _ in range(DUE // _BATCH)))
            assert sum(births) == DUE, births
            return took

        asks = {name: partial(_timed, ask) for name, ask in _asks(service, party).items()}
        yield {
            "look for what is due: nothing": look,
            f"look for what is due: {DUE:,}": look_due,
            **asks,
            f"tick of {DUE:,} due": tick,
        }


def _claimed(opened: Database, known: Plannings, now: Instant, expected: int) -> float:
    """Rows are locked and let go again, as by a process that stops before it has decided."""
    found: list[int] = []
    took = milliseconds(lambda: found.append(len(opened.write(lambda c: due_rows.claim(c, known, now, DUE)))))
    assert found == [expected], found
    return took


def _next_due(connection: Connection) -> Instant:
    found: Instant = connection.execute(
        text("SELECT next_due FROM positions WHERE status = 'active' ORDER BY next_due LIMIT 1")
    ).scalar_one()
    return found


def _timed(ask: Ask, number: int) -> float:
    return milliseconds(partial(ask, number))


def _asks(service: Inside, party: Party) -> dict[str, Ask]:
    at, names, stride = service.resources, party.names, len(party.names) // 97
    middle = names[len(names) // 2]
    created = lists.describe(at, CALLER, middle).row.created_at
    wanted = {"": ScheduleFilter(), "active": ScheduleFilter(statuses=frozenset({Status.ACTIVE}))}
    wanted |= {"none": ScheduleFilter(workflow="nothing"), "text": ScheduleFilter(text="part-0-777")}
    token = make_list_token(DEFAULT_NAMESPACE, wanted[""].fingerprint(), Cursor(created, middle))
    page = partial(lists.list_schedules, at, CALLER, page_size=PAGE)

    def create(number: int) -> object:
        return schedule_service.create(
            at, CALLER, {**HERD, "schedule_id": id_text(new_id()).lower(), "cron_expr": "0 0 1 1 *"}
        )

    return {
        "create": create,
        "describe": lambda n: lists.describe(at, CALLER, names[n * stride]),
        "preview": lambda n: forecast_service.preview(at, CALLER, names[n * stride]),
        "list, first page": lambda n: page(),
        "list, page in the middle": lambda n: page(next_page_token=token),
        "list, active ones": lambda n: page(wanted["active"]),
        "list, of a workflow that none has": lambda n: page(wanted["none"]),
        "list, with a text in the name (reads all)": lambda n: page(wanted["text"]),
    }


# ── telling ──────────────────────────────────────────────────────────────────────────────────────────


def _told(found: Sequence[Mapping[str, Took]], party: Party, before: str) -> Table:
    title = f"{party.opened.dialect}, {party.stored:,} schedules, load {before} → {load()}"
    table = compared(title, (f"{SMALL:,}", found[0]), (f"{party.stored:,}", found[1]))
    if party.opened.dialect == "postgresql":
        size = int(party.opened.read(lambda c: c.execute(text(_SIZE)).scalar_one()))
        table.caption = f"{size / 1e9:.2f} GB, {size / party.stored:,.0f} bytes a schedule"
    return table


if __name__ == "__main__":
    main()
