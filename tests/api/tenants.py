"""Two tenants side by side, each with one of everything, and all that one of them can see."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import httpx
from api.worlds import GUARDED, STREAM
from fastapi.routing import APIRoute

from horarium.core.audit_entries import Act
from horarium.features.tenants import service as tenant_service
from horarium.features.webhooks import delivery_rows
from horarium.features.webhooks.delivery_rows import DeadLetterRow
from horarium.platform.caller import Caller
from horarium.platform.http.routing import OPERATIONS
from horarium.platform.ids import id_text, new_id, parse_id
from horarium.platform.wire import Role
from horarium.serve.api import ROUTES
from horarium.testing import Accepted, TestService, service

Route = tuple[str, str]
Answered = tuple[int, list[str], str]

START = "2026-03-01T00:00:00Z"
ROLES = tuple(Role)
VICTIM, RIVAL = "acme", "rival"
# No bound on how often: the tests ask on a clock that stands still.
SETTINGS: Mapping[str, Any] = {"rate_limit_burst": 1_000_000}

_SECRET = re.compile(r"\bhor_[\w-]+")
_ID = re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b")


@dataclass(frozen=True)
class Things:
    """What the things of a tenant are called; the names of fields are those in the paths, where they stand in one."""

    namespace: str
    schedule_id: str
    gone_id: str
    name: str
    queue: str
    secret_name: str
    agent_id: str
    team_id: str
    assignment_id: str
    subscription_id: str
    bundle: str
    workflow: str
    workflow_id: str
    team: str
    principal: str
    key: str
    run_id: str
    gated_run_id: str
    approval_id: str
    standing_id: str
    token_id: str
    subscription_uid: str
    letter_id: str
    uid: str
    workspace_id: str
    workspace_schedule_id: str

    def unnamed(self, text: str) -> str:
        """What is left of a text when these names, and all ids, are taken out of it."""
        for field, value in sorted(asdict(self).items(), key=lambda each: -len(each[1])):
            text = text.replace(value, f"<{field}>")
        return _SECRET.sub("<secret>", _ID.sub("<id>", text))


def named(namespace: str, mark: str, **ids: str) -> Things:
    """All names begin with the mark, so that whoever finds it somewhere has found a thing of this tenant."""
    words = {
        "schedule_id": "nightly",
        "gone_id": "bygone",
        "name": "days",
        "queue": "queue",
        "secret_name": "secret",
        "agent_id": "agent",
        "team_id": "desk",
        "assignment_id": "given",
        "subscription_id": "told",
        "bundle": "bundle",
        "workflow": "report",
        "workflow_id": "brief",
        "team": "team",
        "principal": "chief",
        "key": "key",
        "workspace_id": "agent",
    }
    return Things(namespace=namespace, **{field: f"{mark}-{word}" for field, word in words.items()}, **ids)


GHOST = named(
    "ghost",
    "ghost",
    run_id="01KJF0Z7C8E2V9Q4M6T1N3B5X1",
    gated_run_id="01KJF0Z7C8E2V9Q4M6T1N3B5X2",
    token_id="01KJF0Z7C8E2V9Q4M6T1N3B5X3",
    subscription_uid="01KJF0Z7C8E2V9Q4M6T1N3B5X4",
    letter_id="01KJF0Z7C8E2V9Q4M6T1N3B5X5",
    uid="01KJF0Z7C8E2V9Q4M6T1N3B5X6",
    approval_id="01KJF0Z7C8E2V9Q4M6T1N3B5X7",
    standing_id="01KJF0Z7C8E2V9Q4M6T1N3B5X8",
    workspace_schedule_id="01kjf0z7c8e2v9q4m6t1n3b5x9",
)
"""Of the same shape as the things of a tenant, and nowhere."""


@dataclass(frozen=True)
class Tenant:
    things: Things
    tokens: Mapping[Role, str]

    def http(self, horarium: TestService, role: Role = Role.ADMIN) -> httpx.Client:
        return horarium.http(token=self.tokens[role])


@dataclass(frozen=True)
class Tenants:
    horarium: TestService
    victim: Tenant
    rival: Tenant


def schedule(things: Things, schedule_id: str | None = None, **parts: Any) -> dict[str, Any]:
    return {
        "schedule_id": schedule_id or things.schedule_id,
        "spec": {"cron_expressions": ["30 * * * *"]},
        "action": {"workflow_type": things.workflow, "task_queue": things.queue, "input": [{"of": things.team}]},
        "overlap_policy": "allow_all",
        "labels": {"team": things.team},
        "note": things.team,
        **parts,
    }


def workflow(things: Things) -> dict[str, Any]:
    action = {"kind": "pull", "workflow_type": things.workflow, "queue": things.queue}
    return {"name": things.team, "nodes": [{"id": "a", "action": action, "input": {"of": things.team}}]}


IDS = (
    *("run_id", "gated_run_id", "token_id", "subscription_uid", "letter_id", "uid"),
    *("approval_id", "standing_id", "workspace_schedule_id"),
)


def settle_in(horarium: TestService, namespace: str, mark: str) -> Tenant:
    """One of everything, made through the door."""
    tenant_service.create_namespace(horarium.resources, horarium.caller, namespace)
    secrets = _issued(horarium, Caller("root", Role.ADMIN, namespace), mark)
    plain, http = named(namespace, mark, **dict.fromkeys(IDS, "")), horarium.http(token=secrets[Role.ADMIN])

    def make(method: str, path: str, **body: Any) -> Any:
        answer = http.request(method, path, json=body, headers={"Idempotency-Key": f"{plain.key} {method} {path}"})
        assert answer.is_success, answer.text
        return answer.json()

    for secret in (plain.secret_name, f"{plain.secret_name}-2"):
        make("PUT", f"/api/secrets/{secret}", value=f"{mark}-value")
    make("POST", "/api/calendars", name=plain.name, kind="skip_dates", timezone="UTC", dates=["2026-12-24"])
    make("POST", f"/api/calendars/{plain.name}/clone", name=f"{plain.name}-2")
    for stored in (plain.workflow_id, f"{plain.workflow_id}-2"):
        make("PUT", f"/api/workflows/{stored}", **workflow(plain))
    for more in ("", "-2"):
        agent, team = f"{plain.agent_id}{more}", f"{plain.team_id}{more}"
        make("PUT", f"/api/agents/{agent}", name=plain.team, token=f"{mark}-token")
        make("PUT", f"/api/teams/{team}", members=[agent], name=plain.team)
        given = {"workflow_id": plain.workflow_id, "assignee_type": "team", "assignee_id": team}
        make("PUT", f"/api/assignments/{plain.assignment_id}{more}", **given)
    make("POST", "/api/schedules", **schedule(plain, calendars=[plain.name]))
    # Not at the same minute as the other: of two runs that are born at one instant, either may come first in a list.
    quarter, waits = {"cron_expressions": ["15 * * * *"]}, {"requires_approval": True}
    gated = schedule(plain, f"{mark}-gated", spec=quarter, approval_policy=waits)
    make("POST", "/api/apply", bundle=plain.bundle, schedules=[gated, schedule(plain, plain.gone_id)])
    http.delete(f"/api/schedules/{plain.gone_id}").raise_for_status()
    # Nobody listens at the discard port of this machine, and nobody far away is called.
    told = {"kinds": ["run_finished"], "url": "http://127.0.0.1:9/", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
    subscription = make("POST", "/api/subscriptions", name=plain.subscription_id, **told)["subscription_id"]
    token = http.post("/api/tokens", json={"name": f"{mark}-ci", "role": "viewer"}).json()["token_id"]
    runs = [make("POST", f"/api/schedules/{each}/trigger") for each in (plain.schedule_id, f"{mark}-gated")]
    horarium.settle()
    uid = http.get(f"/api/schedules/{plain.schedule_id}").json()["uid"]
    letter = _undelivered(horarium, namespace, subscription)
    [question] = http.get("/api/approvals").json()["approvals"]
    # Nobody says yes to what they wrote themselves.
    operator, yes = horarium.http(token=secrets[Role.OPERATOR]), {"schedule_id": plain.schedule_id, "gates": ["spend"]}
    [standing, _] = [operator.post("/api/approvals/standing", json=yes).json()["standing_id"] for _ in range(2)]
    prompts = (f"/workspaces/{plain.agent_id}{more}/schedules" for more in ("", "-2"))
    body = {"name": plain.team, "cron_expr": "45 * * * *", "prompt": plain.team}
    [prompt, _] = [make("POST", path, **body)["id"] for path in prompts]
    made = (runs[0]["run_id"], runs[1]["run_id"], token, subscription, letter, uid, question["approval_id"], standing)
    ids = (*made, prompt)
    return Tenant(named(namespace, mark, **dict(zip(IDS, ids, strict=True))), secrets)


def _issued(horarium: TestService, root: Caller, mark: str) -> dict[Role, str]:
    """A token for each role, each used once: from then on it is no news that it is."""
    secrets = {}
    for role in ROLES:
        subject = f"{mark}-chief" if role is Role.ADMIN else f"{mark}-{role}"
        issued = tenant_service.issue_token(horarium.resources, root, name=f"{mark}-{role}", role=role, subject=subject)
        horarium.http(token=issued.secret).get("/api/cluster/info").raise_for_status()
        secrets[role] = issued.secret
    return secrets


def _undelivered(horarium: TestService, namespace: str, subscription: str) -> str:
    """The id of one of two dead letters."""
    ids, now = [new_id(), new_id()], horarium.now
    for each in ids:
        whose = each, namespace, parse_id(subscription, "subscription_id")
        letter = DeadLetterRow(*whose, "0-1", "run_finished", "{}", 1, 500, "it was down", now, None)
        horarium.resources.database.write(
            lambda connection, letter=letter: delivery_rows.insert_dead_letter(connection, letter)
        )
    return id_text(ids[0])


@contextmanager
def house(database: str | None = None) -> Iterator[TestService]:
    """Where the tenants live; whoever waits in a queue is claimed from there."""
    queued = Accepted(reference="queued", queued=True)
    with service(at=START, answer=queued, database=database, settings=SETTINGS) as horarium:
        yield horarium


@contextmanager
def two_tenants(database: str | None = None, *, marks: tuple[str, str] = (VICTIM, RIVAL)) -> Iterator[Tenants]:
    with house(database) as horarium:
        victim, rival = (
            settle_in(horarium, namespace, mark) for namespace, mark in zip((VICTIM, RIVAL), marks, strict=True)
        )
        yield Tenants(horarium, victim, rival)


# ── what a tenant can see ────────────────────────────────────────────────────────────────────────────

VISIBLE = [route for route in GUARDED if route[0] == "GET" and route != STREAM]
"""The stream shows what the feed shows, and never ends."""
QUERIES = {"/api/schedules/{schedule_id}/explain": {"at": "2026-03-01T23:30:00Z"}}


def look(http: httpx.Client, things: Things) -> dict[str, tuple[int, Any]]:
    """The answer of every route that only reads, about the things of a tenant."""
    names = asdict(things)
    found: dict[str, tuple[int, Any]] = {}
    for _, path in VISIBLE:
        answer = http.get(path.format(**names), params=QUERIES.get(path))
        assert answer.status_code != 500, answer.text
        is_json = "json" in answer.headers.get("content-type", "")
        found[path] = answer.status_code, answer.json() if is_json else answer.text
    status, audit = found["/api/audit"]
    found["/api/audit"] = status, _acts(audit, things) if status == 200 else audit
    return found


def _acts(audit: dict[str, Any], things: Things) -> list[Any]:
    """Without the refusals that the looking itself has left, and without the numbers that count those."""
    kept = ("act", "principal", "recorded_at", "detail", "address")
    own = things.principal.partition("-")[0]
    return [
        {field: entry[field] for field in kept}
        for entry in audit["entries"]
        if entry["act"] != Act.PERMISSION_REFUSED or not (entry["principal"] or "").startswith(own)
    ]


def seen_by(tenants: Tenants, tenant: Tenant, roles: tuple[Role, ...] = ROLES) -> str:
    """All that a tenant can see, as one text that tells two states of the world apart."""
    seen = {role: look(tenant.http(tenants.horarium, role), tenant.things) for role in roles}
    return json.dumps(seen, sort_keys=True, indent=1)


# ── what a tenant asks ───────────────────────────────────────────────────────────────────────────────

# Under another tenant's name they make, or find, a thing of one's own.
OF_ONE_S_OWN = {
    ("PUT", "/api/secrets/{secret_name}"),
    ("PUT", "/api/workflows/{workflow_id}"),
    ("PUT", "/api/agents/{agent_id}"),
    ("PUT", "/api/teams/{team_id}"),
    ("PUT", "/api/assignments/{assignment_id}"),
    ("POST", "/api/queues/{queue}/claim"),
}


def _parameters() -> dict[Route, tuple[frozenset[str], frozenset[str]]]:
    """The names of the query parameters and of the headers of each route."""
    return {
        (method, route.path_format): (
            frozenset(each.alias for each in route.dependant.query_params),
            frozenset(each.alias for each in route.dependant.header_params),
        )
        for declared in ROUTES
        for route in declared.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }


PARAMETERS = _parameters()


def ask(http: httpx.Client, route: Route, names: Mapping[str, str], **given: Any) -> httpx.Response:
    """With the example of a body."""
    method, path = route
    params = {**QUERIES.get(path, {}), **given.pop("params", {})}
    body = OPERATIONS[route].example.body
    if body is not None and "json" not in given:
        given["json"] = body
    return http.request(method, path.format(**names), params=params, **given)


def heard(answer: httpx.Response, things: Things) -> Answered:
    """All that an answer tells, without the names that were in the question."""
    headers = sorted(name for name in answer.headers if name != "content-length")
    return answer.status_code, headers, things.unnamed(answer.text)


def traces(text: str, things: Things) -> list[str]:
    return sorted(name for name, value in asdict(things).items() if value in text)
