"""Kinds of documents in a bundle besides schedules, in the order in which they are applied."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from horarium.core.document.calendar import BUILT_IN, parse_calendar, shared_calendar, to_document
from horarium.core.document.holidays import is_rule_name
from horarium.core.document.secret_values import MASK
from horarium.core.document.stored_workflow import workflow_document
from horarium.errors import InvalidCalendar
from horarium.features.agents import service as agent_service
from horarium.features.agents import teams as agents_teams
from horarium.features.agents.service import AGENTS
from horarium.features.agents.teams import ASSIGNMENTS, TEAMS
from horarium.features.bundles.document import BundleKind, Document, DocumentDifference
from horarium.features.bundles.steps import Applying, BundledDocuments, Stored, WriteEffects
from horarium.features.calendars import rows as calendar_rows
from horarium.features.documents import DocumentKind, StoredDocument
from horarium.features.resources import Resources
from horarium.features.schedules import lookup_rows
from horarium.features.schedules.drafts import check_bytes, check_rows
from horarium.features.workflows import rows as workflow_rows
from horarium.features.workflows import service as workflow_service
from horarium.features.workflows.drafts import read_document, without_credentials
from horarium.platform.caller import Caller
from horarium.platform.database import Connection, limits
from horarium.platform.errors import CalendarInUse
from horarium.platform.wire import WriteOutcome

TOKEN = "token"

Put = Callable[[Resources, Caller, str, Document], StoredDocument[Any]]
Delete = Callable[[Resources, Caller, str], object]


@dataclass(frozen=True, slots=True)
class BundledAssignees:
    """One of the three; `parent` is the field that names another of the same kind."""

    kind: BundleKind
    of: DocumentKind[Any]
    put: Put
    remove: Delete
    parent: str | None = None

    def is_built_in(self, name: str) -> bool:
        return False

    def named_by(self, document: Document) -> tuple[str, ...]:
        named = None if self.parent is None else document.get(self.parent)
        return (named,) if isinstance(named, str) else ()

    def find(self, applying: Applying, names: Collection[str]) -> Mapping[str, Stored]:
        found = self.of.rows.find_many(applying.connection, applying.caller.namespace, names)
        return {name: Stored(row.document, row.bundle) for name, row in found.items()}

    def of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        return self.of.rows.names_of_bundle(connection, namespace, bundle, most)

    def read(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Mapping[str, Any]:
        """Without the token, which no document keeps."""
        plain = {field: value for field, value in document.items() if field != TOKEN}
        return self.of.shape.document(self.of.read(plain))

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> WriteEffects:
        done = self.put(applying.inside(), applying.caller, name, document)
        is_same = there is not None and self.read(applying, name, document, there) == there.document
        if not is_same or done.outcome is WriteOutcome.UNCHANGED:
            return WriteEffects(warnings=done.warnings)
        return WriteEffects((DocumentDifference(TOKEN, MASK, MASK),), done.warnings)

    def set_bundle(self, applying: Applying, name: str) -> None:
        self.of.rows.set_bundle(applying.connection, applying.caller.namespace, name, applying.bundle.name)

    def delete(self, applying: Applying, name: str) -> None:
        self.remove(applying.inside(), applying.caller, name)


def _putting(kind: DocumentKind[Any]) -> Put:
    return lambda resources, caller, name, document: kind.put(resources, caller, name, document)


def _put_agent(resources: Resources, caller: Caller, name: str, document: Document) -> StoredDocument[Any]:
    return agent_service.put(resources, caller, name, document).kept


BUNDLED_AGENTS: Final = BundledAssignees(BundleKind.AGENT, AGENTS, _put_agent, agent_service.delete, parent="parent_id")
BUNDLED_TEAMS: Final = BundledAssignees(BundleKind.TEAM, TEAMS, _putting(TEAMS), agents_teams.delete_team)
BUNDLED_ASSIGNMENTS: Final = BundledAssignees(
    BundleKind.ASSIGNMENT, ASSIGNMENTS, _putting(ASSIGNMENTS), agents_teams.delete_assignment
)


class BundledCalendars:
    kind: Final = BundleKind.CALENDAR

    def is_built_in(self, name: str) -> bool:
        """Raises InvalidCalendar for a rule of a country that nobody knows."""
        return name in BUILT_IN or (is_rule_name(name) and shared_calendar(name) is not None)

    def named_by(self, document: Document) -> tuple[str, ...]:
        return ()

    def find(self, applying: Applying, names: Collection[str]) -> Mapping[str, Stored]:
        found = calendar_rows.find_many(applying.connection, applying.caller.namespace, names)
        return {
            name: Stored(_compared(row.document), row.bundle, row.owner, row.version) for name, row in found.items()
        }

    def of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        return calendar_rows.names_of_bundle(connection, namespace, bundle, most)

    def read(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Mapping[str, Any]:
        return to_document(parse_calendar(document))

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> WriteEffects:
        connection, namespace, now = applying.connection, applying.caller.namespace, applying.now
        whole = self.read(applying, name, document, there)
        before = None if there is None else there.document
        if whole == before:
            return WriteEffects()
        check_bytes(applying.resources, connection, namespace, whole, now, before=before)
        if there is None:
            owner = applying.caller.principal
            check_rows(connection, limits.CALENDARS, namespace)
            calendar_rows.insert(connection, namespace, name, whole, now=now, owner=owner)
        else:
            calendar_rows.update(connection, namespace, name, whole, expected_version=there.version, now=now)
        return WriteEffects()

    def set_bundle(self, applying: Applying, name: str) -> None:
        calendar_rows.set_bundle(applying.connection, applying.caller.namespace, name, applying.bundle.name)

    def delete(self, applying: Applying, name: str) -> None:
        connection, namespace = applying.connection, applying.caller.namespace
        users = lookup_rows.schedules_with_calendar(connection, namespace, [name])
        if users:
            raise CalendarInUse(name, tuple(schedule_id for schedule_id, _ in users))
        calendar_rows.delete(connection, namespace, name)


def _compared(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """One that was damaged is replaced all the same."""
    try:
        return to_document(parse_calendar(document))
    except InvalidCalendar:
        return document


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
        found = workflow_rows.find_many(applying.connection, applying.caller.namespace, names)
        return {name: Stored(row.document, row.bundle, row.owner, row.version) for name, row in found.items()}

    def of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        return workflow_rows.ids_of_bundle(connection, namespace, bundle, most)

    def read(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Mapping[str, Any]:
        """It stays its owner's, unless the document names another."""
        workflow, _ = without_credentials(read_document(applying.resources, applying.caller, document, name))
        owner = workflow.owner or (None if there is None else there.owner)
        return workflow_document(replace(workflow, owner=owner))

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> WriteEffects:
        done = workflow_service.put(applying.inside(), applying.caller, name, document)
        told = WriteEffects(
            warnings=done.warnings,
            starts_soon=sum(each.starts_soon for each in done.schedules),
            fires_added=sum(each.fires_added for each in done.schedules),
            fires_removed=sum(each.fires_removed for each in done.schedules),
        )
        if there is None:
            return told
        diff = tuple(
            DocumentDifference(f"schedules.{each.schedule_id}", None, each.outcome.value)
            for each in done.schedules
            if each.outcome is not WriteOutcome.UNCHANGED
        )
        # Where the document is the same, only a credential can have changed.
        if done.outcome is WriteOutcome.UPDATED and done.version == there.version:
            diff += (DocumentDifference("secrets", MASK, MASK),)
        return replace(told, diff=diff)

    def set_bundle(self, applying: Applying, name: str) -> None:
        workflow_rows.set_bundle(applying.connection, applying.caller.namespace, name, applying.bundle.name)

    def delete(self, applying: Applying, name: str) -> None:
        workflow_service.delete(applying.inside(), applying.caller, name)


KINDS: Final[tuple[BundledDocuments, ...]] = (
    BundledCalendars(),
    BUNDLED_AGENTS,
    BUNDLED_TEAMS,
    BundledWorkflows(),
    BUNDLED_ASSIGNMENTS,
)
"""As in `BundleKind`: what a document names stands before it. They are pruned from the end."""
