"""Whose workspace a schedule stands in: that of the agent which its prompt goes to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from horarium.schedule.assignee import AssigneeType
from horarium.schedule.kinds import PROMPT


def workspace_of(document: Mapping[str, Any]) -> str | None:
    """Workspace of a canonical document; None unless its action is a prompt for an agent."""
    action = document.get("action")
    if not isinstance(action, Mapping) or action.get("kind") != PROMPT.name:
        return None
    agent = document.get("assignee_id") if document.get("assignee_type") == AssigneeType.AGENT.value else None
    return agent if isinstance(agent, str) else None
