"""Read approval requests: the list, and one with the action of its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.document.canonical import action_document
from horarium.core.document.definition import Definition, agent_in
from horarium.core.document.envelope import shown_input
from horarium.core.document.json_values import damage_of
from horarium.core.document.states import Origin
from horarium.core.policy.approval import ApprovalDecision, proposed_reply
from horarium.core.policy.names import MAX_TEXT_LENGTH
from horarium.core.policy.votes import OpenRequest, Vote, Voter, VoteRefused, vote_refused
from horarium.errors import InvalidDefinition
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import Key, UnreadableDocument, find_agents
from horarium.features.approvals import decision_rows
from horarium.features.approvals.decision_rows import Mine, QuestionFilter, QuestionRow, VoteRow
from horarium.features.approvals.model import ApprovalNotFound, StatusFilter
from horarium.features.approvals.request_rows import current_inputs
from horarium.features.history.service import find_any
from horarium.features.resources import Resources
from horarium.features.runs import rows as runs_read
from horarium.features.runs.detail_rows import NameKey, find_names, workflow_key
from horarium.features.runs.rows import RunRow
from horarium.features.runs.service import refuse_schedule_of_all
from horarium.features.schedules.drafts import require_namespace
from horarium.platform.caller import Caller, checked_limit, run_principal
from horarium.platform.database import Connection
from horarium.platform.database.statements import fitting
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission, Role

_ROW_BYTES = 1_024
NOBODY = "nobody"
"""Who decides where callers have no names."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with the run that it is about; `votes` are those for the inputs as they are now.

    `agent` is the one that the run's prompt goes to; one that is gone or cannot be read has an id only.
    """

    row: QuestionRow
    run: RunRow
    inputs: Any
    votes: tuple[VoteRow, ...]
    action: dict[str, object] | None = None
    refused: VoteRefused | None = None
    """The reason to refuse a decision of the caller; None = it would be accepted."""
    workflow_name: str | None = None
    agent: AgentDefinition | None = None

    @property
    def origin(self) -> Origin:
        return self.run.origin


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    approvals: tuple[Asked, ...]
    next_page_token: str | None


def principal_of(caller: Caller) -> str:
    return caller.principal or NOBODY


def list_approvals(
    resources: Resources,
    caller: Caller,
    *,
    status: StatusFilter = StatusFilter.PENDING,
    schedule_id: str | None = None,
    gate: str | None = None,
    mine: bool = False,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> ApprovalPage:
    """Oldest first. `mine`: those that the caller may decide now."""
    caller.require(Permission.READ)
    refuse_schedule_of_all(caller, schedule_id)
    limit = checked_limit(page_size)
    after = None if next_page_token is None else parse_id(next_page_token, "next_page_token")
    if gate is not None and not 1 <= len(gate) <= MAX_TEXT_LENGTH:
        raise InvalidDefinition({"gate": [f"must have between 1 and {MAX_TEXT_LENGTH} characters"]})
    chosen = StatusFilter.PENDING if mine else status
    decider = _mine(resources, caller) if mine else None

    def look(connection: Connection) -> ApprovalPage:
        require_namespace(connection, caller.namespace)
        uids = None if schedule_id is None else [find_any(connection, caller, schedule_id).schedule_uid]
        wanted = QuestionFilter(_state(chosen), uids, gate, decider)
        rows, more = decision_rows.page(connection, caller.scope, wanted, after=after, limit=limit)
        sizes = runs_read.sizes(connection, [row.run_id for row in rows])
        fit = rows[: fitting(size + _size(row) for size, row in zip(sizes, rows, strict=True))]
        token = id_text(fit[-1].approval_id) if fit and (more or len(fit) < len(rows)) else None
        return ApprovalPage(tuple(view(resources, connection, caller, fit)), token)

    return resources.database.read(look)


def _size(row: QuestionRow) -> int:
    """As far as it is in the question itself; what agents ask and are told may be long."""
    return _ROW_BYTES + len(row.question or "") + len(proposed_reply(row.question, row.modifications) or "")


def get(resources: Resources, caller: Caller, approval_id: str) -> Asked:
    caller.require(Permission.READ)

    def look(connection: Connection) -> Asked:
        return whole(resources, connection, caller, find(connection, caller, approval_id))

    return resources.database.read(look)


def _state(status: StatusFilter) -> ApprovalDecision | None:
    return None if status is StatusFilter.ALL else ApprovalDecision(status.value)


def _mine(resources: Resources, caller: Caller) -> Mine:
    permitted = caller.may(Permission.APPROVE)
    return Mine(principal_of(caller), caller.role.value, permitted, resources.clock.now())


# ── for those who decide ─────────────────────────────────────────────────────────────────────────────


def find(connection: Connection, caller: Caller, approval_id: str) -> QuestionRow:
    """Another tenant's is not there; neither is one whose name is no id at all."""
    try:
        row = decision_rows.find(connection, caller.namespace, parse_id(approval_id, "approval_id"))
    except InvalidDefinition:
        row = None
    if row is None:
        raise ApprovalNotFound(approval_id[:64])
    return row


def whole(resources: Resources, connection: Connection, caller: Caller, row: QuestionRow) -> Asked:
    """With what the run would do. One whose run is gone is gone with it."""
    found = view(resources, connection, caller, [row], whole_action=True)
    if not found:
        raise ApprovalNotFound(id_text(row.approval_id))
    return found[0]


def view(
    resources: Resources,
    connection: Connection,
    caller: Caller,
    rows: Sequence[QuestionRow],
    *,
    whole_action: bool = False,
) -> list[Asked]:
    """Each with what its run would do; without the input of that, unless it is wanted whole: `inputs` says it."""
    runs = {run.run_id: run for run in runs_read.find_all(connection, [row.run_id for row in rows], listed=True)}
    definitions = resources.definitions.load(connection, runs.values())
    cast = decision_rows.votes(connection, [row.approval_id for row in rows])
    now = resources.clock.now()
    known = [(row, runs[row.run_id]) for row in rows if row.run_id in runs]
    names = find_names(connection, {key for _, run in known if (key := _workflow_of(run)) is not None})
    agents = find_agents(connection, {agent for _, run in known if (agent := _agent_of(run)) is not None})
    return [
        replace(
            _asked(row, run, definitions[row.run_id], cast[row.approval_id], whole_action),
            refused=vote_refused(question_of(row, cast[row.approval_id]), voter_of(caller, run), now),
            workflow_name=None if (key := _workflow_of(run)) is None else names.found.get(key),
            agent=_agent(agents, _agent_of(run)),
        )
        for row, run in known
    ]


def question_of(row: QuestionRow, votes: Sequence[VoteRow]) -> OpenRequest:
    return OpenRequest(
        row.input_hash,
        row.expires_at,
        row.decision,
        row.reason,
        row.decider,
        row.approvals_required,
        frozenset(row.approvers),
        row.allow_requester,
        frozenset(row.requesters),
        tuple(Vote(each.principal, each.input_hash) for each in votes),
    )


def voter_of(caller: Caller, run: RunRow) -> Voter:
    principal = principal_of(caller)
    return Voter(
        principal,
        caller.role.value,
        permitted=caller.may(Permission.APPROVE),
        is_agent=caller.role is Role.AGENT,
        is_worker=principal in (run.claimed_by, run_principal(run.run_id)),
    )


def _workflow_of(run: RunRow) -> NameKey | None:
    """The workflow that an approval names: that of the run, and of a step the one whose node it is."""
    if run.of_workflow is not None and run.of_version is not None:
        return workflow_key(run.namespace, run.of_workflow, run.of_version)
    if run.workflow is None or run.workflow_version is None:
        return None
    return workflow_key(run.namespace, run.workflow, run.workflow_version)


def _agent_of(run: RunRow) -> Key | None:
    agent_id = agent_in(run.target)
    return None if agent_id is None else (run.namespace, agent_id)


def _agent(agents: Mapping[Key, AgentDefinition | UnreadableDocument], key: Key | None) -> AgentDefinition | None:
    if key is None:
        return None
    found = agents.get(key)
    return found if isinstance(found, AgentDefinition) else AgentDefinition(key[1])


def _asked(
    row: QuestionRow, run: RunRow, definition: Definition | Exception, votes: Sequence[VoteRow], whole_action: bool
) -> Asked:
    """A definition that cannot be read is the trouble of this run alone: it is shown as far as it is known."""
    known = None if isinstance(definition, Exception) else definition
    inputs = run.inputs if known is None else current_inputs(run, known)
    heard = tuple(vote for vote in votes if vote.input_hash == row.input_hash)
    action = None if known is None else action_document(known.action)
    if action is not None and not whole_action:
        action.pop("input", None)
    shown = None if damage_of(inputs) is not None else shown_input(inputs)
    return Asked(row, run, shown, heard, action)
