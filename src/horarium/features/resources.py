"""Resources of all operations: database, clock, settings, telemetry. Warnings about damaged rows and addresses."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from horarium.core.decision.presence import GONE_AFTER_SECONDS, silent_seconds
from horarium.core.document.assignee import Assignee, AssigneeType, workers_of
from horarium.core.document.definition import Action, Definition
from horarium.core.document.document import Defaults, from_canonical
from horarium.core.document.planning import Planning
from horarium.core.document.reader import PROMPT, SHIPPED, Kinds
from horarium.core.document.states import Reason
from horarium.core.lifecycle.outcome import ReportTokens
from horarium.core.policy.queue import PolicyError
from horarium.core.policy.queue import parse_catchup_policy as parse_catchup
from horarium.core.policy.queue import parse_overlap_policy as parse_overlap
from horarium.errors import InvalidDefinition
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import PolicyDocuments, TeamTurn
from horarium.features.runs.definition_rows import Definitions
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.due_rows import Plannings
from horarium.features.schedules.rows import ScheduleRow
from horarium.features.tenants.rows import QuotaBook
from horarium.instant import SECOND, Instant
from horarium.launchers.launcher import AgentLine, CardSeen
from horarium.launchers.registry import Registry, Served, read_served
from horarium.launchers.requests import BadAction, place_of
from horarium.launchers.resolver import numeric_address
from horarium.launchers.signals import Signals
from horarium.launchers.ssrf import AddressForbidden, AddressGuard, Permitted
from horarium.launchers.webhook import WebhookSender
from horarium.platform.caller import Caller
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.installation import Sealer
from horarium.platform.database.processes import process_rows
from horarium.platform.database.wakeups import DUE
from horarium.platform.errors import PreconditionFailed, ScheduleBroken, ScheduleNotFound
from horarium.platform.settings import Settings
from horarium.platform.telemetry.telemetry import Telemetry

# A memo, not a store: whoever damages a million rows has other troubles than to be told twice.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Damages:
    _told: set[tuple[str, str]] = field(default_factory=set)

    def tell(self, telemetry: Telemetry, what: str, name: str, why: str, **about: str) -> None:
        """Log a row under its `name`; `about` are the namespace, schedule and run that it belongs to."""
        if (what, name) in self._told:
            return
        if len(self._told) >= _MOST:
            self._told.clear()
        self._told.add((what, name))
        telemetry.metrics.unreadable_rows.inc()
        telemetry.log.error("stored_row_unreadable", what=what, name=name, **about, why=why)


class LiveServices:
    """Targets that live processes can launch. They are read once a second at most and serve for warnings."""

    def __init__(self) -> None:
        self._read_at: Instant | None = None
        self._found: tuple[Served, ...] = ()

    def load(self, connection: Connection, now: Instant) -> tuple[Served, ...]:
        if self._read_at is None or not 0 <= now - self._read_at < SECOND:
            alive = [row for row in process_rows(connection) if silent_seconds(row.beat_at, now) <= GONE_AFTER_SECONDS]
            self._found, self._read_at = tuple(read_served(row.process.serves) for row in alive), now
        return self._found


SECONDS: Final = 1.0
MOST: Final = 100
"""Hosts that one request resolves; a bundle may name thousands."""


class Address(NamedTuple):
    """`path` is the field that names it, `whose` the agent that has it; None = the action itself."""

    path: str
    url: str
    whose: str | None = None


@dataclass(frozen=True, slots=True)
class Called:
    """Warnings about the addresses that an action calls, and the addresses that are resolved later."""

    warnings: tuple[str, ...] = ()
    addresses: tuple[Address, ...] = ()


class Named(NamedTuple):
    """An address with the kind and name of the object that names it."""

    kind: str
    name: str
    address: Address


@dataclass(slots=True)
class NamedAddresses:
    """Those of one request. A transaction that is repeated names them again."""

    found: dict[Named, None] = field(default_factory=dict)

    def add(self, kind: str, name: str, addresses: Iterable[Address]) -> None:
        self.found.update((Named(kind, name, each), None) for each in addresses)


def called_by(
    action: Action,
    assignee: Assignee | None,
    speakers: PolicyDocuments | None,
    namespace: str,
    *,
    action_path: str = "action",
    assignee_path: str = "assignee_id",
    needs_assignee: bool = True,
) -> Called:
    """`needs_assignee`: nobody else names one later."""
    url = action.target.get("url")
    if isinstance(url, str):
        return Called(addresses=(Address(f"{action_path}.url", url),))
    if action.kind != PROMPT.name:
        return Called()
    if assignee is None:
        said = f"{assignee_path}: is required for a prompt (agent or team); without it, runs end in state launch_failed"
        return Called((said,) if needs_assignee else ())
    agents = [] if speakers is None else _agents(speakers, namespace, assignee)
    return Called(
        tuple(
            f"{assignee_path}: the agent {each.agent_id!r} has no URL; its prompts end in state launch_failed"
            for each in agents
            if each.url is None
        ),
        tuple(Address(assignee_path, each.url, each.agent_id) for each in agents if each.url is not None),
    )


def _agents(speakers: PolicyDocuments, namespace: str, assignee: Assignee) -> list[AgentDefinition]:
    """Those that may be sent; what is not there or cannot be read is reported elsewhere."""
    names: Sequence[str] = (assignee.id,)
    if assignee.type is AssigneeType.TEAM:
        team = speakers.teams.get((namespace, assignee.id))
        names = workers_of(team.team) if isinstance(team, TeamTurn) else ()
    found = (speakers.agents.get((namespace, name)) for name in names)
    return [each for each in found if isinstance(each, AgentDefinition)]


async def judge(
    guard: AddressGuard, namespace: str, named: Iterable[Named], *, resolves: bool, seconds: float = SECONDS
) -> list[tuple[Named, str]]:
    """Warn of addresses that may not be called or have no host, within `seconds` for all of them.

    Without `resolves` only hosts that are addresses themselves are judged.
    """
    places: dict[tuple[str, int], list[Named]] = {}
    for each in named:
        try:
            place, _ = place_of(each.address.url)
        except BadAction:  # refused elsewhere, or at the launch
            continue
        if resolves or numeric_address(place.host) is not None:
            places.setdefault((place.host, place.port), []).append(each)
    hosts = list(places)[:MOST]
    said = await asyncio.gather(*(_said(guard, host, port, namespace, seconds) for host, port in hosts))
    return [
        (each, f"{each.address.path}: {_whose(each.address)}{text}")
        for place, text in zip(hosts, said, strict=True)
        if text is not None
        for each in places[place]
    ]


async def _said(guard: AddressGuard, host: str, port: int, namespace: str, seconds: float) -> str | None:
    try:
        async with asyncio.timeout(seconds):
            verdict = await guard.judge(host, port, namespace)
    except TimeoutError:
        return f"{host} was not resolved within {seconds:g} s"
    if isinstance(verdict, Permitted):
        return None
    return verdict.error if isinstance(verdict, AddressForbidden) else f"{verdict.error} (checked from this server)"


def _whose(address: Address) -> str:
    return "" if address.whose is None else f"the URL of the agent {address.whose!r}: "


# Twice what a ticker sleeps at most, since the clocks of two processes may differ a little.
_LOOKED_AT_IN_TIME = 2 * SECOND


_POLICIES = ("overlap_policy", "catchup_policy")


class AsksAgents(Protocol):
    """Client that fetches agent cards."""

    async def check(self, namespace: str, line: AgentLine) -> CardSeen:
        """As it is now; never raises because of the agent."""


class SecretFile(Protocol):
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
    admin_file: SecretFile | None = None
    """Where the first admin token lies; None = the operator has fixed another."""
    quotas: QuotaBook = field(default_factory=QuotaBook)
    damages: Damages = field(default_factory=Damages)
    guard: AddressGuard | None = None
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
