"""How the secrets of a launch are opened: fetched together for all runs of a claim, judged one by one, kept nowhere."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from horarium.launchers.outgoing import BadAction, place_of
from horarium.life.outcome import Refused
from horarium.schedule.definition import Action
from horarium.schedule.secret_value import may_go_to, not_allowed
from horarium.store import secrets
from horarium.store.database import Connection
from horarium.store.sealing import CannotUnseal, Sealer
from horarium.store.secrets import SecretRow

Found: TypeAlias = Mapping[str, Mapping[str, SecretRow]]
"""Sealed, by namespace and name."""


def fetch(connection: Connection, wanted: Iterable[tuple[str, frozenset[str]]]) -> Found:
    """Of each namespace those that are named in it, by one query; one that is not there is not in the answer."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for namespace, named in wanted:
        if named:
            names[namespace] |= named
    return {namespace: secrets.find_all(connection, namespace, named) for namespace, named in names.items()}


def open_secrets(
    sealer: Sealer | None, action: Action, names: frozenset[str], rows: Mapping[str, SecretRow]
) -> dict[str, str] | Refused:
    """The values that a launch of this action needs, or why it cannot be launched."""
    if not names:
        return {}
    if sealer is None:
        return Refused("this process has no secret key, and cannot open the secrets of this run")
    host = host_called(action)
    values: dict[str, str] = {}
    for name in sorted(names):
        row = rows.get(name)
        if row is None:
            return Refused(f"the secret {name!r} is not set")
        if not may_go_to(row.hosts, host):
            return Refused(not_allowed(name, row.hosts, host))
        try:
            values[name] = row.unseal(sealer)
        except CannotUnseal:
            return Refused(f"the secret {name!r} cannot be opened with this installation's key; set it again")
    return values


def host_called(action: Action) -> str:
    """As the launcher will read the address; empty for what goes to no host, such as a queue."""
    url = action.target.get("url")
    try:
        return "" if url is None else place_of(url)[0].host
    except BadAction:  # which the launch will say
        return ""
