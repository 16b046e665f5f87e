"""The workspace of a schedule."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.reader import workspace_of

ASK = {"kind": "prompt", "prompt": "Report"}
# fmt: off
CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "a prompt to an agent": ({"action": ASK, "assignee_type": "agent", "assignee_id": "a1"}, "a1"),
    "a prompt to a team": ({"action": ASK, "assignee_type": "team", "assignee_id": "a1"}, None),
    "a prompt to nobody": ({"action": ASK}, None),
    "an agent that is no target": ({"action": {"kind": "http"}, "assignee_type": "agent", "assignee_id": "a1"}, None),
    "no action": ({"assignee_type": "agent", "assignee_id": "a1"}, None),
    "an action that is none": ({"action": "prompt", "assignee_type": "agent", "assignee_id": "a1"}, None),
    "an id that is none": ({"action": ASK, "assignee_type": "agent", "assignee_id": 7}, None),
}
# fmt: on


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_to_one_agent_stands_in_its_workspace(name: str) -> None:
    document, expected = CASES[name]
    assert workspace_of(document) == expected
