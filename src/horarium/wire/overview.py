"""Counts of items in a namespace that need attention."""

from __future__ import annotations

from horarium.wire.answer import Answer, Time


class ScheduleCounts(Answer, frozen=True, kw_only=True):
    """Live schedules by status, as listed by `GET /api/schedules?status=`."""

    active: int
    paused: int
    finished: int
    broken: int


class Overview(Answer, frozen=True, kw_only=True):
    """Counts of items that need attention. `bounded` names capped counts: the real number is at least that.

    `failing`, `stale` and `late` count schedules (`GET /api/schedules?health=`), `waiting_for_approval` approval
    requests (`GET /api/approvals`), `held` to `running` runs (`GET /api/runs?state=`), `missed_lately` missed
    occurrences since `since` (`GET /api/agenda?reason=missed`), `failed_24h` unsuccessful runs that ended since then
    (`GET /api/runs?state=failed&state=timed_out&state=launch_failed&state=unknown&finished_after=`).
    """

    namespace: str
    as_of: Time
    since: Time
    schedules: ScheduleCounts
    failing: int
    stale: int
    late: int
    waiting_for_approval: int
    missed_lately: int
    failed_24h: int
    held: int
    ready: int
    launching: int
    queued: int
    running: int
    bounded: tuple[str, ...]
