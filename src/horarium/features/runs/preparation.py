"""Protocols of what a run needs before its launch, implemented by the features that supply it.

The claimer of the engine is given `Preparers` by the composition root and knows no feature behind them. A preparer
loads the rows of a whole batch with one query for each kind of row, and then completes or refuses each launch alone.
Limits that hold for all processes together are counted by a `PlaceCounter`. Runs without a launcher are started by a
`RunStarter` in the transaction that claims them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from horarium.core.document.definition import RunDefinition, agent_in
from horarium.core.document.json_values import Json
from horarium.core.document.reader import PROMPT
from horarium.core.lifecycle.outcome import Refused
from horarium.core.policy.queue import inputs_for
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.transition_rows import RecordedChange
from horarium.features.runs.work_rows import ClaimCandidate, ReadyTarget, RunWork, TargetPlaces
from horarium.instant import Instant
from horarium.launchers.launcher import AgentLine
from horarium.platform.database import Connection
from horarium.platform.database.installation import Sealer


def inputs_of(work: RunWork, definition: RunDefinition) -> Json:
    """Return the inputs as they are stored: encoded, and with the names of secrets."""
    if work.inputs is not None:
        return json.loads(work.inputs)
    return inputs_for(definition.action.input, definition.inputs_rotation, work.rotation_index or 0)


def agent_of(work: RunWork) -> str | None:
    """Agent of a prompt; None for any other run, and for a prompt without an agent."""
    return agent_in(work.target) if work.kind == PROMPT.name else None


# ── launches ─────────────────────────────────────────────────────────────────────────────────────────


class SealedSecret(Protocol):
    """A stored secret and the hosts that it may be sent to, None = any."""

    @property
    def name(self) -> str: ...
    @property
    def hosts(self) -> tuple[str, ...] | None: ...
    def unseal(self, sealer: Sealer, /) -> str: ...


class SealedSecrets(Protocol):
    """The secrets that a launch may carry. They stay sealed until its destination is known."""

    @property
    def rows(self) -> Mapping[str, SealedSecret]: ...
    def pins(self) -> tuple[tuple[str, ...], ...]:
        """Return the hosts of each secret in the action or its inputs that has any."""

    def open(self, url: str | None) -> Mapping[str, str] | Refused:
        """Open the secrets of the action and its inputs; `url` None = to the address in the action."""


@dataclass(slots=True, eq=False)
class LaunchDraft:
    """A launch that preparers complete. `confided` are texts, besides secrets, that no result may repeat."""

    work: RunWork
    definition: RunDefinition
    secrets: SealedSecrets | None = None
    answer: str | None = None
    confided: tuple[str, ...] = ()
    agent: AgentLine | None = None


CompleteLaunch: TypeAlias = Callable[[LaunchDraft], Refused | None]
"""Add to a launch what was loaded for it, or return why it is refused."""


class Preparer(Protocol):
    """One kind of rows that launches need."""

    def needed(self, draft: LaunchDraft, /) -> bool:
        """Tell whether this launch needs any of them."""

    def load(self, connection: Connection, drafts: Sequence[LaunchDraft], /) -> CompleteLaunch:
        """Load the rows of all launches that need them; without launches, make no query.

        What is returned may complete other launches, too: as if their rows did not exist.
        """


# ── places ───────────────────────────────────────────────────────────────────────────────────────────


class PlaceCounter(Protocol):
    """Free places at targets of one kind, counted in the database for all processes together."""

    def needed(self, target: ReadyTarget, /) -> bool:
        """Tell whether runs of this target need a place."""

    def read(self, connection: Connection, targets: Sequence[ReadyTarget], /) -> Mapping[ReadyTarget, TargetPlaces]:
        """Count without a lock."""

    def unmarked(self, connection: Connection, full: Sequence[ReadyTarget], now: Instant, /) -> list[ReadyTarget]:
        """Return the targets with waiting runs that have no record of the time since when they wait."""

    def mark(self, connection: Connection, targets: Sequence[ReadyTarget], now: Instant, most: int) -> None:
        """Record that time, for up to `most` runs of each target."""

    def lock(self, connection: Connection, targets: Sequence[ReadyTarget], /) -> Mapping[ReadyTarget, TargetPlaces]:
        """Count under a lock that lasts until the transaction ends; targets that others have locked are missing."""

    def followed(
        self, connection: Connection, targets: Sequence[ReadyTarget], now: Instant, most: int, /
    ) -> list[ClaimCandidate]:
        """Lock runs that their target may already have: to continue them needs no place."""


# ── runs without a launcher ──────────────────────────────────────────────────────────────────────────


class StartedRuns(NamedTuple):
    """`refused` are runs that can never begin, with the reason."""

    begun: list[RecordedChange]
    refused: dict[bytes, str]


class RunStarter(Protocol):
    """Runs of one kind that the service itself executes."""

    @property
    def kind(self) -> str: ...
    def targets(self, connection: Connection, ready: Iterable[ReadyTarget], /) -> Collection[ReadyTarget]:
        """Return the targets whose runs it starts now."""

    def needed(self, work: RunWork, /) -> bool:
        """Tell whether it starts this run whatever its target is now."""

    def start(
        self, connection: Connection, works: Sequence[RunWork], definitions: Definitions[RunDefinition], now: Instant, /
    ) -> StartedRuns: ...


class Preparers(NamedTuple):
    """All that claimed runs may need; `launches` are applied in order, so a later one sees what earlier ones added."""

    launches: Sequence[Preparer] = ()
    places: Sequence[PlaceCounter] = ()
    starters: Sequence[RunStarter] = ()
