"""The key of an installation: one for all processes on a database, from the settings or from a file of its own.

What one process signs another must recognise. The database remembers the fingerprint of the key, and a process
that has another one refuses to start, since its targets' reports would be refused later, one by one.
"""

from __future__ import annotations

import os
import secrets
from hashlib import sha256
from pathlib import Path

from horarium.errors import HorariumError
from horarium.serve.admin import make_data_dir, read_privately, write_privately
from horarium.settings import Settings
from horarium.store import installation
from horarium.store.database import Connection, Database

_BYTES = 32


class WrongSecretKey(HorariumError):
    """The database belongs to an installation with another key."""

    reason = "wrong_secret_key"


def key_file(settings: Settings) -> Path:
    return settings.data_dir / "secret.key"


def installation_key(settings: Settings, database: Database) -> bytes:
    """Raises WrongSecretKey. Where the database has none yet, one is made in the data directory."""
    configured = settings.secret_key
    text = read_privately(key_file(settings)) if configured is None else configured.get_secret_value()
    known = database.read(installation.key_fingerprint)
    if text is None:
        if known is not None:
            raise WrongSecretKey(
                "this database has a secret key, and this process has none: set HORARIUM_SECRET_KEY to the one that "
                f"the other processes have (without it `up` keeps it in {key_file(settings)})"
            )
        make_data_dir(settings)
        text = write_once(key_file(settings), secrets.token_urlsafe(_BYTES))
    mine = _fingerprint(text)
    theirs = database.write(lambda connection: _agree(connection, mine)) if known is None else known
    if theirs != mine:
        raise WrongSecretKey(
            "this process has another secret key than the processes before it on this database: set "
            "HORARIUM_SECRET_KEY to the same value everywhere"
        )
    return sha256(b"horarium:sign:" + text.encode()).digest()


def write_once(path: Path, secret: str) -> str:
    """What the file holds in the end: of two processes that start at once, one writes and both read."""
    passing = path.with_name(f"{path.name}.{os.getpid()}.new")
    write_privately(passing, secret)
    try:
        os.link(passing, path)
    except FileExistsError:
        pass
    finally:
        passing.unlink(missing_ok=True)
    return read_privately(path) or secret


def _agree(connection: Connection, mine: str) -> str:
    """Whoever is first decides."""
    installation.set_key_fingerprint(connection, mine)
    return installation.key_fingerprint(connection) or mine


def _fingerprint(text: str) -> str:
    """Tells keys apart and gives none away."""
    return sha256(b"horarium:fingerprint:" + text.encode()).hexdigest()[:16]
