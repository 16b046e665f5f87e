"""Operations on approval requests, decisions and standing approvals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from horarium.features.approvals.model import (
    Approval,
    ApprovalList,
    DecidedMany,
    DecisionBody,
    DecisionsBody,
    RunDecisionBody,
    StandingApproval,
    StandingBody,
    StandingDeleted,
    StandingList,
)
from horarium.platform.client.call import Call, Page, Pages, When
from horarium.platform.operation import LOOK, READ, Operations

Modifications = Mapping[str, Any]

operation = Operations("/api/approvals", tag="approvals")
of_run = Operations("/api/runs/{run_id}", tag="approvals")
standing = Operations("/api/approvals/standing", tag="approvals")


class ApprovalOperations:
    @operation("GET", "", needs=READ, summary="List approval requests", answer=ApprovalList)
    @staticmethod
    def list_approvals(
        *,
        status: str | None = None,
        schedule_id: str | None = None,
        gate: str | None = None,
        mine: bool | None = None,
        namespace: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[Approval]]:
        """List approval requests, oldest first (default: pending ones).

        `mine`: only those that the caller may decide now. `namespace="*"`: all namespaces.
        """

    @operation("GET", "/{approval_id}", needs=READ, summary="Show an approval request", answer=Approval)
    @staticmethod
    def get_approval(approval_id: str) -> Call[Approval]:
        """Show an approval request, including the action of the run."""

    @operation(
        "POST",
        "/{approval_id}/decision",
        needs=LOOK,
        summary="Approve, reject or modify an approval request",
        body=DecisionBody,
        answer=Approval,
        has_command=False,  # approve, reject, modify and answer
    )
    @staticmethod
    def decide_approval(
        approval_id: str,
        decision: str,
        *,
        reason: str | None = None,
        modifications: Modifications | None = None,
        input_hash: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Approval]:
        """Decide an approval request: `approve`, `reject` or `modify`. With `input_hash`, only if the inputs have not
        changed.

        Raises AlreadyDecided, ApprovalOver, InputsChanged, NotAnApprover and RequesterMayNotDecide.
        """

    @operation(
        "POST",
        "/decisions",
        needs=LOOK,
        summary="Decide many approval requests",
        body=DecisionsBody,
        answer=DecidedMany,
        repeatable=False,  # one transaction each; what is decided is left alone the second time
        has_command=False,  # approve and reject
    )
    @staticmethod
    def decide_approvals(
        ids: Sequence[str], decision: str, *, reason: str | None = None, input_hashes: Mapping[str, str] | None = None
    ) -> Call[DecidedMany]:
        """Decide at most 100 approval requests, with one outcome each. With `input_hashes`, only those with unchanged
        inputs.
        """

    @of_run(
        "POST",
        "/approve",
        needs=LOOK,
        summary="Approve a run",
        body=RunDecisionBody,
        answer=Approval,
        has_command=False,  # run approve
    )
    @staticmethod
    def approve_run(
        run_id: str,
        *,
        reason: str | None = None,
        modifications: Modifications | None = None,
        input_hash: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Approval]:
        """Approve the current approval request of a run; with `modifications`, approve changed inputs."""

    @of_run(
        "POST",
        "/reject",
        needs=LOOK,
        summary="Reject a run",
        body=RunDecisionBody,
        answer=Approval,
        has_command=False,  # run reject
    )
    @staticmethod
    def reject_run(
        run_id: str,
        *,
        reason: str | None = None,
        input_hash: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Approval]:
        """Reject the current approval request of a run. The run ends."""

    @standing(
        "POST",
        "",
        needs=READ,
        summary="Create a standing approval",
        body=StandingBody,
        answer=StandingApproval,
        status=201,
        has_command=False,  # approval standing create
    )
    @staticmethod
    def create_standing_approval(
        *,
        schedule_id: str | None = None,
        workflow_id: str | None = None,
        gates: Sequence[str] = (),
        until: When | None = None,
        timezone: str | None = None,
        max_uses: int | None = None,
        reason: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[StandingApproval]:
        """Approve future approval requests for these gates of a schedule or a workflow.

        `until` may be a duration from now, such as `7d`, or a local time in `timezone`.
        """

    @standing("GET", "", needs=READ, summary="List standing approvals", answer=StandingList, has_command=False)
    @staticmethod
    def list_standing_approvals(
        *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[StandingApproval]]: ...

    @standing(
        "DELETE",
        "/{standing_id}",
        needs=READ,
        summary="Revoke a standing approval",
        answer=StandingDeleted,
        has_command=False,  # approval standing delete
    )
    @staticmethod
    def delete_standing_approval(standing_id: str) -> Call[StandingDeleted]:
        """Revoke a standing approval. Decisions already made with it remain valid."""

    iter_approvals = Pages(list_approvals)
    iter_standing_approvals = Pages(list_standing_approvals)
