"""How the secrets of a launch are opened: fetched together for all runs of a claim, judged one by one, kept nowhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from horarium.launchers.outgoing import destination_of
from horarium.life.outcome import Refused
from horarium.schedule.damage import unreadable_of
from horarium.schedule.definition import Action
from horarium.schedule.secret_value import may_go_to, not_allowed
from horarium.store import secrets
from horarium.store.database import Connection
from horarium.store.sealing import CannotUnseal, Sealer
from horarium.store.secrets import SecretRow

# A statement takes only so many values.
_AT_ONCE = 1_000
MAX_CHARACTERS = 262_144
"""Maximum characters of all secrets of one launch. Every launch in flight holds its own."""

Found: TypeAlias = Mapping[str, Mapping[str, SecretRow]]
"""Encrypted secrets by namespace and name."""


def fetch(connection: Connection, wanted: Iterable[tuple[str, frozenset[str]]]) -> Found:
    """Fetch named secrets of each namespace by one query or a few; missing ones are left out."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for namespace, named in wanted:
        if named:
            names[namespace] |= named
    return {namespace: _find(connection, namespace, sorted(named)) for namespace, named in names.items()}


def _find(connection: Connection, namespace: str, names: Sequence[str]) -> dict[str, SecretRow]:
    found: dict[str, SecretRow] = {}
    for first in range(0, len(names), _AT_ONCE):
        found |= secrets.find_listed(connection, namespace, names[first : first + _AT_ONCE])
    return found


def open_secrets(
    sealer: Sealer | None,
    action: Action,
    names: frozenset[str],
    rows: Mapping[str, SecretRow],
    url: str | None = None,
) -> dict[str, str] | Refused:
    """Open the values that a launch of this action needs, or say why it cannot be launched.

    `url` is where it goes; None = to the address that stands in the action.
    """
    if not names:
        return {}
    if sealer is None:
        return Refused("This process has no secret key and cannot decrypt the secrets of this run")
    destination = destination_of(action.target.get("url") if url is None else url)
    values: dict[str, str] = {}
    for name in sorted(names):
        row = rows.get(name)
        if row is None:
            return Refused(f"Secret {name!r} does not exist")
        unreadable = unreadable_of(row)
        if unreadable is not None:
            return Refused(f"Secret {name!r} cannot be read ({unreadable.detail}). Set it again")
        if not may_go_to(row.hosts, destination):
            return Refused(not_allowed(name, row.hosts, destination))
        try:
            values[name] = row.unseal(sealer)
        except CannotUnseal:
            return Refused(f"Secret {name!r} cannot be decrypted with this installation's key. Set it again")
    if sum(map(len, values.values())) > MAX_CHARACTERS:
        return Refused(f"The secrets of this run exceed {MAX_CHARACTERS} characters in total")
    return values


def pins_of(names: frozenset[str], rows: Mapping[str, SecretRow]) -> tuple[tuple[str, ...], ...]:
    """Return the pins of each of these secrets that has any: what carries them goes only where all allow it."""
    found = (rows[name].hosts for name in sorted(names) if name in rows)
    return tuple(tuple(hosts) for hosts in found if hosts is not None)
