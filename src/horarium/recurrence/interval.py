"""When a fixed interval comes round: a grid of whole seconds anchored at the Unix epoch in UTC."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.errors import InvalidSpec
from horarium.recurrence.duration import parse_duration


@dataclass(frozen=True, slots=True)
class Interval:
    """Every `every` seconds, shifted by `offset`; no zone moves it."""

    every: int
    offset: int = 0

    def __post_init__(self) -> None:
        if self.every <= 0:
            raise InvalidSpec("every: must be greater than 0", field="every")

    def next_after(self, t: int) -> int:
        return t + self.every - (t - self.offset) % self.every

    def previous_before(self, t: int) -> int:
        return t - 1 - (t - 1 - self.offset) % self.every

    def contains(self, t: int) -> bool:
        return (t - self.offset) % self.every == 0

    def count(self, after: int, until: int) -> int:
        """Count moments in (after, until]."""
        return max(0, (until - self.offset) // self.every - (after - self.offset) // self.every)


def parse_interval(every: str, offset: str | None = None) -> Interval:
    return Interval(
        parse_duration(every, field="every"),
        parse_duration(offset, field="offset") if offset is not None else 0,
    )
