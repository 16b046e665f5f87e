"""How the first caller gets in: an admin token, made once and left where only its owner can read it.

There is one such token: whoever makes another, because the file is lost or does not open this database, ends the one
before, which may be in the wrong hands.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

from horarium.core.audit_entries import Act
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import Instant
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database, audit_chain
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.ids import id_text
from horarium.settings import Settings

ADMIN = "admin"
"""Role and principal of the token."""
FIRST = "first start"
# Of several processes that start at once with one data directory, the last one to make a token has the last word.
_TRIES = 3


def token_file(settings: Settings) -> Path:
    return settings.data_dir / "admin.token"


def make_data_dir(settings: Settings) -> None:
    """Nobody else may look into it: it holds the database and the token."""
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as wrong:
        raise StoreUnavailable(f"Cannot create the data directory {settings.data_dir}: {wrong.strerror}") from wrong


def seed_admin_token(settings: Settings, database: Database, clock: Clock) -> Path | None:
    """Where the token is; None when the operator has fixed it (`HORARIUM_TOKEN`), which is written nowhere.

    A file that is already there is kept as long as it opens this database.
    """
    if settings.token is not None:
        return None
    make_data_dir(settings)
    path = token_file(settings)
    for _ in range(_TRIES):
        if _opens(database, read_privately(path), clock):
            break
        write_privately(path, database.write(partial(_another, now=clock.now())).secret)
    return path


def _opens(database: Database, secret: str | None, clock: Clock) -> bool:
    now = clock.now()
    row = None if secret is None else database.read(lambda c: tenant_rows.find_token_by_secret(c, secret, now=now))
    return row is not None


def _another(connection: Connection, *, now: Instant) -> tenant_rows.NewToken:
    tenant_rows.revoke_named_token(connection, DEFAULT_NAMESPACE, FIRST, now=now)
    made = tenant_rows.issue_token(
        connection, namespace=DEFAULT_NAMESPACE, name=FIRST, role=ADMIN, subject=ADMIN, now=now
    )
    told = audit_chain.local_deed(Act.ADMIN_TOKEN_MADE, "service", token_id=id_text(made.token_id))
    audit_chain.append(connection, DEFAULT_NAMESPACE, [told], now=now)
    return made


class AdminTokenFile:
    """The token that lies on this machine, for those who renew it elsewhere."""

    def __init__(self, settings: Settings) -> None:
        self._path = token_file(settings)

    def secret(self) -> str | None:
        return read_privately(self._path)

    def replace(self, secret: str) -> None:
        """Raises StoreUnavailable."""
        write_privately(self._path, secret)


def read_privately(path: Path) -> str | None:
    try:
        return path.read_text("utf-8").strip() or None
    except (OSError, UnicodeError):
        return None


def write_privately(path: Path, secret: str) -> None:
    """Made with its mode, then renamed: at no moment is there a file that others can read, or half of one."""
    passing = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        passing.unlink(missing_ok=True)
        descriptor = os.open(passing, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(secret + "\n")
        passing.replace(path)
    except OSError as wrong:
        raise StoreUnavailable(f"Cannot write {path}: {wrong.strerror}") from wrong
