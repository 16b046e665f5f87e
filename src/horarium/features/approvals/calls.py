"""Calls about approval requests, decisions and standing approvals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from horarium.features.approvals.model import Approval, DecidedMany, StandingApproval, StandingDeleted
from horarium.platform.client.call import Call, Method, Page, Pages, When, given, many, one

APPROVALS, APPROVAL = "/api/approvals", "/api/approvals/{approval_id}"
STANDING = "/api/approvals/standing"
RUN = "/api/runs/{run_id}"

Modifications = Mapping[str, Any]


class ApprovalCalls:
    @Method
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
        query = {
            "status": status,
            "schedule_id": schedule_id,
            "gate": gate,
            "mine": mine,
            "namespace": namespace,
            "page_size": page_size,
            "next_page_token": next_page_token,
        }
        return Call("GET", APPROVALS, many(Approval, "approvals"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def get_approval(approval_id: str) -> Call[Approval]:
        """Show an approval request, including the action of the run."""
        return Call("GET", APPROVAL, one(Approval), {"approval_id": approval_id})

    @Method
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
        told = given(reason=reason, modifications=modifications, input_hash=input_hash)
        body = {"decision": decision, **told}
        path = {"approval_id": approval_id}
        return Call("POST", f"{APPROVAL}/decision", one(Approval), path, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def decide_approvals(
        ids: Sequence[str], decision: str, *, reason: str | None = None, input_hashes: Mapping[str, str] | None = None
    ) -> Call[DecidedMany]:
        """Decide at most 100 approval requests, with one outcome each. With `input_hashes`, only those with unchanged
        inputs.
        """
        body = {"ids": list(ids), "decision": decision, **given(reason=reason, input_hashes=input_hashes)}
        return Call("POST", f"{APPROVALS}/decisions", one(DecidedMany), body=body)

    @Method
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
        body = given(reason=reason, modifications=modifications, input_hash=input_hash)
        return Call("POST", f"{RUN}/approve", one(Approval), {"run_id": run_id}, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def reject_run(
        run_id: str,
        *,
        reason: str | None = None,
        input_hash: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Approval]:
        """Reject the current approval request of a run. The run ends."""
        body = given(reason=reason, input_hash=input_hash)
        return Call("POST", f"{RUN}/reject", one(Approval), {"run_id": run_id}, body=body, key=idempotency_key)

    @Method
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
        told = given(schedule_id=schedule_id, workflow_id=workflow_id, until=until, max_uses=max_uses, reason=reason)
        told |= given(timezone=timezone)
        return Call("POST", STANDING, one(StandingApproval), body={"gates": list(gates), **told}, key=idempotency_key)

    @Method
    @staticmethod
    def list_standing_approvals(
        *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[StandingApproval]]:
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", STANDING, many(StandingApproval, "standing"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def delete_standing_approval(standing_id: str) -> Call[StandingDeleted]:
        """Revoke a standing approval. Decisions already made with it remain valid."""
        return Call("DELETE", f"{STANDING}/{{standing_id}}", one(StandingDeleted), {"standing_id": standing_id})

    iter_approvals = Pages(list_approvals)
    iter_standing_approvals = Pages(list_standing_approvals)
