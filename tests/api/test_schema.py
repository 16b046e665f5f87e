"""The description of the API under fire: whatever is sent, what comes back is what the description says.

Schemathesis makes requests out of the description, some as it asks for and some that break it. The bodies in the
description are no more than objects, so a second suite sends the examples with something changed in them.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
import schemathesis
from api.worlds import OUR_PAGE, STREAM, World, world
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import APIOperation, BaseSchema, Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from horarium.platform.database import processes
from horarium.platform.http.responses import MEDIA_TYPE
from horarium.platform.http.routing import OPERATIONS
from horarium.testing.service import TOKEN

pytestmark = [
    pytest.mark.repeats,
    pytest.mark.parametrize("dialect", ["sqlite"], indirect=True),
    # Generating negative cases compiles patterns that the interpreter warns about.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:schemathesis"),
]

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
AUTHORIZED = {"Authorization": f"Bearer {TOKEN}", **OUR_PAGE}
ROUTES = sorted(route for route, operation in OPERATIONS.items() if operation.tag != "docs")
WITH_BODY = [route for route in ROUTES if OPERATIONS[route].example.body is not None]
# What takes nothing cannot be asked wrongly: probes, and to sign out.
TAKE_NOTHING = {
    *(("GET", path) for path in ("/livez", "/healthz", "/readyz", "/api/health")),
    ("DELETE", "/api/session"),
}
EFFORT = int(os.environ.get("HORARIUM_TEST_EFFORT", "1"))
# Of each kind of request. The ordinary run repeats the same few; a full one draws new ones.
EXAMPLES = 4 if EFFORT == 1 else 6 * EFFORT

Test = Callable[[Case], None]


@pytest.fixture
def here(database_url: str) -> Iterator[World]:
    """Its probes are green, so that no 5xx at all has to be forgiven."""
    with world(database_url) as found:
        horarium = found.horarium
        now = horarium.now
        horarium.resources.database.write(
            lambda c: processes.beat_lease(c, "process:here", "here", now, 30, {"ticker": now})
        )
        yield found


_SCHEMA: list[BaseSchema] = []


def operation(here: World, route: tuple[str, str]) -> APIOperation:
    """The description is the same for every service, and dear to read: one for all tests of a process."""
    if not _SCHEMA:
        _SCHEMA.append(schemathesis.openapi.from_asgi("/openapi.json", here.horarium.parts.api))
    found: APIOperation = _SCHEMA[0][route[1]][route[0]]
    return found


def try_hard(strategy: st.SearchStrategy[Any], test: Callable[[Any], None], examples: int) -> None:
    @settings(
        max_examples=examples,
        derandomize=EFFORT == 1,
        deadline=None,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )
    @given(strategy)
    def tried(drawn: Any) -> None:
        test(drawn)

    tried()


def check(here: World, case: Case) -> None:
    answer = case.call(headers=AUTHORIZED, app=here.horarium.parts.api)
    case.validate_response(answer, checks=CHECKS)
    if answer.status_code >= 400:
        problem = json.loads(answer.content)
        assert answer.headers["content-type"] == [MEDIA_TYPE]
        assert problem["status"] == answer.status_code
        assert problem["message"]


def known_names(here: World, route: tuple[str, str]) -> dict[str, str]:
    return {name: value for name, value in here.names.items() if f"{{{name}}}" in route[1]}


def known_headers(route: tuple[str, str]) -> dict[str, str]:
    """A stream that finds nothing wrong would never end."""
    return {"X-Namespace": "default", **({"Last-Event-ID": "no cursor"} if route == STREAM else {})}


def hold_against_description(here: World, route: tuple[str, str]) -> None:
    asked = operation(here, route)
    modes = [GenerationMode.POSITIVE] if route in TAKE_NOTHING else list(GenerationMode)
    headers = known_headers(route)
    for mode in modes:
        # Half of the time the names lead somewhere: chance would never guess one.
        named = asked.as_strategy(mode, path_parameters=known_names(here, route), headers=headers)
        guessed = asked.as_strategy(mode, headers=headers) if route == STREAM else asked.as_strategy(mode)
        try_hard(st.one_of(named, guessed), partial(check, here), EXAMPLES)


def hold_against_changed_examples(here: World, route: tuple[str, str]) -> None:
    asked, names = operation(here, route), known_names(here, route)

    def send(body: Any) -> None:
        headers = {"Content-Type": "application/json"}
        check(here, asked.Case(path_parameters=names, headers=headers, body=body, media_type="application/json"))

    try_hard(changed(OPERATIONS[route].example.body), send, 5 * EXAMPLES)
    assert here.horarium.verify() == []


# ── bodies ───────────────────────────────────────────────────────────────────────────────────────────

ODD = st.sampled_from([0, -1, 2**31, 2**63, 2**70, 1e308, 5e-324, "", " ", "\0", "0" * 2_000, [], {}, [[]], {"": None}])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.one_of(
    ODD, st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))
)


def places(value: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every way into a document, its own root too."""
    yield way
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        yield from places(inner, (*way, key))


@st.composite
def changed(draw: st.DrawFn, body: Any) -> Any:
    """The body with up to three values replaced, removed or added."""
    made = copy.deepcopy(body)
    for _ in range(draw(st.integers(1, 3))):
        *way, last = draw(st.sampled_from([place for place in places(made) if place] or [("odd",)]))
        parent = made
        for key in way:
            parent = parent[key]
        match draw(st.sampled_from(["replace", "remove", "add"])):
            case "remove" if len(parent) > 0 and (isinstance(parent, list) or last in parent):
                del parent[last]
            case "add" if isinstance(parent, dict):
                parent[draw(st.text(max_size=20))] = copy.deepcopy(draw(VALUES))
            case _:
                parent[last] = copy.deepcopy(draw(VALUES))
    return made


# ── the suites ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("route", ROUTES, ids=" ".join)
def test_every_answer_is_a_declared_one(here: World, route: tuple[str, str]) -> None:
    hold_against_description(here, route)


@pytest.mark.parametrize("route", WITH_BODY, ids=" ".join)
def test_an_example_with_something_changed_is_done_or_refused(here: World, route: tuple[str, str]) -> None:
    hold_against_changed_examples(here, route)
