"""Heartbeats of processes: leases by name, and the description that a process writes into its own.

A lease also tells since when its name has been alive without a break. In the description of a process the instants
stand at the top of the document, one for each loop: a program of the previous release takes every number there for an
instant. Everything else is text or stands in an object. A row of such a program contains less, and is read all the
same.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.core.decision.presence import BEAT_SECONDS, GONE_AFTER_SECONDS, Presence, join_presences, silent_seconds
from horarium.core.document.json_values import UnreadableEntry, unreadable_of
from horarium.instant import LAST, SECOND, Instant
from horarium.platform.database.statements import TypedRows, object_from_text, to_text
from horarium.platform.database.tables import leases

TICKER = "ticker"
"""The name that all tickers keep alive together."""
AHEAD_UNTIL = "ahead_until"
"""In its info: the clock was set back, and occurrences until this instant are already decided."""
BREAKS = "breaks"
"""In its info: the short times of the last hour in which no ticker was there."""


@dataclass(frozen=True, slots=True)
class LeaseRow:
    """`until` is when the next beat is overdue."""

    name: str
    owner: str
    since: Instant
    beat_at: Instant
    until: Instant | None
    info: dict[str, Any]


_ROWS = TypedRows(LeaseRow, leases, info=object_from_text)

_BEAT = sa.text(
    """
    INSERT INTO leases (name, owner, since, beat_at, until, info)
    VALUES (:name, :owner, :since, :beat_at, :until, :info)
    ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, info = excluded.info, since = excluded.since,
      beat_at = excluded.beat_at, until = excluded.until
    """
)


@dataclass(frozen=True, slots=True)
class LastBeat:
    """The last beat of a name; `info` is empty where its text cannot be read."""

    since: Instant
    beat_at: Instant
    info: Mapping[str, Any]


def last_beat(connection: Connection, name: str, *, lock: bool = False) -> LastBeat | None:
    """Read the last beat; with `lock` no other process beats for this name before the transaction ends.

    A process that beats reads its clock after it has the lock: it may have waited long for it.
    """
    found = sa.select(leases.c.since, leases.c.beat_at, leases.c.info).where(leases.c.name == name)
    row = connection.execute(found.with_for_update() if lock else found).one_or_none()
    return None if row is None else LastBeat(row.since, row.beat_at, object_from_text(row.info))


def beat_lease(
    connection: Connection,
    name: str,
    owner: str,
    now: Instant,
    gap_seconds: float,
    info: Mapping[str, Any],
    *,
    since: Instant | None = None,
) -> Instant:
    """Record that the owner is alive; return since when the name has been alive without a break.

    Several owners may keep one name alive together, such as all the tickers. `since`: the owner was alive from then on,
    although it could not write. A beat from a clock that is a little behind never moves the lease back.
    """
    before = last_beat(connection, name, lock=True)
    recorded = None if before is None else Presence(before.since, before.beat_at)
    joined = join_presences(recorded, now, since, gap_seconds)
    until = joined.at + round(gap_seconds * SECOND)
    values = {"name": name, "owner": owner, "since": joined.since, "beat_at": joined.at, "until": until}
    connection.execute(_BEAT, {**values, "info": to_text(info)})
    return joined.since


def alive_since(connection: Connection, name: str) -> Instant | None:
    """As of its last beat; None = nobody has ever had the name."""
    return connection.execute(sa.select(leases.c.since).where(leases.c.name == name)).scalar_one_or_none()


def all_leases(connection: Connection) -> list[LeaseRow]:
    """Read all leases; one that cannot be read is marked, so that it keeps nobody from seeing the others."""
    return _ROWS.all_listed(connection, _ROWS.select.order_by(leases.c.name))


def delete_lease(connection: Connection, name: str, owner: str) -> bool:
    """For a process that ends in order; whether the lease was its own."""
    statement = sa.delete(leases).where(leases.c.name == name, leases.c.owner == owner)
    return connection.execute(statement).rowcount == 1


def purge_leases(connection: Connection, *, beat_before: Instant) -> int:
    """Removes those who have been silent for long; how many."""
    return connection.execute(sa.delete(leases).where(leases.c.beat_at < beat_before)).rowcount


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

    `serves` is what it can launch, as `launchers/registry.py` reads it.
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
    return [row for row in listed_processes(connection) if not isinstance(row, UnreadableEntry)]


def listed_processes(connection: Connection) -> list[ProcessRow | UnreadableEntry]:
    """The same with those that cannot be read."""
    return [_read_row(row) for row in all_leases(connection) if row.name.startswith(PROCESS)]


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


def beat_process(connection: Connection, owner: str, process: Process, now: Instant) -> None:
    beat_lease(connection, f"{PROCESS}{owner}", owner, now, GONE_AFTER_SECONDS, process.document())


def delete_process(connection: Connection, owner: str) -> None:
    """A process that ends in good order leaves no row that would grow old."""
    delete_lease(connection, f"{PROCESS}{owner}", owner)


def _read_row(row: LeaseRow) -> ProcessRow | UnreadableEntry:
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
