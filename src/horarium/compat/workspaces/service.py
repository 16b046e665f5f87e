"""The schedules of a workspace: what an agent, or whoever looks after it, does with the prompts that come to it.

A workspace is an agent, and its schedules are ordinary ones. The role `agent` has its own workspace and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.document.assignee import AgentSchedules
from horarium.core.document.states import Reason, RunState, Status
from horarium.errors import InvalidDefinition
from horarium.features.agents import rows as agent_rows
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.model import AgentNotFound
from horarium.features.agents.policy_rows import find_agents
from horarium.features.agents.teams import require_peer
from horarium.features.agents.workspace_model import (
    NotFired,
    WorkspaceCallerUnnamed,
    WorkspaceNameTaken,
    WorkspaceRequestInvalid,
)
from horarium.features.agents.workspace_words import (
    RequestError,
    ScheduleRequest,
    change_document,
    last_error,
    new_document,
    prompt_of,
    read_change,
    read_new,
    refusal,
)
from horarium.features.resources import Resources
from horarium.features.runs import occurrences
from horarium.features.runs.occurrences import Skipped
from horarium.features.runs.service import RunView
from horarium.features.schedules import lifecycle, lookup_rows, triggers
from horarium.features.schedules import service as schedule_service
from horarium.features.schedules.creation import ScheduleChange, next_due
from horarium.features.schedules.drafts import require_namespace, write_of
from horarium.features.schedules.lookup_rows import WorkspaceRow
from horarium.features.schedules.rows import ScheduleRow
from horarium.instant import Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.errors import Forbidden, ScheduleNotFound
from horarium.platform.wire import Permission, Role, TriggerOutcome

MOST_LISTED = 1_000
MOST_HISTORY = 20


@dataclass(frozen=True, slots=True)
class WorkspaceScheduleRow:
    """`document` is the newest; `next_due` also that of a paused one: what a resume would bring."""

    row: ScheduleRow
    document: Mapping[str, Any]
    next_due: Instant | None

    @property
    def run_count(self) -> int:
        """Skips count as runs."""
        return self.row.fires_count + self.row.skipped_count

    @property
    def last_run_at(self) -> Instant | None:
        times = [at for at in (self.row.last_fired_at, self.row.last_skipped_at) if at is not None]
        return max(times, default=None)

    @property
    def last_error(self) -> str:
        row = self.row
        skipped_since = row.last_skipped_at is not None and row.last_skipped_at > (row.last_completed_at or 0)
        return last_error(
            row.last_status,
            None if skipped_since else row.last_state,
            row.last_error,
            skip_reason=row.last_skip_reason,
            empty_in_a_row=row.empty_in_a_row,
        )

    @property
    def is_enabled(self) -> bool:
        return self.row.status is not Status.PAUSED


@dataclass(frozen=True, slots=True)
class WorkspacePage:
    """`after` is what asks for the rest; None = this is all."""

    schedules: tuple[WorkspaceScheduleRow, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class WorkspaceHistory:
    """Newest first, of the schedule as it is now."""

    row: ScheduleRow
    document: Mapping[str, Any]
    rows: tuple[RunView | Skipped, ...]


# ── looking ──────────────────────────────────────────────────────────────────────────────────────────


def list_schedules(
    resources: Resources, caller: Caller, workspace_id: str, *, after: str | None = None, most: int = MOST_LISTED
) -> WorkspacePage:
    """Oldest first, as many as fit in an answer; `after` is the id of the last one that was seen."""

    def look(connection: Connection) -> WorkspacePage:
        enter(connection, caller, workspace_id, Permission.LOOK)
        return _page(resources, connection, caller.namespace, workspace_id, after, most)

    return resources.database.read(look)


def health(
    resources: Resources,
    caller: Caller,
    workspace_id: str,
    *,
    named: str | None,
    after: str | None = None,
    most: int = MOST_LISTED,
) -> WorkspacePage:
    """The same for peers, who are shown less of it; `named` is for which workspace an agent says that it asks.

    A name is never a pass: it must be that of the token.
    """

    def look(connection: Connection) -> WorkspacePage:
        caller.require(Permission.LOOK)
        if caller.agent_id is not None:
            if not named:
                raise WorkspaceCallerUnnamed()
            if named != caller.agent_id:
                raise Forbidden("access denied")
            require_peer(connection, caller, workspace_id)
        _require_workspace(connection, caller, workspace_id)
        return _page(resources, connection, caller.namespace, workspace_id, after, most)

    return resources.database.read(look)


def history(resources: Resources, caller: Caller, workspace_id: str, schedule_id: str) -> WorkspaceHistory:
    """The newest runs and the occurrences that had none."""

    def look(connection: Connection) -> WorkspaceHistory:
        able = enter(connection, caller, workspace_id, Permission.LOOK)
        row, document = _own(connection, caller, workspace_id, schedule_id)
        inside = replace(resources, database=JoinedTransaction(resources.database, connection))
        page = occurrences.list_occurrences(inside, able, schedule_id, page_size=MOST_HISTORY)
        return WorkspaceHistory(row, document, page.rows)

    return resources.database.read(look)


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────


def create(resources: Resources, caller: Caller, workspace_id: str, body: object) -> ScheduleChange:
    """Raises WorkspaceNameTaken, and WorkspaceRequestInvalid with what is wrong."""
    wish = _read(read_new(body))

    def work(connection: Connection, inside: Resources) -> ScheduleChange:
        able = enter(connection, caller, workspace_id, Permission.SCHEDULE, lock=True)
        _check_name(connection, caller, workspace_id, wish.name)
        _require_writable(connection, caller, workspace_id)
        done = _said(wish, lambda: schedule_service.create(inside, able, new_document(wish, workspace_id)))
        lookup_rows.set_created_in_workspace(connection, caller.namespace, done.schedule_id)
        return done

    return _written(resources, body, work)


def change(
    resources: Resources,
    caller: Caller,
    workspace_id: str,
    schedule_id: str,
    body: object,
    *,
    if_version: int | None = None,
) -> ScheduleChange:
    """Change a schedule; missing fields stay. Enabling it again never runs past occurrences."""
    wish = _read(read_change(body))

    def work(connection: Connection, inside: Resources) -> ScheduleChange:
        able = enter(connection, caller, workspace_id, Permission.SCHEDULE, lock=wish.name is not None)
        row, _ = _own(connection, caller, workspace_id, schedule_id)
        _require_writable(connection, caller, workspace_id, row)
        _check_name(connection, caller, workspace_id, wish.name, beside=schedule_id)
        document = change_document(wish)
        return _said(wish, lambda: schedule_service.update(inside, able, schedule_id, document, if_version=if_version))

    return _written(resources, body, work)


def delete(
    resources: Resources, caller: Caller, workspace_id: str, schedule_id: str, *, if_version: int | None = None
) -> ScheduleChange:
    able, _ = _entered(resources, caller, workspace_id, schedule_id, Permission.SCHEDULE, writes=True)
    return lifecycle.delete(resources, able, schedule_id, if_version=if_version)


def run(resources: Resources, caller: Caller, workspace_id: str, schedule_id: str) -> tuple[str, RunState | None]:
    """Start a run and return its prompt and state. Raises NotFired where a guard refuses it, which is recorded."""
    able, (row, document) = _entered(resources, caller, workspace_id, schedule_id, Permission.RUN)
    done = triggers.trigger(resources, able, schedule_id)
    if done.outcome in (TriggerOutcome.SKIPPED, TriggerOutcome.BUFFER_FULL):
        raise NotFired(_why_not(row, done.reason))
    return prompt_of(document), done.state


def enter(
    connection: Connection, caller: Caller, workspace_id: str, permission: Permission, *, lock: bool = False
) -> Caller:
    """The caller with all that may be done in this workspace. Raises AgentNotFound, and Forbidden.

    In its own workspace an agent has the rights of an admin. Any other is refused before it is looked
    up, so it cannot learn which others exist. `lock`: no other request writes names meanwhile.
    """
    caller.require(permission)
    if caller.agent_id not in (None, workspace_id):
        raise Forbidden("access denied: an agent may use only its own workspace")
    _require_workspace(connection, caller, workspace_id, lock=lock)
    return caller if caller.agent_id is None else replace(caller, role=Role.ADMIN)


def _require_workspace(connection: Connection, caller: Caller, workspace_id: str, *, lock: bool = False) -> None:
    if agent_rows.AGENTS.find(connection, caller.namespace, workspace_id, lock=lock) is None:
        require_namespace(connection, caller.namespace)
        raise AgentNotFound(workspace_id)


def _entered(
    resources: Resources,
    caller: Caller,
    workspace_id: str,
    schedule_id: str,
    permission: Permission,
    *,
    writes: bool = False,
) -> tuple[Caller, WorkspaceRow]:
    def look(connection: Connection) -> tuple[Caller, WorkspaceRow]:
        able = enter(connection, caller, workspace_id, permission)
        found = _own(connection, caller, workspace_id, schedule_id)
        if writes:
            _require_writable(connection, caller, workspace_id, found[0])
        return able, found

    return resources.database.read(look)


def _require_writable(
    connection: Connection, caller: Caller, workspace_id: str, row: ScheduleRow | None = None
) -> None:
    """Refuse an agent's own token what the agent's setting `schedules` keeps from it; `row` None = a new schedule.

    With `own` it writes those that were created through the workspace. Of schedules from before this was recorded it
    writes those that it created itself.
    """
    if caller.agent_id is None:
        return
    found = find_agents(connection, [(caller.namespace, workspace_id)]).get((caller.namespace, workspace_id))
    allowed = found.schedules if isinstance(found, AgentDefinition) else AgentSchedules.OWN
    if allowed is AgentSchedules.NONE:
        raise Forbidden("this agent may not change schedules, because its setting schedules is none")
    if row is None or allowed is AgentSchedules.ALL:
        return
    if row.bundle is not None or not lookup_rows.is_created_in_workspace(connection, row):
        raise Forbidden(
            f"the schedule {row.schedule_id!r} was not created through this workspace, so the agent's token may not "
            "change or delete it; ask its author, or set schedules: all on the agent"
        )


def _own(connection: Connection, caller: Caller, workspace_id: str, schedule_id: str) -> WorkspaceRow:
    """Raises ScheduleNotFound, also for one of another workspace."""
    found = lookup_rows.find_in_workspace(connection, caller.namespace, workspace_id, schedule_id)
    if found is None:
        raise ScheduleNotFound(schedule_id)
    return found


def _page(
    resources: Resources, connection: Connection, namespace: str, workspace_id: str, after: str | None, most: int
) -> WorkspacePage:
    begin = None if after is None else lookup_rows.find_in_workspace(connection, namespace, workspace_id, after)
    if after is not None and begin is None:
        raise ScheduleNotFound(after)
    found, more = lookup_rows.workspace_page(
        connection, namespace, workspace_id, after=None if begin is None else begin[0], limit=min(most, MOST_LISTED)
    )
    listed = tuple(_shown(resources, connection, found))
    return WorkspacePage(listed, listed[-1].row.schedule_id if more and listed else None)


def _shown(
    resources: Resources, connection: Connection, found: Sequence[WorkspaceRow]
) -> Iterator[WorkspaceScheduleRow]:
    """With one question for all of them, about those that are paused."""
    now = resources.clock.now()
    paused = {row.planning for row, _ in found if row.status is Status.PAUSED}
    known = resources.known.load(connection, paused) if paused else {}
    for row, document in found:
        due = next_due(row, known[row.planning], now) if row.planning in known else row.next_due
        yield WorkspaceScheduleRow(row, document, due)


def _check_name(
    connection: Connection, caller: Caller, workspace_id: str, name: str | None, *, beside: str | None = None
) -> None:
    """Any number of schedules may have no name."""
    if name and lookup_rows.has_name_in_workspace(connection, caller.namespace, workspace_id, name, beside=beside):
        raise WorkspaceNameTaken(name)


def _read(found: ScheduleRequest | RequestError) -> ScheduleRequest:
    if isinstance(found, RequestError):
        raise WorkspaceRequestInvalid(found.field, found.text)
    return found


def _said(wish: ScheduleRequest, write: Callable[[], ScheduleChange]) -> ScheduleChange:
    """Translate errors about schedules into the terms of this API."""
    try:
        return write()
    except InvalidDefinition as wrong:
        told = refusal(wrong.errors, wish)
        raise WorkspaceRequestInvalid(told.field, told.text) from None


def _written(
    resources: Resources, body: object, work: Callable[[Connection, Resources], ScheduleChange]
) -> ScheduleChange:
    """Write `body` in one transaction with what `work` looks at."""
    return write_of(resources, body)(
        lambda connection: work(
            connection, replace(resources, database=JoinedTransaction(resources.database, connection))
        )
    )


def _why_not(row: ScheduleRow, reason: Reason | None) -> str:
    if row.status is Status.PAUSED:
        return "the schedule was not fired, because it is disabled; enable it first"
    return f"the schedule was not fired: {reason.value if reason is not None else 'unknown reason'}"
