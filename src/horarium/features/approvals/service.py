"""Read and decide approval requests.

A vote is judged under lock, recorded, and applied to the run that awaits approval. A vote by an agent, or by the worker
that does the work, is refused and recorded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, assert_never

from horarium.core.document.canonical import action_document
from horarium.core.document.checks import SECRET_KINDS, check_value, names_in
from horarium.core.document.definition import Definition, agent_in
from horarium.core.document.json_values import DocumentProblems, check_storable, damage_of, is_envelope, shown_input
from horarium.core.document.rendering import texts_of
from horarium.core.document.states import CommandContext, NoticeType, Origin, RunState
from horarium.core.lifecycle.outcome import ApprovalGiven, ApprovalRefused, End
from horarium.core.policy.approval import (
    ApprovalDecision,
    agreed_hash,
    input_hash,
    needs_reply,
    proposed_reply,
    reply_in,
)
from horarium.core.policy.queue import MAX_TEXT_LENGTH, PolicyError, merge_patched
from horarium.core.policy.votes import (
    Approved,
    Decision,
    OpenRequest,
    Refusal,
    Rejected,
    StillOpen,
    Vote,
    Voter,
    VoteRefused,
    judge,
    vote_refused,
)
from horarium.errors import HorariumError, InvalidDefinition
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import Key, UnreadableDocument, find_agents
from horarium.features.approvals import rows
from horarium.features.approvals import rows as approval_rows
from horarium.features.approvals.model import (
    ApprovalAlreadyDecided,
    ApprovalNotFound,
    ApprovalRequestExpired,
    ApprovedInputsChanged,
    ApproverRequired,
    BulkDecision,
    DecidedOne,
    DecisionOutcome,
    SelfApprovalForbidden,
    StatusFilter,
)
from horarium.features.approvals.request_rows import current_inputs
from horarium.features.approvals.rows import Mine, QuestionFilter, QuestionRow, VoteRow, notice_fields
from horarium.features.history import rows as history_rows
from horarium.features.history.rows import Notice
from horarium.features.history.service import find_any
from horarium.features.resources import Resources
from horarium.features.runs import open_rows
from horarium.features.runs import rows as runs_read
from horarium.features.runs.name_rows import NameKey, find_names, workflow_key
from horarium.features.runs.rows import RunRow
from horarium.features.runs.service import find_in_namespace, refuse_schedule_of_all
from horarium.features.runs.transition_rows import record_event
from horarium.features.schedules import write_rows
from horarium.features.schedules.bulk import tried
from horarium.features.schedules.decisions import record_bypass
from horarium.features.schedules.drafts import check_input, require_namespace
from horarium.instant import Instant
from horarium.platform.caller import Caller, checked_limit, run_principal
from horarium.platform.database import Connection
from horarium.platform.database.statements import fitting, from_text
from horarium.platform.database.wakeups import READY
from horarium.platform.errors import ApprovalRequired, Forbidden, OperationError, OperationRefused, RunNotFound
from horarium.platform.ids import id_text, parse_id
from horarium.platform.wire import Permission, Role

_ROW_BYTES = 1_024
NOBODY = "nobody"
"""Who decides where callers have no names."""


@dataclass(frozen=True, slots=True)
class ApprovalView:
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
    approvals: tuple[ApprovalView, ...]
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
        rows, more = approval_rows.page(connection, caller.scope, wanted, after=after, limit=limit)
        sizes = runs_read.sizes(connection, [row.run_id for row in rows])
        fit = rows[: fitting(size + _size(row) for size, row in zip(sizes, rows, strict=True))]
        token = id_text(fit[-1].approval_id) if fit and (more or len(fit) < len(rows)) else None
        return ApprovalPage(tuple(view(resources, connection, caller, fit)), token)

    return resources.database.read(look)


def _size(row: QuestionRow) -> int:
    """As far as it is in the question itself; what agents ask and are told may be long."""
    return _ROW_BYTES + len(row.question or "") + len(proposed_reply(row.question, row.modifications) or "")


def get(resources: Resources, caller: Caller, approval_id: str) -> ApprovalView:
    caller.require(Permission.READ)

    def look(connection: Connection) -> ApprovalView:
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
        row = approval_rows.find(connection, caller.namespace, parse_id(approval_id, "approval_id"))
    except InvalidDefinition:
        row = None
    if row is None:
        raise ApprovalNotFound(approval_id[:64])
    return row


def whole(resources: Resources, connection: Connection, caller: Caller, row: QuestionRow) -> ApprovalView:
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
) -> list[ApprovalView]:
    """Each with what its run would do; without the input of that, unless it is wanted whole: `inputs` says it."""
    runs = {run.run_id: run for run in runs_read.find_all(connection, [row.run_id for row in rows], listed=True)}
    definitions = resources.definitions.load(connection, runs.values())
    cast = approval_rows.votes(connection, [row.approval_id for row in rows])
    now = resources.clock.now()
    known = [(row, runs[row.run_id]) for row in rows if row.run_id in runs]
    names = find_names(connection, {key for _, run in known if (key := _workflow_of(run)) is not None})
    agents = find_agents(connection, {agent for _, run in known if (agent := _agent_of(run)) is not None})
    return [
        replace(
            _approval_view(row, run, definitions[row.run_id], cast[row.approval_id], whole_action),
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


def _approval_view(
    row: QuestionRow, run: RunRow, definition: Definition | Exception, votes: Sequence[VoteRow], whole_action: bool
) -> ApprovalView:
    """A definition that cannot be read is the trouble of this run alone: it is shown as far as it is known."""
    known = None if isinstance(definition, Exception) else definition
    inputs = run.inputs if known is None else current_inputs(run, known)
    heard = tuple(vote for vote in votes if vote.input_hash == row.input_hash)
    action = None if known is None else action_document(known.action)
    if action is not None and not whole_action:
        action.pop("input", None)
    shown = None if damage_of(inputs) is not None else shown_input(inputs)
    return ApprovalView(row, run, shown, heard, action)


_ERRORS: dict[Refusal, type[OperationError]] = {
    Refusal.APPROVAL_REQUIRED: ApprovalRequired,
    Refusal.NOT_AN_APPROVER: ApproverRequired,
    Refusal.REQUESTER_MAY_NOT_DECIDE: SelfApprovalForbidden,
    Refusal.ALREADY_DECIDED: ApprovalAlreadyDecided,
    Refusal.APPROVAL_EXPIRED: ApprovalRequestExpired,
    Refusal.INPUTS_CHANGED: ApprovedInputsChanged,
}


@dataclass(frozen=True, slots=True)
class VoteRequest:
    """A vote on an approval request; `shown_hash` is that of the inputs that the voter has seen."""

    decision: Decision
    reason: str | None = None
    modifications: Any = None
    shown_hash: str | None = None

    def __post_init__(self) -> None:
        is_patch = isinstance(self.modifications, dict) and bool(self.modifications)
        if self.decision is Decision.MODIFY and not is_patch:
            raise InvalidDefinition({"modifications": ["must be an object with the inputs to change"]})
        if self.decision is not Decision.MODIFY and self.modifications is not None:
            raise InvalidDefinition(
                {"modifications": [f"cannot be combined with {self.decision}; use modify to change inputs"]}
            )
        problems = DocumentProblems()
        check_storable({"modifications": self.modifications}, problems)
        problems.raise_any()


def decide(resources: Resources, caller: Caller, approval_id: str, said: VoteRequest) -> ApprovalView:
    """Raises what `Refusal` names. What was tried to get round an approval stays on record."""
    caller.require(Permission.LOOK)

    def work(connection: Connection) -> _VoteResult:
        return _decide(resources, connection, caller, find(connection, caller, approval_id), said)

    return _answered(resources, resources.database.write(work))


def decide_run(resources: Resources, caller: Caller, run_id: str, said: VoteRequest) -> ApprovalView:
    """The same for the question that a run asks now."""
    caller.require(Permission.LOOK)

    def work(connection: Connection) -> _VoteResult:
        run = find_in_namespace(connection, caller, run_id)
        row = rows.newest_of_run(connection, caller.namespace, run.run_id)
        if row is None:
            if not caller.sees(run):
                raise RunNotFound(run_id[:64])
            raise ApprovalNotFound(run_id[:64], "the run has no approval request")
        return _decide(resources, connection, caller, row, said)

    return _answered(resources, resources.database.write(work))


def decide_many(
    resources: Resources,
    caller: Caller,
    ids: Sequence[str],
    decision: BulkDecision,
    reason: str | None,
    *,
    shown_hashes: Mapping[str, str],
) -> list[DecidedOne]:
    """One transaction and one outcome each; `shown_hashes` are, by id, those of the inputs that were seen."""
    if not shown_hashes.keys() <= set(ids):
        raise InvalidDefinition({"input_hashes": ["contains IDs that are not in ids"]})

    def one(approval_id: str) -> DecidedOne:
        said = VoteRequest(Decision(decision.value), reason, shown_hash=shown_hashes.get(approval_id))
        asked = decide(resources, caller, approval_id, said)
        pending = asked.row.decision is ApprovalDecision.PENDING
        outcome = DecisionOutcome.WAITING if pending else DecisionOutcome(asked.row.decision.value)
        return DecidedOne(approval_id=approval_id, outcome=outcome)

    def failed(approval_id: str, wrong: HorariumError) -> DecidedOne:
        told = {"reason": wrong.reason, "message": wrong.message}
        return DecidedOne(approval_id=approval_id[:64], outcome=DecisionOutcome.FAILED, **told)

    return [tried(partial(one, each), partial(failed, each)) for each in ids]


# ── one voice ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _VoteResult:
    """Outcome of a vote: the request as it is now, or why the vote was refused; `ended` is the run's final state."""

    asked: ApprovalView | None = None
    refused: OperationError | None = None
    ended: RunState | None = None


def _answered(resources: Resources, heard: _VoteResult) -> ApprovalView:
    if heard.refused is not None:  # raised here: what was tried stays on record
        raise heard.refused
    if heard.ended is not None:
        resources.telemetry.ended(heard.ended)
    assert heard.asked is not None  # nothing was refused
    return heard.asked


def _decide(
    resources: Resources, connection: Connection, caller: Caller, row: QuestionRow, said: VoteRequest
) -> _VoteResult:
    row, run = _locked(connection, row)
    # Who may decide is among what cannot be read, or what there is to decide about.
    if (broken := row.damage or run.damage) is not None:
        raise OperationRefused(f"the stored approval request cannot be read ({broken}); cancel its run")
    now = resources.clock.now()
    definition = resources.definitions.of(connection, run)
    voice = _Voice(resources, connection, caller, row, run, said, now)
    cast = rows.votes(connection, [row.approval_id])[row.approval_id]
    question, voter = question_of(row, cast), voter_of(caller, run)
    if (wrong := vote_refused(question, voter, now)) is not None:
        return _VoteResult(refused=voice.refused(wrong.refusal, wrong.text))
    inputs = run.inputs if isinstance(definition, Exception) else current_inputs(run, definition)
    stands = proposed_reply(row.question, row.modifications)
    texts = None if isinstance(definition, Exception) else texts_of(definition.action)
    current = row.input_hash if isinstance(definition, Exception) else agreed_hash(inputs, stands, texts)
    proposal = _proposal(caller, row, inputs, said, definition, texts)
    judged = judge(
        question,
        voter,
        said.decision,
        now=now,
        current_hash=current,
        shown_hash=said.shown_hash,
        new_hash=None if proposal is None else proposal.hash,
    )
    match judged:
        case VoteRefused(refusal, text):
            return _VoteResult(refused=voice.refused(refusal, text))
        case Rejected():
            return voice.declined()
        case StillOpen():
            voice.counted(inputs, proposal)
            return voice.result()
        case Approved(agreed_to):
            voice.counted(inputs, proposal)
            return voice.agreed(proposal, agreed_to)
        case _:
            assert_never(judged)


def _locked(connection: Connection, row: QuestionRow) -> tuple[QuestionRow, RunRow]:
    """The position, the run and the question, in the order of everybody who holds them; read again after the wait."""
    if row.schedule_uid is not None:
        write_rows.lock_position(connection, row.schedule_uid)
    open_rows.lock_run(connection, row.run_id)
    run = runs_read.find(connection, row.namespace, row.run_id)
    again = rows.find(connection, row.namespace, row.approval_id, lock=True)
    if run is None or again is None:
        raise ApprovalNotFound(id_text(row.approval_id))
    return again, run


@dataclass(frozen=True, slots=True)
class _Proposal:
    """Modified values that are approved: other inputs, or another reply to the agent."""

    hash: str
    inputs: object = None
    is_reply: bool = False


def _proposal(
    caller: Caller,
    row: QuestionRow,
    inputs: Any,
    said: VoteRequest,
    definition: Definition | Exception,
    texts: Mapping[str, Any] | None,
) -> _Proposal | None:
    if row.question is None:
        changed = _modified(caller, inputs, said, definition) if said.decision is Decision.MODIFY else None
        return None if changed is None else _Proposal(agreed_hash(changed, None, texts), changed)
    if said.decision is Decision.MODIFY:
        try:
            return _Proposal(agreed_hash(inputs, reply_in(said.modifications), texts), is_reply=True)
        except PolicyError as wrong:
            raise InvalidDefinition({wrong.field: [wrong.text]}) from None
    if said.decision is Decision.APPROVE and row.modifications is None and needs_reply(from_text(row.gates)):
        raise InvalidDefinition({"decision": ["the agent requires an answer; use modify with modifications.reply"]})
    return None


def _modified(caller: Caller, inputs: Any, said: VoteRequest, definition: Definition | Exception) -> object:
    """Checked as those of a trigger by hand are; to name a secret that nobody had named is a write."""
    if isinstance(inputs, list) or is_envelope(inputs):
        kind = "an array" if isinstance(inputs, list) else "encoded"
        raise InvalidDefinition({"modifications": [f"the inputs are {kind} and cannot be merged with an object"]})
    changed = merge_patched(inputs, said.modifications)
    problems = DocumentProblems()
    if not isinstance(definition, Exception):
        check_value(changed, "modifications", problems, allowed=definition.action.kind in SECRET_KINDS)
        if names_in(definition.action, changed) - names_in(definition.action, inputs):
            caller.require(Permission.WRITE)
    problems.raise_any()
    if wrong := check_input("modifications", changed):
        raise InvalidDefinition(wrong)
    try:
        input_hash(changed)
    except PolicyError as no_json:
        raise InvalidDefinition({"modifications": [no_json.text]}) from None
    return changed


@dataclass(frozen=True, slots=True)
class _Voice:
    """One vote while it is recorded; the locks are held."""

    resources: Resources
    connection: Connection
    caller: Caller
    row: QuestionRow
    run: RunRow
    said: VoteRequest
    now: Instant

    @property
    def by(self) -> CommandContext:
        return self.caller.because(self.said.reason).context()

    def refused(self, refusal: Refusal, text: str) -> OperationError:
        if refusal is Refusal.APPROVAL_REQUIRED:
            if self.run.state is not RunState.AWAITING_APPROVAL:
                return Forbidden(text)
            record_bypass(self.connection, self.caller, self.run, f"decision {self.said.decision}", self.now)
        return _ERRORS[refusal](text)

    def counted(self, inputs: object, proposal: _Proposal | None) -> None:
        """The vote, and what it is for, where that is another thing from now on."""
        voted_for = self.row.input_hash if proposal is None else proposal.hash
        if proposal is not None and voted_for != self.row.input_hash:
            said = self.said.modifications
            if proposal.is_reply:
                rows.set_reply(self.connection, self.row, input_hash=voted_for, reply=said)
            else:
                rows.set_inputs(
                    self.connection,
                    self.row,
                    shown=inputs,
                    inputs=proposal.inputs,
                    input_hash=voted_for,
                    modifications=said,
                )
        self._cast(voted_for)

    def declined(self) -> _VoteResult:
        self._cast(self.row.input_hash)
        self._close(ApprovalDecision.REJECTED)
        event = ApprovalRefused(self.said.reason)
        change = record_event(self.connection, self.resources.known, self.run.run_id, event, now=self.now, by=self.by)
        return replace(self.result(), ended=change.state if isinstance(change, End) else None)

    def agreed(self, proposal: _Proposal | None, agreed_to: str) -> _VoteResult:
        modified = self.row.modifications is not None or agreed_to != self.row.input_hash
        self._close(ApprovalDecision.MODIFIED if modified else ApprovalDecision.APPROVED)
        changed = None if proposal is None else proposal.inputs
        event = ApprovalGiven(self.row.approval_id, changed, modified)
        record_event(self.connection, self.resources.known, self.run.run_id, event, now=self.now, by=self.by)
        return self.result()

    def result(self) -> _VoteResult:
        self.resources.database.notify(self.connection, READY)
        row = rows.find(self.connection, self.row.namespace, self.row.approval_id)
        assert row is not None  # it is locked
        return _VoteResult(whole(self.resources, self.connection, self.caller, row))

    def _cast(self, voted_for: str) -> None:
        who, word = principal_of(self.caller), self.said.decision.value
        vote = VoteRow(self.row.approval_id, who, voted_for, word, self.said.reason, self.now)
        rows.cast(self.connection, vote)

    def _close(self, decision: ApprovalDecision) -> None:
        who, reason = principal_of(self.caller), self.said.reason
        rows.close(self.connection, self.row.approval_id, decision, decider=who, reason=reason, now=self.now)
        values = {
            **notice_fields(self.row, self.run.origin.value, self.run.nominal),
            "decision": decision.value,
            "decided_by": who,
            "reason": reason,
            "command_context": self.by,
        }
        kind = NoticeType.APPROVAL_DECIDED
        notice = Notice(kind, self.row.namespace, self.row.schedule_uid, self.run.run_id, values)
        history_rows.append_notices(self.connection, [notice], now=self.now)
