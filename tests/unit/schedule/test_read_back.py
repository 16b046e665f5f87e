"""A document that is an answer of ours, read, edited or not, and sent back: what we computed says nothing in it."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.document import ParsedDefinition, UpdateMode, parse_definition, to_document
from horarium.core.document.places import COMPUTED
from horarium.errors import InvalidDefinition

NOW = 1_770_000_000_000_000
# What an answer says beside the document: see `features/schedules/views.py`.
BESIDE: dict[str, Any] = {
    **dict.fromkeys(COMPUTED, "anything"),
    "uid": "0123",
    "fires_count": 3,
    "version": 7,
    "paused": False,
    "jitter_seconds": 0,
    "max_runs": None,
    "note": None,
    "memo": {},
    "labels": {},
    "search_attributes": {},
    "state": {"status": "active", "paused": False, "note": None},
    "info": {"recent_actions": []},
}
ACTIONS: dict[str, dict[str, Any]] = {
    "workflow type": {"workflow_type": "report", "queue": "q"},
    "workflow id": {"workflow_id": "report", "version": 3},
    "workflow class": {"workflow_class": "Report"},
    "id and type": {"workflow_id": "a", "workflow_type": "b"},
    "pull": {"kind": "pull", "workflow_type": "report", "queue": "q"},
    "http": {"url": "https://example.org"},
}


def parse(document: dict[str, Any], **more: Any) -> ParsedDefinition:
    return parse_definition(document, now=NOW, **more)


def answer(action: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    definition = parse({"schedule_id": "s", "cron_expr": "0 2 * * *", "action": action}).definition
    document = to_document(definition)
    shown = dict(document["action"])  # type: ignore[call-overload]  # JSON, known to be an object
    if "queue" in shown:
        shown["task_queue"] = shown["queue"]
    return definition, {**document, **BESIDE, "action": shown, "workflow_type": definition.action.workflow}


@pytest.mark.parametrize("action", ACTIONS.values(), ids=ACTIONS)
@pytest.mark.parametrize("how", list(UpdateMode), ids=str)
def test_what_was_read_means_what_it_meant(action: dict[str, Any], how: UpdateMode) -> None:
    definition, document = answer(action)
    parsed = parse(document, base=definition, update=how)
    assert parsed.definition == definition
    assert parsed.warnings == ()


@pytest.mark.parametrize("mark", ["uid", "firesCount"])
def test_the_version_of_an_answer_is_that_of_the_row(mark: str) -> None:
    document = {"schedule_id": "s", "cron_expr": "0 2 * * *", "workflow_id": "w", "version": 7}
    assert parse(document).definition.action.target == {"workflow_id": "w", "version": 7}
    assert parse({**document, mark: 1}).definition.action.target == {"workflow_id": "w"}


def test_an_edit_of_the_action_itself_is_an_edit() -> None:
    definition, document = answer({"workflow_id": "w", "version": 3})
    edited = {**document, "action": {"workflow_id": "w", "version": 4}}
    assert parse(edited, base=definition).definition.action.target["version"] == 4


def test_another_name_of_the_work_at_the_top_is_an_edit_too() -> None:
    definition, document = answer({"workflow_type": "report"})
    parsed = parse({**document, "workflow_type": "other"}, base=definition)
    assert parsed.definition.action.workflow == "other"
    with pytest.raises(InvalidDefinition, match="conflicts with"):  # a third name: nobody can tell which is meant
        parse({**document, "workflow_type": "other", "action": {"workflow_type": "third"}}, base=definition)


def test_what_nobody_computes_is_still_refused() -> None:
    definition, document = answer({"workflow_type": "report"})
    with pytest.raises(InvalidDefinition) as refused:
        parse({**document, "nope": 1}, base=definition)
    assert list(refused.value.errors) == ["nope"]
