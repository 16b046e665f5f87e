"""What a question is when it is asked: its row, and what the feed says of it."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from horarium.ids import id_text
from horarium.instant import Instant, to_rfc3339
from horarium.policy.approval import NEVER
from horarium.policy.replying import TOLD_QUESTION
from horarium.schedule.damage import known
from horarium.store.database.json_text import names_from_text


class NewApproval(NamedTuple):
    """A row of `approvals` that has just been made."""

    approval_id: bytes
    namespace: str
    run_id: bytes
    input_hash: str
    gates: str
    decision: str
    requested_at: Instant
    expires_at: Instant
    root_run_id: bytes | None
    schedule_uid: bytes | None
    workflow: str | None
    node_id: str | None
    revision: int | None
    approvals_required: int
    approvers: str
    allow_requester: bool
    requesters: str
    question: str | None = None


class Asked(Protocol):
    """Columns of `approvals` that are told."""

    @property
    def approval_id(self) -> bytes: ...
    @property
    def gates(self) -> str: ...
    @property
    def workflow(self) -> str | None: ...
    @property
    def node_id(self) -> str | None: ...
    @property
    def expires_at(self) -> Instant: ...
    @property
    def question(self) -> str | None: ...


def told_of(asked: Asked, origin: str, nominal: Instant) -> dict[str, object]:
    """Fields that every notice about an approval request has about it and its run."""
    told = {} if asked.question is None else {"question": asked.question[:TOLD_QUESTION]}
    return {
        **told,
        "approval_id": id_text(asked.approval_id),
        "gates": list(known(names_from_text(asked.gates))),
        "workflow": asked.workflow,
        "node_id": asked.node_id,
        "origin": origin,
        "occurrence_time": to_rfc3339(nominal),
        "expires_at": None if asked.expires_at >= NEVER else to_rfc3339(asked.expires_at),
    }
