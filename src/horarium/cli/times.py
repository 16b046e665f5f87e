"""How a command takes times from a person: an option `--tz`, and one line on stderr for each time that was understood.

    @with_options(times=time_options, remote=remote_options)
    def pause_command(remote: Remote, times: Times, until: Until = None) -> None:
        moment = times.future("--until", until)

What comes out is RFC 3339 in UTC, which is what the server takes; None stays None.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, overload

import typer

from horarium.cli import completion
from horarium.cli.moment import Direction, read_moment
from horarium.cli.render import local_time, talk
from horarium.clock import SystemClock
from horarium.errors import InvalidSpec
from horarium.instant import to_rfc3339
from horarium.recurrence.moment import Moment, Wall
from horarium.recurrence.zone import Zone, load_zone

TIME = "TIME"
"""The metavar of every option that takes one."""
VARIABLE = "HORARIUM_TZ"

TimeZone = Annotated[
    str | None,
    typer.Option(
        "--tz",
        metavar="ZONE",
        show_default=f"{VARIABLE}, or UTC",
        help="Where local times and days are read.",
        autocompletion=completion.zones,
    ),
]

_WALLS = {
    Wall.ONCE: "",
    Wall.LEAPT: "; the clock leaps over the time that was given, so this is the moment of the leap",
    Wall.TWICE: "; the clock shows this time twice, and this is the first",
}


@dataclass(frozen=True, slots=True)
class Times:
    """`tz` is looked up where a time needs it."""

    tz: str | None = None
    flag: str = "--tz"

    @overload
    def future(self, flag: str, text: str) -> str: ...
    @overload
    def future(self, flag: str, text: str | None) -> str | None: ...
    def future(self, flag: str, text: str | None) -> str | None:
        """A bare span lies ahead."""
        return None if text is None else self._read(flag, text, Direction.FUTURE)

    @overload
    def past(self, flag: str, text: str) -> str: ...
    @overload
    def past(self, flag: str, text: str | None) -> str | None: ...
    def past(self, flag: str, text: str | None) -> str | None:
        """A bare span lies behind."""
        return None if text is None else self._read(flag, text, Direction.PAST)

    def _read(self, flag: str, text: str, direction: Direction) -> str:
        zone = self._zone()
        found = read_moment(text, flag=flag, now=SystemClock().now(), zone=zone, direction=direction)
        if not found.exact:
            talk(f"{flag}: {understood(found, zone)}")
        return to_rfc3339(found.instant)

    def _zone(self) -> Zone:
        said = self.tz or os.environ.get(VARIABLE)
        try:
            return load_zone(said or "UTC")
        except InvalidSpec as wrong:
            flag = self.flag if self.tz else VARIABLE
            raise InvalidSpec(f"{flag}: {wrong.message.removeprefix('timezone: ')}", field=flag) from None


def time_options(tz: TimeZone = None) -> Times:
    return Times(tz)


def understood(moment: Moment, zone: Zone) -> str:
    """`2026-11-08T06:00:00Z (Sun 2026-11-08 09:00:00 +03:00, Europe/Istanbul)`."""
    local = "" if zone.key == "UTC" else f" ({local_time(moment.instant, zone)}, {zone.key})"
    return f"{to_rfc3339(moment.instant)}{local}{_WALLS[moment.wall]}"
