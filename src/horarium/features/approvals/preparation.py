"""Preparation of approved runs, from their approvals: gates, replies to their agents, and texts to mask."""

from __future__ import annotations

from collections.abc import Sequence

from horarium.features.approvals.rows import approved_gates, confided, replies
from horarium.features.runs.preparation import CompleteLaunch, LaunchDraft, agent_of
from horarium.features.runs.work_rows import RunWork
from horarium.platform.database import Connection


class ApprovalPreparer:
    """Give each launch the gates that have an approval, and a prompt the reply to its agent's question."""

    def needed(self, draft: LaunchDraft) -> bool:
        return draft.work.approval_id is not None

    def load(self, connection: Connection, drafts: Sequence[LaunchDraft]) -> CompleteLaunch:
        works = [draft.work for draft in drafts]
        gates = approved_gates(connection, [work.run_id for work in works])
        answers = replies(connection, [each for work in works if (each := _answered_in(work)) is not None])
        told = confided(connection, [work.run_id for work in works if agent_of(work)])

        def complete(draft: LaunchDraft) -> None:
            work = draft.work
            if work.run_id in gates:
                draft.definition = draft.definition._replace(approved_gates=gates[work.run_id])
            draft.answer = None if work.reference is None else answers.get(work.approval_id or b"")
            draft.confided = told.get(work.run_id, ())

        return complete


def _answered_in(work: RunWork) -> bytes | None:
    """The approval that may hold the answer to what the agent has asked: while its task is there to go on with."""
    return work.approval_id if work.reference is not None and work.gates_passed and agent_of(work) else None
