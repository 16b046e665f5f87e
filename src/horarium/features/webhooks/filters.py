"""Filters of webhook subscriptions on the feed, and the pause after a failed delivery."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeVar

from horarium.core.decision.statuses import HealthStatus
from horarium.core.document.states import FEED_KINDS, FINAL, STATE_GROUPS, RunState
from horarium.errors import InvalidDefinition

E = TypeVar("E", bound=StrEnum)

KINDS: Final[tuple[str, ...]] = tuple(sorted({*FEED_KINDS.values()}))
MAX_NAMED = 100
"""Schedules, or labels, that a filter may name."""

_MAX_TEXT = 255
_FILTERS: Final = ("schedule_id", "labels", "states", "statuses")
_STATES: Final[Mapping[str, frozenset[RunState]]] = MappingProxyType(
    {**{state.value: frozenset({state}) for state in sorted(FINAL)}, **STATE_GROUPS}
)


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """Filter of a subscription; an empty part matches all.

    `states` narrow the ends of runs, `statuses` the changes of health.
    """

    kinds: frozenset[str]
    schedule_ids: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    states: frozenset[RunState] = frozenset()
    statuses: frozenset[HealthStatus] = frozenset()

    def filter_document(self) -> dict[str, Any]:
        """Document for `read_wanted`, with only the parts that narrow."""
        told: dict[str, Any] = {
            "schedule_id": sorted(self.schedule_ids),
            "labels": dict(self.labels),
            "states": sorted(self.states),
            "statuses": sorted(self.statuses),
        }
        return {name: value for name, value in told.items() if value}


@dataclass(frozen=True, slots=True)
class FeedNotice:
    """An entry of the feed, as far as a filter asks."""

    kind: str
    schedule_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    state: RunState | None = None
    status: HealthStatus | None = None


def is_wanted(wanted: SubscriptionFilter, told: FeedNotice) -> bool:
    return (
        told.kind in wanted.kinds
        and (not wanted.schedule_ids or told.schedule_id in wanted.schedule_ids)
        and all(told.labels.get(name) == value for name, value in wanted.labels.items())
        and (not wanted.states or told.state is None or told.state in wanted.states)
        and (not wanted.statuses or told.status is None or told.status in wanted.statuses)
    )


def pause_after(failures: int, pauses: Sequence[float]) -> float | None:
    """Seconds to wait after so many failed deliveries of one entry; None = it is given up."""
    return pauses[failures - 1] if failures <= len(pauses) else None


def has_place(mine: int, taken: int, *, places: int, places_of_one: int) -> bool:
    """Tell whether a namespace that has `mine` of the `taken` places may have one more.

    The last quarter is for namespaces that have none: receivers of others that hang do not delay them.
    """
    return mine < places_of_one and taken < (places if mine == 0 else places - places // 4)


def read_filter(kinds: object, narrowed: object = None) -> SubscriptionFilter:
    """Raises InvalidDefinition with every problem."""
    errors: dict[str, list[str]] = {}
    said = {} if narrowed is None else narrowed
    if not isinstance(said, Mapping):
        errors["filter"] = ["must be an object"]
        said = {}
    for name in sorted(str(each)[:100] for each in said.keys() - set(_FILTERS))[:10]:
        errors[f"filter.{name}"] = [f"unknown field; allowed: {', '.join(_FILTERS)}"]
    wanted = SubscriptionFilter(
        kinds=frozenset(_words("kinds", kinds, KINDS, errors)),
        schedule_ids=frozenset(_texts("filter.schedule_id", said.get("schedule_id"), errors)),
        labels=_labels(said.get("labels"), errors),
        states=frozenset().union(
            *(_STATES[word] for word in _words("filter.states", said.get("states"), _STATES, errors))
        ),
        statuses=_members(HealthStatus, "filter.statuses", said.get("statuses"), tuple(HealthStatus), errors),
    )
    if not wanted.kinds and "kinds" not in errors:
        errors["kinds"] = [f"name at least one of {', '.join(KINDS)}"]
    if errors:
        raise InvalidDefinition(errors)
    return wanted


def _members(
    kind: type[E], path: str, value: object, allowed: Collection[str], errors: dict[str, list[str]]
) -> frozenset[E]:
    return frozenset(kind(word) for word in _words(path, value, allowed, errors))


def _words(path: str, value: object, allowed: Collection[str], errors: dict[str, list[str]]) -> list[str]:
    found = _texts(path, value, errors)
    unknown = [word for word in found if word not in allowed]
    if unknown:
        errors[path] = [f"unknown value {unknown[0]!r}; allowed: {', '.join(allowed)}"]
    return [word for word in found if word in allowed]


def _texts(path: str, value: object, errors: dict[str, list[str]]) -> list[str]:
    """One text stands for a list of it."""
    listed = [] if value is None else [value] if isinstance(value, str) else value
    if (
        not isinstance(listed, list | tuple)
        or len(listed) > MAX_NAMED
        or not all(isinstance(each, str) and 0 < len(each) <= _MAX_TEXT and each.isprintable() for each in listed)
    ):
        errors[path] = [f"must be a list of at most {MAX_NAMED} strings of 1 to {_MAX_TEXT} printable characters"]
        return []
    return list(listed)


def _labels(value: object, errors: dict[str, list[str]]) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        errors["filter.labels"] = ["must be an object with string values"]
        return {}
    _texts("filter.labels", [*value.keys(), *value.values()], errors)
    return {} if "filter.labels" in errors else dict(value)
