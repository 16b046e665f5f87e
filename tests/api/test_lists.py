"""Lists of very many schedules: every one is shown once, and no filter reads the whole table.

What a page costs in time is measured by `benchmarks/api.py`; here it is the plan that counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection, event

from horarium.features.schedules.filters import EVERYTHING, make_list_token
from horarium.features.schedules.list_rows import Cursor
from horarium.platform.database.tables import positions, schedule_attributes, schedule_revisions, schedules
from horarium.testing import TestService

pytestmark = pytest.mark.both_databases

on_postgres = pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)

# Plans are looked at where they matter. Of 50,000 PostgreSQL still finds it cheaper to read the whole table for one
# percent of it than to walk an index; the walk stops at a page's end, so its cost does not grow, and wins beyond.
FEW, MANY = 5_000, 100_000
TEMPLATE: dict[str, Any] = {
    "schedule_id": "template",
    "cron_expressions": ["0 2 * * *"],
    "workflow_type": "report",
    "note": "one of many",
}
# Every filter, for what many have, few have, and none has.
FILTERS: dict[str, dict[str, str]] = {
    "none": {},
    "largest page": {"page_size": "200"},
    "active": {"status": "active"},
    "paused": {"status": "paused"},
    "broken": {"status": "broken"},
    "finished": {"status": "finished"},
    "workflow": {"workflow_type": "kind-7"},
    "no such workflow": {"workflow_type": "nothing"},
    "owner": {"owner": "owner-3"},
    "no such owner": {"owner": "nobody"},
    "runtime": {"source": "runtime"},
    "template": {"source": "template"},
    "label": {"label": "team=7"},
    "no such label": {"label": "team=nobody"},
    "attribute": {"query": "tenant = 5"},
    "id": {"query": 'ScheduleId = "s-77"'},
    "queue": {"query": 'TaskQueue = "q-3"'},
    "paused of a workflow": {"query": 'Status = "paused" AND WorkflowType = "kind-0"'},
    "paused of an owner": {"status": "paused", "owner": "owner-3"},
    "broken with a label": {"status": "broken", "label": "team=7"},
    "failing": {"health": "failing"},
    "late": {"health": "late"},
    "waiting for a yes": {"health": "waiting_for_approval"},
    "resting": {"health": "paused"},
    "with their last occurrences": {"include": "recent"},
    "active with two labels": {"status": "active", "label": "team=7", "query": "tenant = 7"},
}
# A part of a word is in no index: whoever looks for one reads all names of the namespace.
READS_ALL = {"text": "77"}


# ── seeding ──────────────────────────────────────────────────────────────────────────────────────────


def seed(horarium: TestService, count: int) -> None:
    """Copies of one real schedule, which differ in whatever lists can be filtered by."""
    horarium.create(TEMPLATE)
    horarium.resources.database.write(lambda connection: _copy(connection, count))
    horarium.resources.database.write(lambda connection: connection.exec_driver_sql("ANALYZE"))


def _copy(connection: Connection, count: int) -> None:
    numbers = sa.select(sa.literal(1).label("n")).cte("numbers", recursive=True)
    numbers = numbers.union_all(sa.select(numbers.c.n + 1).where(numbers.c.n < count))
    n = numbers.c.n
    name = sa.literal("s-") + sa.cast(n, sa.Text)
    text = sa.cast(n, sa.Text)
    on_postgresql = connection.dialect.name == "postgresql"
    padded = sa.func.lpad(text, 16, "0") if on_postgresql else sa.func.printf("%016d", n)
    uid = sa.func.convert_to(padded, "UTF8") if on_postgresql else sa.cast(padded, sa.LargeBinary)
    status = sa.case((n % 100 == 0, "paused"), (n % 2_500 == 1, "broken"), (n % 1_000 == 2, "finished"), else_="active")
    changed: dict[sa.Table, dict[str, Any]] = {
        schedules: {
            "schedule_uid": uid,
            "schedule_id": name,
            "name": sa.literal("name ") + text,
            "search_text": name + sa.literal("\nname ") + text,
            "workflow": sa.literal("kind-") + sa.cast(n % 100, sa.Text),
            "owner": sa.literal("owner-") + sa.cast(n % 200, sa.Text),
            "source": sa.case((n % 500 == 0, "template"), else_="runtime"),
            # Ten at each instant, as an import may leave them.
            "created_at": schedules.c.created_at + n // 10 * 1_000,
        },
        positions: {"schedule_uid": uid, "schedule_id": name, "status": status},
        schedule_revisions: {
            "schedule_uid": uid,
            "document": sa.func.replace(schedule_revisions.c.document, '"template"', sa.literal('"') + name + '"'),
        },
    }
    for table, values in changed.items():
        columns = [values.get(column.name, column) for column in table.columns]
        copies = sa.select(*columns).select_from(table.join(numbers, sa.true())).where(_is_template(connection, table))
        connection.execute(sa.insert(table).from_select([column.name for column in table.columns], copies))
    for kind, key, value in (
        ("label", "team", sa.cast(n % 100, sa.Text)),
        ("search_attribute", "tenant", sa.cast(n % 1_000, sa.Text)),
        ("field", "TaskQueue", sa.literal("q-") + sa.cast(n % 10, sa.Text)),
    ):
        rows = sa.select(uid, sa.literal("default"), sa.literal(kind), sa.literal(key), value).select_from(numbers)
        names = ["schedule_uid", "namespace", "kind", "name", "value"]
        connection.execute(sa.insert(schedule_attributes).from_select(names, rows))


def _is_template(connection: Connection, table: sa.Table) -> sa.ColumnElement[bool]:
    uid = connection.execute(sa.select(schedules.c.schedule_uid).where(schedules.c.schedule_id == "template")).scalar()
    return table.c.schedule_uid == sa.literal(uid, sa.LargeBinary)


# ── looking at plans ─────────────────────────────────────────────────────────────────────────────────


@contextmanager
def statements(horarium: TestService) -> Iterator[list[tuple[str, Any]]]:
    """What is really asked of the database meanwhile."""
    engine, caught = horarium.resources.database.engine, list[tuple[str, Any]]()

    def catch(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        caught.append((statement, parameters))

    event.listen(engine, "before_cursor_execute", catch)
    try:
        yield caught
    finally:
        event.remove(engine, "before_cursor_execute", catch)


def read_as_a_whole(horarium: TestService, path: str, parameters: dict[str, str]) -> set[str]:
    """The tables that a request would read from end to end."""
    with statements(horarium) as caught:
        answer = horarium.http().get(path, params=parameters)
    assert answer.status_code == 200, answer.text
    assert caught
    found: set[str] = set()
    for statement, values in caught:
        [plan] = horarium.resources.database.read(
            lambda c, s=statement, v=values: c.exec_driver_sql(f"EXPLAIN (FORMAT JSON) {s}", v).scalar_one()
        )
        found |= {node["Relation Name"] for node in nodes(plan["Plan"]) if node["Node Type"] == "Seq Scan"}
    return found


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


def whole_tables(horarium: TestService, count: int) -> dict[str, set[str]]:
    middle = Cursor(*horarium.resources.database.read(lambda c: c.execute(_middle(count)).one()))
    token = make_list_token("default", EVERYTHING.fingerprint(), middle)
    asked = {**FILTERS, "in the middle": {"next_page_token": token}}
    large = {"schedules", "positions", "schedule_revisions"}
    found = {name: large & read_as_a_whole(horarium, "/api/schedules", asked[name]) for name in asked}
    found["describe"] = large & read_as_a_whole(horarium, "/api/schedules/s-77", {})
    return {name: tables for name, tables in found.items() if tables}


def _middle(count: int) -> sa.Select[Any]:
    return sa.select(schedules.c.created_at, schedules.c.schedule_id).where(
        schedules.c.schedule_id == f"s-{count // 2}"
    )


# ── the tests ────────────────────────────────────────────────────────────────────────────────────────


@on_postgres
def test_no_filter_reads_a_whole_table(horarium: TestService) -> None:
    seed(horarium, MANY)
    assert whole_tables(horarium, MANY) == {}


@on_postgres
def test_a_part_of_a_name_is_looked_for_in_the_names_alone(horarium: TestService) -> None:
    seed(horarium, FEW)
    # No workflow is stored, so that table is empty.
    assert read_as_a_whole(horarium, "/api/schedules", {"text": "s-4999"}) <= {"schedules", "workflows"}


def all_pages(http: httpx.Client, parameters: dict[str, str]) -> list[str]:
    found: list[str] = []
    token: str | None = None
    while True:
        page = http.get("/api/schedules", params={**parameters, **({"next_page_token": token} if token else {})}).json()
        found += [each["schedule_id"] for each in page["schedules"]]
        token = page["next_page_token"]
        if token is None:
            return found


def expected(name: str) -> list[str]:
    """Newest first; of those that were created together, by id."""
    wanted = {
        "none": lambda n: True,
        "paused": lambda n: n % 100 == 0,
        "broken": lambda n: n % 100 and n % 2_500 == 1,
        "workflow": lambda n: n % 100 == 7,
        "owner": lambda n: n % 200 == 3,
        "template": lambda n: n % 500 == 0,
        "label": lambda n: n % 100 == 7,
        "attribute": lambda n: n % 1_000 == 5,
        "paused of a workflow": lambda n: n % 100 == 0,
        "no such owner": lambda n: False,
    }[name]
    numbers = [n for n in range(1, FEW + 1) if wanted(n)]
    return [f"s-{n}" for n in sorted(numbers, key=lambda n: (-(n // 10), f"s-{n}"))]


SHOWN = ["none", "paused", "broken", "workflow", "owner", "template", "label", "attribute", "paused of a workflow"]


def test_every_schedule_is_shown_once_and_in_order(horarium: TestService) -> None:
    seed(horarium, FEW)
    http = horarium.http()
    for name in [*SHOWN, "no such owner"]:
        found = all_pages(http, {**FILTERS[name], "page_size": "200"})
        assert [each for each in found if each != "template"] == expected(name), name
    assert len(all_pages(http, READS_ALL)) == len([n for n in range(1, FEW + 1) if "77" in str(n)])


def test_what_is_created_while_somebody_turns_pages_moves_nothing(horarium: TestService) -> None:
    seed(horarium, FEW)
    http = horarium.http()
    first = http.get("/api/schedules", params={"page_size": "200"}).json()
    horarium.clock.advance(3_600)
    horarium.create({**TEMPLATE, "schedule_id": "late"})
    second = http.get("/api/schedules", params={"page_size": "200", "next_page_token": first["next_page_token"]}).json()
    seen = [each["schedule_id"] for page in (first, second) for each in page["schedules"]]
    assert len(set(seen)) == 400
    assert "late" not in seen
