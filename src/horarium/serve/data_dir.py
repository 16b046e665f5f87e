"""Files of a data directory: the admin token, the address of the server, the lock, and the secret key.

The admin token of the first caller is created once, readable only by the owner of the file. There is one such token:
a new one, created because the file is lost or does not open this database, revokes the previous one, which may have
leaked.

The address of a running server is in a small file. Command lines on the same machine read it, and take the token
from the file next to it. The process that wrote the file removes it when it ends: another process may use the
address later and must not get the token.

All processes on a database have the same secret key, from the settings or from a file, because each verifies and
opens what another one has signed and sealed. The database stores the fingerprint of the key, and a process with
another key does not start, since reports of its targets would be refused later, one by one.

| file                  | content                                                             |
|-----------------------|---------------------------------------------------------------------|
| `secret.key`          | the key                                                             |
| `secret.key.new`      | the next key, until it is in use and has replaced the other         |
| `secret.key.previous` | the previous key, for backups that are older than the change        |
"""

from __future__ import annotations

import errno
import fcntl
import ipaddress
import json
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote, urlsplit

from horarium.core.audit_entries import Act
from horarium.errors import HorariumError
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import Instant
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database, audit_chain, installation
from horarium.platform.database.errors import StoreUnavailable
from horarium.platform.database.schema import DEFAULT_NAMESPACE
from horarium.platform.ids import id_text
from horarium.platform.settings import Settings

# ── admin token ───────────────────────────────────────────────────────────────────────────────────────


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


# ── address ───────────────────────────────────────────────────────────────────────────────────────────


def address_file(settings: Settings) -> Path:
    return settings.data_dir / "server.json"


@contextmanager
def addressed(settings: Settings, url: str) -> Iterator[None]:
    """Publish the address of the server; of several with one data directory the last one is found."""
    # Two containers with one volume may have the same url and pid.
    text = json.dumps({"url": reachable(url), "pid": os.getpid(), "instance": secrets.token_hex(8)})
    path = _write_address(settings, text)
    try:
        yield
    finally:
        if path is not None and read_privately(path) == text:
            with suppress(OSError):
                path.unlink()


def _write_address(settings: Settings, text: str) -> Path | None:
    """None where nothing can be written: such a server is asked from elsewhere, and works all the same."""
    path = address_file(settings)
    try:
        make_data_dir(settings)
        write_privately(path, text)
    except StoreUnavailable:
        return None
    return path


def browser_address(url: str, base: str, code: str | None) -> str:
    """The browser interface. A code stands behind `#`, which a browser never sends: the page exchanges it."""
    return f"{reachable(url)}{base}/ui/" + ("" if code is None else f"#token={quote(code, safe='')}")


def reachable(url: str) -> str:
    """One that listens everywhere is reached on this machine by loopback."""
    parts = urlsplit(url)
    try:
        address = ipaddress.ip_address(parts.hostname or "")
    except ValueError:
        return url
    if not address.is_unspecified:
        return url
    return f"{parts.scheme}://{'127.0.0.1' if address.version == 4 else '[::1]'}:{parts.port}"


# ── lock ──────────────────────────────────────────────────────────────────────────────────────────────


LOCK_FILE = "up.lock"
# An owner writes its pid at once; until then the file is empty or names a process that is gone.
_READS, _READ_AGAIN_SECONDS = 5, 0.02
_HELD = frozenset({errno.EACCES, errno.EAGAIN})


class DataDirInUse(HorariumError):
    """Another `up` owns the data directory."""

    reason = "data_dir_in_use"


@contextmanager
def owned(settings: Settings) -> Iterator[None]:
    """Hold the data directory until the block is left; raises DataDirInUse.

    The system ends a POSIX lock with its process, however that ends, and a child that outlives it does not inherit
    the lock. The pid in the file is only shown: a reused one refuses nothing. The file stays, because another process
    may be about to lock it.
    """
    descriptor = _locked(settings)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(settings: Settings) -> int | None:
    """None where nothing can be written or locked, as on a read-only file system: the service works without."""
    path = settings.data_dir / LOCK_FILE
    try:
        make_data_dir(settings)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except (OSError, StoreUnavailable):
        return None
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    except OSError as wrong:
        os.close(descriptor)
        if wrong.errno in _HELD:
            raise DataDirInUse(_refusal(settings, path)) from None
        return None
    return descriptor


def _refusal(settings: Settings, path: Path) -> str:
    for _ in range(_READS):
        if (pid := _living(path)) is not None:
            break
        time.sleep(_READ_AGAIN_SECONDS)
    who = "another process" if pid is None else f"process {pid}"
    return f"The data directory {settings.data_dir} is in use by {who}. Stop it, or choose another --data-dir"


def _living(path: Path) -> int | None:
    """None where the owner has not written its pid yet, or runs where this process cannot see it, as in a container."""
    try:
        pid = int(path.read_text("ascii"))
        os.kill(pid, 0)
    except PermissionError:  # alive, and another user's
        return pid
    except (OSError, ValueError, OverflowError):
        return None
    return pid


# ── secret key ────────────────────────────────────────────────────────────────────────────────────────


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
