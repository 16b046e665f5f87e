"""Which instant a request means by a written time, in a zone that it names or else in that of a schedule."""

from __future__ import annotations

from dataclasses import dataclass

from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.instant import Instant
from horarium.operations.resources import Opened
from horarium.recurrence.moment import exactly, read_moment
from horarium.recurrence.zone import Zone, load_zone
from horarium.schedule.planning import Planning


@dataclass(frozen=True, slots=True)
class Written:
    """`field` is the request's name for it; `timezone` is that of the request, None = it names none."""

    text: str
    timezone: str | None = None
    field: str = "until"

    @property
    def needs_schedule(self) -> bool:
        """Tell whether it may be a local time in a zone that only a schedule defines."""
        return self.timezone is None and exactly(self.text.strip(), field=self.field) is None

    def instant(self, now: Instant, zone: Zone | None = None) -> Instant:
        """Raises InvalidDefinition. Without `zone`, and none of its own, a local time is refused."""
        try:
            named = zone if self.timezone is None else load_zone(self.timezone)
            return read_moment(self.text, field=self.field, now=now, zone=named).instant
        except InvalidSpec as wrong:
            name = wrong.field or self.field
            raise InvalidDefinition({name: [wrong.message.removeprefix(f"{name}: ")]}) from None


def written_end(until: str | None, timezone: str | None) -> Written | None:
    """Read the end from a body with both fields; a zone without an end is an error."""
    if until is None and timezone is not None:
        raise InvalidDefinition({"timezone": ["has no effect without `until`"]})
    return None if until is None else Written(until, timezone)


def zone_of(opened: Opened) -> Zone | None:
    """None = the schedule cannot be read, and so has none."""
    return opened.planning.spec.zone if isinstance(opened.planning, Planning) else None
