"""What a name in the body of a request, or a key, reaches of another tenant: nothing, whatever it asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pytest
from api.tenants import GHOST, OF_ONE_S_OWN, Route, Tenants, Things, ask, heard, schedule, seen_by, traces, two_tenants
from api.worlds import GUARDED

from horarium.api.idempotency import REPLAYED
from horarium.api.routing import OPERATIONS
from horarium.operations import tokens
from horarium.operations.caller import Caller
from horarium.wire.bodies import Body, names_of
from horarium.wire.roles import Role


@pytest.fixture
def alone() -> Iterator[Tenants]:
    with two_tenants() as found:
        yield found


@dataclass(frozen=True)
class Try:
    """A request about one's own things, with a name in `fields` of its body, or in its path, that may be another's."""

    route: Route
    fields: frozenset[str]
    body: Callable[[Things], Mapping[str, Any]]
    statuses: tuple[int, ...]

    def names(self, own: Things, other: Things) -> dict[str, str]:
        return asdict(other if self.route in OF_ONE_S_OWN else own)


def tried(method: str, path: str, fields: str, body: Callable[[Things], Mapping[str, Any]], *statuses: int) -> Try:
    return Try((method, path), frozenset(fields.split()), body, statuses)


def bulk(action: str, path: str, *filters: Callable[[Things], Mapping[str, Any]]) -> list[Try]:
    def body_of(choose: Callable[[Things], Mapping[str, Any]]) -> Callable[[Things], Mapping[str, Any]]:
        return lambda of: {"action": action, "filter": choose(of)}

    return [tried("POST", path, "action filter", body_of(choose), 200) for choose in filters]


def _own(things: Things, **parts: Any) -> dict[str, Any]:
    """A new schedule of one's own; only its id tells whom it was made to try."""
    return schedule(GHOST, f"tries-{things.team}", labels={}, note="", **parts)


def _with_secret(things: Things) -> dict[str, Any]:
    headers = {"X-Plain": {"$secret": things.secret_name}}
    return _own(things, action={"url": "https://example.com/", "headers": headers})


def _told(things: Things) -> dict[str, Any]:
    url, secret = "http://127.0.0.1:9/", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    wanted = {"schedule_id": [things.schedule_id], "labels": {"team": things.team}}
    return {"name": things.subscription_id, "kinds": ["run_finished"], "url": url, "secret": secret, "filter": wanted}


def _started(things: Things) -> dict[str, Any]:
    return {"workflow_id": things.workflow, "idempotency_key": f"{things.key} start", "user_id": things.principal}


def _registered(things: Things) -> dict[str, Any]:
    return {"schedule_id": things.gone_id, "workflow_id": "report", "version": 3, "cron_expr": "0 2 * * *"}


def _token(things: Things) -> dict[str, Any]:
    return {"name": things.principal, "role": "agent", "subject": things.principal, "queues": [things.queue]}


def _bundle(things: Things) -> dict[str, Any]:
    """One that would take all of the other's bundle away, and what was made by hand as well."""
    calendar = {"name": f"{things.name}-of-bundle", "kind": "skip_dates", "dates": []}
    taken = schedule(things, things.gone_id)
    return {"bundle": things.bundle, "calendars": [calendar], "schedules": [taken], "prune": True, "adopt": True}


def _claimed(things: Things) -> dict[str, Any]:
    return {"worker": things.principal, "workflow_types": [things.workflow], "limit": 10}


_CALENDARS = "/api/schedules/{schedule_id}/calendars"
_REDELIVER = "/api/subscriptions/{subscription_id}/redeliver"
_TRIGGER = "/api/schedules/{schedule_id}/trigger"
TRIES = [
    # What is not there is refused, or left alone.
    tried("POST", "/schedules/pause", "schedule_id", lambda of: {"schedule_id": of.schedule_id, "paused": True}, 404),
    tried("PUT", _CALENDARS, "calendars", lambda of: {"calendars": [of.name]}, 422),
    tried("PATCH", "/api/schedules/{schedule_id}", "", lambda of: {"calendars": [of.name]}, 422),
    tried("POST", "/api/schedules", "", lambda of: _own(of, calendars=[of.name]), 422),
    tried("POST", "/api/schedules", "", _with_secret, 201),
    *bulk(
        "delete",
        "/api/schedules/bulk",
        lambda of: {"ids": [of.schedule_id, of.gone_id]},
        lambda of: {"labels": {"team": of.team}},
        lambda of: {"name_contains": of.schedule_id},
    ),
    *bulk(
        "terminate",
        "/api/runs/bulk",
        lambda of: {"ids": [of.run_id, of.gated_run_id]},
        lambda of: {"schedule_ids": [of.schedule_id]},
        lambda of: {"labels": {"team": of.team}},
    ),
    tried("POST", _REDELIVER, "ids", lambda of: {"ids": [of.uid]}, 200),
    tried("POST", "/api/queues/{queue}/claim", "worker workflow_types limit", _claimed, 200),
    # A name is everybody's: it makes a thing of one's own.
    tried("PUT", "/api/secrets/{secret_name}", "value", lambda of: {"value": of.team}, 201),
    tried("POST", "/api/schedules", "", schedule, 201),
    tried("POST", "/api/schedules/upsert", "", lambda of: schedule(of, note="again"), 200),
    tried("POST", "/schedules/upsert", "", _registered, 201),
    tried("POST", "/api/calendars", "name", lambda of: {"name": of.name, "kind": "skip_dates", "dates": []}, 201),
    tried("POST", "/api/calendars/{name}/clone", "name", lambda of: {"name": f"{of.name}-copy"}, 201),
    tried("POST", "/api/subscriptions", "name filter", _told, 201),
    tried("POST", "/api/tokens", "name subject queues", _token, 201),
    tried("POST", _TRIGGER, "idempotency_key", lambda of: {"idempotency_key": of.key}, 200),
    tried("POST", "/api/run-launcher/start", "workflow_id user_id idempotency_key", _started, 201),
    tried("POST", "/api/apply", "bundle calendars schedules prune adopt", _bundle, 200),
]
# How much, when, why, what to say and to whom: nothing that is found by it.
PLAIN_FIELDS = {
    *("all", "attempt", "cost", "dates", "description", "dropped", "dry_run", "end_time", "error", "error_class"),
    *("even_if_paused", "expires_at", "gate", "hosts", "inputs", "inputs_rotation", "kind", "kinds", "lease_epoch"),
    *("lines", "note", "overlap_policy", "overlap_seconds", "paused", "pre_dispatch_condition", "quotas", "reason"),
    *("result", "retention", "reverse", "role", "rule", "scheduled_for", "secret", "start_time", "state", "timezone"),
    *("tokens", "tool_calls", "until", "url", "version", "workflows"),
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
    issued = tokens.issue(alone.horarium.resources, caller, name="twin", role="admin", subject=things.principal)
    twin, path = alone.horarium.http(token=issued.secret), "/api/calendars"
    body = {"name": things.name, "kind": "skip_dates", "timezone": "UTC", "dates": ["2026-12-24"]}
    keyed = {"Idempotency-Key": f"{things.key} POST {path}"}
    again = alone.victim.http(alone.horarium).post(path, json=body, headers=keyed)
    assert (again.status_code, REPLAYED in again.headers) == (201, True)
    made = twin.post(path, json=body, headers=keyed)
    assert (made.status_code, REPLAYED in made.headers) == (201, False)
