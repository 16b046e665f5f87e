"""How an installation gets a new key: everything that is sealed is sealed anew, and no moment can lose the key.

The new key is on the disk before the database knows it, and takes the old one's place after that. Whoever starts in
between, or after a crash, finds both, and takes the one that the database knows.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from horarium.core.audit_entries import Act
from horarium.errors import HorariumError
from horarium.features.secrets.rows import Resealed, reseal_all
from horarium.instant import Instant
from horarium.platform.clock import Clock, SystemClock
from horarium.platform.database import Connection, Database, audit_chain, installation, open_database
from horarium.platform.database.installation import Sealer
from horarium.platform.database.schema import DEFAULT_NAMESPACE, check_exact_schema
from horarium.serve.admin import write_privately
from horarium.serve.moving import company_on
from horarium.serve.secret_key import (
    InstallationKey,
    installation_key,
    key_file,
    key_of,
    new_key,
    next_key_file,
    previous_key_file,
    put_in_place,
    write_once,
)
from horarium.settings import Settings

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
