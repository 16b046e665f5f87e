"""The fields of log events about runs and schedules: `namespace`, `schedule_id` and `run_id`, where they exist.

A run names its schedule by uid only. The ids are read where something failed, and never for a run that succeeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.errors import HorariumError
from horarium.ids import id_text
from horarium.life.change import Again, Change, End
from horarium.schedule.run import RunState
from horarium.store.database import Database
from horarium.store.runs.everywhere import every_by_ids
from horarium.store.runs.work import Work
from horarium.store.runs.writer import Recorded
from horarium.store.tables import schedules

LogFields: TypeAlias = dict[str, str]

_OF_RUNS = (
    "SELECT run_id, runs.namespace, schedule_id FROM runs "
    "LEFT JOIN schedules ON schedules.schedule_uid = runs.schedule_uid WHERE run_id"
)


def fields_of_run(run_id: bytes, namespace: str | None, schedule_id: str | None) -> LogFields:
    found = {"namespace": namespace, "schedule_id": schedule_id, "run_id": id_text(run_id)}
    return {name: value for name, value in found.items() if value is not None}


def find_run_fields(connection: Connection, run_id: bytes) -> LogFields:
    found = every_by_ids(connection, _OF_RUNS, [run_id])
    return fields_of_run(*found[0]) if found else fields_of_run(run_id, None, None)


def read_run_fields(database: Database, run_id: bytes) -> LogFields:
    """Find the fields of a run in a transaction of its own. Never raises: an event without a schedule is still one."""
    try:
        return database.glance(lambda connection: find_run_fields(connection, run_id))
    except HorariumError:
        return fields_of_run(run_id, None, None)


def read_schedule_fields(database: Database, uid: bytes) -> LogFields:
    """Read the fields of one schedule. Never raises."""
    named = sa.select(schedules.c.namespace, schedules.c.schedule_id).where(schedules.c.schedule_uid == uid)
    try:
        found = database.glance(lambda connection: connection.execute(named).one_or_none())
    except HorariumError:
        found = None
    return {} if found is None else {"namespace": found.namespace, "schedule_id": found.schedule_id}


class Settled(NamedTuple):
    """A change of a run that counted, as observers are told of it; `schedule_id` is known where the run failed."""

    run: Work
    change: Change
    schedule_id: str | None = None


def settled(connection: Connection, recorded: Sequence[Recorded]) -> list[Settled]:
    """Return the changes that counted; the schedules of failed runs are read in one query."""
    counted = [each for each in recorded if each.counted]
    failed = sorted({run.run_id for run, change in counted if run.schedule_uid is not None and _is_failure(change)})
    found = every_by_ids(connection, _OF_RUNS, failed) if failed else []
    ids = {run_id: schedule_id for run_id, _, schedule_id in found}
    return [Settled(run, change, ids.get(run.run_id)) for run, change in counted]


def _is_failure(change: Change) -> bool:
    return isinstance(change, Again) or (isinstance(change, End) and change.state is not RunState.SUCCEEDED)
