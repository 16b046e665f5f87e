"""The kinds of documents that a bundle may bring beside schedules, in the order in which they are applied."""

from __future__ import annotations

from typing import Final

from horarium.operations.bundle_assignees import BUNDLED_AGENTS, BUNDLED_ASSIGNMENTS, BUNDLED_TEAMS
from horarium.operations.bundle_calendars import BundledCalendars
from horarium.operations.bundle_documents import BundledDocuments
from horarium.operations.bundle_workflows import BundledWorkflows

KINDS: Final[tuple[BundledDocuments, ...]] = (
    BundledCalendars(),
    BUNDLED_AGENTS,
    BUNDLED_TEAMS,
    BundledWorkflows(),
    BUNDLED_ASSIGNMENTS,
)
"""As in `BundleKind`: what a document names stands before it. They are pruned from the end."""
