"""The forms that runs of the past are printed from: the rows of one real run each, as COPY writes them.

A run that succeeds and one that fails are made by the engine. In their lines names, ids, times and numbers are replaced
by marks, so that a line can be printed for any other run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ground import HERD
from inside import Inside, inside
from sqlalchemy import Connection, text

from horarium.instant import SECOND, Instant, to_rfc3339
from horarium.platform.database import Database
from horarium.platform.ids import id_text

QUEUE = HERD["action"]["queue"]
TABLES = ("runs", "history", "run_events")
NAMES = ("form-that-succeeds", "form-that-fails")
"""Of schedules that exist for this alone."""

# A number that stands nowhere else in a row, so that it can be found again.
_NUMBER = 77_700_001
_SAID: Sequence[Mapping[str, Any]] = (
    {"state": "succeeded", "result": {"rows": 12}},
    {"state": "failed", "error": "no such table", "error_class": "NoTable"},
)
_ORDER = {"runs": "run_id", "history": "feed_id", "run_events": "sequence"}
_BORN = 250_000

_NUMBERED = """
UPDATE positions SET next_sequence = :number, runs_born = :number - 1, fires_count = :number - 1
WHERE schedule_id = :name
"""
_ALONE = "UPDATE positions SET next_due = CASE WHEN schedule_id = :name THEN CAST(:at AS bigint) END"
_LIKE_BEFORE = """
UPDATE positions SET next_due = :at, active = 0, last_run_id = NULL, last_completed_run_id = NULL, last_state = NULL
"""
_COLUMNS = """
SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


@dataclass(frozen=True, slots=True)
class Form:
    """The lines of one run by table; what differs from run to run is `%(…)s`, what is the same in a batch is `@…@`."""

    lines: Mapping[str, str]

    def at(self, nominal: Instant, number: int) -> dict[str, str]:
        """For all that are born together."""
        marks = {**_times(nominal), "@number@": str(number)}
        return {table: _replaced(line, marks) for table, line in self.lines.items()}


def born(nominal: Instant) -> Instant:
    return nominal + _BORN


def columns(connection: Connection, table: str) -> str:
    """Without what the database numbers itself."""
    names = connection.exec_driver_sql(_COLUMNS, (table,)).scalars()
    return ", ".join(name for name in names if name not in ("feed_id", "transaction_id"))


def make_forms(opened: Database, at: Instant) -> list[Form]:
    """Of one that succeeded and of one that failed, due at this instant; then nothing is left of them."""
    forms = []
    with inside(opened.url, at) as service:
        for name, said in zip(NAMES, _SAID, strict=True):
            only = f"{name}-0"
            opened.write(partial(_prepare, name=only, at=at))
            _live(service, at, said)
            forms.append(opened.read(partial(_read, name=only, at=at)))
            opened.write(partial(_forget, at=at))
    return forms


def _prepare(connection: Connection, name: str, at: Instant) -> None:
    for statement in (_NUMBERED, _ALONE):
        connection.execute(text(statement), {"name": name, "number": _NUMBER, "at": at})


def _live(service: Inside, at: Instant, said: Mapping[str, Any]) -> None:
    moments = _moments(at)
    service.clock.set(moments["born"])
    assert service.decide() == 1
    service.clock.set(moments["handed"])
    assert service.hand_over() == 1
    service.clock.set(moments["started"])
    [claimed] = service.claim(QUEUE)
    service.clock.set(moments["ended"])
    service.report(claimed, **said)


def _read(connection: Connection, name: str, at: Instant) -> Form:
    run, uid = connection.execute(text("SELECT run_id, schedule_uid FROM runs")).one()
    marks = {run.hex(): "%(run)s", id_text(run): "%(text)s", uid.hex(): "%(uid)s", name: "%(name)s"}
    marks |= {str(_NUMBER): "@number@", **{value: mark for mark, value in _times(at).items()}}
    raw = connection.connection.dbapi_connection
    assert raw is not None
    lines = {}
    for table in TABLES:
        rows = f"SELECT {columns(connection, table)} FROM {table} ORDER BY {_ORDER[table]}"
        with raw.cursor().copy(f"COPY ({rows}) TO STDOUT") as out:
            lines[table] = _replaced(b"".join(out).decode().replace("%", "%%"), marks)
    return Form(lines)


def _forget(connection: Connection, at: Instant) -> None:
    for table in TABLES:
        connection.execute(text(f"DELETE FROM {table}"))
    connection.execute(text(_LIKE_BEFORE), {"at": at})


def _moments(nominal: Instant) -> dict[str, Instant]:
    """A run is handed over after a second, and takes another one or two; no two of them are alike."""
    handed = nominal + 1_350_000
    moments = {"nominal": nominal, "born": born(nominal), "handed": handed, "started": nominal + 2_550_000}
    return {**moments, "ended": nominal + 3_850_000, "deadline": handed + 3_600 * SECOND}


def _times(nominal: Instant) -> dict[str, str]:
    """By their marks, as numbers and as texts; seconds come last, since other numbers begin with them."""
    moments = _moments(nominal)
    numbers = {f"@{name}@": str(moment) for name, moment in moments.items()}
    texts = {f"@{name}_text@": to_rfc3339(moment) for name, moment in moments.items()}
    return {**numbers, **texts, "@seconds@": str(nominal // SECOND)}


def _replaced(line: str, by: Mapping[str, str]) -> str:
    for old, new in by.items():
        line = line.replace(old, new)
    return line
