"""Who may call what: every route, every role, and everybody's own namespace; of others `test_tenants.py` tells."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from api.worlds import GUARDED, SCHEDULE, World, own_routes, routes, world

from horarium.platform.caller import Caller
from horarium.platform.http.routing import OPEN, OPERATIONS, permission_for
from horarium.platform.wire import Permission, Role

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

# A repetition of these is no repetition: a secret and a cookie are not kept, a lease is good for the moment, a test is
# sent anew, and what only looks changes nothing. Of many at once each is a transaction of its own, and one that is done
# is left alone.
NOT_ONCE = {
    ("POST", "/api/schedules/draft"),
    ("POST", "/api/conditions/test"),
    ("POST", "/api/schedules/bulk"),
    ("POST", "/api/runs/bulk"),
    ("POST", "/api/runs/reports"),
    ("POST", "/api/approvals/decisions"),
    ("POST", "/api/workflows/validate"),
    ("DELETE", "/api/namespaces/{namespace}"),
    ("POST", "/api/tokens"),
    ("POST", "/api/tokens/{token_id}/rotate"),
    ("POST", "/api/agents/{agent_id}/check"),
    ("POST", "/api/agents/{agent_id}/tokens"),
    ("POST", "/api/subscriptions/{subscription_id}/test"),
    ("POST", "/api/queues/{queue}/claim"),
    ("POST", "/api/workflows/validate"),
    ("POST", "/api/session"),
    ("DELETE", "/api/session"),
    ("POST", "/api/session/link"),
    ("POST", "/api/runs/{run_id}/heartbeat"),
    ("POST", "/api/runs/{run_id}/pushes"),
    ("POST", "/api/runs/{run_id}/logs"),
}
# To be of a role that may read is not enough.
NOT_FOR = {("GET", "/api/secrets"): Role.AGENT} | {
    route: Role.AGENT
    for route in GUARDED
    if route[1].startswith("/workspaces/")  # this one is another agent's
}
# Who is heard is a matter of the question: where it names nobody, those who may approve.
DECIDED = {
    ("POST", "/api/approvals/{approval_id}/decision"),
    ("POST", "/api/approvals/standing"),
    ("DELETE", "/api/approvals/standing/{standing_id}"),
}
# Whoever asks about the contract is not asked for a namespace.
NAMELESS = {("GET", "/api/cluster/info")}


@pytest.fixture
def here(database_url: str) -> Iterator[World]:
    with world(database_url) as found:
        yield found


def test_every_route_is_declared_and_every_declaration_a_route(here: World) -> None:
    assert set(OPERATIONS) == set(routes())
    assert own_routes(here.horarium) == {("GET", "/openapi.json")}


def test_a_route_without_a_row_lets_nobody_in(dialect: str) -> None:
    with pytest.raises(LookupError, match="not declared"):
        permission_for("GET", "/api/undeclared")


def test_every_write_can_be_made_once(dialect: str) -> None:
    writes = {route for route in routes() if route[0] != "GET"}
    assert {route for route in writes if not OPERATIONS[route].repeatable} == NOT_ONCE


def test_nobody_comes_in_without_a_token(here: World) -> None:
    http = here.horarium.http(token=None)
    assert {route: here.ask(http, route).status_code for route in GUARDED} == dict.fromkeys(GUARDED, 401)


def test_what_is_open_asks_for_no_token(here: World) -> None:
    http = here.horarium.http(token=None)
    opened = {route for route, operation in OPERATIONS.items() if operation.needs is OPEN}
    # The files of the browser interface have tests of their own, as has the way to get in.
    probes = {path for method, path in opened if method == "GET" and not path.startswith("/ui")}
    assert {path: http.get(path).status_code in (200, 503) for path in probes} == dict.fromkeys(probes, True)
    others = opened - {("GET", path) for path in probes}
    sessions = {("POST", "/api/session"), ("DELETE", "/api/session")}
    assert others == {("GET", "/ui"), ("GET", "/ui/{path}"), *sessions}


@pytest.mark.parametrize("role", list(Role))
def test_every_role_may_do_its_part_and_no_more(here: World, role: Role) -> None:
    http = here.horarium.http(token=here.token(role))
    wrong = {}
    for route in GUARDED:
        needed = Permission.APPROVE if route in DECIDED else OPERATIONS[route].needs
        assert isinstance(needed, Permission)
        answer = here.ask(http, route)
        # An owner may change what is his own: this schedule is the admin's.
        expected = Caller("x", role).may(needed) and not (role is Role.OWNER and "only its owner" in answer.text)
        expected = expected and NOT_FOR.get(route) is not role
        if (answer.status_code != 403) != expected or answer.status_code in (401, 500):
            wrong[route] = (answer.status_code, answer.text)
    assert wrong == {}


def test_an_owner_does_not_change_what_is_another_s(here: World) -> None:
    http = here.horarium.http(token=here.token("owner"))
    answer = http.delete(f"/api/schedules/{SCHEDULE}")
    assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden")


def test_an_operator_starts_what_somebody_wrote_and_nothing_else(here: World) -> None:
    http = here.horarium.http(token=here.token("operator"))
    path, runs = f"/api/schedules/{SCHEDULE}/trigger", len(here.horarium.runs())
    others: tuple[dict[str, object], ...] = ({"inputs": {"to": "thief"}}, {"input": []})
    for sent in others:
        refused = http.post(path, json=sent)
        assert (refused.status_code, refused.json()["reason"]) == (403, "forbidden")
    started = {"workflow_id": "anything", "idempotency_key": "k", "inputs": {"to": "thief"}}
    for start in ("/api/run-launcher/start", "/run-launcher/start"):
        assert http.post(start, json=started).status_code == 403
    assert len(here.horarium.runs()) == runs
    assert http.post(path, json={"overlap_policy": "allow_all"}).json()["outcome"] == "triggered"
    owner = here.horarium.http(token=here.token("owner"))
    given = owner.post(path, json={"overlap_policy": "allow_all", "inputs": {"to": "me"}})
    assert given.json()["outcome"] == "triggered"


def test_a_namespace_that_does_not_exist_is_not_found_on_any_route(here: World) -> None:
    http = here.horarium.http(namespace="ghost")
    asked = [route for route in GUARDED if route not in NAMELESS]
    reasons = {route: here.ask(http, route).json().get("reason") for route in asked}
    assert reasons == dict.fromkeys(asked, "namespace_not_found")


def test_only_an_admin_of_the_house_makes_and_lists_tenants(here: World) -> None:
    tenant = here.horarium.http(token=here.token("admin", "other"))
    assert tenant.get("/api/namespaces").status_code == 403
    assert tenant.post("/api/namespaces", json={"namespace": "mine"}).status_code == 403
    assert tenant.get("/api/namespaces/other").json()["namespace"] == "other"
    assert tenant.get("/api/namespaces/default").status_code == 404
    keeper = here.horarium.http(token=here.token("admin"), namespace="other")
    assert {each["namespace"] for each in keeper.get("/api/namespaces").json()["namespaces"]} == {
        "default",
        "other",
        "tenant",
    }
