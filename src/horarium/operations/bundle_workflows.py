"""What a bundle does to workflows: a change is a version, and the schedules of triggers follow their workflow."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from horarium.operations import workflows as operations
from horarium.operations.bundle_documents import Stored, Written
from horarium.operations.bundle_steps import Applying
from horarium.operations.workflow_drafts import read_document, without_credentials
from horarium.schedule.bundle import BundleKind, Difference, Document
from horarium.schedule.redaction import MASK
from horarium.schedule.workflow_document import workflow_document
from horarium.store import workflows
from horarium.store.database import Connection
from horarium.wire.outcomes import WriteOutcome


class BundledWorkflows:
    kind: Final = BundleKind.WORKFLOW

    def is_built_in(self, name: str) -> bool:
        return False

    def named_by(self, document: Document) -> Iterator[str]:
        """Whatever a document that nobody has read yet holds."""
        nodes = document.get("nodes")
        for node in nodes if isinstance(nodes, list | tuple) else ():
            action = node.get("action") if isinstance(node, Mapping) else None
            named = action.get("workflow_id") if isinstance(action, Mapping) else None
            if isinstance(named, str):
                yield named

    def find(self, applying: Applying, names: Collection[str]) -> Mapping[str, Stored]:
        found = workflows.find_many(applying.connection, applying.caller.namespace, names)
        return {name: Stored(row.document, row.bundle, row.owner, row.version) for name, row in found.items()}

    def of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        return workflows.ids_of_bundle(connection, namespace, bundle, most)

    def read(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Mapping[str, Any]:
        """It stays its owner's, unless the document names another."""
        workflow, _ = without_credentials(read_document(applying.resources, applying.caller, document, name))
        owner = workflow.owner or (None if there is None else there.owner)
        return workflow_document(replace(workflow, owner=owner))

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Written:
        done = operations.put(applying.inside(), applying.caller, name, document)
        told = Written(
            warnings=done.warnings,
            starts_soon=sum(each.starts_soon for each in done.schedules),
            fires_added=sum(each.fires_added for each in done.schedules),
            fires_removed=sum(each.fires_removed for each in done.schedules),
        )
        if there is None:
            return told
        diff = tuple(
            Difference(f"schedules.{each.schedule_id}", None, each.outcome.value)
            for each in done.schedules
            if each.outcome is not WriteOutcome.UNCHANGED
        )
        # Where the document is the same, only a credential can have changed.
        if done.outcome is WriteOutcome.UPDATED and done.version == there.version:
            diff += (Difference("secrets", MASK, MASK),)
        return replace(told, diff=diff)

    def set_bundle(self, applying: Applying, name: str) -> None:
        workflows.set_bundle(applying.connection, applying.caller.namespace, name, applying.bundle.name)

    def delete(self, applying: Applying, name: str) -> None:
        operations.delete(applying.inside(), applying.caller, name)
