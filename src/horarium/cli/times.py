"""Time options of commands: an option `--tz`, and one line on stderr for each interpreted time.

    @with_options(times=time_options, remote=remote_options)
    def pause_command(remote: Remote, times: Times, until: Until = None) -> None:
        moment = times.future("--until", until)

Results are RFC 3339 in UTC; None stays None.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, overload

import typer

from horarium.cli import completion
from horarium.cli.moment import Direction, is_local, read_moment
from horarium.cli.render import local_time, talk
from horarium.core.recurrence.zone import Moment, Wall, Zone, load_zone
from horarium.errors import InvalidSpec
from horarium.instant import to_rfc3339
from horarium.platform.clock import SystemClock

if TYPE_CHECKING:
    from horarium.cli.remote import Remote

TIME = "TIME"
"""The metavar of every time option."""
VARIABLE = "HORARIUM_TZ"


def _zone_option(default: str) -> Any:
    return typer.Option(
        "--tz",
        metavar="ZONE",
        show_default=f"{VARIABLE}, else {default}",
        help="Time zone of local times and days.",
        autocompletion=completion.zones,
    )


TimeZone = Annotated[str | None, _zone_option("UTC")]
_OfSchedule = Annotated[str | None, _zone_option("that of the schedule")]
_OfOneOrMany = Annotated[str | None, _zone_option("that of the schedule; UTC for several")]

_WALLS = {
    Wall.ONCE: "",
    Wall.LEAPT: "; the local time does not exist (DST), the time of the clock change is used",
    Wall.TWICE: "; the local time is ambiguous (DST), the first is used",
}


@dataclass(frozen=True, slots=True)
class Times:
    """Parses times in the zone `tz`, else HORARIUM_TZ, else `default`, else UTC; zones are loaded on demand."""

    tz: str | None = None
    flag: str = "--tz"
    default: Callable[[], str] | None = None

    def of_schedule(self, remote: Remote, schedule_id: str) -> Times:
        """Read local times in the zone of the schedule."""
        return replace(self, default=lambda: _zone_of(remote, schedule_id))

    @overload
    def future(self, flag: str, text: str) -> str: ...
    @overload
    def future(self, flag: str, text: str | None) -> str | None: ...
    def future(self, flag: str, text: str | None) -> str | None:
        """Read a time; a bare duration is in the future."""
        return None if text is None else self._read(flag, text, Direction.FUTURE)

    @overload
    def past(self, flag: str, text: str) -> str: ...
    @overload
    def past(self, flag: str, text: str | None) -> str | None: ...
    def past(self, flag: str, text: str | None) -> str | None:
        """Read a time; a bare duration is in the past."""
        return None if text is None else self._read(flag, text, Direction.PAST)

    def _read(self, flag: str, text: str, direction: Direction) -> str:
        zone, now = self._zone(), SystemClock().now()
        found = read_moment(text, flag=flag, now=now, zone=zone, direction=direction)
        if self.default is not None and not self._said() and is_local(text, flag=flag):
            zone = load_zone(self.default())  # requested only for a local time
            found = read_moment(text, flag=flag, now=now, zone=zone, direction=direction)
        if not found.exact:
            talk(f"{flag}: {understood(found, zone)}")
        return to_rfc3339(found.instant)

    def _said(self) -> str | None:
        return self.tz or os.environ.get(VARIABLE)

    def _zone(self) -> Zone:
        try:
            return load_zone(self._said() or "UTC")
        except InvalidSpec as wrong:
            flag = self.flag if self.tz else VARIABLE
            raise InvalidSpec(f"{flag}: {wrong.message.removeprefix('timezone: ')}", field=flag) from None


def time_options(tz: TimeZone = None) -> Times:
    return Times(tz)


def schedule_time_options(tz: _OfSchedule = None) -> Times:
    return Times(tz)


def schedules_time_options(tz: _OfOneOrMany = None) -> Times:
    return Times(tz)


def _zone_of(remote: Remote, schedule_id: str) -> str:
    found = remote.client.describe_schedule(schedule_id)
    if found.broken is not None:
        raise InvalidSpec("--tz: the schedule is unreadable, so its time zone is unknown; set --tz", field="--tz")
    return found.spec.get("timezone") or "UTC"


def understood(moment: Moment, zone: Zone) -> str:
    """Return such as `2026-11-08T06:00:00Z (Sun 2026-11-08 09:00:00 +03:00, Europe/Istanbul)`."""
    local = "" if zone.key == "UTC" else f" ({local_time(moment.instant, zone)}, {zone.key})"
    return f"{to_rfc3339(moment.instant)}{local}{_WALLS[moment.wall]}"
