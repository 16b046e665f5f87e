"""Queue: the `queue_policy` object, read as the overlap, catch-up and priority fields it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Final

from horarium.policy import catchup, overlap
from horarium.policy.catchup import Catchup, CatchupPolicy
from horarium.policy.names import PolicyError, read_object, whole_or_none
from horarium.policy.overlap import Overlap, OverlapPolicy

# `mode` takes every name of an overlap policy; these two are the ones it is documented with.
ALIASES: Final[Mapping[str, OverlapPolicy]] = MappingProxyType(
    {name: overlap.ALIASES[name] for name in ("parallel", "serial")}
)

# Wide enough to put anything before anything; it orders the runs of one namespace only.
MIN_PRIORITY, MAX_PRIORITY = -100, 100

DEFAULT_OVERLAP: Final = OverlapPolicy.ALLOW_ALL
DEFAULT_CATCHUP: Final = CatchupPolicy.SKIP
"""`mode` parallel and `onMissed` skip: the defaults of a document with the object or with `p_…` names."""

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
    """Fields of the given object; None = not given, so the schedule's own field or default applies."""

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


@dataclass(frozen=True, slots=True)
class OwnQueue:
    """The fields of a schedule that a `queue_policy` stands for."""

    overlap: Overlap
    catchup: Catchup
    priority: int = 0

    def under(self, assignment: QueuePolicy | None) -> OwnQueue:
        """With the overlap and priority of an assignment where the schedule has defaults."""
        if assignment is None:
            return self
        overlap, priority = self.overlap, self.priority
        if overlap == _USUAL_OVERLAP:
            overlap = replace(
                overlap,
                policy=assignment.overlap_policy or overlap.policy,
                max_concurrency=assignment.max_concurrency or overlap.max_concurrency,
            )
        if assignment.priority is not None and priority == 0:
            priority = assignment.priority
        return replace(self, overlap=overlap, priority=priority)

    def document(self) -> dict[str, object]:
        """Every name of the object; null is no limit, or a number that the policy does not use."""
        capped = self.catchup.policy in (CatchupPolicy.FIRE_ALL, CatchupPolicy.SPREAD)
        values = QueuePolicy(
            self.overlap.policy,
            self.overlap.max_concurrency,
            self.priority,
            self.catchup.policy,
            self.catchup.max_catchup if capped else None,
        )
        return {QUEUE_NAMES.get(each.name, each.name): getattr(values, each.name) for each in fields(QueuePolicy)}


_USUAL_OVERLAP: Final = Overlap()
USUAL_QUEUE: Final = OwnQueue(_USUAL_OVERLAP, Catchup())


def queue_document(policy: QueuePolicy) -> dict[str, object]:
    """Return the policy as the object that documents use."""
    given = {each.name: getattr(policy, each.name) for each in fields(policy)}
    return {QUEUE_NAMES.get(name, name): value for name, value in given.items() if value is not None}


def parse_queue_policy(value: object) -> QueuePolicy:
    given: dict[str, Any] = read_object(value, "queue_policy", _KEYS, KEY_ALIASES)
    return QueuePolicy(
        overlap_policy=parse(given["mode"]) if "mode" in given else None,
        max_concurrency=given.get("max_concurrency"),
        priority=given.get("priority"),
        catchup_policy=catchup.parse(given["on_missed"], "on_missed") if "on_missed" in given else None,
        max_catchup=given.get("max_backfill"),
    )
