"""Overlap: what happens to an occurrence while earlier runs of its schedule are still busy.

A run that is held is not final, so it takes a place too: no occurrence overtakes a held one. What a backfill
holds takes none: it was asked for beside the schedule's own work, which waits behind it and is not dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeAlias, assert_never

from horarium.policy.names import PolicyError, parse_name, read_object, whole_number, whole_or_none


class OverlapPolicy(StrEnum):
    SKIP = "skip"
    BUFFER_ONE = "buffer_one"
    BUFFER_ALL = "buffer_all"
    ALLOW_ALL = "allow_all"
    CANCEL_OTHER = "cancel_other"
    TERMINATE_OTHER = "terminate_other"


ALIASES: Final[Mapping[str, OverlapPolicy]] = MappingProxyType(
    {
        "serial": OverlapPolicy.SKIP,
        "forbid": OverlapPolicy.SKIP,
        "queue": OverlapPolicy.BUFFER_ALL,
        "allow": OverlapPolicy.ALLOW_ALL,
        "parallel": OverlapPolicy.ALLOW_ALL,
        "replace": OverlapPolicy.CANCEL_OTHER,
    }
)


def parse(value: object, field: str = "overlap_policy") -> OverlapPolicy:
    return parse_name(OverlapPolicy, ALIASES, value, field)


@dataclass(frozen=True, slots=True)
class Overlap:
    """The policy and its numbers; `max_buffered` None = as many as come."""

    policy: OverlapPolicy = OverlapPolicy.SKIP
    max_concurrency: int | None = None
    max_buffered: int | None = None
    cancel_grace_seconds: int = 30

    def __post_init__(self) -> None:
        if not isinstance(self.policy, OverlapPolicy):
            raise PolicyError("overlap_policy", "must be an OverlapPolicy")
        whole_or_none("max_concurrency", self.max_concurrency, least=1)
        whole_or_none("max_buffered", self.max_buffered)
        whole_number("cancel_grace_seconds", self.cancel_grace_seconds)

    @property
    def capacity(self) -> int | None:
        """Number of runs that may be busy at once; None = any number."""
        if self.max_concurrency is not None:
            return self.max_concurrency
        return None if self.policy is OverlapPolicy.ALLOW_ALL else 1


_KEYS = ("overlap_policy", *(each.name for each in fields(Overlap)[1:]))


def parse_overlap(value: object) -> Overlap:
    given: dict[str, Any] = read_object(value, "overlap", _KEYS)
    policy = parse(given.pop("overlap_policy")) if "overlap_policy" in given else OverlapPolicy.SKIP
    return Overlap(policy, **given)


@dataclass(frozen=True, slots=True)
class Start:
    """Fire now; with `terminate_active` the active runs become `terminated` in the same transaction."""

    terminate_active: bool = False


@dataclass(frozen=True, slots=True)
class Buffer:
    """Hold; with `cancel_active` the active runs are asked to stop."""

    cancel_active: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """Skip, for this reason: `overlap_policy_skip`, `buffer_full` or `max_concurrent_reached`."""

    reason: str


OverlapOutcome: TypeAlias = Start | Buffer | Refuse
_START: Final = Start()


def decide_overlap(
    overlap: Overlap, *, active: int, held: int, backfilled: int = 0, caught_up: bool = False
) -> OverlapOutcome:
    """`active` are root runs that are neither final nor held, `held` those that are; `backfilled` of them fill in."""
    whole_number("active", active)
    whole_number("held", held)
    whole_number("backfilled", backfilled)
    policy, capacity = overlap.policy, overlap.capacity
    own = max(0, held - backfilled)
    if caught_up and policy is OverlapPolicy.SKIP:
        policy = OverlapPolicy.BUFFER_ALL  # a backlog is not skipped against itself
    at_capacity = capacity is not None and active >= capacity
    occupied = capacity is not None and active + own >= capacity
    must_wait = at_capacity or held > 0
    match policy:
        case OverlapPolicy.SKIP:
            if backfilled:
                return _buffer(True, own, most=overlap.max_buffered)
            return Refuse("overlap_policy_skip") if occupied else _START
        case OverlapPolicy.BUFFER_ONE:
            return _buffer(must_wait, own, most=1)
        case OverlapPolicy.BUFFER_ALL:
            return _buffer(must_wait, own, most=overlap.max_buffered)
        case OverlapPolicy.ALLOW_ALL:
            if not occupied:
                return _START
            return _buffer(True, own, most=overlap.max_buffered) if backfilled else Refuse("max_concurrent_reached")
        case OverlapPolicy.CANCEL_OTHER:
            return Buffer(cancel_active=True) if must_wait else _START
        case OverlapPolicy.TERMINATE_OTHER:
            # Only active runs can be terminated; held ones keep their turn.
            return Start(terminate_active=at_capacity)
        case _:
            assert_never(policy)


def _buffer(must_wait: bool, held: int, *, most: int | None) -> OverlapOutcome:
    if not must_wait:
        return _START
    return Refuse("buffer_full") if most is not None and held >= most else Buffer()
