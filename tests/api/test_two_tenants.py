"""Whatever one tenant does, the other sees the world that it would have seen alone, now and an hour later.

Both have one of everything, under the same names. The other's world is looked at through every route that reads, and
compared with that of a copy in which nobody did anything.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from difflib import unified_diff
from functools import lru_cache
from pathlib import Path
from typing import Any

import httpx
import pytest
from api.hostile import VALUES, replaced
from api.tenants import (
    GHOST,
    QUERIES,
    RIVAL,
    ROLES,
    VICTIM,
    Route,
    Tenant,
    Tenants,
    Things,
    house,
    seen_by,
    two_tenants,
)
from api.tries import TRIES
from api.worlds import GUARDED, STREAM
from hypothesis import Phase, given, note, settings
from hypothesis import strategies as st

from horarium.platform.http.routing import OPERATIONS
from horarium.platform.wire import Role

pytestmark = pytest.mark.repeats

MARK = "twin"
ASKED = [route for route in GUARDED if route != STREAM]
WRITES = [route for route in ASKED if route[0] != "GET"]
# Who looks: what these see, the others see a part of.
LOOKING = (Role.ADMIN, Role.OWNER, Role.VIEWER)
_ID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")
# A place in the feed is one for the whole database.
_CURSOR = re.compile(r'"\d+-\d+(?:-[\d.a-f]+)?"')


@dataclass(frozen=True, eq=False)
class Scene:
    """A database with both tenants in it, which is copied for every play."""

    file: Path
    victim: Tenant
    rival: Tenant

    @contextmanager
    def play(self, name: str = "play") -> Iterator[Tenants]:
        copy = shutil.copy(self.file, self.file.with_name(f"{name}.db"))
        with house(f"sqlite:///{copy}") as horarium:
            yield Tenants(horarium, self.victim, self.rival)

    @lru_cache(maxsize=2)  # noqa: B019 - there is one scene
    def undisturbed(self, hours: int) -> dict[Role, str]:
        with self.play(f"undisturbed-{hours}") as tenants:
            tenants.horarium.advance(hours=hours)
            return {role: self.seen(tenants, role) for role in LOOKING}

    def seen(self, tenants: Tenants, role: Role) -> str:
        """Ids are called by their place: of what is born in two worlds, the ids differ."""
        order: dict[str, str] = {}
        text = seen_by(tenants, self.victim, (role,))
        text = _ID.sub(lambda found: order.setdefault(found[0], f"id {len(order)}"), text)
        return _CURSOR.sub('"cursor"', text)

    def check(self, tenants: Tenants, hours: int, role: Role) -> None:
        """After so many hours since the beginning."""
        alone, beside = (text.splitlines() for text in (self.undisturbed(hours)[role], self.seen(tenants, role)))
        told = "\n".join(list(unified_diff(alone, beside, "alone", "beside the other", n=8, lineterm=""))[:80])
        if told:  # as it is: what a comparison of texts prints would be cut
            pytest.fail(told, pytrace=False)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path) -> Scene:
    file = tmp_path_factory.mktemp("tenants") / "scene.db"
    shutil.copy(sqlite_template, file)
    with two_tenants(f"sqlite:///{file}", marks=(MARK, MARK)) as made:
        return Scene(file, made.victim, made.rival)


# ── what the rival does ──────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Act:
    """`whose` names stand in the path; `role` None = with a token that nobody has."""

    route: Route
    whose: str
    role: Role | None
    body: Any
    headers: Mapping[str, str]

    def do(self, tenants: Tenants, things: Mapping[str, Things]) -> httpx.Response:
        method, path = self.route
        token = "hor_nobody" if self.role is None else tenants.rival.tokens[self.role]
        http = tenants.horarium.http(token=token)
        body: dict[str, Any] = {} if self.body is None else {"json": self.body}
        names = asdict(things[self.whose])
        return http.request(method, path.format(**names), params=QUERIES.get(path), headers=dict(self.headers), **body)


def things_of(scene: Scene) -> dict[str, Things]:
    """Ids of the other under names that are one's own too, and things that only look like some."""
    return {"own": scene.rival.things, "other": scene.victim.things, "ghost": GHOST, "odd": replace(GHOST, **ODD)}


ODD = {"schedule_id": "..%2f", "run_id": "0" * 26, "name": "holidays:US", "queue": "%", "secret_name": "_", "uid": "x"}


def bodies(route: Route, things: Mapping[str, Things]) -> st.SearchStrategy[Any]:
    """Good ones, about one's own names and the other's; and such with something hostile inside."""
    example = OPERATIONS[route].example.body
    if example is None:
        return st.none()
    known = _renamed(dict(example), things["own"])
    good = [known, {}, *(each.body(of) for each in TRIES if each.route == route for of in things.values())]
    hostile = st.sampled_from(list(VALUES.values())).flatmap(
        lambda value: st.sampled_from([changed for _, changed in replaced(known, value)] or good)
    )
    return st.one_of(st.sampled_from(good), st.sampled_from(good), hostile)


def _renamed(body: dict[str, Any], things: Things) -> dict[str, Any]:
    """An example, about the schedule that both tenants have."""
    text = json.dumps(body).replace("nightly-report", things.schedule_id).replace("company-holidays", things.name)
    renamed: dict[str, Any] = json.loads(text)
    return renamed


def acts(things: Mapping[str, Things]) -> st.SearchStrategy[Act]:
    headers = st.fixed_dictionaries(
        {},
        optional={
            "X-Namespace": st.sampled_from([*[RIVAL] * 8, VICTIM, "default"]),
            "Idempotency-Key": st.sampled_from([f"{MARK}-key POST /api/schedules", "again"]),
            "If-Match": st.sampled_from(['"1"', '"2"', "*"]),
        },
    )
    whose = st.sampled_from(["own", "other", *things])
    roles = st.sampled_from([*[Role.ADMIN] * 4, *ROLES, None])
    routes = st.sampled_from([*WRITES, *WRITES, *ASKED])
    return routes.flatmap(lambda route: st.builds(Act, st.just(route), whose, roles, bodies(route, things), headers))


# ── what the victim sees of it ───────────────────────────────────────────────────────────────────────


def test_every_operation_on_one_s_own_things_leaves_those_of_the_other_alone(scene: Scene) -> None:
    """The names are the same: what is not told apart by its namespace is found here."""
    own, answers = things_of(scene), {}
    with scene.play() as tenants:
        # What takes things away comes last.
        for route in sorted(ASKED, key=lambda route: ("delete" in route[0].lower(), route)):
            body = OPERATIONS[route].example.body
            sent = None if body is None else _renamed(dict(body), own["own"])
            answers[route] = Act(route, "own", Role.ADMIN, sent, {}).do(tenants, own).status_code
        for each in TRIES:
            Act(each.route, "own", Role.ADMIN, each.body(own["own"]), {}).do(tenants, own)
        tenants.horarium.settle()
        scene.check(tenants, 0, Role.ADMIN)
        tenants.horarium.advance(hours=1)
        for role in LOOKING:
            scene.check(tenants, 1, role)
    done = [route for route in WRITES if answers[route] < 300]
    assert len(done) > len(WRITES) // 2, answers


def test_a_world_that_is_disturbed_looks_different(scene: Scene) -> None:
    """What is compared would tell: one act of the victim itself is seen."""
    with scene.play() as tenants:
        path = f"/api/schedules/{scene.victim.things.schedule_id}/pause"
        scene.victim.http(tenants.horarium).post(path).raise_for_status()
        assert scene.seen(tenants, Role.VIEWER) != scene.undisturbed(0)[Role.VIEWER]


# A play takes half a second, and to find a shorter one takes hundreds: what was done stands in the report.
@settings(derandomize=True, deadline=None, max_examples=8, phases=[Phase.generate])
@given(data=st.data())
def test_whatever_one_tenant_does_the_other_sees_nothing_of_it(scene: Scene, data: st.DataObject) -> None:
    things = things_of(scene)
    drawn = data.draw(st.lists(acts(things), min_size=25, max_size=50))
    hours, role = data.draw(st.sampled_from([0, 1])), data.draw(st.sampled_from(LOOKING))
    with scene.play() as tenants:
        for act in drawn:
            answer = act.do(tenants, things)
            note(f"{answer.status_code}: {act}"[:400])
            assert answer.status_code != 500, answer.text
        tenants.horarium.advance(hours=hours)
        scene.check(tenants, hours, role)
