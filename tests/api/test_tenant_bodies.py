"""What a name in the body of a request, or a key, reaches of another tenant: nothing, whatever it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import pytest
from api.tenants import GHOST, Route, Tenants, ask, heard, seen_by, traces, two_tenants
from api.tries import TRIES
from api.worlds import GUARDED

from horarium.features.tenants import service as tenant_service
from horarium.platform.bodies import Body, names_of
from horarium.platform.caller import Caller
from horarium.platform.http.routing import OPERATIONS, REPLAYED
from horarium.platform.wire import Role


@pytest.fixture
def alone() -> Iterator[Tenants]:
    with two_tenants() as found:
        yield found


# How much, when, why, what to say and to whom: nothing that is found by it.
PLAIN_FIELDS = {
    *("approval_policy", "approval_status", "connection", "edges", "labels"),
    *("all", "attempt", "cost", "dates", "description", "dropped", "dry_run", "end_time", "error", "error_class"),
    *("even_if_paused", "expires_at", "gate", "hosts", "inputs", "inputs_rotation", "kind", "kinds", "lease_epoch"),
    *("lines", "note", "overlap_policy", "overlap_seconds", "paused", "pre_dispatch_condition", "quotas", "reason"),
    *("result", "retention", "reverse", "role", "rule", "scheduled_for", "secret", "start_time", "state", "timezone"),
    *("tokens", "tool_calls", "until", "url", "version"),
    *("decision", "gates", "input_hash", "input_hashes", "max_uses", "modifications", "skip_approval"),
    *("allowed_hosts", "budget", "capacity", "context", "failure_policy", "native_scheduler", "policies"),
    *("protocol", "queue_policy", "retry_policy", "strategy"),
    *("cron_expr", "enabled", "prompt"),
    *("namespace", "next_page_token", "report_token"),  # each is tried by a test of its own
}


def test_a_name_in_a_body_reaches_nothing_of_another_tenant(alone: Tenants) -> None:
    before = seen_by(alone, alone.victim, (Role.ADMIN,))
    http, own, wrong = alone.rival.http(alone.horarium), alone.rival.things, {}
    for number, each in enumerate(TRIES):
        theirs, nobodys = (
            heard(ask(http, each.route, each.names(own, things), json=each.body(things)), things)
            for things in (alone.victim.things, GHOST)
        )
        if theirs != nobodys or theirs[0] not in each.statuses:
            wrong[number, each.route] = theirs, nobodys
    assert wrong == {}
    alone.horarium.settle()
    assert seen_by(alone, alone.victim, (Role.ADMIN,)) == before


def _body_fields() -> dict[Route, frozenset[str]]:
    kinds = {route: OPERATIONS[route].body for route in GUARDED}
    return {
        route: frozenset(names_of(kind))
        for route, kind in kinds.items()
        if isinstance(kind, type) and issubclass(kind, Body)
    }


def test_every_field_of_a_body_is_in_the_table() -> None:
    known = {name for names in _body_fields().values() for name in names}
    assert known - {name for each in TRIES for name in each.fields} == PLAIN_FIELDS


def test_a_body_cannot_speak_for_another_namespace(alone: Tenants) -> None:
    http, own = alone.rival.http(alone.horarium), asdict(alone.rival.things)
    routes = [
        route
        for route, names in _body_fields().items()
        if "namespace" in names and route != ("POST", "/api/namespaces")
    ]
    assert len(routes) > 5
    for route in routes:
        theirs, nobodys = (
            heard(ask(http, route, own, json={**(OPERATIONS[route].example.body or {}), "namespace": of.namespace}), of)
            for of in (alone.victim.things, GHOST)
        )
        assert theirs == nobodys, route
        assert theirs[0] == 422, (route, theirs)


@pytest.mark.parametrize("path", ["/api/schedules/bulk", "/api/runs/bulk"])
def test_many_at_once_do_not_go_on_where_another_tenant_stopped(alone: Tenants, path: str) -> None:
    action = {"action": "delete" if "schedules" in path else "terminate", "all": True, "dry_run": True, "limit": 1}
    token = alone.victim.http(alone.horarium).post(path, json=action).json()["next_page_token"]
    assert token is not None
    before = seen_by(alone, alone.victim, (Role.ADMIN,))
    sent = {**action, "dry_run": False, "limit": 100, "next_page_token": token}
    answer = alone.rival.http(alone.horarium).post(path, json=sent)
    assert answer.status_code in (200, 400, 403)
    assert traces(answer.text, alone.victim.things) == []
    assert seen_by(alone, alone.victim, (Role.ADMIN,)) == before


def test_the_key_of_another_tenant_s_request_brings_none_of_its_answers(alone: Tenants) -> None:
    """Even from one who is called the same, and asks for the same."""
    things, caller = alone.victim.things, Caller("root", Role.ADMIN, "rival")
    issued = tenant_service.issue_token(
        alone.horarium.resources, caller, name="twin", role="admin", subject=things.principal
    )
    twin, path = alone.horarium.http(token=issued.secret), "/api/calendars"
    body = {"name": things.name, "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-12-24"]}
    keyed = {"Idempotency-Key": f"{things.key} POST {path}"}
    again = alone.victim.http(alone.horarium).post(path, json=body, headers=keyed)
    assert (again.status_code, REPLAYED in again.headers) == (201, True)
    made = twin.post(path, json=body, headers=keyed)
    assert (made.status_code, REPLAYED in made.headers) == (201, False)
