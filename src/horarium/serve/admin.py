"""How the first caller gets in: an admin token, made once and left where only its owner can read it."""

from __future__ import annotations

import os
from pathlib import Path

from horarium.audit import Act
from horarium.clock import Clock
from horarium.ids import id_text
from horarium.settings import Settings
from horarium.store import audit, tokens
from horarium.store.database import Connection, Database
from horarium.store.errors import StoreUnavailable
from horarium.store.migrate import DEFAULT_NAMESPACE

ADMIN = "admin"


def token_file(settings: Settings) -> Path:
    return settings.data_dir / "admin.token"


def make_data_dir(settings: Settings) -> None:
    """Nobody else may look into it: it holds the database and the token."""
    try:
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as wrong:
        raise StoreUnavailable(f"the data directory {settings.data_dir} cannot be made: {wrong.strerror}") from wrong


def seed_admin_token(settings: Settings, database: Database, clock: Clock) -> Path | None:
    """Where the token is; None when the operator has fixed it (`HORARIUM_TOKEN`), which is written nowhere.

    A file that is already there is kept as long as it opens this database.
    """
    if settings.token is not None:
        return None
    make_data_dir(settings)
    path = token_file(settings)
    now = clock.now()
    known = read_privately(path)
    if known is not None and database.read(lambda c: tokens.find_by_secret(c, known, now=now)) is not None:
        return path

    def issue(connection: Connection) -> tokens.IssuedToken:
        made = tokens.issue(connection, namespace=DEFAULT_NAMESPACE, name="first start", role=ADMIN, now=now)
        told = audit.local_deed(Act.ADMIN_TOKEN_MADE, "service", token_id=id_text(made.token_id))
        audit.append(connection, DEFAULT_NAMESPACE, [told], now=now)
        return made

    write_privately(path, database.write(issue).secret)
    return path


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
        raise StoreUnavailable(f"{path} cannot be written: {wrong.strerror}") from wrong
