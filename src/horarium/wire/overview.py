"""What is answered about a namespace at a glance: counts, each of which is the length of a list."""

from __future__ import annotations

from horarium.wire.answer import Answer, Time


class ScheduleCounts(Answer, frozen=True, kw_only=True):
    """Live schedules by status, as `GET /api/schedules?status=` lists them."""

    active: int
    paused: int
    finished: int
    broken: int


class Overview(Answer, frozen=True, kw_only=True):
    """What somebody may have to act on. `bounded` names the counts of which there are at least so many.

    `failing`, `stale` and `late` are schedules (`GET /api/schedules?health=`), `waiting_for_approval` questions
    (`GET /api/approvals`), `held` to `running` runs (`GET /api/runs?state=`); `missed_lately` are rows of missed
    occurrences since the instant `since` (`GET /api/agenda?reason=missed`), `failed_24h` unsuccessful runs that ended
    since then (`GET /api/runs?state=failed&state=timed_out&state=launch_failed&state=unknown&finished_after=`).
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
