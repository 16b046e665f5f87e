"""Answers about the occurrences of all schedules in a time window, decided or predicted."""

from __future__ import annotations

from collections.abc import Mapping

from horarium.core.decision.statuses import Certainty, Forecast
from horarium.core.document.states import RunState, Status
from horarium.features.schedules.model import Moved
from horarium.platform.wire import Answer, Time


class AgendaRow(Answer, frozen=True, kw_only=True):
    """An occurrence, or several missed ones.

    `reason`: cause of a skip. `count`: number of missed occurrences that the row covers. Decided rows with a run have
    its ID; `state` is the current state of the run, `started_at` and `finished_at` its times. `predicted` rows are not
    decided yet; only they have `certainty`, `sentence` and `moved` (changes to the time, as in a preview).
    """

    schedule_id: str
    at: Time
    decision: Forecast
    reason: str | None
    predicted: bool
    run_id: str | None = None
    state: RunState | None = None
    count: int = 1
    started_at: Time | None = None
    finished_at: Time | None = None
    due: Time | None = None
    held: bool = False
    certainty: Certainty | None = None
    moved: tuple[Moved, ...] = ()
    sentence: str | None = None


class AgendaBucket(Answer, frozen=True, kw_only=True):
    """Counts of a part of the window, beginning at `at`. Empty buckets are omitted."""

    at: Time
    starts: int
    skips: int


class AgendaSchedule(Answer, frozen=True, kw_only=True):
    """A schedule of the agenda. `timezone` null: the schedule is broken."""

    name: str
    timezone: str | None
    status: Status


class LaneBucket(Answer, frozen=True, kw_only=True):
    """Counts of one schedule in a part of the window, beginning at `at`.

    Each occurrence counts once: as `dispatched`, `held` (its run is or will be buffered behind other runs), `missed`
    (no scheduler decided it in time) or `skipped` for another reason. `failed` counts dispatched occurrences with an
    unsuccessful run. A range of missed occurrences counts at its beginning.
    """

    at: Time
    dispatched: int
    skipped: int
    held: int
    missed: int
    failed: int


class AgendaLane(Answer, frozen=True, kw_only=True):
    """Occurrences of one schedule ID. The buckets count all of them; empty buckets are omitted.

    `rows_complete`: `rows` contains all occurrences. Otherwise there are more than `limit`, and `rows` is empty.
    """

    schedule_id: str
    name: str
    rows_complete: bool
    buckets: tuple[LaneBucket, ...]


class Agenda(Answer, frozen=True, kw_only=True):
    """Occurrences in a time window.

    `truncated`: the window contains more occurrences than rows. Rows are complete up to the time of the last row,
    unless there are too many schedules or too much history to read. `under_way`: earlier occurrences with active runs,
    at most 500. `schedules`: the schedules of the rows and the requested ones, sorted by ID.

    With `lanes`, the answer covers only the schedules of these lanes: `buckets` is complete, and `truncated` means that
    a lane has more rows than `limit`. `next_page_token` returns the next lanes, sorted by ID.
    """

    namespace: str
    start: Time
    end: Time
    rows: tuple[AgendaRow, ...]
    buckets: tuple[AgendaBucket, ...]
    truncated: bool
    schedules: Mapping[str, AgendaSchedule]
    under_way: tuple[AgendaRow, ...] = ()
    lanes: tuple[AgendaLane, ...] | None = None
    next_page_token: str | None = None
