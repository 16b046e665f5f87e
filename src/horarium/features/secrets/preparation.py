"""Secrets of launches: named by the runs of a claim, fetched together, and opened one run at a time.

An opened secret is not stored, and goes only to its allowed hosts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from horarium.core.document.checks import SECRET_KINDS, names_in
from horarium.core.document.definition import Action, RunDefinition
from horarium.core.document.json_values import unreadable_of
from horarium.core.document.secret_values import may_go_to, not_allowed
from horarium.core.lifecycle.outcome import Refused
from horarium.features.runs.preparation import CompleteLaunch, LaunchDraft, inputs_of
from horarium.features.runs.work_rows import RunWork
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretRow
from horarium.launchers.requests import destination_of
from horarium.platform.database import Connection
from horarium.platform.database.installation import CannotUnseal, Sealer

# A statement takes only so many values.
_AT_ONCE = 1_000
MAX_CHARACTERS = 262_144
"""Maximum characters of all secrets of one launch. Every launch in flight holds its own."""
_NO_ROWS: Final[Mapping[str, SecretRow]] = MappingProxyType({})

FoundSecrets: TypeAlias = Mapping[str, Mapping[str, SecretRow]]
"""Encrypted secrets by namespace and name."""


class SecretPreparer:
    """Give each launch its sealed secrets. `credentials` names those that another preparer opens: one query has all."""

    def __init__(self, sealer: Sealer | None, credentials: Callable[[RunWork], frozenset[str]]) -> None:
        self._sealer = sealer
        self._credentials = credentials

    def needed(self, draft: LaunchDraft) -> bool:
        return draft.definition.action.kind in SECRET_KINDS or bool(self._credentials(draft.work))

    def load(self, connection: Connection, drafts: Sequence[LaunchDraft]) -> CompleteLaunch:
        named = {draft.work.run_id: named_secrets(draft.work, draft.definition) for draft in drafts}
        wanted = [(draft.work.namespace, named[draft.work.run_id]) for draft in drafts]
        tokens = {(draft.work.namespace, self._credentials(draft.work)) for draft in drafts}
        found = fetch_secrets(connection, [*wanted, *tokens])

        def complete(draft: LaunchDraft) -> None:
            work, definition = draft.work, draft.definition
            names = named.get(work.run_id)
            if names is None:
                names = named_secrets(work, definition)
            rows = found.get(work.namespace, _NO_ROWS)
            if names or rows:
                draft.secrets = _SecretsOfRun(self._sealer, definition.action, names, rows)

        return complete


@dataclass(frozen=True, slots=True)
class _SecretsOfRun:
    """`rows` are those of the namespace that the batch names, `names` those of this action and its inputs."""

    sealer: Sealer | None
    action: Action
    names: frozenset[str]
    rows: Mapping[str, SecretRow]

    def pins(self) -> tuple[tuple[str, ...], ...]:
        """Return the pins of each of these secrets that has any: what carries them goes only where all allow it."""
        found = (self.rows[name].hosts for name in sorted(self.names) if name in self.rows)
        return tuple(tuple(hosts) for hosts in found if hosts is not None)

    def open(self, url: str | None) -> dict[str, str] | Refused:
        return open_secrets(self.sealer, self.action, self.names, self.rows, url)


def named_secrets(work: RunWork, definition: RunDefinition | Exception) -> frozenset[str]:
    """The names of the secrets that its launch needs; of what cannot be read there is no launch."""
    if isinstance(definition, Exception) or definition.action.kind not in SECRET_KINDS:
        return frozenset()
    try:
        return names_in(definition.action, inputs_of(work, definition))
    except (ValueError, RecursionError):  # its own inputs are no JSON, which the request will say
        return frozenset()


def fetch_secrets(connection: Connection, wanted: Iterable[tuple[str, frozenset[str]]]) -> FoundSecrets:
    """Fetch named secrets of each namespace by one query or a few; missing ones are left out."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for namespace, named in wanted:
        if named:
            names[namespace] |= named
    return {namespace: _find(connection, namespace, sorted(named)) for namespace, named in names.items()}


def _find(connection: Connection, namespace: str, names: Sequence[str]) -> dict[str, SecretRow]:
    found: dict[str, SecretRow] = {}
    for first in range(0, len(names), _AT_ONCE):
        found |= secret_rows.find_listed(connection, namespace, names[first : first + _AT_ONCE])
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
