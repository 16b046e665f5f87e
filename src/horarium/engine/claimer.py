"""Claim ready runs of every namespace in turn, as many as there is capacity for.

The claimer looks first and takes afterwards, so it never takes too many: a run that is not begun at once is not
claimed, so its time does not run, and it costs no write. Runs whose launch touches nothing outside are started in the
same transaction. What a kind of run needs besides its definition is supplied by the preparers of the features.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.document.definition import RunDefinition
from horarium.core.document.document import run_part_of
from horarium.core.lifecycle.live_run import NO_RULES, Rules
from horarium.core.lifecycle.outcome import LaunchAnswered, Outcome, Refused, ReportTokens, Unreachable, WaitForTarget
from horarium.core.lifecycle.react import react
from horarium.core.policy.approval import LaunchRetry
from horarium.core.policy.limits import RunLimits
from horarium.engine.capacity import (
    Capacity,
    LaunchPlace,
    Limits,
    PlaceCounters,
    choose_runs,
    places_for,
    without_those_of_others,
)
from horarium.engine.requests import NO_SECRETS, build_request, rules_of, to_agent
from horarium.errors import HorariumError
from horarium.features.runs import claim_rows
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.preparation import CompleteLaunch, LaunchDraft, Preparers, RunStarter
from horarium.features.runs.transition_rows import LogFields, RecordedChange, fields_of_run, read_run_fields
from horarium.features.runs.update_rows import write_changes
from horarium.features.runs.work_rows import ClaimCandidate, ReadyTarget, RunWork, TargetPlaces
from horarium.features.tenants import rows as tenant_rows
from horarium.instant import SECOND, Instant
from horarium.launchers.launcher import LaunchRequest
from horarium.launchers.registry import Registry
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import is_fault_of_a_row, is_outage
from horarium.platform.database.wakeups import READY
from horarium.platform.run_log import MAX_LOG_BYTES, RunLog

# Of those that have something ready a claim looks at so many; the next one goes on behind them.
_NAMESPACES = 64
_TARGETS = 256
# Of candidates locked at once: the best are chosen from them.
_CANDIDATES = 1_000
_CLAIMS_A_LOOK = 4
# A run that the database refuses to change is tried again after this.
_PUT_OFF_SECONDS = 60
_NO_TARGETS: Final[Mapping[ReadyTarget, RunStarter]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class DispatcherOptions:
    """`batch` bounds what one transaction takes or writes down; `run_log_bytes` what is kept of what a run says.

    `caps` hold for every run, whatever its definition says; None = there are none.
    """

    limits: Limits = field(default_factory=Limits)
    lease_seconds: int = 30
    launch_retry: LaunchRetry = field(default_factory=LaunchRetry)
    batch: int = 250
    run_log_bytes: int = MAX_LOG_BYTES
    caps: RunLimits | None = None


@dataclass(slots=True, eq=False)
class InFlight:
    """A run in the hands of this process, with all that its end will need.

    `request` is an outcome where there is nothing to launch, and an error where the database did not let us read what
    to launch: the run is given back, and no launch is counted. `begun`: the target may have heard of it. `lost`: the
    lease is no longer ours. `stopped`: we ended it ourselves, because we must stop. `answered`: its answer waits to
    be written down. `unwanted`: somebody has asked for its end.
    """

    work: RunWork
    rules: Rules
    seat: LaunchPlace
    request: LaunchRequest | Outcome | HorariumError
    cancelled: asyncio.Event
    task: asyncio.Task[None] | None = None
    begun: bool = False
    lost: bool = False
    stopped: bool = False
    answered: bool = False
    unwanted: bool = False

    @property
    def key(self) -> tuple[bytes, int]:
        return self.work.run_id, self.work.lease_epoch

    @property
    def about(self) -> LogFields:
        """The fields of log events about it, which are known without a query."""
        schedule_id = self.request.schedule_id if isinstance(self.request, LaunchRequest) else None
        return fields_of_run(self.work.run_id, self.work.namespace, schedule_id)


class ClaimResult(NamedTuple):
    """`handed`: launches that are over already. `more`: a next claim may find something at once.

    `waiting`: something is ready for which there was no room. `contended`: somebody else was taking places at the same
    agents, and may have left some.
    """

    taken: Sequence[InFlight] = ()
    handed: Sequence[RecordedChange] = ()
    more: bool = False
    waiting: bool = False
    contended: bool = False


class _Taken(NamedTuple):
    """Outcome of a claim's transaction."""

    works: Sequence[RunWork] = ()
    handed: Sequence[RecordedChange] = ()
    more: bool = False
    contended: bool = False


class _Places(NamedTuple):
    """Places that a claim may fill. `only`: with this run alone."""

    places: Sequence[tuple[ReadyTarget, int]]
    counted: Mapping[ReadyTarget, TargetPlaces]
    room: Capacity
    in_hand: Collection[bytes]
    only: bytes | None = None


class _Read(NamedTuple):
    """All that the requests of a claim are made of, by run. `steps` complete a draft, in order."""

    drafts: Mapping[bytes, LaunchDraft | Exception]
    steps: Mapping[bytes, Sequence[CompleteLaunch]]


class Claimer:
    """Called from one thread at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        registry: Registry,
        owner: str,
        options: DispatcherOptions,
        tokens: ReportTokens | None,
        preparers: Preparers,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._log_to = log or structlog.get_logger()
        self._database = database
        self._clock = clock
        self._registry = registry
        self._owner = owner
        self._options = options
        self._tokens = tokens
        self._preparers = preparers.launches
        self._places = PlaceCounters(preparers.places)
        self._starters = preparers.starters
        self._started_kinds = frozenset(each.kind for each in preparers.starters)
        self._definitions = Definitions(run_part_of, options.caps)
        self._turn = ""
        self._targets_after: dict[str, str] = {}
        self._seen: list[ReadyTarget] = []
        self._started: Mapping[ReadyTarget, RunStarter] = _NO_TARGETS
        self._chosen: list[ClaimCandidate] = []
        self._refused: dict[bytes, str] = {}
        self._looked = 0
        self._alone = True

    def claim(self, room: Capacity, in_hand: Collection[bytes]) -> ClaimResult:
        """`room` is a copy that nobody else changes; a run in `in_hand` is still being worked on here."""
        now = self._clock.now()
        ready = self._ready(_CLAIMS_A_LOOK if self._alone else 1)
        room.alone = self._alone
        if not ready:
            return ClaimResult()
        counted = self._places.read(self._database, ready, room, now)
        followed = {each: found.followed for each, found in counted.items()}
        places = places_for(ready, room, self._place_kind, _CANDIDATES, followed)
        if not places:
            self._seen = []
            return ClaimResult(waiting=True)
        taken = self._take_what_can_be(_Places(places, counted, room, in_hand), now)
        if not taken.more:
            self._seen = []
        waiting = len(places) < len(ready)
        return ClaimResult(self._prepared(taken.works), taken.handed, taken.more, waiting, taken.contended)

    def _ready(self, claims_a_look: int) -> list[ReadyTarget]:
        """While there is more than one claim takes, the next few need not look anew at who has something ready.

        Where there are other tenants they do: what one of them has must not wait for claims of another's crowd.
        """
        if not self._seen or self._looked >= claims_a_look:
            self._seen, self._looked = self._database.glance(self._look), 0
        self._looked += 1
        return self._seen

    def _look(self, connection: Connection) -> list[ReadyTarget]:
        found = claim_rows.ready_namespaces(connection, after=self._turn, limit=_NAMESPACES)
        if not found:
            return []
        ready = claim_rows.ready_targets(
            connection, {name: self._targets_after.get(name, "") for name in found}, _TARGETS
        )
        self._go_round(found, ready)
        # A launch may keep its place for minutes: who else is there must be known before one tenant has them all.
        self._alone = not tenant_rows.has_several_namespaces(connection)
        self._started = {target: each for each in self._starters for target in each.targets(connection, ready)}
        ours = without_those_of_others(connection, ready, self._foreign_kind, self._clock.now())
        if not ours:
            self._turn = found[-1]  # behind those who have nothing for us there may be others
        return ours

    def _go_round(self, found: Sequence[str], ready: Sequence[ReadyTarget]) -> None:
        """A namespace with more targets than one look takes in is looked at from there on next time."""
        for name in found:
            targets = [each.target for each in ready if each.namespace == name]
            if len(targets) == _TARGETS:
                self._targets_after[name] = targets[-1]
            else:
                self._targets_after.pop(name, None)

    def _take_what_can_be(self, asked: _Places, now: Instant) -> _Taken:
        """Take a batch. Where the database refuses it take each run alone, and put off those that it refuses."""
        self._chosen, self._refused = [], {}
        try:
            return self._database.write(lambda connection: self._take(connection, asked, now))
        except Exception as wrong:  # one run that cannot be changed must not stop the others
            if not self._chosen or not is_fault_of_a_row(wrong):
                raise
        taken = _Taken(more=True)
        for run_id in [each.run_id for each in self._chosen]:
            alone = asked._replace(only=run_id)
            try:
                one = self._database.write(partial(self._take, asked=alone, now=now))
            except Exception as wrong:
                if is_fault_of_a_row(wrong):
                    self._put_off(run_id, wrong, now)
                    continue
                if not taken.works:
                    raise
                break  # those that are ours already must not be lost
            taken = taken._replace(works=[*taken.works, *one.works], handed=[*taken.handed, *one.handed])
        return taken

    def _put_off(self, run_id: bytes, wrong: Exception, now: Instant) -> None:
        self._log_to.error(
            "run_claim_failed",
            **read_run_fields(self._database, run_id),
            error=f"{type(wrong).__name__}: {wrong}",
        )
        later = now + _PUT_OFF_SECONDS * SECOND
        self._database.write(lambda connection: claim_rows.put_off(connection, run_id, later))

    def _take(self, connection: Connection, asked: _Places, now: Instant) -> _Taken:
        places, counted, room, in_hand, only = asked
        left, contended = self._places.hold(connection, places, counted, room)
        # Some that are ready may still be in our hands: they are passed over, and must not take the others' places.
        room_for_ours = min(len(in_hand), _CANDIDATES // 10)
        wanted = [(target, most + room_for_ours) for target, most in left]
        found = [
            *claim_rows.candidates(connection, wanted, now),
            *self._places.begun_before(connection, left, counted, now),
        ]
        candidates = [each for each in dict.fromkeys(found) if each.run_id not in in_hand]
        candidates = [each for each in candidates if only in (None, each.run_id)]
        most = self._options.batch
        chosen = choose_runs(candidates, room, self._place_kind, after=self._turn, most=most)
        if not chosen:
            return _Taken(contended=contended)
        if only is None:
            self._chosen = chosen
        order = {each.run_id: number for number, each in enumerate(chosen)}
        here = [each.run_id for each in chosen if self._registry.works_here(self._kind(each.namespace, each.target))]
        works = claim_rows.take(
            connection,
            list(order),
            here=here,
            owner=self._owner,
            now=now,
            lease_seconds=self._options.lease_seconds,
            runtime_cap=None if self._options.caps is None else self._options.caps.runtime_seconds,
        )
        works.sort(key=lambda work: order[work.run_id])
        self._turn = chosen[-1].namespace
        handed = [*self._start(connection, works, now), *self._hand_over(connection, works, now)]
        gone = {each.run.run_id for each in handed}
        kept = [work for work in works if work.run_id not in gone]
        return _Taken(kept, handed, len(candidates) > len(chosen) or len(chosen) == most, contended)

    def _start(self, connection: Connection, works: Sequence[RunWork], now: Instant) -> list[RecordedChange]:
        """Start the runs that need no launcher."""
        begun: list[RecordedChange] = []
        for starter in self._starters:
            own = [work for work in works if self._starter_of(work) is starter]
            started = starter.start(connection, own, self._definitions, now)
            self._refused |= started.refused
            begun += started.begun
        if begun:
            self._database.notify(connection, READY)  # the advancer is to begin at once
        return begun

    def _prepared(self, works: Sequence[RunWork]) -> list[InFlight]:
        """Read each claimed run after the claim: definitions take long to read, and others wait for the writer.

        Where a row cannot be read, the batch is halved until the runs that need that row are alone.
        """
        if not works:
            return []
        try:
            read = self._database.glance(lambda connection: self._read(connection, works))
        except Exception as wrong:  # they are ours already, and nothing was sent
            if not isinstance(wrong, HorariumError) and not is_fault_of_a_row(wrong):
                raise
            if len(works) > 1 and is_fault_of_a_row(wrong):
                middle = len(works) // 2
                return [*self._prepared(works[:middle]), *self._prepared(works[middle:])]
            unread = _unread(wrong)
            return [InFlight(work, NO_RULES, self._seat(work), unread, asyncio.Event()) for work in works]
        return [self._in_flight(work, read) for work in works]

    def _read(self, connection: Connection, works: Sequence[RunWork]) -> _Read:
        definitions = self._definitions.load(connection, works)
        return self._loaded(connection, works, definitions)

    def _loaded(
        self,
        connection: Connection,
        works: Sequence[RunWork],
        definitions: Mapping[bytes, RunDefinition | Exception],
        *,
        rows: bool = True,
    ) -> _Read:
        """Let each preparer load what these launches need of it; without `rows` nothing is queried."""
        found = ((work, definitions[work.run_id]) for work in works)
        drafts = {work.run_id: each if isinstance(each, Exception) else LaunchDraft(work, each) for work, each in found}
        sound = [each for each in drafts.values() if isinstance(each, LaunchDraft)]
        steps: defaultdict[bytes, list[CompleteLaunch]] = defaultdict(list)
        for preparer in self._preparers:
            needing = [draft for draft in sound if preparer.needed(draft)]
            complete = preparer.load(connection, needing if rows else ())
            for draft in needing:
                steps[draft.work.run_id].append(complete)
        return _Read(drafts, steps)

    def _in_flight(self, work: RunWork, read: _Read) -> InFlight:
        cancelled, draft = asyncio.Event(), read.drafts[work.run_id]
        seat = self._seat(work)
        if isinstance(draft, Exception):
            refused = Refused(f"The definition of this run cannot be read: {draft}")
            return InFlight(work, NO_RULES, seat, refused, cancelled)
        rules = rules_of(work, draft.definition, self._options.launch_retry)
        if work.run_id in self._refused:
            return InFlight(work, rules, seat, Refused(self._refused[work.run_id]), cancelled)
        try:
            request = self._request(draft, read.steps.get(work.run_id, ()), cancelled)
        except Exception as wrong:  # one corrupt row is one run's trouble
            request = Refused(f"The request of this run cannot be built: {type(wrong).__name__}: {wrong}")
        return InFlight(work, rules, seat, request, cancelled)

    def _request(
        self, draft: LaunchDraft, steps: Sequence[CompleteLaunch], cancelled: asyncio.Event
    ) -> LaunchRequest | Outcome:
        for complete in steps:
            if (refused := complete(draft)) is not None:
                return refused
        url = None if draft.agent is None else draft.agent.url
        opened = NO_SECRETS if draft.secrets is None else draft.secrets.open(url)
        if isinstance(opened, Refused):
            return opened
        request = build_request(draft.work, draft.definition, self._tokens, cancelled, self._log(), opened)
        return to_agent(request, draft)

    def _log(self) -> RunLog | None:
        most = self._options.run_log_bytes
        return RunLog(self._clock.now, most) if most else None

    def _hand_over(self, connection: Connection, works: Sequence[RunWork], now: Instant) -> list[RecordedChange]:
        """Ours under lock, and nobody outside is asked: what only waits for its worker from now on is written here."""
        handed: list[RecordedChange] = []
        launched = [work for work in works if self._starter_of(work) is None]
        at_once = [work for work in launched if self._registry.at_once(self._kind(work.namespace, work.target))]
        if not at_once:
            return []
        # What preparers would have to load is not loaded here: a run that cannot do without it is launched afterwards.
        read = self._loaded(connection, at_once, self._definitions.load(connection, at_once), rows=False)
        for each in (self._in_flight(work, read) for work in at_once):
            if isinstance(each.request, LaunchRequest):
                outcome: Outcome = self._registry.answer_at_once(each.request)
                change = react(each.work, LaunchAnswered(outcome, each.work.lease_epoch), each.rules, now)
                if isinstance(change, WaitForTarget):
                    handed.append(RecordedChange(each.work, change))
        write_changes(connection, handed, now)
        return handed

    def _seat(self, work: RunWork) -> LaunchPlace:
        return LaunchPlace(work.namespace, self._kind(work.namespace, work.target), work.target)

    def _kind(self, namespace: str, target: str) -> str:
        """A stored workflow goes before a task of the same name, which some processes may know and others not."""
        starter = self._started.get(ReadyTarget(namespace, target))
        return self._registry.kind_of_target(target, namespace) if starter is None else starter.kind

    def _foreign_kind(self, ready: ReadyTarget) -> str | None:
        kind = self._kind(*ready)
        return None if kind in self._started_kinds or kind in self._registry else kind

    def _starter_of(self, work: RunWork) -> RunStarter | None:
        for each in self._starters:
            if each.needed(work):
                return each
        return self._started.get(ReadyTarget(work.namespace, work.target))

    def _place_kind(self, namespace: str, target: str) -> str | None:
        kind = self._kind(namespace, target)
        return None if kind in self._started_kinds or self._registry.at_once(kind) else kind


def _unread(wrong: Exception) -> Outcome | HorariumError:
    """Say what becomes of runs that could not be read: an outage counts no launch."""
    if isinstance(wrong, HorariumError) and is_outage(wrong):
        return wrong
    return Unreachable(f"Its definition cannot be read: {wrong}")
