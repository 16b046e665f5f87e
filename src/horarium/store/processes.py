"""What a process says of itself in its heartbeat: who and where it is, what it does, and when its loops last got on.

Instants stand at the top of the document, one for each loop: a program of the release before takes every number there
for one. Everything else is text or stands in an object. A row of such a program says less, and is read all the same.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlalchemy import Connection

from horarium.decision.process_state import BEAT_SECONDS, GONE_AFTER_SECONDS, silent_seconds
from horarium.instant import LAST, Instant
from horarium.schedule.damage import Unreadable, unreadable_of
from horarium.store import leases
from horarium.store.leases import LeaseRow

PROCESS = "process:"
SERVES = "serves"
"""Under this name stands what it can launch."""
_DRAINING, _SCHEMA, _ABOUT = "draining", "schema", "process"
_MOST_ROLES = 32
_MOST_TEXT = 255


@dataclass(frozen=True, slots=True)
class About:
    """`schema` is the newest revision of the tables that its program knows; None = an older one, which did not say."""

    host: str
    pid: int | None = None
    roles: tuple[str, ...] = ()
    version: str | None = None
    schema: str | None = None
    started_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class Process:
    """`clock_offset` are the microseconds that its machine's clock is behind the database's.

    `serves` is what it can launch, as `launchers/served.py` reads it.
    """

    about: About
    completed: Mapping[str, Instant] = field(default_factory=dict)
    serves: object = None
    draining: bool = False
    clock_offset: int | None = None

    def document(self) -> dict[str, Any]:
        about = self.about
        own = {
            "host": about.host,
            "pid": about.pid,
            "roles": list(about.roles),
            "version": about.version,
            "started_at": about.started_at,
            "clock_offset": self.clock_offset,
        }
        document: dict[str, Any] = {**self.completed, _SCHEMA: about.schema, _ABOUT: own}
        if self.draining:
            document[_DRAINING] = "yes"
        elif self.serves is not None:
            document[SERVES] = self.serves
        return document


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """`since` = it has beaten without a break from then on."""

    owner: str
    since: Instant
    beat_at: Instant
    process: Process


def process_rows(connection: Connection) -> list[ProcessRow]:
    """All that have beaten within a day and did not leave in good order, by name; those that can be read."""
    return [row for row in listed_processes(connection) if not isinstance(row, Unreadable)]


def listed_processes(connection: Connection) -> list[ProcessRow | Unreadable]:
    """The same with those that cannot be read."""
    return [_read_row(row) for row in leases.all_leases(connection) if row.name.startswith(PROCESS)]


def another_is_alive(rows: Iterable[ProcessRow], role: str, owner: str, now: Instant) -> bool:
    """Return whether another process seems to have a role, by its last beat and, on this machine, by its pid."""
    return any(
        row.owner != owner
        and role in row.process.about.roles
        and silent_seconds(row.beat_at, now) < 2 * BEAT_SECONDS  # it has missed no beat, or was late with one
        and not row.process.draining
        and not _has_ended(row.process.about)
        for row in rows
    )


def _has_ended(about: About) -> bool:
    """A process that was killed leaves its row. One with our pid was there before this container was restarted."""
    if about.pid is None or about.host != socket.gethostname():
        return False
    try:
        os.kill(about.pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False
    return about.pid == os.getpid()


def beat(connection: Connection, owner: str, process: Process, now: Instant) -> None:
    leases.beat(connection, f"{PROCESS}{owner}", owner, now, GONE_AFTER_SECONDS, process.document())


def leave(connection: Connection, owner: str) -> None:
    """A process that ends in good order leaves no row that would grow old."""
    leases.forget(connection, f"{PROCESS}{owner}", owner)


def _read_row(row: LeaseRow) -> ProcessRow | Unreadable:
    unreadable = unreadable_of(row)
    if unreadable is not None:
        return replace(unreadable, key=row.name.removeprefix(PROCESS))
    return ProcessRow(row.name.removeprefix(PROCESS), row.since, row.beat_at, read_process(row.owner, row.info))


def read_process(owner: str, info: object) -> Process:
    """Never raises: one row that is not ours is that process's trouble."""
    told: Mapping[str, Any] = info if isinstance(info, Mapping) else {}
    own = told.get(_ABOUT)
    own = own if isinstance(own, Mapping) else {}
    host, _, rest = owner.partition(":")
    roles = own.get("roles")
    about = About(
        host=_text(own.get("host")) or host,
        pid=_number(own.get("pid")) or _pid(rest),
        roles=tuple(str(each)[:_MOST_TEXT] for each in roles[:_MOST_ROLES]) if isinstance(roles, list) else (),
        version=_text(own.get("version")),
        schema=_text(told.get(_SCHEMA)),
        started_at=_instant(own.get("started_at")),
    )
    completed = {name: at for name, at in told.items() if _instant(at) is not None}
    return Process(about, completed, told.get(SERVES), _DRAINING in told, _number(own.get("clock_offset")))


def _pid(rest: str) -> int | None:
    """Read the process id from an owner's name such as `host:4711:k3x9qz`."""
    number = rest.partition(":")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) <= 10 else None


def _text(value: object) -> str | None:
    return value[:_MOST_TEXT] if isinstance(value, str) else None


def _number(value: object) -> int | None:
    """One that can be shown as an instant, or subtracted from one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -LAST <= value <= LAST else None


def _instant(value: object) -> Instant | None:
    number = _number(value)
    return None if number is None or number < 0 else number
