"""Maintenance of an installation by a command: move it to another database, change its key, or do one engine pass.

A move is checked first and copies everything at once.

A new key seals all values again, and no crash can lose the key: the new key is on the disk before the database knows
it, and replaces the old file after that. A process that starts in between, or after a crash, finds both, and uses
the one that the database knows.

One pass decides, dispatches, waits and ends, for users whose external scheduler keeps the time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, assert_never

from horarium.core.audit_entries import Act
from horarium.core.decision.facts import Decision, Fire, Hold, Missed, Skip
from horarium.core.decision.presence import GONE_AFTER_SECONDS, silent_seconds
from horarium.core.document.states import Origin, Reason, instance_id
from horarium.engine.ticker import Decided
from horarium.errors import HorariumError
from horarium.features.secrets.rows import Resealed, reseal_all
from horarium.instant import Instant, rfc3339_or_none, to_rfc3339
from horarium.platform.clock import Clock, SystemClock
from horarium.platform.database import Connection, Database, audit_chain, installation, open_database
from horarium.platform.database.copying import Tell, copy_all, count_rows, first_filled_table
from horarium.platform.database.errors import SchemaMissing, SchemaTooNew, SchemaTooOld
from horarium.platform.database.installation import Sealer
from horarium.platform.database.processes import process_rows
from horarium.platform.database.schema import DEFAULT_NAMESPACE, check_exact_schema, has_tables, migrate
from horarium.platform.database.sqlite import database_path
from horarium.platform.ids import id_text
from horarium.platform.settings import Settings
from horarium.serve.data_dir import (
    InstallationKey,
    installation_key,
    key_file,
    key_of,
    new_key,
    next_key_file,
    previous_key_file,
    put_in_place,
    write_once,
    write_privately,
)
from horarium.serve.service import Service

# ── another database ──────────────────────────────────────────────────────────────────────────────────


class MoveRefused(HorariumError):
    """Nothing was written."""

    reason = "move_refused"


class DatabaseMove:
    """Made by `opened`; the two databases are fit to be copied from and to."""

    def __init__(self, source: Database, target: Database, clock: Clock) -> None:
        self._source = source
        self._target = target
        self._clock = clock
        self.source_url = source.url
        self.target_url = target.url

    def count(self) -> int:
        return sum(count_rows(self._source).values())

    def copy(self, tell: Tell) -> Mapping[str, int]:
        """The rows of each table; all of them, or none if this raises."""
        return copy_all(self._source, self._target, tell, now=self._clock.now())


@contextmanager
def opened(source_url: str, target_url: str, clock: Clock | None = None) -> Iterator[DatabaseMove]:
    """Raises MoveRefused. A target without tables gets them."""
    clock = clock or SystemClock()
    with _database("--from", source_url, must_exist=True) as source:
        _check_schema("--from", source)
        _refuse_company("--from", source, clock)
        with _database("--to", target_url) as target:
            if target.url == source.url:
                raise MoveRefused(f"--from and --to are the same database: {source.url}")
            if has_tables(target):
                _check_schema("--to", target)
                _refuse_company("--to", target, clock)
            else:
                migrate(target, clock)
            filled = first_filled_table(target)
            if filled is not None:
                raise MoveRefused(f"--to: table {filled} has rows; use an empty database instead of {target.url}")
            yield DatabaseMove(source, target, clock)


@contextmanager
def _database(flag: str, url: str, *, must_exist: bool = False) -> Iterator[Database]:
    is_file = "://" not in url or url.startswith("sqlite:")
    # To open a file that is not there would make it.
    if must_exist and is_file and not database_path(url).is_file():
        raise MoveRefused(f"{flag}: the database {database_path(url)} does not exist")
    database = open_database(url)
    try:
        yield database
    finally:
        database.close()


def _check_schema(flag: str, database: Database) -> None:
    try:
        check_exact_schema(database)
    except SchemaMissing as wrong:
        raise MoveRefused(f"{flag}: {wrong.message} (horarium migrate --database …)") from None
    except (SchemaTooNew, SchemaTooOld) as wrong:
        raise MoveRefused(f"{flag}: {wrong.message}") from None


def _refuse_company(flag: str, database: Database, clock: Clock) -> None:
    """Refuse to move while another process is active: its writes would be lost."""
    company = company_on(database, clock)
    if company is not None:
        raise MoveRefused(f"{flag}: {company}")


def company_on(database: Database, clock: Clock) -> str | None:
    """Return why exclusive access to the database is impossible; None = it is possible."""
    now = clock.now() + database.clock_offset(clock)
    for row in database.read(process_rows):
        if silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS:
            return (
                f"Process {row.owner} uses this database. Stop all processes first "
                f"(a killed process counts as stopped after {GONE_AFTER_SECONDS} seconds)"
            )
    return None


# ── another key ───────────────────────────────────────────────────────────────────────────────────────


# As many characters as 24 random bytes have in base64; nobody tries out that many.
_LEAST = 32
_MOST = 4_096


class RekeyRefused(HorariumError):
    """Nothing was changed."""

    reason = "rekey_refused"


@dataclass(frozen=True, slots=True)
class Rekeyed:
    """`old_key` is None where the old one came from the settings, which are not ours to change."""

    resealed: Resealed
    new_key: Path
    old_key: Path | None


def rekey(settings: Settings, new_key_file: Path | None = None, clock: Clock | None = None) -> Rekeyed:
    """Raises RekeyRefused, WrongSecretKey if this process has not the key that is in use, or KeyReplaced."""
    database = open_database(settings.database_url)
    try:
        check_exact_schema(database)
        old = _old_key(settings, database, clock or SystemClock())
        wanted = _wanted(settings, new_key_file)
        if wanted is not None and key_of(wanted).fingerprint == old.fingerprint:
            raise RekeyRefused(f"{new_key_file} contains the current key")
        text, place = _placed(settings, wanted, new_key_file)
        new = key_of(text)
        resealed = database.write(partial(_replace, old=old, new=new, now=(clock or SystemClock()).now()))
    finally:
        database.close()
    if settings.secret_key is not None:
        return Rekeyed(resealed, place, None)
    put_in_place(settings, text)
    return Rekeyed(resealed, place if place.exists() else key_file(settings), previous_key_file(settings))


def _replace(connection: Connection, *, old: InstallationKey, new: InstallationKey, now: Instant) -> Resealed:
    audit_chain.append(connection, DEFAULT_NAMESPACE, [audit_chain.local_deed(Act.SECRET_KEY_REPLACED, "cli")], now=now)
    return reseal_all(connection, _sealer(old), _sealer(new))


def _old_key(settings: Settings, database: Database, clock: Clock) -> InstallationKey:
    company = company_on(database, clock)
    if company is not None:
        raise RekeyRefused(company)
    if database.read(installation.key_fingerprint) is None:
        raise RekeyRefused("This database has no key yet, so there is none to replace")
    return installation_key(settings, database)


def _wanted(settings: Settings, given: Path | None) -> str | None:
    """The key that the operator wants; None = any new one."""
    if given is None and settings.secret_key is not None:
        raise RekeyRefused("The key comes from HORARIUM_SECRET_KEY. Pass the new one with --new-key-file")
    return None if given is None else _read_or_made(given)


def _placed(settings: Settings, wanted: str | None, given: Path | None) -> tuple[str, Path]:
    """The new key, and the file that is sure to hold it whatever happens from here on."""
    if settings.secret_key is not None and wanted is not None and given is not None:
        text, place = wanted, given
    else:
        place = next_key_file(settings)
        text = write_once(place, wanted or new_key())
        if wanted not in (None, text):
            raise RekeyRefused(
                f"{place} already contains a key that another rekey created. That rekey is still running, or it "
                "stopped before it changed any data. If no rekey is running, delete the file and try again"
            )
    _sync(place)
    return text, place


def _read_or_made(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST + 1).decode().strip()
    except FileNotFoundError:
        text = new_key()
        write_privately(path, text)
    except (OSError, ValueError) as wrong:
        why = getattr(wrong, "strerror", None) or "it is not a text file"
        raise RekeyRefused(f"--new-key-file: cannot read {str(path)!r}: {why}") from None
    if not _LEAST <= len(text) <= _MOST or "\n" in text:
        raise RekeyRefused(f"--new-key-file: the key must be one line of {_LEAST} to {_MOST} random characters")
    return text


def _sync(path: Path) -> None:
    """To the disk itself: after a power cut the database must not know a key that nobody has."""
    for each in (path, path.parent):
        descriptor = os.open(each, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sealer(key: InstallationKey) -> Sealer:
    return Sealer(key.signing, key.fingerprint)


# ── one pass ──────────────────────────────────────────────────────────────────────────────────────────


class Pass(NamedTuple):
    """`decisions` are plain rows; `broken` are the schedules that could not be planned, with the reason."""

    decisions: list[dict[str, Any]]
    broken: list[tuple[str, str]]


async def one_pass(service: Service, *, everything: bool) -> Pass:
    """`everything`: batch after batch until nothing is due."""
    engine = service.engine
    await asyncio.to_thread(service.clock.measure)
    found = Pass([], [])
    await service.registry.start()
    try:
        await asyncio.to_thread(engine.janitor.step)
        more = True
        while more:
            tick = await asyncio.to_thread(engine.ticker.patient_step)
            found.decisions.extend(row for decided in tick.decided for row in _rows(decided))
            found.broken.extend((schedule_id, error) for _, schedule_id, error in tick.parked)
            more = everything and tick.more
        while await engine.dispatcher.step() or (await asyncio.to_thread(engine.advancer.step)).total:
            pass
    finally:
        await service.registry.close()
    return found


def _rows(decided: Decided) -> Iterator[dict[str, Any]]:
    born = iter(decided.entry.runs)
    fired_at, next_due = decided.entry.counts.last_fired_at, decided.entry.position.next_due
    for decision in decided.decisions:
        run = next(born) if isinstance(decision, Fire | Hold) else None
        yield {
            "namespace": decided.namespace,
            "schedule_id": decided.schedule_id,
            "instance_id": run and instance_id(decided.schedule_id, Origin.SCHEDULED, run.nominal, id_text(run.run_id)),
            "run_id": run and id_text(run.run_id),
            **_decision_fields(decision),
            "last_fired_at": rfc3339_or_none(fired_at),
            "next_fire_at": rfc3339_or_none(next_due),
        }


def _decision_fields(decision: Decision) -> Mapping[str, Any]:
    match decision:
        case Fire(nominal):
            return {"outcome": "triggered", "occurrence_time": to_rfc3339(nominal)}
        case Hold(nominal):
            return {"outcome": "buffered", "occurrence_time": to_rfc3339(nominal)}
        case Skip(nominal, reason):
            outcome = "buffer_full" if reason is Reason.BUFFER_FULL else "skipped"
            return {"outcome": outcome, "occurrence_time": to_rfc3339(nominal), "reason": reason.value}
        case Missed(first, last, count, reason):
            return {
                "outcome": "missed",
                "occurrence_time": to_rfc3339(first),
                "last": to_rfc3339(last),
                "count": count,
                "reason": reason.value,
            }
        case _:
            assert_never(decision)
