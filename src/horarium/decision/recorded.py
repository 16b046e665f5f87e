"""What the guards had said when an occurrence was decided, read off the event that history kept of it.

A refusal names the guard that said no, so those before it had said yes and those after it were never
asked. A run means that all who were asked had said yes. What an edit or the clock overtook was asked nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from horarium.decision.guards import GUARDS, guards_for
from horarium.decision.plan import Detail
from horarium.instant import Instant, to_rfc3339
from horarium.schedule.event import EventType
from horarium.schedule.planning import Planning
from horarium.schedule.reason import Reason
from horarium.schedule.run import Origin

OVERLAP = "overlap"
OF_OVERLAP = (Reason.OVERLAP_POLICY_SKIP, Reason.BUFFER_FULL, Reason.MAX_CONCURRENT_REACHED)
_BIRTHS = {EventType.TRIGGERED.value: "fire", EventType.BUFFERED.value: "hold"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One question and its answer. `holds` None = it is not asked of this schedule, or was not asked then."""

    question: str
    holds: bool | None
    detail: Detail | None = None


@dataclass(frozen=True, slots=True)
class Recorded:
    """Event of history about the occurrence: its type, payload and time."""

    event_type: str
    payload: Mapping[str, Any]
    recorded_at: Instant

    @property
    def is_birth(self) -> bool:
        return self.event_type in _BIRTHS

    @property
    def reason(self) -> Reason | None:
        """None also for a word that another release wrote."""
        said = self.payload.get("reason")
        return Reason(said) if said in frozenset(Reason) else None

    def is_about(self, planning: Planning, at: Instant) -> bool:
        """Tell whether the event decided this moment: a range of missed occurrences spans moments that are none."""
        said = self.payload
        named = (said.get("occurrence_time"), said.get("first"), said.get("last"))
        return to_rfc3339(at) in named or planning.spec.contains(at)


def findings_then(planning: Planning, recorded: Recorded) -> list[Finding]:
    """The answers of the guards and of overlap; `planning` is the one that was in force then."""
    refused = None if recorded.is_birth else recorded.reason
    detail = recorded.payload.get("detail")
    asked = _asked(planning, recorded)
    findings = []
    for guard in GUARDS:
        if guard.reason is refused:
            findings.append(Finding(guard.reason, False, detail))
            asked = frozenset()
        else:
            findings.append(Finding(guard.reason, True if guard.reason in asked else None))
    return [*findings, _overlap_then(planning, recorded)]


def _asked(planning: Planning, recorded: Recorded) -> frozenset[Reason]:
    """Nobody asks about what was overtaken, or has had its run."""
    if not recorded.is_birth and recorded.reason not in (*(guard.reason for guard in GUARDS), *OF_OVERLAP):
        return frozenset()
    origin = recorded.payload.get("origin", Origin.SCHEDULED.value)
    known = Origin(origin) if origin in frozenset(Origin) else Origin.SCHEDULED
    return frozenset(guard.reason for guard in guards_for(planning, known))


def _overlap_then(planning: Planning, recorded: Recorded) -> Finding:
    said = recorded.payload
    if recorded.is_birth:
        policy = said.get("effective_overlap_policy", planning.overlap.policy.value)
        seen = {"policy": policy, "outcome": _BIRTHS[recorded.event_type], "buffer_depth": said.get("buffer_depth")}
        return Finding(OVERLAP, True, {key: value for key, value in seen.items() if value is not None})
    if recorded.reason in OF_OVERLAP:
        counts = said.get("detail") or {}
        return Finding(OVERLAP, False, {"policy": planning.overlap.policy.value, **counts, "reason": recorded.reason})
    return Finding(OVERLAP, None)
