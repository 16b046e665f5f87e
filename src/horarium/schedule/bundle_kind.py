"""Which kinds of documents a bundle has; by itself, so that whoever only names them reads none."""

from __future__ import annotations

from enum import StrEnum


class BundleKind(StrEnum):
    """Kinds of documents in a bundle, in the order of application. Pruning uses the reverse order."""

    CALENDAR = "calendar"
    AGENT = "agent"
    TEAM = "team"
    WORKFLOW = "workflow"
    ASSIGNMENT = "assignment"
    SCHEDULE = "schedule"

    @property
    def member(self) -> str:
        """The list of a bundle that holds them."""
        return f"{self}s"
