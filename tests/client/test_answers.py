"""Answers are read leniently: what is known by its type, what is not in `raw`."""

from __future__ import annotations

import copy
import inspect
import pickle
from datetime import UTC, datetime
from typing import Any, get_type_hints

import pytest

from horarium.compat.registrar import model as registrar_model
from horarium.features.runs import model as run_model
from horarium.features.runs.model import Run
from horarium.features.schedules import model as schedule_model
from horarium.features.schedules.model import Backfilled, Schedule
from horarium.features.tenants import model as tenant_model
from horarium.features.tenants.model import IssuedToken
from horarium.platform import wire as platform_wire
from horarium.platform.client.call import many
from horarium.platform.client.lenient import read
from horarium.platform.wire import Answer

KINDS = [
    kind
    for module in (platform_wire, registrar_model, run_model, schedule_model, tenant_model)
    for _, kind in inspect.getmembers(module, inspect.isclass)
    if issubclass(kind, Answer) and kind.__module__ == module.__name__
]


@pytest.mark.parametrize("body", [None, [], "text", 7], ids=str)
def test_nothing_at_all_can_be_read(body: Any) -> None:
    for kind in KINDS:
        assert read(kind, body) == read(kind, {}), kind


@pytest.mark.parametrize("odd", [None, "text", 7, 1.5, True, [None, 1, "x", {}], {"a": {}}], ids=str)
def test_a_value_of_another_type_leaves_the_default_or_fits(odd: Any) -> None:
    for kind in KINDS:
        body = dict.fromkeys(kind.__struct_fields__, odd)
        made = read(kind, body)
        assert made.raw == body, kind
        for name, hint in get_type_hints(kind).items():
            if hint in (str, int, bool):
                assert type(getattr(made, name)) is hint, (kind, name)


def test_unknown_keys_are_kept_in_raw() -> None:
    made = read(Run, {"run_id": "r", "colour": "red"})
    assert (made.run_id, made.raw["colour"]) == ("r", "red")
    assert "colour" not in repr(made)


def test_values_do_not_differ_by_what_we_do_not_know() -> None:
    assert read(Run, {"run_id": "r", "colour": "red"}) == read(Run, {"run_id": "r"})


def test_times_are_aware_and_bad_ones_absent() -> None:
    made = read(Schedule, {"next_fire_at": "2026-03-01T02:00:00+02:00", "created_at": "yesterday",
                                      "next_fire_times": ["2026-03-01T02:00:00Z", "soon", None]})  # fmt: skip
    assert made.next_fire_at == datetime(2026, 3, 1, tzinfo=UTC)
    created: datetime | None = made.created_at  # whatever the server promises
    assert created is None
    assert made.next_fire_times == (datetime(2026, 3, 1, 2, tzinfo=UTC),)


def test_an_explicit_null_is_the_default_where_null_has_no_meaning() -> None:
    made = read(Schedule, {"fires_count": None, "max_runs": None, "fires": 3})
    assert (made.fires_count, made.max_runs) == (0, None)


@pytest.mark.parametrize(
    ("given", "cost"), [(1, 1.0), (0.25, 0.25), ("0.1000001", 0.1000001), ("much", 0.0), (10**400, 0.0), (True, 0.0)]
)
def test_an_amount_may_come_as_text(given: Any, cost: float) -> None:
    assert read(Run, {"cost": given}).cost == cost


def test_rows_inside_an_answer_are_values_too() -> None:
    made = read(Backfilled, {"results": [{"outcome": "started"}, 7]})
    assert [row.outcome for row in made.results] == ["started"]


@pytest.mark.parametrize(("state", "final"), [("succeeded", True), ("unknown", True), ("running", False), ("", False)])
def test_a_run_knows_whether_it_is_over(state: str, final: bool) -> None:
    assert read(Run, {"state": state}).is_final is final


def test_the_secret_of_a_token_is_not_printed() -> None:
    made = read(IssuedToken, {"token_id": "t", "secret": "hor_x"})
    assert made.secret == "hor_x"
    assert "hor_x" not in repr(made)


@pytest.mark.parametrize(
    ("body", "count", "cursor"),
    [
        ({"runs": [{}, {}], "next_page_token": "p"}, 2, "p"),
        ({"runs": [{}], "next_page_token": None}, 1, None),
        ({"runs": [{}], "next_page_token": ""}, 1, None),
        ({"runs": [{}], "next_page_token": True}, 1, None),
        ({"runs": None}, 0, None),
        ({"runs": [7, {}]}, 1, None),
        ([{}, {}, {}], 3, None),
        (None, 0, None),
    ],
    ids=["more", "last", "blank", "odd", "null", "odd-row", "bare", "nothing"],
)
def test_a_page(body: Any, count: int, cursor: str | None) -> None:
    page = many(Run, "runs")(body)
    assert (len(page), page.cursor) == (count, cursor)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
def test_a_copy_keeps_what_came_beyond_the_fields(again: Any) -> None:
    made = read(Run, {"run_id": "r", "colour": "red", "covers": {"count": 3}})
    other = again(made)
    assert (other == made, other.raw) == (True, made.raw)
