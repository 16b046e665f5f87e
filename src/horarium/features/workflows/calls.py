"""Calls about workflows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.features.workflows.model import (
    Workflow,
    WorkflowChecked,
    WorkflowDeleted,
    WorkflowStarted,
    WorkflowSummary,
    WorkflowWritten,
)
from horarium.platform.client.call import Call, Method, Page, Pages, given, if_match, many, one

Document = Mapping[str, Any]

WORKFLOWS, WORKFLOW = "/api/workflows", "/api/workflows/{workflow_id}"


class WorkflowCalls:
    @Method
    @staticmethod
    def list_workflows(
        *,
        owner: str | None = None,
        bundle: str | None = None,
        text: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[WorkflowSummary]]:
        """List the newest version of each workflow, by ID. `text` matches a part of the ID or name."""
        query = {"owner": owner, "bundle": bundle, "text": text, "page_size": page_size,
                 "next_page_token": next_page_token}  # fmt: skip
        return Call("GET", WORKFLOWS, many(WorkflowSummary, "workflows"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def validate_workflow(document: Document, /) -> Call[WorkflowChecked]:
        """Return the document as it would be stored. Raises ValidationFailed with all errors by path."""
        return Call("POST", f"{WORKFLOWS}/validate", one(WorkflowChecked), body=dict(document))

    @Method
    @staticmethod
    def put_workflow(
        workflow_id: str, document: Document, /, *, if_version: int | None = None, idempotency_key: str | None = None
    ) -> Call[WorkflowWritten]:
        """Create or update a workflow. Each change creates a version; an equal document does not."""
        return Call(
            "PUT",
            WORKFLOW,
            one(WorkflowWritten),
            {"workflow_id": workflow_id},
            body=dict(document),
            headers=if_match(if_version),
            key=idempotency_key,
        )

    @Method
    @staticmethod
    def get_workflow(workflow_id: str, version: int | str | None = None) -> Call[Workflow]:
        """Show a version of a workflow (default `latest`)."""
        return Call("GET", WORKFLOW, one(Workflow), {"workflow_id": workflow_id}, query={"version": version})

    @Method
    @staticmethod
    def workflow_versions(
        workflow_id: str, *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[WorkflowSummary]]:
        """List the versions of a workflow, newest first."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call(
            "GET",
            f"{WORKFLOW}/versions",
            many(WorkflowSummary, "versions"),
            {"workflow_id": workflow_id},
            query=query,
            cursor="next_page_token",
        )

    @Method
    @staticmethod
    def delete_workflow(workflow_id: str) -> Call[WorkflowDeleted]:
        """Delete a workflow and the schedules of its triggers. Raises WorkflowInUse while it is in use."""
        return Call("DELETE", WORKFLOW, one(WorkflowDeleted), {"workflow_id": workflow_id})

    @Method
    @staticmethod
    def run_workflow(
        workflow_id: str,
        inputs: Any = None,
        *,
        version: int | str | None = None,
        assignee_type: str | None = None,
        assignee_id: str | None = None,
        workflow_assignment_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
    ) -> Call[WorkflowStarted]:
        """Start a workflow without a schedule. A repeated idempotency key returns the same run."""
        body = given(
            inputs=inputs,
            version=version,
            assignee_type=assignee_type,
            assignee_id=assignee_id,
            workflow_assignment_id=workflow_assignment_id,
            labels=labels,
        )
        names = {"workflow_id": workflow_id}
        return Call("POST", f"{WORKFLOW}/runs", one(WorkflowStarted), names, body=body, key=idempotency_key)

    iter_workflows = Pages(list_workflows)
    iter_workflow_versions = Pages(workflow_versions)
