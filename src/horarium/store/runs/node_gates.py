"""Which gates the nodes of steps declare: read off the version of the workflow that each step is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection, select

from horarium.store.database.found import rows_with
from horarium.store.database.json_text import from_text
from horarium.store.runs.work import Work
from horarium.store.tables import workflows

_KEY = (workflows.c.namespace, workflows.c.workflow_id, workflows.c.version)


def node_gates(connection: Connection, steps: Iterable[Work]) -> dict[bytes, tuple[str, ...]]:
    """By step. What cannot be found declares none: that the step waits was settled at its birth."""
    of = {step.run_id: step for step in steps if step.of_workflow is not None and step.of_version is not None}
    wanted = {(step.namespace, step.of_workflow, step.of_version) for step in of.values()}
    if not wanted:
        return {}
    found = rows_with(connection, select(*_KEY, workflows.c.document), _KEY, wanted)
    documents = {(namespace, name, version): from_text(text) for namespace, name, version, text in found}
    return {
        run_id: _declared(documents.get((step.namespace, step.of_workflow, step.of_version)), step.node_id)
        for run_id, step in of.items()
    }


def _declared(document: object, node_id: str | None) -> tuple[str, ...]:
    nodes: Sequence[object] = document.get("nodes", ()) if isinstance(document, dict) else ()
    for node in nodes:
        if isinstance(node, dict) and node_id in (node.get("id"), node.get("node_id")):
            return tuple(node.get("gates") or ())
    return ()
