"""Digests of stored workflows and of their nodes, each with the sub-workflows that it leads to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from horarium.schedule.sub_workflows import MAX_DEPTH, MAX_REACHABLE, Use
from horarium.store import workflows
from horarium.store.database.json_text import to_text

WHOLE: Final = ""
"""In place of the id of a node: the whole workflow."""
_CHARS: Final = 32
"""128 bits: an author who may choose both documents finds no two with one digest."""


class NodeDigest(NamedTuple):
    own: str
    gates: frozenset[str]
    uses: tuple[Use, ...]


class Edition(NamedTuple):
    """One stored version; `nodes` has an entry for `WHOLE`."""

    uses: tuple[Use, ...]
    nodes: Mapping[str, NodeDigest]


class WorkflowDigests:
    """Reads each version of the workflows of a namespace once. `versions` are those that stand for the newest."""

    def __init__(self, connection: Connection, namespace: str, versions: Mapping[str, int] | None = None) -> None:
        self._connection = connection
        self._namespace = namespace
        self._versions = versions or {}
        self._found: dict[Use, Edition | None] = {}
        self._below: dict[Use, str] = {}

    def find(self, use: Use) -> Edition | None:
        use = Use(use.name, use.version or self._versions.get(use.name))
        if use not in self._found:
            row = workflows.find(self._connection, self._namespace, *use)
            self._found[use] = None if row is None else _edition(row.uses, row.document)
        return self._found[use]

    def tree(self, root: Use) -> dict[str, Edition]:
        """The workflow and those that it leads to, by name; of several versions of one the first that is met."""
        found: dict[str, Edition] = {}
        level = [root]
        while level and len(found) < MAX_REACHABLE:
            use = level.pop()
            edition = None if use.name in found else self.find(use)
            if edition is not None:
                found[use.name] = edition
                level += edition.uses
        return found

    def of(self, edition: Edition) -> dict[str, str]:
        """The digests of its nodes and of the whole. An edit of a sub-workflow changes those of its users."""
        return {name: self._with_uses(node, 0) for name, node in edition.nodes.items()}

    def _with_uses(self, node: NodeDigest, depth: int) -> str:
        if not node.uses or depth > MAX_DEPTH:
            return node.own
        return _digest([node.own, *(self._of_use(use, depth + 1) for use in node.uses)])

    def _of_use(self, use: Use, depth: int) -> str:
        """One that is not stored has the digest of its name: it is a task's, until it is stored."""
        if use not in self._below:
            edition = self.find(use)
            self._below[use] = use.name if edition is None else self._with_uses(edition.nodes[WHOLE], depth)
        return self._below[use]


def _edition(uses: Sequence[Use], document: Mapping[str, Any]) -> Edition:
    written = [node for node in document.get("nodes", ()) if isinstance(node, Mapping)]
    nodes = {str(node.get("id")): _node(node, uses) for node in written}
    return Edition(tuple(uses), {**nodes, WHOLE: NodeDigest(_digest(document), frozenset(), tuple(uses))})


def _node(node: Mapping[str, Any], uses: Sequence[Use]) -> NodeDigest:
    action = node.get("action")
    named = [each for each in action.values() if isinstance(each, str)] if isinstance(action, Mapping) else []
    gates = frozenset(each for each in node.get("gates", ()) if isinstance(each, str))
    return NodeDigest(_digest(node), gates, tuple(use for use in uses if use.name in named))


def _digest(value: object) -> str:
    return sha256(to_text(value).encode()).hexdigest()[:_CHARS]
