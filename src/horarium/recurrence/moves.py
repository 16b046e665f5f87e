"""Changes to the instant of an occurrence: clock changes, jitter, and parts of the spec that coincide."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.recurrence.duration import format_duration
from horarium.recurrence.interval import Interval
from horarium.recurrence.spec import Part, Spec
from horarium.recurrence.wall import CronSchedule


@dataclass(frozen=True, slots=True)
class Move:
    """`kind` is a word of `MoveKind`. `local_time` is the wall time that the expression names, `seconds` the delay of
    jitter, and `parts` are the expressions that name one instant.
    """

    kind: str
    local_time: str | None = None
    seconds: float | None = None
    parts: tuple[str, ...] = ()


def can_move(spec: Spec) -> bool:
    """Report whether any instant of a spec can be moved."""
    fixed = any(isinstance(part, CronSchedule) and part.cron.fixed for part in spec.parts)
    return bool(spec.jitter_ms) or len(spec.parts) > 1 or (fixed and spec.zone.key != "UTC")


def moves_of(spec: Spec, nominal: Instant, due: Instant) -> tuple[Move, ...]:
    """Return what moved an occurrence of the spec; empty for most."""
    t = nominal // SECOND
    naming = [part for part in spec.parts if part.contains(t)] if len(spec.parts) > 1 else list(spec.parts)
    found = [move for part in naming if isinstance(part, CronSchedule) and (move := _clock_change(part, t))]
    if len(naming) > 1:
        found.append(Move("deduplicated", parts=tuple(_text(part) for part in naming)))
    if due != nominal:
        found.append(Move("jittered", seconds=(due - nominal) / SECOND))
    return tuple(dict.fromkeys(found))


def _clock_change(part: CronSchedule, t: int) -> Move | None:
    segment = part.zone.segment_at(t)
    if segment.before == segment.offset == segment.after or not part.cron.fixed:
        return None
    if t == segment.start and part.fires_at_start(segment):
        wall = part.cron.next_local(segment.start + segment.before)
        return None if wall is None else Move("dst_gap", _wall(wall))
    wall = t + segment.offset
    second_pass = segment.before > segment.offset and wall < segment.start + segment.before
    first_pass = segment.after < segment.offset and wall >= segment.stop + segment.after
    return Move("dst_fold", _wall(wall)) if first_pass or second_pass else None


def _wall(local: int) -> str:
    return to_rfc3339(local * SECOND).removesuffix("Z")


def _text(part: Part) -> str:
    if isinstance(part, CronSchedule):
        return part.cron.text
    return f"every {format_duration(part.every)}" if isinstance(part, Interval) else "at"
