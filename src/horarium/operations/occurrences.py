"""The runs of a schedule and the occurrences that had none, in one list."""

from __future__ import annotations

from dataclasses import dataclass, replace

from horarium.errors import InvalidDefinition
from horarium.ids import id_text, parse_id
from horarium.instant import Instant
from horarium.operations.caller import Caller
from horarium.operations.history import find_any
from horarium.operations.pages import checked_limit
from horarium.operations.resources import Resources
from horarium.operations.runs import EVERYTHING, Run, view
from horarium.schedule.run import Origin, RunState, occurrence_key
from horarium.store.database import Connection
from horarium.store.history import skips
from horarium.store.history.events import HistoryRow
from horarium.store.runs import read as runs_read
from horarium.store.runs.read import RunFilter, RunRow
from horarium.store.schedules.rows import ScheduleRow
from horarium.wire.roles import Permission

_NOWHERE = "-"


@dataclass(frozen=True, slots=True)
class Skipped:
    """An occurrence without a run, or a whole row of them; `event` says which and why."""

    schedule_id: str
    schedule_name: str
    event: HistoryRow

    @property
    def key(self) -> str | None:
        """The key that a run of it would have had, of a whole row that of the first; a trigger by hand has none."""
        nominal = self.event.nominal
        return None if nominal is None else occurrence_key(id_text(self.event.schedule_uid), nominal)


@dataclass(frozen=True, slots=True)
class OccurrencePage:
    """Newest first."""

    rows: tuple[Run | Skipped, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class _Place:
    """Position in each of the two lists; None = from its newest row."""

    before_run: bytes | None = None
    before_sequence: int | None = None


def list_occurrences(
    resources: Resources,
    caller: Caller,
    schedule_id: str,
    wanted: RunFilter = EVERYTHING,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> OccurrencePage:
    """Also of a deleted schedule. A filter by state shows skips only where `skipped` is one of the states."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    place = _Place() if next_page_token is None else _read_place(next_page_token)

    def look(connection: Connection) -> OccurrencePage:
        row = find_any(connection, caller, schedule_id)
        filters = replace(wanted, with_steps=False)
        runs = runs_read.page_of_schedule(
            connection, row.schedule_uid, filters, before=place.before_run, limit=limit + 1
        ).rows
        skipped = _skips(connection, row.schedule_uid, wanted, place.before_sequence, limit + 1)
        return _merge(resources, connection, row, list(runs), skipped, place, limit)

    return resources.database.read(look)


def _skips(connection: Connection, uid: bytes, wanted: RunFilter, before: int | None, limit: int) -> list[HistoryRow]:
    if wanted.states is not None and RunState.SKIPPED not in wanted.states:
        return []
    origins = tuple(Origin) if wanted.origins is None else wanted.origins
    return skips.newest(connection, uid, origins=origins, before_sequence=before, limit=limit)


def _merge(
    resources: Resources,
    connection: Connection,
    schedule: ScheduleRow,
    runs: list[RunRow],
    skipped: list[HistoryRow],
    place: _Place,
    limit: int,
) -> OccurrencePage:
    """By when each was decided; at the same moment by the occurrence."""
    both: list[RunRow | HistoryRow] = [*runs, *skipped]
    both.sort(key=_age, reverse=True)
    # Each list keeps its own order whatever the clocks say, so that no page repeats or leaves out a row.
    shown = both[:limit]
    runs_shown = sum(isinstance(row, RunRow) for row in shown)
    skips_shown = len(shown) - runs_shown
    turn = iter(runs), iter(skipped)
    ordered = [next(turn[0]) if isinstance(row, RunRow) else next(turn[1]) for row in shown]
    viewed = iter(view(resources, connection, [row for row in ordered if isinstance(row, RunRow)], whole=False))
    rows = tuple(
        next(viewed) if isinstance(row, RunRow) else Skipped(schedule.schedule_id, schedule.name, row)
        for row in ordered
    )
    if len(both) <= limit:
        return OccurrencePage(rows, None)
    following = _Place(
        runs[runs_shown - 1].run_id if runs_shown else place.before_run,
        skipped[skips_shown - 1].sequence if skips_shown else place.before_sequence,
    )
    return OccurrencePage(rows, _token(following))


def _age(row: RunRow | HistoryRow) -> tuple[Instant, Instant]:
    if isinstance(row, RunRow):
        return row.created_at, row.nominal
    return row.recorded_at, row.nominal or 0


def _token(place: _Place) -> str:
    run = _NOWHERE if place.before_run is None else id_text(place.before_run)
    return f"{run}.{_NOWHERE if place.before_sequence is None else place.before_sequence}"


def _read_place(token: str) -> _Place:
    run, _, sequence = token.partition(".")
    if not (sequence == _NOWHERE or (sequence.isascii() and sequence.isdecimal() and len(sequence) < 19)):
        raise InvalidDefinition({"next_page_token": ["is not a valid page token"]})
    return _Place(
        None if run == _NOWHERE else parse_id(run, "next_page_token"),
        None if sequence == _NOWHERE else int(sequence),
    )
