"""When credentials that an earlier version stored in plain are moved: by the first process that has the key."""

from __future__ import annotations

from contextlib import suppress

from horarium.clock import Clock
from horarium.serve.secret_key import InstallationKey, WrongSecretKey, installation_key, known_key
from horarium.settings import Settings
from horarium.store import installation, plain_credentials
from horarium.store.database import Database
from horarium.store.sealing import Sealer


def move_at_start(database: Database, key: InstallationKey, clock: Clock) -> int:
    """How many rows held some."""
    return plain_credentials.move(database, Sealer(key.signing, key.fingerprint), clock)


def move_with_known_key(settings: Settings, database: Database, clock: Clock) -> bool:
    """Whether nothing is left in plain. Who migrates need not have the key, and must not make one for the others."""
    if plain_credentials.are_moved(database):
        return True
    with suppress(WrongSecretKey):
        if known_key(settings, database.read(installation.key_fingerprint)) is not None:
            move_at_start(database, installation_key(settings, database), clock)
    return plain_credentials.are_moved(database)
