"""The key of an installation: one for all processes on a database, from the settings or from a file of its own.

What one process signs another must recognise, and what one seals another must open. The database remembers the
fingerprint of the key, and a process that has another one refuses to start, since its targets' reports would be
refused later, one by one.

| file | holds |
|---|---|
| `secret.key` | the key |
| `secret.key.new` | the next one, from before it is in use until it has taken the other's place |
| `secret.key.previous` | the one before, for backups that are older than the change |
"""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from horarium.errors import HorariumError
from horarium.serve.admin import make_data_dir, read_privately, write_privately
from horarium.settings import Settings
from horarium.store import installation
from horarium.store.database import Connection, Database
from horarium.store.errors import StoreUnavailable

_BYTES = 32


class WrongSecretKey(HorariumError):
    """The database belongs to an installation with another key."""

    reason = "wrong_secret_key"


@dataclass(frozen=True, slots=True)
class InstallationKey:
    """Key that signs and seals. `previous` keys only verify what they have signed.

    `fingerprint` is how the database knows the key; None = it does not.
    """

    signing: bytes = field(repr=False)
    fingerprint: str | None = None
    previous: tuple[bytes, ...] = field(default=(), repr=False)


def key_file(settings: Settings) -> Path:
    return settings.data_dir / "secret.key"


def next_key_file(settings: Settings) -> Path:
    return settings.data_dir / "secret.key.new"


def previous_key_file(settings: Settings) -> Path:
    return settings.data_dir / "secret.key.previous"


def new_key() -> str:
    return secrets.token_urlsafe(_BYTES)


def installation_key(settings: Settings, database: Database) -> InstallationKey:
    """Raises WrongSecretKey. Where the database has none yet, one is made in the data directory."""
    known = database.read(installation.key_fingerprint)
    text = known_key(settings, known)
    if text is None:
        if known is not None:
            raise WrongSecretKey(
                "This database is encrypted with a secret key, but this process has none. Set HORARIUM_SECRET_KEY to "
                f"the key of the other processes. If `horarium up` created the key, it is in {key_file(settings)}"
            )
        make_data_dir(settings)
        text = write_once(key_file(settings), new_key())
    mine = fingerprint(text)
    theirs = database.write(lambda connection: _agree(connection, mine)) if known is None else known
    if theirs != mine:
        raise WrongSecretKey(
            "The secret key of this process differs from the key of this database. Set HORARIUM_SECRET_KEY "
            "to the same value in all processes (to the new key after a rekey)"
        )
    before = settings.secret_key_previous
    return key_of(text, () if before is None else (before.get_secret_value(),))


def key_of(text: str, previous: tuple[str, ...] = ()) -> InstallationKey:
    return InstallationKey(_signing(text), fingerprint(text), tuple(map(_signing, previous)))


def known_key(settings: Settings, known: str | None) -> str | None:
    """The key that this process was given; None = none. `known` is the fingerprint of the one that is in use.

    A change of keys that ended between the database and the files is brought to its end here.
    """
    if settings.secret_key is not None:
        return settings.secret_key.get_secret_value()
    following = read_privately(next_key_file(settings))
    if following is not None and fingerprint(following) == known:
        put_in_place(settings, following)
        return following
    return read_privately(key_file(settings))


def put_in_place(settings: Settings, key: str) -> None:
    """The next key becomes the key, and the one before is kept; several processes may do this at once."""
    before = read_privately(key_file(settings))
    # Another process was faster, or the directory cannot be written: the key is good where it is.
    with suppress(OSError, StoreUnavailable):
        if before is not None and before != key:
            write_privately(previous_key_file(settings), before)
        next_key_file(settings).replace(key_file(settings))


def write_once(path: Path, secret: str) -> str:
    """Write a file once and return its contents: of two processes that start at once, one writes and both read."""
    passing = path.with_name(f"{path.name}.{os.getpid()}.new")
    write_privately(passing, secret)
    try:
        os.link(passing, path)
    except FileExistsError:
        pass
    finally:
        passing.unlink(missing_ok=True)
    return read_privately(path) or secret


def fingerprint(text: str) -> str:
    """Tells keys apart and gives none away."""
    return sha256(b"horarium:fingerprint:" + text.encode()).hexdigest()[:16]


def _agree(connection: Connection, mine: str) -> str:
    """Whoever is first decides."""
    installation.set_key_fingerprint(connection, mine)
    return installation.key_fingerprint(connection) or mine


def _signing(text: str) -> bytes:
    return sha256(b"horarium:sign:" + text.encode()).digest()
