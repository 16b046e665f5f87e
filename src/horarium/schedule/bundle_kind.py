"""Which kinds of documents a bundle has; by itself, so that whoever only names them reads none."""

from __future__ import annotations

from enum import StrEnum


class BundleKind(StrEnum):
    """In the order in which they are applied: what a document names stands before it. Pruned is from the end."""

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
