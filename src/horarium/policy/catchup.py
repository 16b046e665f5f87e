"""Catch-up: what happens to occurrences that came due while the engine was away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

from horarium.instant import SECOND, Instant
from horarium.policy.names import PolicyError, parse_name, read_object, whole_number, whole_or_none


class CatchupPolicy(StrEnum):
    FIRE_ONCE = "fire_once"
    SKIP = "skip"
    FIRE_ALL = "fire_all"
    SPREAD = "spread"


ALIASES: Final[Mapping[str, CatchupPolicy]] = MappingProxyType(
    {
        "run_once": CatchupPolicy.FIRE_ONCE,
        "none": CatchupPolicy.SKIP,
        "fire_immediately": CatchupPolicy.FIRE_ALL,
        "backfill": CatchupPolicy.FIRE_ALL,
    }
)

# A spread is planned in one transaction, whatever the bound of a tick: it must stay small.
MAX_SPREAD = 1_000


def parse(value: object, field: str = "catchup_policy") -> CatchupPolicy:
    return parse_name(CatchupPolicy, ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class Catchup:
    """The policy and its numbers; `catchup_window_seconds` None = however old."""

    policy: CatchupPolicy = CatchupPolicy.FIRE_ONCE
    max_catchup: int = 100
    catchup_window_seconds: int | None = None
    catchup_spread_seconds: int = 60
    misfire_grace_seconds: int = 60

    def __post_init__(self) -> None:
        if not isinstance(self.policy, CatchupPolicy):
            raise PolicyError("catchup_policy", "must be a CatchupPolicy")
        whole_number("max_catchup", self.max_catchup)
        whole_or_none("catchup_window_seconds", self.catchup_window_seconds)
        whole_number("catchup_spread_seconds", self.catchup_spread_seconds)
        whole_number("misfire_grace_seconds", self.misfire_grace_seconds)
        if self.policy is CatchupPolicy.SPREAD and self.max_catchup > MAX_SPREAD:
            raise PolicyError("max_catchup", f"must be at most {MAX_SPREAD} for the policy spread")


_KEYS = ("catchup_policy", *(each.name for each in fields(Catchup)[1:]))
_KEY_ALIASES = {"max_backfill": "max_catchup", "on_missed": "catchup_policy"}


def parse_catchup(value: object) -> Catchup:
    given: dict[str, Any] = read_object(value, "catchup", _KEYS, _KEY_ALIASES)
    policy = parse(given.pop("catchup_policy")) if "catchup_policy" in given else CatchupPolicy.FIRE_ONCE
    return Catchup(policy, **given)


def spread_due(position: int, count: int, *, now: Instant, spread_seconds: int) -> Instant:
    """When the run at `position` of `count` is due: the first at `now`, the last at the end of the spread.

    Steps are equal but for the microsecond lost to division; a single run is due at once.
    """
    if not 0 <= position < count:
        raise ValueError(f"position {position} is not among {count} runs")
    if count == 1:
        return now
    return now + spread_seconds * SECOND * position // (count - 1)
