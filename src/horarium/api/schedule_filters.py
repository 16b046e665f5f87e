"""How the filters of schedules are read off a query, wherever schedules can be chosen by them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from horarium.decision.health_status import HealthStatus
from horarium.errors import InvalidDefinition
from horarium.operations.filters import LISTED
from horarium.policy.names import shown
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.position import Status
from horarium.store.schedules.signs import SIGNED

# Each is a condition of its own in the query.
_MAX_LABELS = 20


def check_texts(given: Mapping[str, Sequence[str]]) -> None:
    """No database holds U+0000, and nobody means a blank."""
    if any("\x00" in value for values in given.values() for value in values):
        raise InvalidDefinition({"query": ["must not contain the character U+0000"]})
    blank = {name: ["must not be blank"] for name, values in given.items() if not all(map(str.strip, values))}
    if blank:
        raise InvalidDefinition(blank)


def status_of(text: str, known: Mapping[str, Status] = LISTED) -> Status:
    found = known.get(text.lower())
    if found is None:
        raise InvalidDefinition({"status": [f"must be one of {', '.join(known)}, not {shown(text)}"]})
    return found


def health_of(text: str) -> HealthStatus:
    found = next((each for each in SIGNED if each == text.lower()), None)
    if found is None:
        raise InvalidDefinition({"health": [f"must be one of {', '.join(SIGNED)}, not {shown(text)}"]})
    return found


def assignee_type_of(text: str) -> AssigneeType:
    found = next((each for each in AssigneeType if each == text.lower()), None)
    if found is None:
        raise InvalidDefinition({"assignee_type": [f"must be one of {', '.join(AssigneeType)}, not {shown(text)}"]})
    return found


def labels_of(pairs: Sequence[str]) -> dict[str, str] | None:
    """`name=value`, each of which must fit."""
    split = [pair.partition("=") for pair in pairs]
    if any(not name or not equals for name, equals, _ in split):
        raise InvalidDefinition({"label": ["must be name=value"]})
    if len(pairs) > _MAX_LABELS:
        raise InvalidDefinition({"label": [f"accepts at most {_MAX_LABELS} values"]})
    return {name: value for name, _, value in split} or None
