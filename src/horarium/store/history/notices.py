"""How notices are written: what the feed tells that is no decision about a schedule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.event import NoticeType, notice_payload
from horarium.store.cutoffs import Before, cutoff, latest
from horarium.store.database.json_text import event_text
from horarium.store.database.set_wise import Insert
from horarium.store.tables import history

_ROWS = Insert(history, ("schedule_uid", "namespace", "event_type", "recorded_at", "run_id", "payload"))


class Notice(NamedTuple):
    kind: NoticeType
    namespace: str
    schedule_uid: bytes | None
    run_id: bytes | None
    values: Mapping[str, object]


def append(connection: Connection, notices: Iterable[Notice], *, now: Instant) -> None:
    """All of them by one statement, in the transaction of what they tell."""
    _ROWS.run(
        connection,
        [
            (
                each.schedule_uid,
                each.namespace,
                each.kind.value,
                now,
                each.run_id,
                event_text(notice_payload(each.kind, each.values)),
            )
            for each in notices
        ],
    )


def purge(connection: Connection, *, recorded_before: Before, limit: int) -> int:
    """The oldest, along their own index; how many are gone."""
    some = (
        sa.select(history.c.feed_id)
        .where(
            history.c.sequence.is_(None),
            history.c.recorded_at < latest(recorded_before),
            history.c.recorded_at < cutoff(recorded_before, history.c.namespace),
        )
        .order_by(history.c.recorded_at)
        .limit(limit)
    )
    return connection.execute(sa.delete(history).where(history.c.feed_id.in_(some))).rowcount
