"""SQL that gathers facts for decisions: one query for each kind of fact that the batch needs.

Counts of runs come with the claim. Counters that several schedules share are locked here, in sorted
order and after the positions, so that two tickers cannot both take the last place.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple, assert_never

from sqlalchemy import ColumnElement, Connection, and_, func, select, text

from horarium.core.decision.facts import NO_FACTS, Fact, Facts, SharedFacts, Signal, UnreadablePolicies
from horarium.core.decision.guards import context_needed, facts_needed, is_given
from horarium.core.decision.predicted_runs import is_independent
from horarium.core.decision.run_policies import CreationPolicies, payer
from horarium.core.document.calendar import CalendarDefinition, parse_calendar, shared_calendar
from horarium.core.document.condition_context import ContextMember, DayCount
from horarium.core.document.planning import Planning, remembered
from horarium.core.document.states import Origin, RunState, result_status
from horarium.core.policy.approval import WhileWaiting
from horarium.core.policy.limits import Budget
from horarium.errors import HorariumError
from horarium.features.runs.count_rows import waiting_roots
from horarium.features.schedules.next_run_rows import Birth, Gathered, gather_policies, run_times
from horarium.features.tenants.rows import QuotaBook
from horarium.features.workflows.graph_rows import NO_FINDINGS, WorkflowFindings, graphs_of
from horarium.instant import DAY, MINUTE, Instant
from horarium.platform.database.run_states import FINAL_NAMES
from horarium.platform.database.statements import (
    Counter,
    assignee_owner,
    from_text,
    key_owner,
    lock_counters,
    read_counters,
    rows_with,
    schedule_owner,
    to_credits,
)
from horarium.platform.database.tables import calendars, runs
from horarium.platform.ids import id_at

_NO_SIGNALS: Mapping[bytes, Signal] = MappingProxyType({})
_FAILED = frozenset({RunState.FAILED, RunState.TIMED_OUT, RunState.LAUNCH_FAILED})


class DecisionSubject(NamedTuple):
    """Whoever facts are gathered about."""

    schedule_uid: bytes
    namespace: str
    planning: Planning
    active: int
    held: int


def never(_subject: DecisionSubject) -> bool:
    return False


def gather(
    connection: Connection,
    subjects: Sequence[DecisionSubject],
    now: Instant,
    origin: Origin = Origin.SCHEDULED,
    *,
    lock: bool = True,
    kinds: frozenset[Fact] = frozenset(Fact),
    signals: Mapping[bytes, Signal] = _NO_SIGNALS,
    quotas: QuotaBook | None = None,
    timed: Callable[[DecisionSubject], bool] = never,
) -> tuple[dict[bytes, Facts], dict[str, SharedFacts]]:
    """Facts by schedule, and what schedules share by namespace: names of keys mean nothing outside one.

    Without `lock` counters are only read, for whoever looks and decides nothing; `kinds` are those it asks about.
    `signals` were asked for before, since nobody outside is called while rows are locked; a schedule that has none
    sees null. Without `quotas` there is room without end, for whoever looks ahead: they are about this minute.
    `timed` says of which schedules a forecast needs the times of runs.
    """
    graphs = graphs_of(connection, subjects) if Fact.GRAPH in kinds else {}
    curious = [each for each in subjects if _asks_us(each.planning, origin) or each.schedule_uid in graphs]
    shared = {namespace: SharedFacts() for namespace in {subject.namespace for subject in subjects}}
    if quotas is not None:
        for namespace, room in quotas.rooms(connection, shared, now).items():
            shared[namespace].room = room
    known = {
        subject.schedule_uid: Facts(active=subject.active, held=subject.held)
        for subject in subjects
        if subject.active or subject.held
    }
    if curious:
        known |= _look_up(connection, curious, graphs, shared, now, origin, kinds, lock=lock)
    for uid, signal in signals.items():
        known[uid] = _with_signal(known.get(uid, NO_FACTS), signal)
    for uid, count in _backfilled(connection, [each.schedule_uid for each in subjects if each.held]):
        known[uid] = known[uid]._replace(backfilled=count)
    apart = [each.schedule_uid for each in subjects if each.active and _tells_waiting_apart(each, known)]
    for uid, count in waiting_roots(connection, apart).items():
        known[uid] = known[uid]._replace(waiting=count)
    asked = [each.schedule_uid for each in subjects if timed(each)]
    for uid, times in (run_times(connection, asked, now) if asked else {}).items():
        known[uid] = known.get(uid, NO_FACTS)._replace(times=times)
    return known, shared


def is_timed(subject: DecisionSubject) -> bool:
    """Report whether a forecast of the schedule depends on when runs end."""
    return not is_independent(subject.planning) or is_given(subject.planning)


def has_open_runs(subject: DecisionSubject) -> bool:
    """Report whether its very next occurrence depends on when runs end."""
    return bool(subject.active or subject.held) and is_timed(subject)


def _tells_waiting_apart(subject: DecisionSubject, known: Mapping[bytes, Facts]) -> bool:
    """By its own word, or by that of whoever does the work."""
    policies = known[subject.schedule_uid].policies
    said = policies.while_waiting() if isinstance(policies, CreationPolicies) else None
    return (said or subject.planning.while_waiting) is not WhileWaiting.COUNT


def _backfilled(connection: Connection, uids: Sequence[bytes]) -> Iterable[tuple[bytes, int]]:
    """Number of each schedule's buffered runs that belong to a backfill."""
    if not uids:
        return []
    # As text, so that both databases see that the index of held runs is the one to use.
    held = (text("runs.state = 'held'"), runs.c.origin == Origin.BACKFILL.value, runs.c.schedule_uid.in_(uids))
    rows = connection.execute(select(runs.c.schedule_uid, func.count()).where(*held).group_by(runs.c.schedule_uid))
    return [(uid, count) for uid, count in rows]


@remembered
def _asks_us(planning: Planning, origin: Origin) -> bool:
    """Tell whether facts must be gathered beyond the usual ones.

    Counts of runs come with the claim, workflows are rare, and quotas concern all.
    """
    return not facts_needed(planning, origin) <= {Fact.RUNS, Fact.GRAPH, Fact.QUOTA}


def _look_up(
    connection: Connection,
    subjects: Sequence[DecisionSubject],
    graphs: Mapping[bytes, WorkflowFindings],
    shared: dict[str, SharedFacts],
    now: Instant,
    origin: Origin,
    kinds: frozenset[Fact],
    *,
    lock: bool,
) -> dict[bytes, Facts]:
    needs = {subject.schedule_uid: facts_needed(subject.planning, origin) & kinds for subject in subjects}

    def who(fact: Fact) -> list[DecisionSubject]:
        return [subject for subject in subjects if fact in needs[subject.schedule_uid]]

    named = {(each.namespace, name) for each in who(Fact.CALENDARS) for name in each.planning.calendars}
    calendars_found = own_calendars(connection, named)
    contexts = _contexts(connection, who(Fact.CONTEXT), now)
    policies = _policies(connection, subjects, needs, graphs, lock=lock)
    owners = {uid: _payers(found) for uid, found in policies.policies.items()}
    asking = (who(Fact.SPENDING), who(Fact.DAILY_RUNS), who(Fact.KEYS))
    counted = _counters(connection, *asking, owners, now, lock=lock)
    day = now // DAY
    _share(subjects, shared, counted, owners, day)
    for (namespace, team), turn in policies.turns.items():
        shared[namespace].turns[team] = turn
    return {
        subject.schedule_uid: Facts(
            active=subject.active,
            held=subject.held,
            calendars=_calendars_of(subject, calendars_found),
            context=contexts.get(_context_key(subject), {}),
            spent_today=to_credits(_counted(counted, "spent", subject, day)),
            runs_today=_counted(counted, "runs", subject, day),
            assignee_budget=policies.budgets.get(subject.schedule_uid, _NO_BUDGET),
            cycle=graphs.get(subject.schedule_uid, NO_FINDINGS).cycle,
            workflow_owner=graphs.get(subject.schedule_uid, NO_FINDINGS).stranger,
            policies=policies.policies.get(subject.schedule_uid),
        )
        for subject in subjects
    }


_NO_BUDGET = Budget()


def _counted(counted: Mapping[Counter, int], kind: str, subject: DecisionSubject, day: int) -> int:
    return counted.get((kind, schedule_owner(subject.schedule_uid), day), 0) if counted else 0


# ── calendars ────────────────────────────────────────────────────────────────────────────────────────


def own_calendars(
    connection: Connection, names: Collection[tuple[str, str]]
) -> dict[tuple[str, str], CalendarDefinition]:
    """Calendars by namespace and name, without those that nobody has or that cannot be read."""
    statement = select(calendars.c.namespace, calendars.c.name, calendars.c.document)
    rows = rows_with(connection, statement, (calendars.c.namespace, calendars.c.name), names)
    found: dict[tuple[str, str], CalendarDefinition] = {}
    for namespace, name, document in rows:
        # One that cannot be read is as good as gone: its schedules are told so, the others go on.
        with suppress(HorariumError, ValueError):
            found[namespace, name] = parse_calendar(from_text(document))
    return found


def _calendars_of(
    subject: DecisionSubject, own: Mapping[tuple[str, str], CalendarDefinition]
) -> dict[str, CalendarDefinition]:
    """A name that nobody has stays out: the guard then says no."""
    found: dict[str, CalendarDefinition] = {}
    for name in subject.planning.calendars:
        calendar = own.get((subject.namespace, name)) or shared_calendar(name)
        if calendar is not None:
            found[name] = calendar
    return found


# ── the context of conditions ────────────────────────────────────────────────────────────────────────


def _with_signal(facts: Facts, signal: Signal) -> Facts:
    """The signal is a schedule's own, though the rest of the context may be that of a workflow."""
    member = ContextMember.SIGNAL_RPC_RESULT.value
    if member not in facts.context:
        return facts
    return facts._replace(context={**facts.context, member: signal.value}, signal_error=signal.error)


def _context_key(subject: DecisionSubject) -> tuple[str, str | bytes]:
    """Runs of the same workflow count together, whoever started them; without one, those of the schedule."""
    return subject.namespace, subject.planning.workflow or subject.schedule_uid


def _contexts(
    connection: Connection, subjects: Sequence[DecisionSubject], now: Instant
) -> dict[tuple[str, str | bytes], dict[str, Any]]:
    needed: dict[tuple[str, str | bytes], frozenset[ContextMember]] = {}
    for subject in subjects:
        key = _context_key(subject)
        needed[key] = needed.get(key, frozenset()) | context_needed(subject.planning)
    return {key: _context(connection, key, members, now) for key, members in needed.items()}


def _context(
    connection: Connection, key: tuple[str, str | bytes], members: frozenset[ContextMember], now: Instant
) -> dict[str, Any]:
    namespace, work = key
    same = runs.c.workflow == work if isinstance(work, str) else runs.c.schedule_uid == work
    mine = and_(runs.c.namespace == namespace, same, runs.c.parent_run_id.is_(None))
    context: dict[str, Any] = {}
    for member in members:
        match member:
            case ContextMember.PRIOR_RUN_RESULT:
                context[member.value] = _prior_run_result(connection, mine)
            case ContextMember.LAST_24H_STATS:
                context[member.value] = _last_24h_stats(connection, mine, now)
            case ContextMember.SIGNAL_RPC_RESULT:
                context[member.value] = None  # see `_with_signal`
            case _:
                assert_never(member)
    return context


def _last_24h_stats(connection: Connection, mine: ColumnElement[bool], now: Instant) -> dict[str, int]:
    stats = {each.value: 0 for each in DayCount}
    # Ids are in order of birth: "since yesterday" is a range of the index. Clocks may differ by a little, so ask twice.
    since = and_(runs.c.run_id >= id_at(now - DAY - MINUTE), runs.c.created_at > now - DAY)
    recent = select(runs.c.state, func.count()).where(mine, since).group_by(runs.c.state)
    for state, count in connection.execute(recent):
        stats[DayCount.TOTAL] += count
        stats[DayCount.SUCCEEDED] += count if state == RunState.SUCCEEDED else 0
        stats[DayCount.FAILED] += count if state in _FAILED else 0
    return stats


def _prior_run_result(connection: Connection, mine: ColumnElement[bool]) -> dict[str, Any] | None:
    finished = (
        select(runs.c.state, runs.c.result)
        .where(mine, runs.c.state.in_(FINAL_NAMES))
        .order_by(runs.c.run_id.desc())
        .limit(1)
    )
    prior = connection.execute(finished).one_or_none()
    return None if prior is None else _prior(RunState(prior.state), prior.result)


def _prior(state: RunState, result: str | None) -> dict[str, Any]:
    value = from_text(result)
    fields = value if isinstance(value, dict) else {"value": value}
    return {**fields, "status": result_status(state)}


# ── policies ─────────────────────────────────────────────────────────────────────────────────────────


def _policies(
    connection: Connection,
    subjects: Sequence[DecisionSubject],
    needs: Mapping[bytes, frozenset[Fact]],
    graphs: Mapping[bytes, WorkflowFindings],
    *,
    lock: bool,
) -> Gathered:
    """Policies of assigned schedules and of stored workflows; the others have only their own."""
    births = []
    for subject in subjects:
        version = graphs.get(subject.schedule_uid, NO_FINDINGS).newest
        if Fact.POLICIES in needs[subject.schedule_uid] or version is not None:
            births.append(Birth(subject.schedule_uid, subject.namespace, subject.planning, version))
    return gather_policies(connection, births, lock=lock) if births else _NO_POLICIES


_NO_POLICIES = Gathered({}, {}, {})


def _payers(policies: CreationPolicies | UnreadablePolicies) -> tuple[str, ...]:
    """Everybody whose budget the next runs may be counted against."""
    if isinstance(policies, UnreadablePolicies) or policies.assignee is None:
        return ()
    return (payer(policies.assignee), *(member for member in policies.bundles if member is not None))


# ── counters ─────────────────────────────────────────────────────────────────────────────────────────


def _counters(
    connection: Connection,
    spending: Sequence[DecisionSubject],
    daily: Sequence[DecisionSubject],
    keyed: Sequence[DecisionSubject],
    owners: Mapping[bytes, tuple[str, ...]],
    now: Instant,
    *,
    lock: bool,
) -> dict[Counter, int]:
    day = now // DAY
    wanted: set[Counter] = set()
    for kind, subjects in (("spent", spending), ("runs", daily)):
        for subject in subjects:
            wanted.add((kind, schedule_owner(subject.schedule_uid), day))
            for who in owners.get(subject.schedule_uid, ()):
                wanted.add((kind, assignee_owner(subject.namespace, who), day))
    for subject in keyed:
        assert subject.planning.concurrency_key is not None  # that is why it asks
        wanted.add(("key", key_owner(subject.namespace, subject.planning.concurrency_key), 0))
    return lock_counters(connection, wanted) if lock else read_counters(connection, sorted(wanted))


def _share(
    subjects: Sequence[DecisionSubject],
    by_namespace: Mapping[str, SharedFacts],
    counted: Mapping[Counter, int],
    owners: Mapping[bytes, tuple[str, ...]],
    day: int,
) -> None:
    for subject in subjects:
        planning, shared = subject.planning, by_namespace[subject.namespace]
        if planning.concurrency_key is not None:
            owner = key_owner(subject.namespace, planning.concurrency_key)
            shared.active_by_key[planning.concurrency_key] = counted.get(("key", owner, 0), 0)
        for who in owners.get(subject.schedule_uid, ()):
            owner = assignee_owner(subject.namespace, who)
            shared.spent_by_assignee[who] = to_credits(counted.get(("spent", owner, day), 0))
            shared.runs_by_assignee[who] = counted.get(("runs", owner, day), 0)
