"""Quotas: what one namespace may have and start, so that no tenant takes what the others need.

Limits are those of the settings, unless a namespace has its own. None = no limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, NamedTuple, TypeAlias

from horarium.policy.names import PolicyError, shown

DEFAULT: Final = "default"
"""In place of a number: what the settings say."""

MAX_LIMIT: Final = 10**15
BYTES_OF_A_RUN: Final = 1_000
"""Bytes of a run with its events, history and indexes, in addition to its inputs and result."""
_PLENTY: Final = 2**60


class Quota(StrEnum):
    SCHEDULES = "schedules"  # live ones
    RUNS_PER_MINUTE = "runs_per_minute"  # born in one minute of the clock
    OPEN_RUNS = "open_runs"  # that have not ended
    BYTES_STORED = "bytes_stored"  # definitions, inputs, results, history
    SHORTEST_GAP_SECONDS = "shortest_gap_seconds"  # between two occurrences of one schedule


Overrides: TypeAlias = Mapping[str, int | None]
"""What a namespace has instead of the settings, by the names of quotas."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """The limits of a namespace; the fields are named as the quotas."""

    schedules: int | None = 250_000
    runs_per_minute: int | None = 200_000
    open_runs: int | None = 200_000
    bytes_stored: int | None = 50_000_000_000
    shortest_gap_seconds: int | None = 1

    def limit(self, quota: Quota) -> int | None:
        found: int | None = getattr(self, quota.value)
        return found

    def with_own(self, own: Overrides) -> Quotas:
        """Apply overrides; a quota that no longer exists is left out."""
        known = {name: limit for name, limit in own.items() if name in frozenset(Quota)}
        return replace(self, **known) if known else self


class Usage(NamedTuple):
    """Present usage of a namespace."""

    schedules: int = 0
    runs_this_minute: int = 0
    open_runs: int = 0
    bytes_stored: int = 0

    def of(self, quota: Quota) -> int | None:
        """None for what is asked of each schedule alone."""
        match quota:
            case Quota.SHORTEST_GAP_SECONDS:
                return None
            case Quota.RUNS_PER_MINUTE:
                return self.runs_this_minute
            case _:
                found: int = getattr(self, quota.value)
                return found


@dataclass(frozen=True, slots=True)
class Exceeded:
    """`used` is what there is already, `asked` what would come on top."""

    quota: Quota
    limit: int
    used: int
    asked: int = 1


@dataclass(frozen=True, slots=True)
class Room:
    """Number of runs that may still be created, and the quota that is then used up."""

    births: int
    quota: Quota = Quota.RUNS_PER_MINUTE
    limit: int = _PLENTY
    used: int = 0

    def exceeded(self, born: int) -> Exceeded:
        """Describe the next run's excess after `born` of the runs that fit."""
        each = BYTES_OF_A_RUN if self.quota is Quota.BYTES_STORED else 1
        return Exceeded(self.quota, self.limit, self.used + born * each, each)


ROOM_WITHOUT_END: Final = Room(_PLENTY)


def room_for_runs(limits: Quotas, usage: Usage) -> Room:
    """The quota that is used up first; of two that are, the first in the list."""
    found = ROOM_WITHOUT_END
    for quota in (Quota.RUNS_PER_MINUTE, Quota.OPEN_RUNS, Quota.BYTES_STORED):
        limit, used = limits.limit(quota), usage.of(quota)
        if limit is None or used is None:
            continue
        left = max(0, limit - used)
        births = left // BYTES_OF_A_RUN if quota is Quota.BYTES_STORED else left
        if births < found.births:
            found = Room(births, quota, limit, used)
    return found


def definitions_exceed(limits: Quotas, usage: Usage, *, schedules: int, size: int) -> Exceeded | None:
    """Find the quota that `schedules` new schedules and `size` bytes of definitions would exceed."""
    for quota, asked in ((Quota.SCHEDULES, schedules), (Quota.BYTES_STORED, size)):
        limit, used = limits.limit(quota), usage.of(quota) or 0
        if limit is not None and asked > 0 and used + asked > limit:
            return Exceeded(quota, limit, used, asked)
    return None


def gap_exceeds(limits: Quotas, shortest_gap: int | None) -> Exceeded | None:
    """`shortest_gap` is that of a spec, in seconds; None = it has no two occurrences."""
    limit = limits.shortest_gap_seconds
    if limit is None or shortest_gap is None or shortest_gap >= limit:
        return None
    return Exceeded(Quota.SHORTEST_GAP_SECONDS, limit, shortest_gap, shortest_gap)


def changed_quotas(own: Overrides, asked: object, field: str = "quotas") -> dict[str, int | None]:
    """The own limits of a namespace after a change: a number, null for no limit, or `default`. Raises PolicyError."""
    changed = dict(own)
    for name, value in _members(asked, field, [quota.value for quota in Quota]).items():
        if value == DEFAULT:
            changed.pop(name, None)
        else:
            changed[name] = _limit(value, f"{field}.{name}")
    return changed


def _members(asked: object, field: str, names: Sequence[str]) -> Mapping[str, object]:
    """Null means something here, so it is kept."""
    if not isinstance(asked, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(asked)}")
    for name in asked:
        if name not in names:
            raise PolicyError(field, f"unknown key {shown(name)}; allowed: {', '.join(names)}")
    return asked


def _limit(value: object, field: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_LIMIT:
        raise PolicyError(field, f"must be an integer up to {MAX_LIMIT}, null or {DEFAULT!r}, not {shown(value)}")
    return value
