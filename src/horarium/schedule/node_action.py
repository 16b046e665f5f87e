"""Reads what a node of a workflow does, as the action of a schedule is read."""

from __future__ import annotations

from dataclasses import replace

from horarium.policy.names import PolicyError
from horarium.schedule.aliases import normalise
from horarium.schedule.canonical import action_document
from horarium.schedule.definition import Action
from horarium.schedule.document import run_part_of
from horarium.schedule.envelope import decode_input
from horarium.schedule.json_limits import Json
from horarium.schedule.kinds import Kinds
from horarium.schedule.problems import Given, Problems
from horarium.schedule.read_action import read_action
from horarium.schedule.reading import Reader
from horarium.schedule.secret import KINDS, check_places, check_value
from horarium.schedule.template import has_pointers
from horarium.schedule.workflow_parts import Node

_INPUT = "action.input"


class ActionReader:
    """`queue` and `connection` are those that the workflow names for nodes that name none."""

    def __init__(
        self, kinds: Kinds, problems: Problems, queue: str | None = None, connection: str | None = None
    ) -> None:
        self._kinds, self._problems = kinds, problems
        self._lent = {"queue": queue, "connection": connection}

    def read(self, path: str, value: object, node: Node) -> Node:
        """The node with its action in the canonical form. What the action calls its input is the node's."""
        problems = Problems()
        given = normalise({"action": value}, problems, self._kinds.names)
        own = given.places.pop(_INPUT, None)
        if own is not None and node.has_input:
            problems.add(own.path, "conflicts with the `input` of the node; send only one of them")
        lent = {
            f"action.{name}": Given(f"action.{name}", value)
            for name, value in self._lent.items()
            if value is not None and f"action.{name}" not in given.places
        }
        action = read_action(Reader({**lent, **given.places}, problems, given.bad), self._kinds, inherits=True)
        check_places(given.places, action.kind, problems)
        if own is not None and not node.has_input:
            node = replace(node, input=own.value, has_input=True)
        self._tell(problems, path)
        if node.has_input:
            self._check_input(path, action, node.input, own)
        queue = None if "action.queue" in lent else action.queue
        connection = None if "action.connection" in lent else action.connection
        return replace(node, action=action_document(replace(action, queue=queue, connection=connection)))

    def _check_input(self, path: str, action: Action, value: Json, own: Given | None) -> None:
        """Check an input; one that is filled in when the step is created can only be checked then."""
        where = f"{path}.input" if own is None else f"{path}.{own.path}"
        check_value(value, where, self._problems, allowed=action.kind in KINDS)
        kind = self._kinds.get(action.kind)
        if kind is None or has_pointers(value):
            return
        try:
            kind.check_input("", value)
            decode_input(value)
        except PolicyError as wrong:
            self._problems.add(f"{where}.{wrong.field}" if wrong.field else where, wrong.text)

    def _tell(self, problems: Problems, path: str) -> None:
        for place, said in problems.found.items():
            for each in said:
                self._problems.add(f"{path}.{place}", each)


def action_of(node: Node) -> Action:
    """The action of a node of a workflow that is stored. Raises InvalidDefinition for a row that somebody damaged."""
    return run_part_of({"action": node.action}).action
