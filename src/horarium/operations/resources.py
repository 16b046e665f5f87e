"""What every operation works with: the database, the clock, the settings, and whoever counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from horarium.clock import Clock
from horarium.errors import InvalidDefinition
from horarium.instant import SECOND, Instant
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.registry import Registry
from horarium.launchers.signals import Signals
from horarium.launchers.ssrf import Guard
from horarium.launchers.webhook import WebhookSender
from horarium.life.report_token import ReportTokens
from horarium.operations.addresses import Address, NamedAddresses
from horarium.operations.caller import Caller
from horarium.operations.damages import Damages
from horarium.operations.errors import PreconditionFailed, ScheduleBroken, ScheduleNotFound
from horarium.operations.serving import LiveServices
from horarium.policy.catchup import parse as parse_catchup
from horarium.policy.names import PolicyError
from horarium.policy.overlap import parse as parse_overlap
from horarium.schedule.definition import Definition
from horarium.schedule.document import Defaults, from_canonical
from horarium.schedule.kinds import SHIPPED, Kinds
from horarium.schedule.planning import Planning
from horarium.schedule.reason import Reason
from horarium.settings import Settings
from horarium.store.database import Connection, Database
from horarium.store.database.channels import DUE
from horarium.store.quotas import QuotaBook
from horarium.store.runs.definitions import Definitions
from horarium.store.schedules import rows as schedules
from horarium.store.schedules.due import Plannings
from horarium.store.schedules.rows import ScheduleRow
from horarium.store.sealing import Sealer
from horarium.telemetry.telemetry import Telemetry

# Twice what a ticker sleeps at most, since the clocks of two processes may differ a little.
_LOOKED_AT_IN_TIME = 2 * SECOND


_POLICIES = ("overlap_policy", "catchup_policy")


class AsksAgents(Protocol):
    """Client that fetches agent cards."""

    async def check(self, namespace: str, line: AgentLine) -> CardSeen:
        """As it is now; never raises because of the agent."""


class KeptSecret(Protocol):
    """A secret that lies in a file of this machine."""

    def secret(self) -> str | None: ...
    def replace(self, secret: str) -> None:
        """Raises StoreUnavailable."""


@dataclass(frozen=True, slots=True)
class Resources:
    database: Database
    clock: Clock
    settings: Settings
    telemetry: Telemetry
    tokens: ReportTokens
    known: Plannings = field(default_factory=Plannings)
    definitions: Definitions[Definition] = field(default_factory=lambda: Definitions(from_canonical))
    sealer: Sealer | None = None
    """Seals what is kept secret; None = this process has no key, and keeps none."""
    sender: WebhookSender | None = None
    """Sends webhooks; None = this process has no way out."""
    cards: AsksAgents | None = None
    """Asks agents what they are; None = this process has no way out."""
    asking: Counter[str] = field(default_factory=Counter)
    """How many agents are being asked now, by namespace; of the event loop of the API."""
    registry: Registry | None = None
    """The launchers of this process; None = unknown, so there are no warnings."""
    elsewhere: LiveServices = field(default_factory=LiveServices)
    signals: Signals | None = None
    """Who says what signals are; None = every signal is null."""
    admin_file: KeptSecret | None = None
    """Where the first admin token lies; None = the operator has fixed another."""
    quotas: QuotaBook = field(default_factory=QuotaBook)
    damages: Damages = field(default_factory=Damages)
    guard: Guard | None = None
    """Judges addresses that a write names; None = no address is judged."""
    named: NamedAddresses | None = None
    """Collects the URLs of one request; None = the URLs are not checked."""

    def name_addresses(self, kind: str, name: str, addresses: Iterable[Address]) -> None:
        """Have these judged after the write of this object."""
        if self.named is not None:
            self.named.add(kind, name, addresses)

    @property
    def kinds(self) -> Kinds:
        """The kinds of action that somebody may ask for: what this server speaks."""
        return SHIPPED if self.registry is None else self.registry.kinds

    def kinds_for(self, namespace: str) -> Kinds:
        """Those that this namespace may ask for."""
        return SHIPPED if self.registry is None else self.registry.kinds_for(namespace)

    def defaults(self) -> Defaults:
        """Raises InvalidDefinition for a setting that names no policy."""
        chosen = self.settings.model_fields_set
        try:
            return Defaults(
                overlap_policy=parse_overlap(self.settings.default_overlap_policy, "default_overlap_policy"),
                catchup_policy=parse_catchup(self.settings.default_catchup_policy, "default_catchup_policy"),
                jitter_ms=self.settings.default_jitter_ms,
                max_catchup=self.settings.default_max_catchup,
                misfire_grace_seconds=self.settings.misfire_grace_seconds,
                chosen=frozenset(name for name in _POLICIES if f"default_{name}" in chosen),
            )
        except PolicyError as wrong:
            raise InvalidDefinition({wrong.field: [wrong.text]}) from None


@dataclass(frozen=True, slots=True)
class Opened:
    """A schedule under lock. `planning` is what could not be compiled, where it could not."""

    row: ScheduleRow
    planning: Planning | Exception
    now: Instant
    signals: Signals | None = None

    @property
    def sound(self) -> Planning:
        """For what makes no sense without a plan."""
        if isinstance(self.planning, Exception):
            raise ScheduleBroken(f"{self.row.schedule_id!r} has an invalid definition: {self.planning}")
        return self.planning


def not_found(resources: Resources, connection: Connection, caller: Caller, schedule_id: str) -> ScheduleNotFound:
    """One whose runs are used up was deleted by us, and says so."""
    row = schedules.find_newest(connection, caller.namespace, schedule_id)
    if row is None:
        return ScheduleNotFound(schedule_id)
    planning = resources.known.load(connection, [row.planning])[row.planning]
    spent = _is_exhausted(row, planning)
    return ScheduleNotFound(schedule_id, Reason.REMAINING_ACTIONS_EXHAUSTED if spent else "it was deleted")


def _is_exhausted(row: ScheduleRow, planning: Planning | Exception) -> bool:
    most = None if isinstance(planning, Exception) else planning.max_runs
    return most is not None and row.runs_born >= most


def wake_tickers(resources: Resources, connection: Connection, next_due: Instant | None) -> None:
    """Only for what is due before they would look by themselves, which they do once a second."""
    if next_due is not None and next_due <= resources.clock.now() + _LOOKED_AT_IN_TIME:
        resources.database.notify(connection, DUE)


def open_schedule(
    resources: Resources, connection: Connection, caller: Caller, schedule_id: str, *, if_version: int | None = None
) -> Opened:
    """Locked until the transaction ends; the clock is asked after the wait, so that history stays in order."""
    row = schedules.find(connection, caller.namespace, schedule_id, lock=True)
    if row is None:
        raise not_found(resources, connection, caller, schedule_id)
    if if_version is not None and row.version != if_version:
        raise PreconditionFailed(if_version, row.version)
    planning = resources.known.load(connection, [row.planning])[row.planning]
    return Opened(row, planning, resources.clock.now(), resources.signals)


def open_exhausted(resources: Resources, connection: Connection, caller: Caller, schedule_id: str) -> Opened | None:
    """Lock the newest schedule of an id if `max_runs` has deleted it."""
    newest = schedules.find_newest(connection, caller.namespace, schedule_id)
    if newest is None or newest.deleted_at is None:
        return None
    row = schedules.find_by_uid(connection, caller.namespace, newest.schedule_uid, lock=True)
    planning = resources.known.load(connection, [newest.planning])[newest.planning]
    if row is None or not _is_exhausted(row, planning):
        return None
    return Opened(row, planning, resources.clock.now(), resources.signals)
