"""Start runs of stored workflows and advance them: read the results of steps and write what follows, many runs at a
time.

A stored workflow calls nothing outside, so its run starts in the transaction that claims it.

Every end of a step leaves a row. The rows of some workflows are taken, their runs are locked, and in the same
transaction steps are created, skipped or stopped. A workflow whose nodes are all over is ended in a transaction of
its own, because the end of a run locks the position of its schedule first. A crash between any two of them leaves a
row that the next process takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from horarium.core.decision.advance import first_failure, is_over, results_at_end, run_end
from horarium.core.document.json_values import Json
from horarium.core.document.reader import SHIPPED, Kinds
from horarium.core.document.states import RunState
from horarium.core.lifecycle.live_run import Rules
from horarium.core.lifecycle.outcome import WorkflowEnded
from horarium.core.policy.approval import UNASKED
from horarium.core.policy.limits import RunLimits
from horarium.engine.step_drafts import Parent, TooMuchAtOnce
from horarium.engine.workflow_runs import Workflows, facts_of_run
from horarium.features.runs import step_rows
from horarium.features.runs.step_rows import NodeOf, StepChange
from horarium.features.runs.transition_rows import (
    LogFields,
    ReportedEvent,
    SettledRun,
    find_run_fields,
    read_run_fields,
    record_events,
    settled,
)
from horarium.features.schedules.due_rows import Plannings
from horarium.instant import Instant
from horarium.launchers.payload import MAX_CUT_RESULT, MAX_RESULT_BYTES, cut_result
from horarium.platform.clock import Clock
from horarium.platform.database import Connection, Database
from horarium.platform.database.errors import is_fault_of_a_row
from horarium.platform.database.statements import from_text, to_text
from horarium.platform.database.wakeups import READY

# Rows that one step looks at: those of a run are taken all together.
_BATCH = 400
# Of workflows and inputs that one transaction reads for several runs. A thousand short nodes have as many; SQLite's
# one writer would be held for seconds by a hundred such runs.
_BYTES_AT_ONCE = 65_536


@dataclass(frozen=True, slots=True)
class Advanced:
    """`runs` were moved on, `ended` are over. `busy`: others are at work on some, so that there may be more soon."""

    runs: int = 0
    ended: Sequence[SettledRun] = ()
    busy: bool = False

    @property
    def total(self) -> int:
        return self.runs + len(self.ended)


class Advancer:
    """Any number of processes may run one; a run is advanced by one at a time."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        kinds: Kinds = SHIPPED,
        caps: RunLimits | None = None,
        log: FilteringBoundLogger | None = None,
    ) -> None:
        self._database = database
        self._clock = clock
        self._log = log or structlog.get_logger()
        self._workflows = Workflows(kinds, caps)
        self._known = Plannings()

    def step(self) -> Advanced:
        """Process the changes noted so far, up to a batch."""
        noted = self._database.glance(lambda connection: step_rows.first_changed(connection, _BATCH))
        moved = sum(self._move_on(some) for some in self._parts(noted.to_move))
        ended = self._end(noted.to_end) if noted.to_end else []
        return Advanced(moved, ended, moved < len(noted.to_move))

    # ── moving on ────────────────────────────────────────────────────────────────────────────────

    def _parts(self, run_ids: Sequence[bytes]) -> list[list[bytes]]:
        """Divide runs into those that one transaction moves on."""
        if len(run_ids) < 2:
            return [[*run_ids]] if run_ids else []
        sizes = self._database.glance(lambda connection: step_rows.sizes(connection, run_ids))
        parts: list[list[bytes]] = []
        room = 0
        for run_id in run_ids:
            room -= sizes.get(run_id, 0)
            if not parts or room < 0:
                parts.append([])
                room = _BYTES_AT_ONCE - sizes.get(run_id, 0)
            parts[-1].append(run_id)
        return parts

    def _move_on(self, run_ids: Sequence[bytes]) -> int:
        now = self._clock.now()
        try:
            return self._database.write(lambda connection: self._advance(connection, run_ids, now))
        except TooMuchAtOnce:
            return sum(self._move_on([run_id]) for run_id in run_ids)
        except Exception as wrong:  # one of them cannot be moved; the others do not wait for it
            if not is_fault_of_a_row(wrong):
                raise
            return sum(self._advance_alone(run_id, now) for run_id in run_ids)

    def _advance(self, connection: Connection, run_ids: Sequence[bytes], now: Instant) -> int:
        """Advance runs that no other process has locked, and return their number; one that cannot advance is to end."""
        moved = self._workflows.move_on(connection, run_ids, now)
        step_rows.add_changes(connection, [StepChange(run.work.run_id, finish=True) for run, _ in moved.broken])
        for run, why in moved.broken:
            self._tell(find_run_fields(connection, run.work.run_id), why)
        self._database.notify(connection, READY)
        return moved.runs

    def _advance_alone(self, run_id: bytes, now: Instant) -> int:
        try:
            return self._database.write(lambda connection: self._advance(connection, [run_id], now))
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            why = wrong
        self._give_up(run_id, why, now)
        return 1

    # ── ending ───────────────────────────────────────────────────────────────────────────────────

    def _end(self, run_ids: Sequence[bytes]) -> list[SettledRun]:
        now = self._clock.now()
        try:
            return self._database.write(lambda connection: self._finish(connection, run_ids, now))
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            return [each for run_id in run_ids for each in self._finish_alone(run_id, now)]

    def _finish_alone(self, run_id: bytes, now: Instant) -> list[SettledRun]:
        try:
            return self._database.write(lambda connection: self._finish(connection, [run_id], now))
        except Exception as wrong:
            if not is_fault_of_a_row(wrong):
                raise
            why = wrong
        return self._give_up(run_id, why, now)

    def _finish(self, connection: Connection, run_ids: Sequence[bytes], now: Instant) -> list[SettledRun]:
        """Its steps are final, and so are its letters: nothing that is read here can change before it is written."""
        runs = [each for each in step_rows.read_workflows(connection, run_ids) if each.work.state == RunState.RUNNING]
        sound: list[Parent] = []
        happened: list[ReportedEvent] = []
        for run, parent in self._workflows.read(connection, runs):
            if isinstance(parent, Exception):
                happened.append(_given_up(run.work.run_id, parent))
            elif not is_over(run.progress or "."):
                happened.append(
                    _given_up(
                        run.work.run_id, ValueError("the stored node states do not match the nodes of its definition")
                    )
                )
            else:
                sound.append(parent)
        happened += self._ends(connection, sound)
        recorded = record_events(connection, self._known, happened, now=now)
        step_rows.take_changes(connection, run_ids, finish=True)
        self._database.notify(connection, READY)
        return settled(connection, recorded)

    def _ends(self, connection: Connection, parents: Sequence[Parent]) -> list[ReportedEvent]:
        letters = {each.run_id: each.run.progress or "" for each in parents}
        ends = {each.run_id: results_at_end(each.workflow, letters[each.run_id]) for each in parents}
        results = _results(connection, ends)
        failed = {each.run_id: first_failure(each.workflow, letters[each.run_id]) or "" for each in parents}
        facts = step_rows.failures(connection, [(run_id, node) for run_id, node in failed.items() if node])
        happened = []
        for each in parents:
            run_id = each.run_id
            about = facts_of_run(each, each.run.work.used)
            end = run_end(letters[run_id], about, results[run_id], facts.get((run_id, failed[run_id])))
            over = WorkflowEnded(end.state, end.result, end.error, cause=end.cause)
            happened.append(ReportedEvent(run_id, over, Rules(UNASKED, each.definition.limits)))
        return happened

    def _give_up(self, run_id: bytes, why: Exception, now: Instant) -> list[SettledRun]:
        about = read_run_fields(self._database, run_id)
        self._tell(about, why)

        def write(connection: Connection) -> list[SettledRun]:
            recorded = record_events(connection, self._known, [_given_up(run_id, why)], now=now)
            step_rows.delete_changes(connection, [run_id])
            return settled(connection, recorded)

        try:
            return self._database.write(write)
        except Exception as wrong:  # it cannot even be ended, and must not stand before the others
            if not is_fault_of_a_row(wrong):
                raise
            self._tell(about, wrong)
        self._database.write(lambda connection: step_rows.delete_changes(connection, [run_id]))
        return []

    def _tell(self, about: LogFields, why: Exception) -> None:
        self._log.error("workflow_advance_failed", **about, error=f"{type(why).__name__}: {why}")


def _results(connection: Connection, ends: Mapping[bytes, Sequence[str]]) -> dict[bytes, dict[str, Json]]:
    """By run, of its end nodes; what is larger than a result may be is cut, as that of any run, and not read whole."""
    several = [(run_id, node) for run_id, nodes in ends.items() if len(nodes) > 1 for node in nodes]
    sizes = step_rows.result_sizes(connection, several)
    cut = {run_id: _first(run_id, nodes, sizes) for run_id, nodes in ends.items() if _is_large(run_id, nodes, sizes)}
    read = {run_id: cut.get(run_id, nodes) for run_id, nodes in ends.items()}
    texts = step_rows.results(connection, [(run_id, node) for run_id, nodes in read.items() for node in nodes])
    found = {run_id: {node: from_text(texts.get((run_id, node))) for node in nodes} for run_id, nodes in read.items()}
    return found | {run_id: cut_result(to_text(found[run_id]).encode()) for run_id in cut}


def _is_large(run_id: bytes, nodes: Sequence[str], sizes: Mapping[NodeOf, int]) -> bool:
    return sum(sizes.get((run_id, node), 0) for node in nodes) > MAX_RESULT_BYTES


def _first(run_id: bytes, nodes: Sequence[str], sizes: Mapping[NodeOf, int]) -> list[str]:
    """As many as the text that is kept may show."""
    some, total = [], 0
    for node in nodes:
        some.append(node)
        total += sizes.get((run_id, node), 0)
        if total > MAX_CUT_RESULT:
            break
    return some


def _given_up(run_id: bytes, why: Exception) -> ReportedEvent:
    error = f"The workflow cannot advance: {why}"
    return ReportedEvent(run_id, WorkflowEnded(RunState.FAILED, error=error, error_class="unreadable_workflow"))
