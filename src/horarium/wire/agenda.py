"""What is answered about the fleet: the occurrences of all schedules in a window of time, decided or predicted."""

from __future__ import annotations

from collections.abc import Mapping

from horarium.decision.forecast import Certainty, Forecast
from horarium.schedule.position import Status
from horarium.schedule.run import RunState
from horarium.wire.answer import Answer, Time
from horarium.wire.schedules import Moved


class AgendaRow(Answer, frozen=True, kw_only=True):
    """`reason` says why there was, or will be, no run; `count` is how many missed occurrences the row stands for.

    A row that was decided and had a run names it; `state` is what that run is doing now, `started_at` and `finished_at`
    from when to when it did. `predicted` rows are those that are not decided yet: they alone have a `certainty`, a
    `sentence` and what `moved` the instant, as in a preview.
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
    """A part of the window, from `at` on; those in which nothing happens are left out."""

    at: Time
    starts: int
    skips: int


class AgendaSchedule(Answer, frozen=True, kw_only=True):
    """`timezone` null = nobody can say, since the schedule cannot be planned."""

    name: str
    timezone: str | None
    status: Status


class LaneBucket(Answer, frozen=True, kw_only=True):
    """The counts of one schedule in a part of the window, from `at` on.

    Each occurrence counts once: as `dispatched`, as `held` (its run waits, or will wait, behind other runs), as
    `missed` (no scheduler decided it in time) or as `skipped` for another reason. `failed` counts those of the
    dispatched whose runs ended unsuccessfully. A range of missed occurrences counts where it begins, as its row does.
    """

    at: Time
    dispatched: int
    skipped: int
    held: int
    missed: int
    failed: int


class AgendaLane(Answer, frozen=True, kw_only=True):
    """One schedule id. The buckets count all of its occurrences; those in which nothing happens are left out.

    `rows_complete`: `rows` has each of its occurrences; otherwise it has more than `limit`, and `rows` has none of
    them.
    """

    schedule_id: str
    name: str
    rows_complete: bool
    buckets: tuple[LaneBucket, ...]


class Agenda(Answer, frozen=True, kw_only=True):
    """`truncated`: there is more in the window than the rows say; before the instant of the last row nothing is left
    out, unless there are more schedules, or there is more history of one of them, than can be looked at.

    `under_way` are occurrences of before the window whose runs have not ended, 500 at most. `schedules` are those that
    are told of, and those that were asked for, by id.

    With `lanes`, all of the answer is about the schedules of these lanes: `buckets` are complete, and `truncated` says
    that a lane has more rows than `limit`. `next_page_token` leads to the lanes that follow, in the order of ids.
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
