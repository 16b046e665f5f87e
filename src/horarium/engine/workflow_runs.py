"""Decide what follows from changes of workflows: read for many runs together, decided for each, written together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import NamedTuple

from horarium.core.decision.advance import Advance, ResultsNeeded, StepFact, Stop, WorkflowRunFacts, advance, left_over
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.definition import Definition, asked_version
from horarium.core.document.document import from_canonical
from horarium.core.document.effective_policies import Effective, read_effective
from horarium.core.document.json_values import MAX_BYTES, Json, decode_input
from horarium.core.document.nodes import results_read
from horarium.core.document.reader import Kinds
from horarium.core.document.states import FINAL, RunState
from horarium.core.document.workflow_steps import CompiledWorkflow
from horarium.core.lifecycle.outcome import UsedResources
from horarium.core.policy.limits import LimitUsage, RunLimits, credits_of, exceeded_limit
from horarium.core.policy.queue import MAX_LONG, inputs_for
from horarium.engine import step_drafts
from horarium.engine.step_drafts import Parent, StepInputs
from horarium.features.agents.policy_rows import NO_CAPS, PolicyQuestion, effective_for, take_turns, teams_among
from horarium.features.runs import definition_rows, end_rows
from horarium.features.runs import step_rows as run_step_rows
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.step_rows import NOTHING_USED, Advancing, NewStep, NodeOf, StepChange
from horarium.features.tenants import rows as tenant_rows
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import Instant
from horarium.platform.database import Connection
from horarium.platform.database.statements import from_text, to_text

# Each is a megabyte at most, and so is what a step may be given.
_FEW_RESULTS = 8
_MOST_BYTES = _FEW_RESULTS * MAX_BYTES


class BrokenRun(NamedTuple):
    """A run that can never be moved on, and why."""

    run: Advancing
    why: Exception


@dataclass(slots=True)
class _Moving:
    """A run on its way: what it was, what was noted of it, and what comes of that."""

    parent: Parent
    facts: Sequence[StepFact]
    used: UsedResources
    more: UsedResources
    about: WorkflowRunFacts
    plan: Advance | None = None
    known: dict[str, Json] = field(default_factory=dict)

    @property
    def run_id(self) -> bytes:
        return self.parent.run_id


class AdvancedRuns(NamedTuple):
    """`runs` were nobody else's; `broken` of them cannot be moved, now or ever."""

    runs: int
    broken: Sequence[BrokenRun]


class Workflows:
    """Runs of workflows with what they are, and what they have come to."""

    def __init__(self, kinds: Kinds, caps: RunLimits | None = None) -> None:
        self._kinds = kinds
        self._caps = caps
        self._definitions = Definitions(from_canonical, caps)

    def read(self, connection: Connection, runs: Sequence[Advancing]) -> list[tuple[Advancing, Parent | Exception]]:
        """Read workflows of runs; an unreadable one yields the reason."""
        named = {each.work.run_id: version_of(each) for each in runs}
        graphs = graph_rows.load(connection, named.values()) if named else {}
        definitions = self._definitions.load(connection, [each.work for each in runs])
        return [(run, _parent(run, graphs[named[run.work.run_id]], definitions[run.work.run_id])) for run in runs]

    def move_on(self, connection: Connection, run_ids: Sequence[bytes], now: Instant) -> AdvancedRuns:
        locked = run_step_rows.lock_workflows(connection, run_ids)
        if len(locked) < len(run_ids):
            run_step_rows.delete_changes_of_missing(connection, run_ids)
        taken = run_step_rows.take_changes(connection, [each.work.run_id for each in locked], finish=False)
        moving, unread = self._gather(connection, locked, taken)
        stuck = self._decide(connection, moving)
        self._write(connection, [each for each in moving if each.plan is not None], now)
        self._list_left_over(connection, [each for each in locked if each.work.state in FINAL], now)
        return AdvancedRuns(len(locked), [*unread, *stuck])

    def _gather(
        self, connection: Connection, locked: Sequence[Advancing], taken: Sequence[StepChange]
    ) -> tuple[list[_Moving], list[BrokenRun]]:
        """Gather facts of the runs that are still active; notes about others are obsolete."""
        running = [each for each in locked if each.work.state == RunState.RUNNING]
        step_ids = {each.step_run_id for each in taken if each.step_run_id is not None}
        facts = run_step_rows.facts(connection, step_ids)
        more: dict[bytes, UsedResources] = defaultdict(lambda: NOTHING_USED)
        for each in taken:
            more[each.run_id] = _sum(more[each.run_id], each.used)
        moving: list[_Moving] = []
        broken: list[BrokenRun] = []
        for run, parent in self.read(connection, running):
            if isinstance(parent, Exception):
                broken.append(BrokenRun(run, parent))
                continue
            grown = more[run.work.run_id]
            used = _sum(run.work.used, grown)
            about = facts_of_run(parent, used)
            moving.append(_Moving(parent, facts.get(run.work.run_id, ()), used, grown, about))
        return moving, broken

    def _decide(self, connection: Connection, moving: Sequence[_Moving]) -> list[BrokenRun]:
        """Those whose conditions read results are asked again with them; each time at least one more is known."""
        waiting, broken = list(moving), []
        while waiting:
            needed: dict[bytes, frozenset[str]] = {}
            for each in waiting:
                run = each.parent.run
                try:
                    plan = advance(each.parent.workflow, run.progress, each.facts, each.about, each.known)
                except Exception as wrong:
                    broken.append(BrokenRun(run, wrong))
                    continue
                if isinstance(plan, ResultsNeeded):
                    needed[each.run_id] = plan.node_ids
                else:
                    each.plan = plan
            waiting = [each for each in waiting if each.run_id in needed]
            texts = run_step_rows.results(
                connection, [(run_id, node) for run_id, nodes in needed.items() for node in nodes]
            )
            for each in waiting:
                for node in needed[each.run_id]:
                    each.known[node] = from_text(texts.get((each.run_id, node)))
        return broken

    def _list_left_over(self, connection: Connection, ended: Sequence[Advancing], now: Instant) -> None:
        """List nodes that never ran, for runs that were ended from outside."""
        made: list[NewStep] = []
        letters: dict[bytes, tuple[str | None, UsedResources]] = {}
        for run, parent in self.read(connection, ended) if ended else ():
            if isinstance(parent, Exception) or (
                run.progress is not None and len(run.progress) != len(parent.workflow.nodes)
            ):
                continue  # it has ended, so nobody waits for this
            plan = left_over(parent.workflow, run.progress)
            made += [step_drafts.skipped(parent, skip) for skip in plan.skips]
            letters[parent.run_id] = plan.progress, run.work.used
        definitions = self._definitions.load(connection, made, as_written=True) if made else {}
        definition_rows.save_step_texts(connection, {each.run_id: step_drafts.NO_TEXTS for each in made}, definitions)
        made = [step_drafts.with_action(step, definitions[step.run_id], self._kinds) for step in made]
        if made:
            run_step_rows.insert(connection, made, now)
            run_step_rows.move(connection, letters)
            tenant_rows.add_growth(connection, _growth(made), now)

    # ── writing ──────────────────────────────────────────────────────────────────────────────────

    def _write(self, connection: Connection, moving: Sequence[_Moving], now: Instant) -> None:
        made, texts = self._make(connection, moving)
        run_step_rows.insert(connection, made, now)
        ended = [step for step in made if step.state in FINAL and step.state != RunState.SKIPPED]
        noted = [StepChange(step.parent_run_id, step.run_id) for step in ended]
        noted += [
            StepChange(each.run_id, finish=True) for each in moving if each.plan is not None and each.plan.is_over
        ]
        noted += [
            StepChange(work.parent_run_id, None, each.more)
            for each in moving
            if (work := each.parent.run.work).parent_run_id is not None and any(each.more)
        ]
        run_step_rows.add_changes(connection, noted)
        run_step_rows.move(
            connection, {each.run_id: (each.plan.progress, each.used) for each in moving if each.plan is not None}
        )
        for how in Stop:
            stopped = [each.run_id for each in moving if each.plan is not None and each.plan.stop is how]
            end_rows.stop_steps(connection, stopped, now, at_once=how is Stop.END)
        tenant_rows.add_growth(connection, _growth(made, texts), now)

    def _make(
        self, connection: Connection, moving: Sequence[_Moving]
    ) -> tuple[list[NewStep], Mapping[bytes, Mapping[str, Json]]]:
        """Return the new steps, and the texts that were rendered for them."""
        plans = [(each.parent, each.plan) for each in moving if each.plan is not None]
        drafts = [(parent, step_drafts.drafted(parent, birth)) for parent, plan in plans for birth in plan.births]
        drafts = self._settled(connection, _with_members(connection, _with_teams(connection, drafts)))
        skipped = [step_drafts.skipped(parent, skip) for parent, plan in plans for skip in plan.skips]
        new = [*(step for _, step in drafts), *skipped]
        definitions = self._definitions.load(connection, new, as_written=True)
        results = self._results(connection, drafts)
        too_many = self._too_many(connection, drafts)
        versions = self._versions(connection, drafts, definitions)
        inner = graph_rows.load(connection, versions.values()) if versions else {}
        inputs = StepInputs(partial(run_step_rows.open_input_bytes, connection), several=len(moving) > 1)
        made = []
        texts: dict[bytes, Mapping[str, Json]] = {step.run_id: step_drafts.NO_TEXTS for step in new}
        for parent, step in drafts:
            version = versions.get(step.run_id)
            step = step if version is None else step._replace(workflow_version=version.version)
            sub = None if version is None else inner[version]
            if step.root_run_id in too_many:
                made.append(step_drafts.one_too_many(step, definitions[step.run_id], self._kinds))
                continue
            definition = definitions[step.run_id]
            given = partial(inputs.of, parent, results=results[step.run_id])
            born, texts[step.run_id] = step_drafts.create_step(parent, step, definition, given, sub, self._kinds)
            made.append(born)
        definition_rows.save_step_texts(connection, texts, definitions)
        made += [step_drafts.with_action(step, definitions[step.run_id], self._kinds) for step in skipped]
        return made, texts

    def _too_many(self, connection: Connection, drafts: Sequence[tuple[Parent, NewStep]]) -> set[bytes]:
        """Roots that have as many steps as they may: workflows of a thousand workflows would never come to an end."""
        nested = {step.root_run_id for _, step in drafts if step.root_run_id != step.parent_run_id}
        new, most = Counter(step.root_run_id for _, step in drafts), step_drafts.MAX_STEPS
        return {root for root in nested if run_step_rows.count_below(connection, root, most) + new[root] > most}

    def _settled(
        self, connection: Connection, drafts: Sequence[tuple[Parent, NewStep]]
    ) -> list[tuple[Parent, NewStep]]:
        """With the policies that hold for each: those of the run, unless somebody else works or its workflow speaks."""
        asked: dict[str, list[tuple[NewStep, PolicyQuestion]]] = defaultdict(list)
        for parent, step in drafts:
            question = step_drafts.policy_question(parent, step)
            if question is not None:
                asked[step.namespace].append((step, question))
        found: dict[bytes, Effective] = {}
        for namespace, those in asked.items():
            caps = self._caps or NO_CAPS
            answers = effective_for(connection, namespace, [question for _, question in those], caps=caps)
            found |= {step.run_id: each for (step, _), each in zip(those, answers, strict=True) if each is not None}
        return [(parent, step_drafts.with_effective(parent, step, found.get(step.run_id))) for parent, step in drafts]

    def _results(
        self, connection: Connection, drafts: Sequence[tuple[Parent, NewStep]]
    ) -> dict[bytes, dict[str, str | None] | None]:
        """By step: those that its template names, or those of all ancestors; None = they are too large together."""
        wanted: dict[bytes, list[NodeOf]] = {}
        for parent, step in drafts:
            graph = parent.workflow
            read = results_read(graph.node(step.node_id))
            places = sorted(graph.ancestors(graph.places[step.node_id])) if read is None else ()
            named = [graph.nodes[place].id for place in places] if read is None else sorted(read)
            wanted[step.run_id] = [(step.parent_run_id, node) for node in named]
        heavy = self._too_heavy(connection, wanted)
        light = {run_id: some for run_id, some in wanted.items() if run_id not in heavy}
        found = run_step_rows.results(connection, {each for some in light.values() for each in some})
        read_now = {
            run_id: {node: found[parent, node] for parent, node in some if (parent, node) in found}
            for run_id, some in light.items()
        }
        return {**read_now, **dict.fromkeys(heavy)}

    def _too_heavy(self, connection: Connection, wanted: Mapping[bytes, Sequence[NodeOf]]) -> set[bytes]:
        """Steps that would read more than they could ever be given; a few results are never too many."""
        many = {run_id: some for run_id, some in wanted.items() if len(some) > _FEW_RESULTS}
        if not many:
            return set()
        sizes = run_step_rows.result_sizes(connection, {each for some in many.values() for each in some})
        return {run_id for run_id, some in many.items() if sum(sizes.get(each, 0) for each in some) > _MOST_BYTES}

    def _versions(
        self,
        connection: Connection,
        drafts: Sequence[tuple[Parent, NewStep]],
        definitions: Mapping[bytes, Definition | Exception],
    ) -> dict[bytes, WorkflowVersion]:
        """Versions of steps that are stored workflows: as requested, else as at the root's creation or the newest."""
        subs: dict[bytes, tuple[Parent, NewStep, Definition, str]] = {}
        for parent, step in drafts:
            definition = definitions[step.run_id]
            if not isinstance(definition, Exception) and (name := step_drafts.stored_name(definition.action)):
                subs[step.run_id] = parent, step, definition, name
        if not subs:
            return {}
        names = {(step.namespace, name) for _, step, _, name in subs.values()}
        newest = graph_rows.newest_versions(connection, names)
        found: dict[bytes, WorkflowVersion] = {}
        for run_id, (parent, step, definition, name) in subs.items():
            if (step.namespace, name) not in newest:
                continue
            at_birth = None if parent.effective is None else parent.effective.versions.get(name)
            version = asked_version(definition.action) or at_birth or newest[step.namespace, name]
            found[run_id] = WorkflowVersion(step.namespace, name, version)
        return found


def _with_teams(connection: Connection, drafts: Sequence[tuple[Parent, NewStep]]) -> list[tuple[Parent, NewStep]]:
    """Resolve fallback assignees, which are named by id alone: an agent's, or a team's where no agent has it."""
    named = {(step.namespace, step.assignee) for _, step in drafts if step.fallback and step.assignee is not None}
    found = teams_among(connection, named) if named else set()
    return [
        (parent, step._replace(assignee_type=AssigneeType.TEAM.value))
        if step.fallback and (step.namespace, step.assignee) in found
        else (parent, step)
        for parent, step in drafts
    ]


def _with_members(connection: Connection, drafts: Sequence[tuple[Parent, NewStep]]) -> list[tuple[Parent, NewStep]]:
    """A step that is given to a team names the agent whose turn it is."""
    given: dict[str, list[NewStep]] = defaultdict(list)
    for _, step in drafts:
        if step.assignee_type == AssigneeType.TEAM and step.member is None:
            given[step.namespace].append(step)
    members: dict[bytes, str | None] = {}
    for namespace, those in given.items():
        taken = take_turns(connection, namespace, [step.assignee or "" for step in those])
        members |= {step.run_id: member for step, member in zip(those, taken, strict=True)}
    return [(parent, step._replace(member=members.get(step.run_id, step.member))) for parent, step in drafts]


def _parent(
    run: Advancing, graph: CompiledWorkflow | Exception, definition: Definition | Exception
) -> Parent | Exception:
    if isinstance(graph, Exception):
        return graph
    if isinstance(definition, Exception):
        return definition
    try:
        effective = None if run.work.effective is None else read_effective(run.work.effective)
        return Parent(run, graph, definition, effective, _inputs(run, definition))
    except Exception as wrong:  # one corrupt row is one run's trouble
        return wrong


def facts_of_run(parent: Parent, used: UsedResources) -> WorkflowRunFacts:
    limits = replace(parent.definition.limits, runtime_seconds=None)  # the deadline of the run sees to that
    spent = LimitUsage(cost=credits_of(used.cost), tokens=used.tokens, tool_calls=used.tool_calls)
    return WorkflowRunFacts(
        failure=parent.definition.failure,
        inputs=parent.inputs,
        cap=exceeded_limit(limits, spent),
        cancel_requested=parent.run.work.stop_requested_at is not None,
    )


def _growth(
    made: Sequence[NewStep], texts: Mapping[bytes, Mapping[str, Json]] = MappingProxyType({})
) -> dict[str, tenant_rows.Growth]:
    """A step is a birth as any other, and brings what it is given and what was rendered for it."""
    births = Counter(step.namespace for step in made)
    sizes: Counter[str] = Counter()
    for step in made:
        rendered = texts.get(step.run_id, step_drafts.NO_TEXTS)
        sizes[step.namespace] += len(step.inputs or "") + sum(len(to_text(each)) for each in rendered.values())
    return {name: tenant_rows.Growth(births=count, bytes=sizes[name]) for name, count in births.items()}


def version_of(run: Advancing) -> WorkflowVersion:
    return WorkflowVersion(run.work.namespace, run.work.workflow or "", run.work.workflow_version or 0)


def _inputs(run: Advancing, definition: Definition) -> Json:
    if run.work.inputs is not None:
        return decode_input(from_text(run.work.inputs))
    return decode_input(inputs_for(definition.action.input, definition.inputs_rotation, run.work.rotation_index or 0))


def _sum(before: UsedResources, more: UsedResources) -> UsedResources:
    """Add usage, limited to what a column can hold."""
    return UsedResources(*(max(0, min(one + other, MAX_LONG)) for one, other in zip(before, more, strict=True)))
