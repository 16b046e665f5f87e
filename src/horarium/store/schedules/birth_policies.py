"""Whose policies hold for the next runs of schedules: gathered for a batch, with one query for each kind of row.

Teams are locked here, in sorted order and before any counter, so that two births never take the same turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from sqlalchemy import Connection, select

from horarium.decision.births import BirthPolicies, Bundle
from horarium.decision.facts import UnreadablePolicies
from horarium.errors import HorariumError
from horarium.policy.approval import ApprovalPolicy
from horarium.policy.limits import Budget
from horarium.schedule.agent import Agent
from horarium.schedule.assignee import Assignee, AssigneeType, Assignment, workers_of
from horarium.schedule.document import from_canonical
from horarium.schedule.effective import Effective, effective_text
from horarium.schedule.kinds import WORKFLOW
from horarium.schedule.planning import Planning
from horarium.schedule.workflow_parts import Workflow
from horarium.store import workflow_graphs
from horarium.store.database.found import rows_with
from horarium.store.database.json_text import from_text
from horarium.store.policies import Key, PolicyQuestion, Speakers, TeamTurn, Unreadable, find_speakers
from horarium.store.tables import schedule_revisions, schedules
from horarium.store.workflow_graphs import WorkflowVersion

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

    policies: Mapping[bytes, BirthPolicies | UnreadablePolicies]
    budgets: Mapping[bytes, Budget]
    turns: Mapping[Key, int]


def gather_policies(connection: Connection, births: Sequence[Birth], *, lock: bool) -> Gathered:
    speakers = find_speakers(
        connection,
        {(each.namespace, each.planning.assignment) for each in births if each.planning.assignment is not None},
        {(each.namespace, each.planning.assigned) for each in births if each.planning.assigned is not None},
        lock=lock,
    )
    floors, versions = _workflows(connection, births)
    asked = [each for each in births if each.workflow in floors or versions.get(each.schedule_uid) or _is_given(each)]
    own = _own_policies(connection, asked)
    policies: dict[bytes, BirthPolicies | UnreadablePolicies] = {}
    budgets: dict[bytes, Budget] = {}
    for each in births:
        floor = floors.get(each.workflow) if each.workflow is not None else None
        found = _of_one(speakers, each, own.get(each.schedule_uid), floor, versions.get(each.schedule_uid, {}))
        policies[each.schedule_uid] = found
        if isinstance(found, BirthPolicies) and found.assignee is not None:
            budgets[each.schedule_uid] = _budget_of(speakers, each.namespace, found.assignee)
    turns = {key: found.turn for key, found in speakers.teams.items() if isinstance(found, TeamTurn)}
    return Gathered(policies, budgets, turns)


def _of_one(
    speakers: Speakers,
    birth: Birth,
    own: Effective | UnreadablePolicies | None,
    floor: ApprovalPolicy | None,
    versions: Mapping[str, int],
) -> BirthPolicies | UnreadablePolicies:
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
    return BirthPolicies(
        assignee,
        bundles,
        team.team if isinstance(team, TeamTurn) else None,
        None if birth.workflow is None else birth.workflow.version,
        assignment.queue_policy if isinstance(assignment, Assignment) else None,
    )


def _bundle(
    speakers: Speakers,
    namespace: str,
    asked: PolicyQuestion,
    own: Effective,
    versions: Mapping[str, int],
    assignee: Assignee | None,
) -> Bundle:
    effective = speakers.effective(namespace, asked)
    if effective is None and versions:
        effective = speakers.effective(namespace, asked._replace(workflow_approval=ApprovalPolicy()))
    if effective is not None and versions:
        effective = replace(effective, versions=versions)
    member = None if asked.member is None else _agent(speakers, namespace, asked.member)
    worker = member if assignee is None or _is_team(assignee) else _agent(speakers, namespace, assignee.id)
    return Bundle(
        effective,
        None if effective is None else effective_text(effective),
        (None if member is None else member.policies.budget) or _NO_BUDGET,
        worker is not None and worker.native_scheduler,
    )


def _agent(speakers: Speakers, namespace: str, agent_id: str) -> Agent | None:
    """None also for one that cannot be read: that is told of its own."""
    found = speakers.agents.get((namespace, agent_id))
    return None if isinstance(found, Unreadable) else found


def _is_team(assignee: Assignee | None) -> bool:
    return assignee is not None and assignee.type is AssigneeType.TEAM


def _unreadable(
    speakers: Speakers, namespace: str, planning: Planning, assignee: Assignee | None
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
        if isinstance(row, Unreadable):
            return UnreadablePolicies(f"the {name} cannot be read: {row.why}")
    return None


def _budget_of(speakers: Speakers, namespace: str, assignee: Assignee) -> Budget:
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
    graphs = workflow_graphs.load(connection, wanted)
    compiled = {name: graph.workflow for name, graph in graphs.items() if not isinstance(graph, Exception)}
    floors = {name: found.approval for name, found in compiled.items() if found.approval is not None}
    below = {name: _versions_below(connection, name.namespace, found) for name, found in compiled.items()}
    versions = {each.schedule_uid: below.get(each.workflow, {}) for each in births if each.workflow is not None}
    return floors, versions


def _versions_below(connection: Connection, namespace: str, root: Workflow) -> dict[str, int]:
    """The newest versions of sub-workflows that are asked for as the latest, level by level."""
    found: dict[str, int] = {}
    level = [root]
    for _ in range(_MAX_DEPTH):
        asked = {each for workflow in level for each in _sub_workflows(workflow)}
        if not asked:
            break
        latest = [(namespace, name) for name, version in asked if version is None and name not in found]
        fresh = {name: version for (_, name), version in workflow_graphs.newest_versions(connection, latest).items()}
        found |= fresh
        wanted = [*((name, version) for name, version in asked if version is not None), *fresh.items()]
        graphs = workflow_graphs.load(connection, [WorkflowVersion(namespace, *each) for each in wanted])
        level = [graph.workflow for graph in graphs.values() if not isinstance(graph, Exception)]
    return found


def _sub_workflows(workflow: Workflow) -> Iterator[tuple[str, int | None]]:
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
