"""Which open runs a wish about many of them means: by id, by schedule, by the labels of schedules, by state."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.schedule.run import RunState
from horarium.store.runs.states import OPEN_ROOT
from horarium.store.tables import runs, schedule_attributes, schedules


@dataclass(frozen=True, slots=True)
class RunsWanted:
    """None = any; all that are given must fit."""

    run_ids: Collection[bytes] | None = None
    schedule_ids: Collection[str] | None = None
    labels: Mapping[str, str] | None = None
    states: Collection[RunState] | None = None


class OpenRun(NamedTuple):
    run_id: bytes
    schedule_id: str | None
    state: RunState


def open_runs(
    connection: Connection, namespace: str, wanted: RunsWanted, *, after: bytes | None, limit: int
) -> list[OpenRun]:
    """Root runs that have not ended, oldest first."""
    statement = (
        sa.select(runs.c.run_id, schedules.c.schedule_id, runs.c.state)
        .outerjoin_from(runs, schedules, runs.c.schedule_uid == schedules.c.schedule_uid)
        .where(runs.c.namespace == namespace, sa.text(OPEN_ROOT), *_conditions(namespace, wanted))
        .order_by(runs.c.run_id)
        .limit(limit)
    )
    if after is not None:
        statement = statement.where(runs.c.run_id > after)
    return [
        OpenRun(run_id, schedule_id, RunState(state)) for run_id, schedule_id, state in connection.execute(statement)
    ]


def _conditions(namespace: str, wanted: RunsWanted) -> Iterator[sa.ColumnElement[bool]]:
    if wanted.run_ids is not None:
        yield runs.c.run_id.in_(list(wanted.run_ids))
    if wanted.schedule_ids is not None:
        mine = (schedules.c.namespace == namespace, schedules.c.schedule_id.in_(list(wanted.schedule_ids)))
        yield runs.c.schedule_uid.in_(sa.select(schedules.c.schedule_uid).where(*mine))
    for name, value in (wanted.labels or {}).items():
        labelled = schedule_attributes.c
        yield runs.c.schedule_uid.in_(
            sa.select(labelled.schedule_uid).where(
                labelled.namespace == namespace,
                labelled.kind == "label",
                labelled.name == name,
                labelled.value == value,
            )
        )
    if wanted.states is not None:
        yield runs.c.state.in_(sorted(state.value for state in wanted.states))
