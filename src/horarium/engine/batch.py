"""One transaction of the tick: claimed schedules become facts, plans and rows.

The claim, the decisions, the runs, the events and the advance of the positions commit together, before
anything outside is touched.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from horarium.core.decision.facts import Decision, Facts, Plan, Signal
from horarium.core.decision.record import NewId, ScheduleSubject, ScheduleWrites, record_decisions
from horarium.core.decision.run_policies import CreationPolicies, under_policies
from horarium.core.decision.tick import Due, ParkedSchedule, PlanTime, plan_batch
from horarium.core.document.planning import Planning
from horarium.core.document.states import Origin
from horarium.features.approvals import request_rows
from horarium.features.runs.end_rows import new_ids, settle_side_effects
from horarium.features.schedules import fact_rows
from horarium.features.schedules.decision_rows import ScheduleRecord, park, write_records
from horarium.features.schedules.due_rows import Claim, Plannings
from horarium.features.tenants import quota_rows
from horarium.features.tenants.quota_rows import QuotaBook
from horarium.instant import Instant
from horarium.platform.database import Connection


class Decided(NamedTuple):
    """Decisions of a tick about one schedule, for metrics and logs."""

    namespace: str
    schedule_id: str
    schedule_uid: bytes
    entry: ScheduleWrites
    decisions: tuple[Decision, ...]
    lateness: Instant


@dataclass(frozen=True, slots=True)
class Tick:
    """`more` says that due work is left: schedules beyond the batch, or occurrences beyond the cap.

    `waiting` are schedules whose signal was asked for and has not come yet; they are not among the claimed.
    """

    claimed: int = 0
    decided: tuple[Decided, ...] = ()
    parked: tuple[tuple[str, str, str], ...] = field(default=())
    more: bool = False
    waiting: int = 0


def together(ticks: Sequence[Tick], *, more: bool) -> Tick:
    """Several ticks as one."""
    return Tick(
        sum(tick.claimed for tick in ticks),
        tuple(decided for tick in ticks for decided in tick.decided),
        tuple(parked for tick in ticks for parked in tick.parked),
        more=more,
        waiting=ticks[-1].waiting if ticks else 0,
    )


def decide_claims(
    connection: Connection,
    known: Plannings,
    claims: Sequence[Claim],
    moment: PlanTime,
    signals: Mapping[bytes, Signal] | None = None,
    quotas: QuotaBook | None = None,
) -> Tick:
    """The caller holds the locks on the claimed positions."""
    broken = [(claim, claim.planning) for claim in claims if isinstance(claim.planning, Exception)]
    planned, unplanned = _plan(connection, claims, moment, signals or {}, quotas)
    records = [
        ScheduleRecord(decided.schedule_uid, decided.namespace, claim.revision, planning, decided.entry)
        for claim, planning, decided in planned
    ]
    rendered = write_records(connection, records, now=moment.now) if records else {}
    waiting: list[bytes] = []
    for claim, planning, decided in planned:
        waiting += settle_side_effects(
            connection, known, claim.namespace, claim.schedule_uid, planning, decided.entry, moment.now
        )
    request_rows.request(connection, waiting, moment.now)
    parked = [(claim, type(wrong).__name__, str(wrong)) for claim, wrong in broken]
    parked += [(claim, why.error_class, why.error) for claim, why in unplanned]
    for claim, error_class, error in parked:
        park(connection, claim.schedule_uid, error=error, error_class=error_class, now=moment.now)
    born = ((decided.namespace, len(decided.entry.runs)) for _, _, decided in planned)
    quota_rows.add_births(connection, born, moment.now, rendered)
    return Tick(
        claimed=len(claims),
        decided=tuple(decided for _, _, decided in planned),
        parked=tuple((claim.namespace, claim.schedule_id, error) for claim, _, error in parked),
        more=any(_is_left(decided, moment.now) for _, _, decided in planned),
    )


def _is_left(decided: Decided, now: Instant) -> bool:
    next_due = decided.entry.position.next_due
    return next_due is not None and next_due <= now


def _plan(
    connection: Connection,
    claims: Sequence[Claim],
    moment: PlanTime,
    signals: Mapping[bytes, Signal],
    quotas: QuotaBook | None,
) -> tuple[list[tuple[Claim, Planning, Decided]], list[tuple[Claim, ParkedSchedule]]]:
    sound = {claim.schedule_uid: claim for claim in claims if not isinstance(claim.planning, Exception)}
    subjects = [_subject(claim) for claim in sound.values()]
    gathered, shared = fact_rows.gather(connection, subjects, moment.now, signals=signals, quotas=quotas)
    by_namespace: dict[str, list[Claim]] = defaultdict(list)
    for claim in sound.values():
        by_namespace[claim.namespace].append(claim)
    ids = new_ids()
    planned: list[tuple[Claim, Planning, Decided]] = []
    parked: list[tuple[Claim, ParkedSchedule]] = []
    left = moment.batch_limit
    for place, (namespace, members) in enumerate(by_namespace.items()):
        batch = [_due(claim, gathered) for claim in members]
        # What one namespace leaves of its part of the work, the next ones may use.
        part = replace(moment, batch_limit=left // (len(by_namespace) - place))
        for due, plan in plan_batch(batch, gathered, shared[namespace], part):
            claim = sound[due.uid]
            if isinstance(plan, ParkedSchedule):
                parked.append((claim, plan))
            else:
                left -= len(plan.decisions)
                policies = _policies_of(claim, gathered)
                decided = _decided(claim, due.planning, policies, plan, moment.now, ids)
                planned.append((claim, due.planning, decided))
    return planned, parked


def _policies_of(claim: Claim, gathered: Mapping[bytes, Facts]) -> CreationPolicies | None:
    """One that cannot be read was parked before anything was born."""
    found = gathered[claim.schedule_uid].policies if claim.schedule_uid in gathered else None
    return found if isinstance(found, CreationPolicies) else None


def _due(claim: Claim, gathered: Mapping[bytes, Facts]) -> Due:
    """With what others say where the schedule says nothing."""
    due, policies = claim.due(), _policies_of(claim, gathered)
    return due if policies is None else due._replace(planning=under_policies(due.planning, policies))


def _decided(
    claim: Claim,
    planning: Planning,
    policies: CreationPolicies | None,
    plan: Plan,
    now: Instant,
    ids: Iterator[NewId],
) -> Decided:
    named = ScheduleSubject(claim.schedule_id, claim.revision, planning, policies=policies)
    entry = record_decisions(
        named, claim.counts, plan.decisions, plan.position, now=now, origin=Origin.SCHEDULED, ids=ids
    )
    return Decided(claim.namespace, claim.schedule_id, claim.schedule_uid, entry, plan.decisions, now - claim.next_due)


def _subject(claim: Claim) -> fact_rows.DecisionSubject:
    assert not isinstance(claim.planning, Exception)  # the broken ones were set aside
    return fact_rows.DecisionSubject(
        claim.schedule_uid, claim.namespace, claim.planning, claim.counts.active, claim.counts.held
    )
