"""Reader of a workflow's document: every problem at once, each under its path.

A document lists `nodes` and says what comes before what in either way: `needs` on a node, or `edges`
(`from`/`to` or `source`/`target`, with an optional condition). Both are read into one set of edges.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from horarium.condition import compile_condition
from horarium.core.document.assignee import parse_assignee
from horarium.core.document.field import MemberReader
from horarium.core.document.json_values import WORKFLOW, DocumentProblems, check_storable, checked_object
from horarium.core.document.nodes import ActionReader, check_templates
from horarium.core.document.reader import Kinds
from horarium.core.document.workflow_parts import (
    MAX_EDGES,
    MAX_NODES,
    MAX_TRIGGERS,
    Edge,
    Node,
    TriggerKind,
    WorkflowDefinition,
    WorkflowTrigger,
    edges_into,
    find_cycle,
    pairs_of,
    template_schedule_id,
    topological_order,
)
from horarium.core.policy.approval import parse_approval_policy, parse_retry_policy
from horarium.core.policy.queue import PolicyError, checked_id, parse_name, shown, text, texts, whole_number
from horarium.errors import ConditionError, CycleDetected, InvalidWorkflow

__all__ = [
    "MAX_EDGES",
    "MAX_NODES",
    "MAX_TRIGGERS",
    "Edge",
    "Node",
    "TriggerKind",
    "WorkflowDefinition",
    "WorkflowTrigger",
    "edges_into",
    "find_cycle",
    "parse_workflow",
    "template_schedule_id",
    "topological_order",
]

TriggerCheck = Callable[[WorkflowTrigger], Mapping[str, Sequence[str]]]
"""What is wrong with the schedule of a trigger, by the paths inside of it."""

_MAX_DESCRIPTION = 10_000

# No colon: the last colon of a template schedule's id then separates workflow and key without doubt.
_TRIGGER_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_TRIGGER_ALIASES: Mapping[str, TriggerKind] = {
    "schedule_based": TriggerKind.SCHEDULE,
    "cron": TriggerKind.SCHEDULE,
    "event_based": TriggerKind.EVENT,
}

WORKFLOW_KEYS: Final = (
    "workflow_id",
    "version",
    "name",
    "description",
    "owner",
    "approval_policy",
    "queue",
    "connection",
    "nodes",
    "edges",
    "triggers",
)
_WORKFLOW_ALIASES = {"id": "workflow_id", "task_queue": "queue"}
_NODE_KEYS = (
    "id",
    "name",
    "action",
    "needs",
    "gates",
    "input",
    "retry_policy",
    "timeout_seconds",
    "assignee_type",
    "assignee_id",
)
_NODE_ALIASES = {
    "node_id": "id",
    "depends_on": "needs",
    "inputs": "input",
    "retry": "retry_policy",
    "timeout": "timeout_seconds",
}
_EDGE_ALIASES = {"from": "source", "to": "target"}


def parse_workflow(
    document: object, *, kinds: Kinds | None = None, check_trigger: TriggerCheck | None = None
) -> WorkflowDefinition:
    """Keys in snake_case or camelCase. Raises InvalidWorkflow with all problems, or CycleDetected for a cycle alone.

    Without `kinds` the document is one that we wrote: its actions are kept as they are. Their kinds may be those of
    packages that are gone by now, which is for the launch to say.
    """
    problems = DocumentProblems()
    if not isinstance(document, Mapping):
        problems.add("nodes", f"must be an object, not {shown(document)}")
    check_storable(document, problems, WORKFLOW)
    _raise_any(problems)
    reader = _Reader(problems, kinds, check_trigger)
    given = reader.members("", document, WORKFLOW_KEYS, _WORKFLOW_ALIASES)
    workflow = reader.workflow(given)
    if workflow is None or problems.any:
        _raise_any(problems)
        raise CycleDetected(reader.cycle)
    return workflow


def _raise_any(problems: DocumentProblems) -> None:
    """A problem of the whole is one of its nodes: paths lie under what the document has."""
    if problems.any:
        found = dict(problems.found)
        whole = found.pop("document", None)
        raise InvalidWorkflow(found if whole is None else {"nodes": whole} | found)


class _Reader(MemberReader):
    """One reading of one document. `cycle` are the nodes of one, where the graph has one."""

    def __init__(self, problems: DocumentProblems, kinds: Kinds | None, check_trigger: TriggerCheck | None) -> None:
        super().__init__(problems)
        self.cycle: tuple[str, ...] = ()
        self._kinds = kinds
        self._check_trigger = check_trigger
        self._edge_places: dict[tuple[str, str], str] = {}

    def workflow(self, given: Mapping[str, object]) -> WorkflowDefinition | None:
        """None where something is wrong."""
        workflow_id = self.one("", "workflow_id", given, checked_id, "", needed=True)
        version = self.one("", "version", given, lambda name, value: whole_number(name, value, least=1), 1)
        name = self.one("", "name", given, text, None)
        owner = self.one("", "owner", given, text, None)
        queue = self.one("", "queue", given, text, None)
        connection = self.one("", "connection", given, text, None)
        description = self.one("", "description", given, _description, None)
        approval = self.policy("approval_policy", given, parse_approval_policy)
        actions = None if self._kinds is None else ActionReader(self._kinds, self.problems, queue, connection)
        nodes = [self._node(i, item, actions) for i, item in enumerate(self.array("nodes", given, MAX_NODES))]
        if not nodes and "nodes" not in self.problems.found:
            self.problems.add("nodes", "a workflow has at least one node")
        edges = [self._edge(i, item) for i, item in enumerate(self.array("edges", given, MAX_EDGES))]
        triggers = [self._trigger(i, item) for i, item in enumerate(self.array("triggers", given, MAX_TRIGGERS))]
        self._check_keys(triggers)
        sound = {index: node for index, node in enumerate(nodes) if node is not None}
        joined = self._joined(sound, [edge for edge in edges if edge]) if nodes else None
        if self.problems.any or joined is None:
            return None
        needs: dict[str, list[str]] = {}
        for edge in joined:
            needs.setdefault(edge.target, []).append(edge.source)
        return WorkflowDefinition(
            workflow_id,
            version,
            tuple(replace(node, needs=tuple(needs.get(node.id, ()))) for node in sound.values()),
            joined,
            tuple(each for each in triggers if each),
            owner,
            name,
            description,
            approval,
            queue,
            connection,
        )

    # ── parts ────────────────────────────────────────────────────────────────────────────────────

    def _node(self, index: int, value: object, actions: ActionReader | None) -> Node | None:
        path, before = f"nodes.{index}", self.problems.count
        given = self.members(path, value, _NODE_KEYS, _NODE_ALIASES)
        if not isinstance(value, Mapping) or self.problems.full:
            return None
        node = Node(
            id=self.one(path, "id", given, checked_id, "", needed=True),
            action={},
            needs=self.one(path, "needs", given, lambda n, v: texts(n, v, most=MAX_NODES), ()),
            gates=self.one(path, "gates", given, texts, ()),
            retry_policy=self.policy("retry_policy", given, parse_retry_policy, path),
            timeout_seconds=self.one(path, "timeout_seconds", given, lambda n, v: whole_number(n, v, least=1), None),
            assignee=self.checked(path, lambda: parse_assignee(given.get("assignee_type"), given.get("assignee_id"))),
            name=self.one(path, "name", given, text, None),
            input=given.get("input"),
            has_input="input" in given,
        )
        if actions is not None:
            node = actions.read(path, given.get("action"), node)
        else:
            node = replace(node, action=self.one(path, "action", given, checked_object, {}, needed=True))
        # What is wrong with its id is told; whoever names it is told nothing, since it may be meant.
        return node if node.id or self.problems.count == before else None

    def _edge(self, index: int, value: object) -> Edge | None:
        path = f"edges.{index}"
        given = self.members(path, value, ("source", "target", "condition"), _EDGE_ALIASES)
        if not isinstance(value, Mapping):
            return None
        ends = {"from": given.get("source"), "to": given.get("target")}
        source, target = (self.one(path, name, ends, checked_id, "", needed=True) for name in ("from", "to"))
        if not (source and target):
            return None
        if (source, target) in self._edge_places:
            self.problems.add(path, f"{source} → {target} is specified twice")
            return None
        self._edge_places[source, target] = path
        if "condition" not in given:
            return Edge(source, target)
        try:
            return Edge(source, target, compile_condition(given["condition"]))
        except ConditionError as wrong:
            self.problems.add(f"{path}.condition", wrong.message)
            return Edge(source, target)

    def _trigger(self, index: int, value: object) -> WorkflowTrigger | None:
        """`{key?, type?, schedule: {…}}`, or the settings beside `key` and `type` without a `schedule`."""
        path = f"triggers.{index}"
        if not isinstance(value, Mapping):
            self.problems.add(path, f"must be an object, not {shown(value)}")
            return None
        given = {str(name): item for name, item in value.items()}
        key = self.checked(path, lambda: _trigger_key(given.pop("key", None), index))
        wanted = given.pop("type", None) or "schedule"
        kind = self.checked(path, lambda: parse_name(TriggerKind, _TRIGGER_ALIASES, wanted, "type"))
        nested = "schedule" in given
        settings = given.pop("schedule") if nested else given
        if nested and given:
            self.problems.add(f"{path}.{min(given)[:64]}", "unknown key; move it into `schedule`")
        if not isinstance(settings, Mapping):
            self.problems.add(f"{path}.schedule", f"must be an object, not {shown(settings)}")
            return None
        if key is None or kind is None:
            return None
        found = WorkflowTrigger(key, kind, settings)
        if self._check_trigger is not None and kind is TriggerKind.SCHEDULE:
            inside = f"{path}.schedule" if nested else path
            for place, said in self._check_trigger(found).items():
                for each in said:
                    self.problems.add(f"{inside}.{place}" if place else inside, each)
        return found

    def _check_keys(self, triggers: Sequence[WorkflowTrigger | None]) -> None:
        seen: set[str] = set()
        for index, trigger in enumerate(triggers):
            if trigger is not None and trigger.key in seen:
                self.problems.add(f"triggers.{index}.key", f"the key {trigger.key!r} is specified twice")
            seen.add("" if trigger is None else trigger.key)

    # ── the graph ────────────────────────────────────────────────────────────────────────────────

    def _joined(self, nodes: Mapping[int, Node], edges: Sequence[Edge]) -> tuple[Edge, ...] | None:
        """Edges with a condition, then the others by the node that they lead to. None where there is no such graph."""
        # Before any edge is made: a thousand nodes that need a thousand each would make a million.
        if sum(len(node.needs) for node in nodes.values()) > MAX_EDGES:
            self.problems.add("nodes", f"has more than {MAX_EDGES} needs in total")
            return None
        self._check_names(nodes, edges)
        joined = _united(nodes.values(), edges)
        if len(joined) > MAX_EDGES:
            self.problems.add("edges", f"{len(joined)} edges; at most {MAX_EDGES} are allowed per workflow")
            return None
        self.cycle = find_cycle([node.id for node in nodes.values()], pairs_of(joined)) or ()
        if self._kinds is not None:
            check_templates(nodes, pairs_of(joined), self.problems)
        if self.cycle and self.problems.any:
            self.problems.add("edges", CycleDetected(self.cycle).message)
        return None if self.cycle else joined

    def _check_names(self, nodes: Mapping[int, Node], edges: Sequence[Edge]) -> None:
        known = {node.id for node in nodes.values()}
        seen: set[str] = set()
        for index, node in nodes.items():
            if node.id in seen:
                self.problems.add(f"nodes.{index}.id", f"the ID {node.id!r} is specified twice")
            seen.add(node.id)
            for source in node.needs:
                self._check_end(f"nodes.{index}.needs", source, node.id, known)
        for edge in edges:
            path = self._edge_places[edge.source, edge.target]
            self._check_end(f"{path}.from", edge.source, edge.target, known)
            if edge.target not in known:
                self.problems.add(f"{path}.to", f"{shown(edge.target)} is not a node")

    def _check_end(self, path: str, source: str, target: str, known: set[str]) -> None:
        if source == target:
            self.problems.add(path, f"the node {shown(target)} cannot depend on itself")
        elif source not in known:
            self.problems.add(path, f"{shown(source)} is not a node")


def _united(nodes: Collection[Node], edges: Sequence[Edge]) -> tuple[Edge, ...]:
    """Those whose ends are nodes: of the others it was told, and the rest is looked at without them."""
    given = set(pairs_of(edges))
    into: dict[str, list[Edge]] = {node.id: [] for node in nodes}
    sound = [edge for edge in edges if edge.source in into and edge.target in into and edge.source != edge.target]
    for edge in sound:
        if edge.condition is None:
            into[edge.target].append(edge)
    for node in nodes:
        needed = (source for source in node.needs if (source, node.id) not in given)
        into[node.id] += [Edge(source, node.id) for source in needed if source in into and source != node.id]
    return (*(edge for edge in sound if edge.condition is not None), *(edge for some in into.values() for edge in some))


def _trigger_key(value: object, index: int) -> str:
    if value is None:
        return str(index)
    if not isinstance(value, str) or _TRIGGER_KEY.fullmatch(value) is None:
        raise PolicyError("key", f"{shown(value)} is not a valid key: use 1 to 64 of A-Z a-z 0-9 . _ -")
    return value


def _description(field: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > _MAX_DESCRIPTION:
        raise PolicyError(field, f"must be a string of at most {_MAX_DESCRIPTION} characters")
    return value
