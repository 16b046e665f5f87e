"""Requests about one's own things, each with a name in its body that may be another tenant's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from api.tenants import GHOST, OF_ONE_S_OWN, Route, Things, schedule


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


def _drafted(things: Things, **parts: Any) -> dict[str, Any]:
    """With an action that names nobody: a draft shows it again."""
    return _own(things, action={"url": "https://example.com/"}, **parts)


def _with_secret(things: Things) -> dict[str, Any]:
    headers = {"X-Plain": {"$secret": things.secret_name}}
    return _own(things, action={"url": "https://example.com/", "headers": headers})


def _told(things: Things) -> dict[str, Any]:
    url, secret = "http://127.0.0.1:9/", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    wanted = {"schedule_id": [things.schedule_id], "labels": {"team": things.team}}
    return {"name": things.subscription_id, "kinds": ["run_finished"], "url": url, "secret": secret, "filter": wanted}


def _reported(things: Things) -> dict[str, Any]:
    said = {"state": "succeeded", "lease_epoch": 1}
    return {"reports": [{"run_id": each, **said} for each in (things.run_id, things.gated_run_id)]}


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


def _brought(things: Things) -> dict[str, Any]:
    """One of each kind, by the names of the other's."""
    agent, given = f"{things.agent_id}-brought", f"{things.assignment_id}-brought"
    action = {"kind": "pull", "workflow_type": things.workflow, "queue": things.queue}
    return {
        "agents": [{"id": agent, "name": things.team}],
        "teams": [{"team_id": f"{things.team_id}-brought", "members": [agent]}],
        "workflows": [{"workflow_id": f"{things.workflow_id}-brought", "nodes": [{"id": "a", "action": action}]}],
        "assignments": [{"assignment_id": given, "workflow_id": f"{things.workflow_id}-brought", "assignee_id": agent}],
    }


def _claimed(things: Things) -> dict[str, Any]:
    return {"worker": things.principal, "workflow_types": [things.workflow], "limit": 10}


def _workflow(things: Things) -> dict[str, Any]:
    """Of whose nodes one is another workflow, and one needs a secret."""
    part = {"kind": "workflow", "workflow_id": f"{things.workflow_id}-2", "version": 1}
    call = {"kind": "http", "url": "https://example.com/", "headers": {"X-Plain": {"$secret": things.secret_name}}}
    nodes = [{"id": "part", "action": part}, {"id": "call", "action": call}]
    return {"owner": things.principal, "queue": things.queue, "nodes": nodes}


def _triggered(things: Things) -> dict[str, Any]:
    trigger = {"key": "nightly", "schedule": {"cron_expressions": ["0 2 * * *"], "calendars": [things.name]}}
    return {**_workflow(things), "triggers": [trigger]}


def _assigned(things: Things) -> dict[str, Any]:
    return {"assignee_type": "agent", "assignee_id": things.principal}


_WORKFLOW, _RUN_WORKFLOW = "/api/workflows/{workflow_id}", "/api/workflows/{workflow_id}/runs"


def _given(things: Things) -> dict[str, Any]:
    return {
        "assignment_id": f"{things.assignment_id}-try",
        "workflow_id": things.workflow,
        "assignee_type": "agent",
        "assignee_id": things.agent_id,
    }


def _own_given(things: Things) -> dict[str, Any]:
    return {**_given(things), "workflow_id": "rival-brief", "assignee_id": "rival-agent"}


_STANDING = "/api/approvals/standing"
_DRAFT = "/api/schedules/draft"
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
    tried("POST", "/api/schedules", "", lambda of: _own(of, assignee_id=of.agent_id), 422),
    tried("POST", "/api/schedules", "", lambda of: _own(of, assignee_type="team", assignee_id=of.team_id), 422),
    tried("POST", "/api/schedules", "", lambda of: _own(of, workflow_assignment_id=of.assignment_id), 422),
    tried("POST", _DRAFT, "", lambda of: _drafted(of, calendars=[of.name], assignee_id=of.agent_id), 200),
    tried("POST", _DRAFT, "", lambda of: _drafted(of, workflow_assignment_id=of.assignment_id), 200),
    tried("POST", _DRAFT, "", _with_secret, 200),
    tried("POST", _DRAFT, "", lambda of: {"schedule_id": of.schedule_id}, 200),
    tried("POST", "/api/conditions/test", "condition", lambda of: {"schedule_id": of.schedule_id}, 404),
    tried("POST", "/api/agents", "parent_id", lambda of: {"id": "below", "parent_id": of.agent_id}, 422),
    tried("POST", "/api/teams", "members lead", lambda of: {"team_id": "other", "members": [of.agent_id]}, 422),
    tried("POST", "/api/assignments", "assignee_type assignee_id workflow_id", _given, 422),
    tried("POST", "/api/apply", "teams", lambda of: {"teams": [{"team_id": "t", "members": [of.agent_id]}]}, 422),
    tried("POST", "/api/apply", "agents", lambda of: {"agents": [{"id": "a", "parent_id": of.agent_id}]}, 422),
    tried("POST", "/api/apply", "assignments", lambda of: {"assignments": [_given(of)]}, 422),
    tried("POST", "/api/approvals/decisions", "ids", lambda of: {"ids": [of.approval_id], "decision": "reject"}, 200),
    tried("POST", "/api/runs/reports", "reports", _reported, 200),
    tried("POST", _STANDING, "schedule_id", lambda of: {"schedule_id": of.schedule_id, "gates": ["publish"]}, 404),
    tried("POST", _STANDING, "workflow_id", lambda of: {"workflow_id": of.workflow_id, "gates": ["publish"]}, 422),
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
    tried("POST", _REDELIVER, "ids", lambda of: {"ids": [of.letter_id]}, 200),
    tried("POST", "/api/queues/{queue}/claim", "worker workflow_types limit", _claimed, 200),
    tried("PUT", _WORKFLOW, "nodes triggers", _triggered, 422),
    tried("POST", _RUN_WORKFLOW, "", lambda of: {"workflow_assignment_id": of.team}, 422),
    # A name is everybody's: it makes a thing of one's own.
    tried("PUT", "/api/secrets/{secret_name}", "value", lambda of: {"value": of.team}, 201),
    tried("PUT", "/api/agents/{agent_id}", "id token", lambda of: {"id": of.agent_id, "token": of.team}, 201),
    tried("POST", "/api/teams", "team_id", lambda of: {"team_id": of.team_id, "members": ["rival-agent"]}, 201),
    tried("POST", "/api/assignments", "assignment_id", _own_given, 201),
    tried("POST", "/api/schedules", "", schedule, 201),
    tried("POST", "/api/schedules/upsert", "", lambda of: schedule(of, note="again"), 200),
    tried("POST", "/schedules/upsert", "", _registered, 201),
    tried("POST", "/api/calendars", "name", lambda of: {"name": of.name, "kind": "skip_dates", "dates": []}, 201),
    tried("POST", "/api/calendars/{name}/clone", "name", lambda of: {"name": f"{of.name}-copy"}, 201),
    tried("POST", "/api/subscriptions", "name filter", _told, 201),
    tried("PUT", _WORKFLOW, "nodes owner queue workflow_id", _workflow, 201),
    tried("POST", _RUN_WORKFLOW, "assignee assignee_id workflow_assignment_id", _assigned, 201, 422),
    tried("POST", "/api/tokens", "name subject queues", _token, 201),
    tried("POST", _TRIGGER, "idempotency_key", lambda of: {"idempotency_key": of.key}, 200),
    tried("POST", "/api/run-launcher/start", "workflow_id user_id idempotency_key", _started, 201),
    tried("POST", "/api/apply", "bundle calendars schedules prune adopt", _bundle, 200),
    tried("POST", "/api/apply", "agents teams workflows assignments", _brought, 200),
]
