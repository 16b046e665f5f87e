"""Queue: the `queue_policy` object, read as the overlap, catch-up and priority fields it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from horarium.policy import catchup, overlap
from horarium.policy.catchup import CatchupPolicy
from horarium.policy.names import PolicyError, read_object, whole_or_none
from horarium.policy.overlap import OverlapPolicy

# `mode` takes every name of an overlap policy; these two are the ones it is documented with.
ALIASES: Final[Mapping[str, OverlapPolicy]] = MappingProxyType(
    {name: overlap.ALIASES[name] for name in ("parallel", "serial")}
)

# Wide enough to put anything before anything; it orders the runs of one namespace only.
MIN_PRIORITY, MAX_PRIORITY = -100, 100

DEFAULT_OVERLAP: Final = OverlapPolicy.ALLOW_ALL
DEFAULT_CATCHUP: Final = CatchupPolicy.SKIP
"""`mode` parallel and `onMissed` skip: what a schedule means that has the object, where the object does not say."""

_KEYS = ("mode", "max_concurrency", "priority", "on_missed", "max_backfill")
KEY_ALIASES = {
    "max_concurrent": "max_concurrency",
    "overlap_policy": "mode",
    "catchup_policy": "on_missed",
    "max_catchup": "max_backfill",
}


QUEUE_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"overlap_policy": "mode", "catchup_policy": "on_missed", "max_catchup": "max_backfill"}
)
"""The names of the object for the fields of the value, where they differ."""


def parse(value: object, field: str = "mode") -> OverlapPolicy:
    return overlap.parse(value, field)


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """What the object gave; None = it did not say, so the schedule's own field or default stands."""

    overlap_policy: OverlapPolicy | None = None
    max_concurrency: int | None = None
    priority: int | None = None
    catchup_policy: CatchupPolicy | None = None
    max_catchup: int | None = None

    def __post_init__(self) -> None:
        if self.overlap_policy is not None and not isinstance(self.overlap_policy, OverlapPolicy):
            raise PolicyError("mode", "must be an OverlapPolicy")
        if self.catchup_policy is not None and not isinstance(self.catchup_policy, CatchupPolicy):
            raise PolicyError("on_missed", "must be a CatchupPolicy")
        whole_or_none("max_concurrency", self.max_concurrency, least=1)
        whole_or_none("priority", self.priority, least=MIN_PRIORITY, most=MAX_PRIORITY)
        whole_or_none("max_backfill", self.max_catchup)


def parse_queue_policy(value: object) -> QueuePolicy:
    given: dict[str, Any] = read_object(value, "queue_policy", _KEYS, KEY_ALIASES)
    return QueuePolicy(
        overlap_policy=parse(given["mode"]) if "mode" in given else None,
        max_concurrency=given.get("max_concurrency"),
        priority=given.get("priority"),
        catchup_policy=catchup.parse(given["on_missed"], "on_missed") if "on_missed" in given else None,
        max_catchup=given.get("max_backfill"),
    )
