"""What a bundle does to agents, teams and assignments: as a request of the same caller would, in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

from horarium.operations import agents, assignments, teams
from horarium.operations.agents import AGENTS
from horarium.operations.assignments import ASSIGNMENTS
from horarium.operations.bundle_documents import Stored, Written
from horarium.operations.bundle_steps import Applying
from horarium.operations.caller import Caller
from horarium.operations.kept_documents import DocumentKind, Kept
from horarium.operations.resources import Resources
from horarium.operations.teams import TEAMS
from horarium.schedule.bundle import BundleKind, Difference, Document
from horarium.schedule.redaction import MASK
from horarium.store.database import Connection
from horarium.wire.outcomes import WriteOutcome

TOKEN = "token"

Put = Callable[[Resources, Caller, str, Document], Kept[Any]]
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

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Written:
        done = self.put(applying.inside(), applying.caller, name, document)
        is_same = there is not None and self.read(applying, name, document, there) == there.document
        if not is_same or done.outcome is WriteOutcome.UNCHANGED:
            return Written(warnings=done.warnings)
        return Written((Difference(TOKEN, MASK, MASK),), done.warnings)

    def set_bundle(self, applying: Applying, name: str) -> None:
        self.of.rows.set_bundle(applying.connection, applying.caller.namespace, name, applying.bundle.name)

    def delete(self, applying: Applying, name: str) -> None:
        self.remove(applying.inside(), applying.caller, name)


def _putting(kind: DocumentKind[Any]) -> Put:
    return lambda resources, caller, name, document: kind.put(resources, caller, name, document)


def _put_agent(resources: Resources, caller: Caller, name: str, document: Document) -> Kept[Any]:
    return agents.put(resources, caller, name, document).kept


BUNDLED_AGENTS: Final = BundledAssignees(BundleKind.AGENT, AGENTS, _put_agent, agents.delete, parent="parent_id")
BUNDLED_TEAMS: Final = BundledAssignees(BundleKind.TEAM, TEAMS, _putting(TEAMS), teams.delete)
BUNDLED_ASSIGNMENTS: Final = BundledAssignees(
    BundleKind.ASSIGNMENT, ASSIGNMENTS, _putting(ASSIGNMENTS), assignments.delete
)
