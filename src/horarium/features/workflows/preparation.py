"""Start runs of stored workflows in the transaction that claims them: a stored workflow calls nothing outside.

Version, graph and deadline are settled together for all runs of a claim. The advancer of the engine then creates the
steps with their inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from horarium.core.document.definition import RunDefinition, asked_version
from horarium.core.document.reader import WORKFLOW
from horarium.core.lifecycle.outcome import WaitForTarget
from horarium.features.runs import step_rows
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.preparation import StartedRuns
from horarium.features.runs.step_rows import StepChange
from horarium.features.runs.transition_rows import RecordedChange
from horarium.features.runs.update_rows import write_changes
from horarium.features.runs.work_rows import ReadyTarget, RunWork
from horarium.features.workflows import graph_rows
from horarium.features.workflows.graph_rows import WorkflowVersion
from horarium.instant import SECOND, Instant
from horarium.platform.database import Connection

_PREFIX = f"{WORKFLOW.name}:"
_BEGUN = WaitForTarget(None, queued=False)


class WorkflowStarter:
    """Runs of workflows that are stored, or were when the run was created."""

    kind = WORKFLOW.name

    def targets(self, connection: Connection, ready: Iterable[ReadyTarget]) -> Collection[ReadyTarget]:
        """Those targets that are stored workflows now."""
        named = {
            (each.namespace, each.target.removeprefix(_PREFIX)): each
            for each in ready
            if each.target.startswith(_PREFIX)
        }
        if not named:
            return ()
        return [named[name] for name in graph_rows.newest_versions(connection, named)]

    def needed(self, work: RunWork) -> bool:
        return work.workflow_version is not None

    def start(
        self, connection: Connection, works: Sequence[RunWork], definitions: Definitions[RunDefinition], now: Instant
    ) -> StartedRuns:
        """They run from now on, and are to be looked at; one whose version is not there is refused."""
        if not works:
            return StartedRuns([], {})
        loaded = definitions.load(connection, works)
        named = _named(connection, works, loaded)
        graphs = graph_rows.load(connection, [each for each in named.values() if isinstance(each, WorkflowVersion)])
        begun: list[tuple[RunWork, WorkflowVersion, Instant | None]] = []
        refused: dict[bytes, str] = {}
        for work in works:
            name, definition = named[work.run_id], loaded[work.run_id]
            graph = graphs[name] if isinstance(name, WorkflowVersion) else name
            if isinstance(graph, Exception) or isinstance(name, Exception) or isinstance(definition, Exception):
                refused[work.run_id] = str(graph)
            else:
                begun.append((work, name, _deadline(work, definition, now)))
        write_changes(connection, [(work, _BEGUN) for work, _, _ in begun], now)
        step_rows.set_versions(connection, [(work.run_id, name.version, deadline) for work, name, deadline in begun])
        step_rows.add_changes(connection, [StepChange(work.run_id) for work, _, _ in begun])
        return StartedRuns([RecordedChange(work, _BEGUN) for work, _, _ in begun], refused)


def _named(
    connection: Connection, works: Sequence[RunWork], definitions: Mapping[bytes, RunDefinition | Exception]
) -> dict[bytes, WorkflowVersion | Exception]:
    """As it was settled at the birth; for one that was born before its workflow was stored, as it is asked for now."""
    late = {(work.namespace, work.workflow or "") for work in works if work.workflow_version is None}
    newest = graph_rows.newest_versions(connection, late) if late else {}
    named: dict[bytes, WorkflowVersion | Exception] = {}
    for work in works:
        definition, name = definitions[work.run_id], work.workflow or ""
        if isinstance(definition, Exception):
            named[work.run_id] = LookupError(f"The definition of this run cannot be read: {definition}")
            continue
        version = work.workflow_version or asked_version(definition.action) or newest.get((work.namespace, name), 0)
        named[work.run_id] = WorkflowVersion(work.namespace, name, version)
    return named


def _deadline(work: RunWork, definition: RunDefinition, now: Instant) -> Instant | None:
    """Where somebody wrote one: steps have their own, and a question to a person may stay open for a day.

    The time that a retry policy gives to an attempt is that of each step.
    """
    written = definition.action.timeout
    bounds = [work.ends_by, None if written is None else now + written * SECOND]
    return min((bound for bound in bounds if bound is not None), default=None)
