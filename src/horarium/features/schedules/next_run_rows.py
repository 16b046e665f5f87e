"""SQL of what holds for the next runs of schedules: policies, and durations of the last runs for forecasts.

Policies are gathered for a batch, with one query for each kind of row. Teams are locked here, in sorted order and
before any counter, so that two new runs never take the same turn.

Open runs and durations of many schedules are read by one statement. Only forecasts need them, and only for schedules
on which they make a difference; a tick never does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from statistics import median_low
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, select

from horarium.core.decision.facts import OpenRunFacts, RunTimes, UnreadablePolicies
from horarium.core.decision.run_policies import CreationPolicies, PolicyBundle
from horarium.core.document.assignee import Assignee, AssigneeType, AssignmentDefinition, workers_of
from horarium.core.document.document import from_canonical
from horarium.core.document.effective_policies import Effective, effective_text
from horarium.core.document.planning import Planning
from horarium.core.document.reader import WORKFLOW
from horarium.core.document.states import Origin, RunState
from horarium.core.document.workflow_parts import WorkflowDefinition
from horarium.core.policy.approval import ApprovalPolicy
from horarium.core.policy.limits import Budget
from horarium.errors import HorariumError
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import (
    Key,
    PolicyDocuments,
    PolicyQuestion,
    TeamTurn,
    UnreadableDocument,
    find_policy_documents,
)
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import Instant
from horarium.platform.database import run_archive
from horarium.platform.database.run_states import OPEN_ROOT
from horarium.platform.database.statements import from_text, rows_with
from horarium.platform.database.tables import schedule_revisions, schedules
from horarium.platform.ids import id_text

_NO_BUDGET = Budget()
# Of sub-workflows below a root.
_MAX_DEPTH = 8


class Birth(NamedTuple):
    """A schedule that may bear runs. `workflow_version` is the newest of its stored workflow; None = it names none."""

    schedule_uid: bytes
    namespace: str
    planning: Planning
    workflow_version: int | None = None

    @property
    def workflow(self) -> WorkflowVersion | None:
        """The version that it asks for, or else the newest."""
        name, newest = self.planning.workflow, self.workflow_version
        if name is None or newest is None:
            return None
        return WorkflowVersion(self.namespace, name, self.planning.asked_version or newest)


class Gathered(NamedTuple):
    """By schedule; `turns` are those of the teams, by namespace and team."""

    policies: Mapping[bytes, CreationPolicies | UnreadablePolicies]
    budgets: Mapping[bytes, Budget]
    turns: Mapping[Key, int]


def gather_policies(connection: Connection, births: Sequence[Birth], *, lock: bool) -> Gathered:
    speakers = find_policy_documents(
        connection,
        {(each.namespace, each.planning.assignment) for each in births if each.planning.assignment is not None},
        {(each.namespace, each.planning.assigned) for each in births if each.planning.assigned is not None},
        lock=lock,
    )
    floors, versions = _workflows(connection, births)
    asked = [each for each in births if each.workflow in floors or versions.get(each.schedule_uid) or _is_given(each)]
    own = _own_policies(connection, asked)
    policies: dict[bytes, CreationPolicies | UnreadablePolicies] = {}
    budgets: dict[bytes, Budget] = {}
    for each in births:
        floor = floors.get(each.workflow) if each.workflow is not None else None
        found = _of_one(speakers, each, own.get(each.schedule_uid), floor, versions.get(each.schedule_uid, {}))
        policies[each.schedule_uid] = found
        if isinstance(found, CreationPolicies) and found.assignee is not None:
            budgets[each.schedule_uid] = _budget_of(speakers, each.namespace, found.assignee)
    turns = {key: found.turn for key, found in speakers.teams.items() if isinstance(found, TeamTurn)}
    return Gathered(policies, budgets, turns)


def _of_one(
    speakers: PolicyDocuments,
    birth: Birth,
    own: Effective | UnreadablePolicies | None,
    floor: ApprovalPolicy | None,
    versions: Mapping[str, int],
) -> CreationPolicies | UnreadablePolicies:
    namespace, planning = birth.namespace, birth.planning
    assignee = speakers.assignee_of(namespace, planning.assigned, planning.assignment)
    unreadable = own if isinstance(own, UnreadablePolicies) else _unreadable(speakers, namespace, planning, assignee)
    if unreadable is not None:
        return unreadable
    said = own if isinstance(own, Effective) else Effective()
    team = speakers.teams.get((namespace, assignee.id)) if _is_team(assignee) and assignee is not None else None
    members: Sequence[str | None] = [None]
    if isinstance(team, TeamTurn):
        members = workers_of(team.team)
    bundles = {}
    for member in members:
        asked = PolicyQuestion(
            said.approval, said.retry, said.failure, said.limits, planning.assignment, planning.assigned, floor, member
        )
        bundles[member] = _bundle(speakers, namespace, asked, said, versions, assignee)
    assignment = speakers.assignments.get((namespace, planning.assignment or ""))
    return CreationPolicies(
        assignee,
        bundles,
        team.team if isinstance(team, TeamTurn) else None,
        None if birth.workflow is None else birth.workflow.version,
        assignment.queue_policy if isinstance(assignment, AssignmentDefinition) else None,
    )


def _bundle(
    speakers: PolicyDocuments,
    namespace: str,
    asked: PolicyQuestion,
    own: Effective,
    versions: Mapping[str, int],
    assignee: Assignee | None,
) -> PolicyBundle:
    effective = speakers.effective(namespace, asked)
    if effective is None and versions:
        effective = speakers.effective(namespace, asked._replace(workflow_approval=ApprovalPolicy()))
    if effective is not None and versions:
        effective = replace(effective, versions=versions)
    member = None if asked.member is None else _agent(speakers, namespace, asked.member)
    worker = member if assignee is None or _is_team(assignee) else _agent(speakers, namespace, assignee.id)
    return PolicyBundle(
        effective,
        None if effective is None else effective_text(effective),
        (None if member is None else member.policies.budget) or _NO_BUDGET,
        worker is not None and worker.native_scheduler,
    )


def _agent(speakers: PolicyDocuments, namespace: str, agent_id: str) -> AgentDefinition | None:
    """None also for one that cannot be read: that is told of its own."""
    found = speakers.agents.get((namespace, agent_id))
    return None if isinstance(found, UnreadableDocument) else found


def _is_team(assignee: Assignee | None) -> bool:
    return assignee is not None and assignee.type is AssigneeType.TEAM


def _unreadable(
    speakers: PolicyDocuments, namespace: str, planning: Planning, assignee: Assignee | None
) -> UnreadablePolicies | None:
    """Whoever has a word and cannot be read: the trouble of this schedule, and of no other."""
    found: list[tuple[str, object]] = []
    if planning.assignment is not None:
        found.append((f"assignment {planning.assignment}", speakers.assignments.get((namespace, planning.assignment))))
    if assignee is not None:
        rows: Mapping[Key, object] = speakers.teams if _is_team(assignee) else speakers.agents
        row = rows.get((namespace, assignee.id))
        found.append((f"{assignee.type.value} {assignee.id}", row))
        if isinstance(row, TeamTurn):
            found += [(f"agent {name}", speakers.agents.get((namespace, name))) for name in row.team.members]
    for name, row in found:
        if isinstance(row, UnreadableDocument):
            return UnreadablePolicies(f"the {name} cannot be read: {row.why}")
    return None


def _budget_of(speakers: PolicyDocuments, namespace: str, assignee: Assignee) -> Budget:
    key = namespace, assignee.id
    if assignee.type is AssigneeType.AGENT:
        agent = _agent(speakers, namespace, assignee.id)
        found = None if agent is None else agent.policies.budget
    else:
        team = speakers.teams.get(key)
        found = team.team.policies.budget if isinstance(team, TeamTurn) else None
    return found or _NO_BUDGET


# ── stored workflows ─────────────────────────────────────────────────────────────────────────────────


def _workflows(
    connection: Connection, births: Sequence[Birth]
) -> tuple[dict[WorkflowVersion, ApprovalPolicy], dict[bytes, dict[str, int]]]:
    """Approval policies of stored workflows, by version; and versions of their sub-workflows, by schedule.

    A missing version has none: its run is created and gets the error at its launch.
    """
    wanted = {each.workflow for each in births if each.workflow is not None}
    if not wanted:
        return {}, {}
    graphs = graph_rows.load(connection, wanted)
    compiled = {name: graph.workflow for name, graph in graphs.items() if not isinstance(graph, Exception)}
    floors = {name: found.approval for name, found in compiled.items() if found.approval is not None}
    below = {name: _versions_below(connection, name.namespace, found) for name, found in compiled.items()}
    versions = {each.schedule_uid: below.get(each.workflow, {}) for each in births if each.workflow is not None}
    return floors, versions


def _versions_below(connection: Connection, namespace: str, root: WorkflowDefinition) -> dict[str, int]:
    """The newest versions of sub-workflows that are asked for as the latest, level by level."""
    found: dict[str, int] = {}
    level = [root]
    for _ in range(_MAX_DEPTH):
        asked = {each for workflow in level for each in _sub_workflows(workflow)}
        if not asked:
            break
        latest = [(namespace, name) for name, version in asked if version is None and name not in found]
        fresh = {name: version for (_, name), version in graph_rows.newest_versions(connection, latest).items()}
        found |= fresh
        wanted = [*((name, version) for name, version in asked if version is not None), *fresh.items()]
        graphs = graph_rows.load(connection, [WorkflowVersion(namespace, *each) for each in wanted])
        level = [graph.workflow for graph in graphs.values() if not isinstance(graph, Exception)]
    return found


def _sub_workflows(workflow: WorkflowDefinition) -> Iterator[tuple[str, int | None]]:
    """Their names, with the version where a number is asked for."""
    for node in workflow.nodes:
        name, version = node.action.get("workflow_id") or node.action.get("workflow_type"), node.action.get("version")
        if node.action.get("kind", WORKFLOW.name) == WORKFLOW.name and isinstance(name, str):
            yield name, version if isinstance(version, int) else None


# ── what a schedule says itself ──────────────────────────────────────────────────────────────────────


def _is_given(birth: Birth) -> bool:
    return birth.planning.assigned is not None or birth.planning.assignment is not None


def _own_policies(connection: Connection, births: Sequence[Birth]) -> dict[bytes, Effective | UnreadablePolicies]:
    """Off the planning; of one that an older program wrote, or that names nobody, off its newest revision."""
    found: dict[bytes, Effective | UnreadablePolicies] = {
        each.schedule_uid: each.planning.own_policies for each in births if each.planning.own_policies is not None
    }
    unknown = [each.schedule_uid for each in births if each.schedule_uid not in found]
    return found | dict(_of_revisions(connection, unknown))


def _of_revisions(
    connection: Connection, uids: Sequence[bytes]
) -> Iterator[tuple[bytes, Effective | UnreadablePolicies]]:
    if not uids:
        return
    newest = schedule_revisions.c.revision == schedules.c.revision
    statement = select(schedules.c.schedule_uid, schedule_revisions.c.document).join_from(
        schedules, schedule_revisions, (schedule_revisions.c.schedule_uid == schedules.c.schedule_uid) & newest
    )
    for uid, text in rows_with(connection, statement, (schedules.c.schedule_uid,), [(uid,) for uid in uids]):
        try:
            own = from_canonical(from_text(text))
            yield uid, Effective(own.approval, own.retry, own.failure, own.limits)
        except (HorariumError, ValueError) as wrong:
            yield uid, UnreadablePolicies(f"its definition cannot be read: {wrong}")


HISTORY: Final = 30
"""Durations that the median is taken of."""
_MOST_OPEN: Final = 100
# Runs of one schedule among which the last durations are looked for. Among the newest are the steps of workflows, which
# may be all of them; the newest occurrences have root runs alone.
_LOOKED_AT: Final = 300
_OCCURRENCES: Final = 2 * HISTORY
# Older SQLites take 999 variables in one statement.
_AT_ONCE: Final = 900
_COLUMNS = (
    "schedule_uid, run_id, state, origin, nominal, ready_at, created_at, started_at, finished_at, stop_requested_at"
)
# As the index of occurrences has it.
_OF_OCCURRENCES: Final = f"origin IN ('{Origin.SCHEDULED.value}', '{Origin.BACKFILL.value}')"
_FINISHED = "parent_run_id IS NULL AND finished_at IS NOT NULL AND started_at IS NOT NULL"
# Of the run itself or of its steps: it goes on after the last of them.
_EXPIRES = (
    "(SELECT max(a.expires_at) FROM approvals a WHERE a.schedule_uid = r.schedule_uid AND a.decision = 'pending'"
    " AND (a.run_id = r.run_id OR a.root_run_id = r.run_id))"
)


def run_times(connection: Connection, uids: Sequence[bytes], now: Instant) -> dict[bytes, RunTimes]:
    """By schedule; those without open and finished runs are left out."""
    found: dict[bytes, RunTimes] = {}
    for start in range(0, len(uids), _AT_ONCE):
        rows = _read(connection, uids[start : start + _AT_ONCE])
        for uid, mine in groupby(sorted(rows, key=itemgetter(0)), itemgetter(0)):
            found[bytes(uid)] = _times(list(mine), now)
    return found


def _read(connection: Connection, uids: Sequence[bytes]) -> Sequence[Any]:
    if connection.dialect.name == "postgresql":
        statement = _postgres(has_archive=run_archive.has_archive(connection))
        return connection.exec_driver_sql(statement, {"uids": list(uids)}).all()
    marks = ", ".join("?" * len(uids))
    return connection.exec_driver_sql(_SQLITE.replace("UIDS", marks), tuple(uids)).all()


def _times(rows: Sequence[Any], now: Instant) -> RunTimes:
    durations = [max(0, row.finished_at - row.started_at) for row in rows if row.finished_at is not None]
    open_runs = sorted((row for row in rows if row.finished_at is None), key=lambda row: bytes(row.run_id))
    return RunTimes(tuple(_open(row, now) for row in open_runs), median_low(durations) if durations else None)


def _open(row: Any, now: Instant) -> OpenRunFacts:
    is_held = row.state == RunState.HELD.value
    return OpenRunFacts(
        run_id=id_text(bytes(row.run_id)),
        since=row.created_at if row.started_at is None else row.started_at,
        nominal=row.nominal,
        is_held=is_held,
        is_waiting=row.state == RunState.AWAITING_APPROVAL.value,
        backfilled=row.origin == Origin.BACKFILL.value,
        release_at=row.ready_at if is_held and row.ready_at > now else None,
        expires_at=row.expires_at,
        stop_at=row.stop_requested_at,
    )


def _newest(table: str, uid: str) -> str:
    """The last finished root runs of a schedule, among the newest of its runs and of its occurrences."""
    mine = f"SELECT {_COLUMNS}, parent_run_id FROM {table} WHERE schedule_uid = {uid}"
    return f"""SELECT * FROM (
    SELECT * FROM ({mine} ORDER BY run_id DESC LIMIT {_LOOKED_AT}) newest
    UNION
    SELECT * FROM ({mine} AND {_OF_OCCURRENCES} ORDER BY nominal DESC LIMIT {_OCCURRENCES}) occurrences
  ) looked_at WHERE {_FINISHED} ORDER BY run_id DESC LIMIT {HISTORY}"""


_OPEN = f"schedule_uid = p.schedule_uid AND {OPEN_ROOT} ORDER BY run_id LIMIT {_MOST_OPEN}"
_SQLITE = f"""
SELECT {", ".join(f"r.{each}" for each in _COLUMNS.split(", "))}, {_EXPIRES} AS expires_at
FROM positions p CROSS JOIN runs r
WHERE p.schedule_uid IN (UIDS) AND r.run_id IN (
  SELECT run_id FROM (SELECT run_id FROM runs WHERE {_OPEN})
  UNION ALL SELECT run_id FROM ({_newest("runs", "p.schedule_uid")})
)
"""


@lru_cache(maxsize=2)
def _postgres(*, has_archive: bool) -> str:
    tables = ("runs", "runs_archive") if has_archive else ("runs",)
    pieces = " UNION ALL ".join(f"({_newest(table, 'p.schedule_uid')})" for table in tables)
    names = ", ".join(f"r.{each}" for each in _COLUMNS.split(", "))
    return f"""
SELECT {names}, CASE WHEN r.finished_at IS NULL THEN {_EXPIRES} END AS expires_at
FROM positions p CROSS JOIN LATERAL (
  (SELECT {_COLUMNS} FROM runs WHERE {_OPEN})
  UNION ALL
  (SELECT {_COLUMNS} FROM ({pieces}) ended ORDER BY run_id DESC LIMIT {HISTORY})
) r
WHERE p.schedule_uid = ANY(%(uids)s::bytea[])
"""
