"""What one tenant can do to another: nothing, on any route, in any role, wherever an id may stand.

One table, read off the declared routes: whatever is another tenant's is answered word for word like what does not
exist, so that not even a guess is confirmed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import pytest
from api.tenants import (
    GHOST,
    OF_ONE_S_OWN,
    PARAMETERS,
    ROLES,
    VISIBLE,
    Answered,
    Route,
    Tenant,
    Tenants,
    Things,
    ask,
    heard,
    seen_by,
    traces,
    two_tenants,
)
from api.worlds import GUARDED

from horarium.features.history.entry_rows import START
from horarium.features.history.streams import FeedPages
from horarium.platform.caller import Caller
from horarium.platform.http.routing import OPERATIONS
from horarium.platform.ids import parse_id
from horarium.platform.wire import Permission, Role

# All routes are asked with all names: the same lines, over and over.
pytestmark = pytest.mark.repeats

# Whoever asks about the contract is not asked for a namespace.
NAMELESS = {("GET", "/api/cluster/info")}
BY_NAME = [route for route in GUARDED if "{" in route[1] and route not in OF_ONE_S_OWN]
# Where a thing has more than one name, or is in a state that is asked about before anything else.
ALSO = {"schedule_id": "gone_id", "run_id": "gated_run_id", "subscription_id": "subscription_uid"}


@pytest.fixture(scope="module")
def shared() -> Iterator[Tenants]:
    """For what leaves no trace."""
    with two_tenants() as found:
        yield found


def needed(route: Route) -> Permission:
    permission = OPERATIONS[route].needs
    assert isinstance(permission, Permission)
    return permission


# ── names in paths ───────────────────────────────────────────────────────────────────────────────────


def _called(route: Route, things: Things) -> Iterator[dict[str, str]]:
    """The names of a path, and once more by the other name that its thing has."""
    names = asdict(things)
    yield names
    for usual, other in ALSO.items():
        if f"{{{usual}}}" in route[1]:
            yield {**names, usual: names[other]}


def _pressed(tenants: Tenants, route: Route, run_id: str) -> dict[str, Any]:
    """With every switch that lets more through; a report with the token that the target of this run was handed."""
    queries, headers = PARAMETERS[route]
    given: dict[str, Any] = {
        "params": {name: "true" for name in ("force", "include_deleted", "purge") if name in queries}
    }
    given["headers"] = {name: '"1"' for name in headers if name == "If-Match"}
    if route[1].endswith("/report"):
        token = tenants.horarium.resources.tokens.make(parse_id(run_id, "run_id"), 0)
        given["json"] = {**(OPERATIONS[route].example.body or {}), "report_token": token}
    return given


def _told_about(tenants: Tenants, role: Role, route: Route, things: Things) -> list[Answered]:
    http = tenants.rival.http(tenants.horarium, role)
    return [
        heard(ask(http, route, names, **_pressed(tenants, route, names["run_id"])), things)
        for names in _called(route, things)
    ]


def test_what_is_another_tenant_s_is_answered_like_what_is_nowhere(shared: Tenants) -> None:
    """404 where the role may ask at all, else 403; never more, and nothing has happened.

    An agent is refused every workspace but its own, so it gets 403 for one that is nowhere too.
    """
    before = seen_by(shared, shared.victim, (Role.ADMIN,))
    wrong = {}
    for route in BY_NAME:
        nobodys = _told_about(shared, Role.ADMIN, route, GHOST)
        assert {status for status, _, _ in nobodys} == {404}, (route, nobodys)
        for role in ROLES:
            theirs = _told_about(shared, role, route, shared.victim.things)
            may = Caller("x", role).may(needed(route))
            if role is Role.AGENT and may:
                nobodys = _told_about(shared, role, route, GHOST)
                assert {status for status, _, _ in nobodys} <= {401, 403, 404}, (route, nobodys)
            if theirs != nobodys if may else not all(_is_refusal(each, role, route) for each in theirs):
                wrong[route, role] = theirs, nobodys
    assert wrong == {}
    assert seen_by(shared, shared.victim, (Role.ADMIN,)) == before


def _is_refusal(answered: Answered, role: Role, route: Route) -> bool:
    """It tells of the role, and of nothing else."""
    status, _, text = answered
    return status == 403 and f"the role {role} lacks the permission {needed(route)}" in text and "<" not in text


def test_a_tenant_cannot_speak_for_another_namespace(shared: Tenants) -> None:
    doors = {role: shared.rival.http(shared.horarium, role) for role in ROLES}

    def spoken(role: Role, route: Route, things: Things) -> Answered:
        return heard(ask(doors[role], route, asdict(things), headers={"X-Namespace": things.namespace}), things)

    wrong = {}
    for route in GUARDED:
        if route in NAMELESS:
            continue
        nobodys = spoken(Role.ADMIN, route, GHOST)
        assert (nobodys[0], "namespace_not_found" in nobodys[2]) == (404, True), (route, nobodys)
        for role in ROLES:
            if (theirs := spoken(role, route, shared.victim.things)) != nobodys:
                wrong[route, role] = theirs, nobodys
    assert wrong == {}


# ── lists ────────────────────────────────────────────────────────────────────────────────────────────


def test_no_list_shows_anything_of_another_tenant(shared: Tenants) -> None:
    things, own = shared.victim.things, asdict(shared.rival.things)
    shown = {
        (route, role): traces(ask(shared.rival.http(shared.horarium, role), route, own).text, things)
        for route in VISIBLE
        for role in ROLES
    }
    assert {asked: names for asked, names in shown.items() if names} == {}
    # The victim sees all of them: what is looked for can be found. A key is never shown.
    chief = shared.victim.http(shared.horarium)
    seen = {name for route in VISIBLE for name in traces(ask(chief, route, asdict(things)).text, things)}
    assert set(asdict(things)) - seen <= {"key"}


# ── parameters ───────────────────────────────────────────────────────────────────────────────────────

# What names a thing, or a part of one, and how.
NAMING: Mapping[str, Callable[[Things], str]] = {
    "assignee": lambda things: things.principal,
    "bundle": lambda things: things.bundle,
    "calendar": lambda things: things.name,
    "label": lambda things: f"team={things.team}",
    "namespace": lambda things: things.namespace,
    "owner": lambda things: things.principal,
    "parent_run_id": lambda things: things.run_id,
    "principal": lambda things: things.principal,
    "query": lambda things: f'ScheduleId = "{things.schedule_id}"',
    "queue": lambda things: things.queue,
    "root_run_id": lambda things: things.run_id,
    "schedule_id": lambda things: things.schedule_id,
    "text": lambda things: things.schedule_id,
    "uid": lambda things: things.uid,
    "workflow": lambda things: things.workflow,
    "workflow_id": lambda things: things.workflow,
    "workflow_type": lambda things: things.workflow,
}
CURSORS = {"next_page_token", "after", "Last-Event-ID"}
# How much, when, in which state: nothing that could be somebody's.
PLAIN = {
    *(
        "act",
        "after_sequence",
        "assignee_type",
        "at",
        "bucket_seconds",
        "confirm",
        "dry_run",
        "finished_after",
        "force",
        "from",
        "gate",
        "health",
    ),
    *(
        "include",
        "include_deleted",
        "lane_limit",
        "lanes",
        "limit",
        "merge",
        "mine",
        "n",
        "order",
        "origin",
        "own",
        "page_size",
        "purge",
        "reason",
        "since",
        "source",
        "state",
    ),
    *("status", "timezone", "to", "until", "unwell", "version", "whole", "year"),
    # Each has a test of its own, or stands in the table of names.
    *("Idempotency-Key", "If-Match", "X-Workspace-ID", "X-A2A-Notification-Token"),
}


def test_every_parameter_is_in_the_table() -> None:
    known = {name for names in PARAMETERS.values() for several in names for name in several}
    assert known == set(NAMING) | CURSORS | PLAIN


def test_a_parameter_that_names_another_tenant_s_thing_finds_nothing(shared: Tenants) -> None:
    http, own, wrong = shared.rival.http(shared.horarium), asdict(shared.rival.things), {}
    for route, (queries, _) in PARAMETERS.items():
        for name in queries & set(NAMING):
            theirs, nobodys = (
                heard(ask(http, route, own, params={name: NAMING[name](things)}), things)
                for things in (shared.victim.things, GHOST)
            )
            if theirs != nobodys or theirs[0] not in (200, 404):
                wrong[route, name] = theirs, nobodys
    assert wrong == {}


def test_the_cursor_of_another_tenant_leads_to_nothing_of_it(shared: Tenants) -> None:
    paged = [route for route, (queries, _) in PARAMETERS.items() if "next_page_token" in queries]
    chief, rival = shared.victim.http(shared.horarium), shared.rival.http(shared.horarium)
    tried = set()
    for route in paged:
        page = ask(chief, route, asdict(shared.victim.things), params={"page_size": 1})
        if (token := page.json().get("next_page_token")) is None:
            continue
        for name in PARAMETERS[route][0] & CURSORS:
            answer = ask(rival, route, asdict(shared.rival.things), params={name: token})
            assert answer.status_code in (200, 400, 403), (route, answer.text)
            assert traces(answer.text, shared.victim.things) == [], route
            tried.add((route[1], name))
    assert {path for path, _ in tried} >= {
        "/api/schedules",
        "/api/runs",
        "/api/feed",
        "/api/secrets",
        "/api/audit",
        "/api/calendars",
        "/api/workflows",
        "/api/agents",
        "/api/teams",
        "/api/assignments",
        "/api/approvals/standing",
    }
    assert {("/api/feed", "after"), ("/api/subscriptions/{subscription_id}/dead-letters", "next_page_token")} <= tried


def test_streams_at_one_place_of_the_feed_share_no_page_across_tenants(shared: Tenants) -> None:
    """Pages are kept for whoever comes to the same cursor; another tenant does not come to it."""

    async def read(pages: FeedPages, tenant: Tenant) -> str:
        caller = Caller(tenant.things.principal, Role.VIEWER, tenant.things.namespace)
        page = await pages.after(shared.horarium.resources, caller, START)
        return b"".join(page.pieces).decode()

    async def both() -> tuple[str, str]:
        pages = FeedPages()
        return await read(pages, shared.victim), await read(pages, shared.rival)

    first, second = asyncio.run(both())
    assert "schedule_id" in traces(first, shared.victim.things)
    assert traces(second, shared.victim.things) == []
    assert "schedule_id" in traces(second, shared.rival.things)
