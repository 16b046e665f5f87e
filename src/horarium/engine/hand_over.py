"""How the run of a stored workflow begins: nobody outside is asked, so it is handed over where it was claimed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from horarium.engine.step_rows import asked_version
from horarium.instant import SECOND, Instant
from horarium.life.change import Wait
from horarium.schedule.definition import RunDefinition
from horarium.schedule.kinds import WORKFLOW
from horarium.store import workflow_graphs
from horarium.store.database import Connection
from horarium.store.database.set_wise import Update
from horarium.store.runs import step_changes
from horarium.store.runs.changes import write_changes
from horarium.store.runs.claims import ReadyTarget
from horarium.store.runs.definitions import Definitions
from horarium.store.runs.step_changes import Noted
from horarium.store.runs.work import Work
from horarium.store.runs.writer import Recorded
from horarium.store.tables import runs
from horarium.store.workflow_graphs import WorkflowVersion

_PREFIX = f"{WORKFLOW.name}:"


def stored_workflows(connection: Connection, ready: Iterable[ReadyTarget]) -> frozenset[ReadyTarget]:
    """Those targets that are stored workflows now."""
    named = {
        (each.namespace, each.target.removeprefix(_PREFIX)): each for each in ready if each.target.startswith(_PREFIX)
    }
    if not named:
        return frozenset()
    return frozenset(named[name] for name in workflow_graphs.newest_versions(connection, named))


class Handed(NamedTuple):
    """`refused` are runs that can never begin, with the reason."""

    begun: list[Recorded]
    refused: dict[bytes, str]


def workflows(
    connection: Connection, works: Sequence[Work], definitions: Definitions[RunDefinition], now: Instant
) -> Handed:
    """They run from now on, and are to be looked at; one whose version is not there is refused."""
    if not works:
        return Handed([], {})
    loaded = definitions.load(connection, works)
    named = _named(connection, works, loaded)
    graphs = workflow_graphs.load(connection, [each for each in named.values() if isinstance(each, WorkflowVersion)])
    begun: list[tuple[Work, WorkflowVersion, Instant | None]] = []
    refused: dict[bytes, str] = {}
    for work in works:
        name, definition = named[work.run_id], loaded[work.run_id]
        graph = graphs[name] if isinstance(name, WorkflowVersion) else name
        if isinstance(graph, Exception) or isinstance(name, Exception) or isinstance(definition, Exception):
            refused[work.run_id] = str(graph)
        else:
            begun.append((work, name, _deadline(work, definition, now)))
    write_changes(connection, [(work, _BEGUN) for work, _, _ in begun], now)
    _BEGIN.run(connection, [(work.run_id, name.version, deadline) for work, name, deadline in begun])
    step_changes.note(connection, [Noted(work.run_id) for work, _, _ in begun])
    return Handed([Recorded(work, _BEGUN) for work, _, _ in begun], refused)


_BEGUN = Wait(None, queued=False)
_BEGIN = Update(runs, ("run_id", "workflow_version", "deadline"))


def _named(
    connection: Connection, works: Sequence[Work], definitions: Mapping[bytes, RunDefinition | Exception]
) -> dict[bytes, WorkflowVersion | Exception]:
    """As it was settled at the birth; for one that was born before its workflow was stored, as it is asked for now."""
    late = {(work.namespace, work.workflow or "") for work in works if work.workflow_version is None}
    newest = workflow_graphs.newest_versions(connection, late) if late else {}
    named: dict[bytes, WorkflowVersion | Exception] = {}
    for work in works:
        definition, name = definitions[work.run_id], work.workflow or ""
        if isinstance(definition, Exception):
            named[work.run_id] = LookupError(f"The definition of this run cannot be read: {definition}")
            continue
        version = work.workflow_version or asked_version(definition.action) or newest.get((work.namespace, name), 0)
        named[work.run_id] = WorkflowVersion(work.namespace, name, version)
    return named


def _deadline(work: Work, definition: RunDefinition, now: Instant) -> Instant | None:
    """Where somebody wrote one: steps have their own, and a question to a person may stay open for a day.

    The time that a retry policy gives to an attempt is that of each step.
    """
    written = definition.action.timeout
    bounds = [work.ends_by, None if written is None else now + written * SECOND]
    return min((bound for bound in bounds if bound is not None), default=None)
