"""Every call, pinned: method, path, query and body; and every route of the server has one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from client.drivers import Driver

from horarium.client.client import Client
from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.features.cluster.calls import follow_feed
from horarium.platform.client.call import Call, Method, dump
from horarium.testing import TestService

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
S, R = "/api/schedules/s", "/api/runs/r"


def call(name: str, /, *args: Any, **kwargs: Any) -> Call[Any]:
    made: Call[Any] = follow_feed(**kwargs) if name == "events" else getattr(Client, name)(*args, **kwargs)
    return made


# name, arguments, method, path with query, body
TABLE: list[tuple[str, tuple[Any, ...], dict[str, Any], str, str, Any]] = [
    ("create_schedule", ({"schedule_id": "s"},), {"note": "n"},
     "POST", "/api/schedules", {"schedule_id": "s", "note": "n"}),
    ("apply", ({"schedules": []},), {"bundle": "b", "dry_run": True},
     "POST", "/api/apply", {"schedules": [], "bundle": "b", "dry_run": True}),
    ("upsert_schedule", (), {"schedule_id": "s"}, "POST", "/api/schedules/upsert", {"schedule_id": "s"}),
    ("list_schedules", (), {}, "GET", "/api/schedules", None),
    ("list_schedules", (), {"status": "active", "workflow_type": "w", "labels": {"a": "b", "c": "d"}, "page_size": 5},
     "GET", "/api/schedules?status=active&workflow_type=w&label=a%3Db&label=c%3Dd&page_size=5", None),
    ("list_schedules", (),
     {"owner": "o", "source": "template", "text": "t", "query": "Status = 'x'", "next_page_token": "p"},
     "GET", "/api/schedules?owner=o&source=template&text=t&query=Status+%3D+%27x%27&next_page_token=p", None),
    ("list_schedules", (), {"health": "failing", "include": "recent"},
     "GET", "/api/schedules?health=failing&include=recent", None),
    ("describe_schedule", ("s",), {}, "GET", S, None),
    ("update_schedule", ("s", {"note": "a"}), {"max_runs": 3}, "PUT", S, {"note": "a", "max_runs": 3}),
    ("update_schedule", ("s", {"note": "a"}), {"whole": True}, "PUT", f"{S}?whole=true", {"note": "a"}),
    ("patch_schedule", ("s",), {"note": None}, "PATCH", S, {"note": None}),
    ("delete_schedule", ("s",), {}, "DELETE", S, None),
    ("pause_schedule", ("s",), {"note": "why"}, "POST", f"{S}/pause", {"note": "why"}),
    ("pause_schedule", ("s",), {"until": "2026-11-17T09:00", "timezone": "Asia/Tokyo"},
     "POST", f"{S}/pause", {"until": "2026-11-17T09:00", "timezone": "Asia/Tokyo"}),
    ("resume_schedule", ("s",), {}, "POST", f"{S}/resume", {}),
    ("trigger_schedule", ("s",), {"overlap_policy": "allow_all", "even_if_paused": True, "inputs": [1], "reason": "x"},
     "POST", f"{S}/trigger", {"overlap_policy": "allow_all", "even_if_paused": True, "inputs": [1], "reason": "x"}),
    ("backfill_schedule", ("s", NOON, "2026-03-02T00:00:00Z"),
     {"dry_run": True, "reverse": False, "overlap_policy": "skip"},
     "POST", f"{S}/backfill", {"start_time": "2026-03-01T12:00:00Z", "end_time": "2026-03-02T00:00:00Z",
                               "overlap_policy": "skip", "reverse": False, "dry_run": True}),
    ("bulk_schedules", ("pause",), {"labels": {"a": "b"}, "until": NOON, "dry_run": True, "limit": 5,
                                  "timezone": "UTC"},
     "POST", "/api/schedules/bulk",
     {"action": "pause", "filter": {"labels": {"a": "b"}}, "until": "2026-03-01T12:00:00Z", "dry_run": True,
      "timezone": "UTC", "limit": 5}),
    ("bulk_schedules", ("label",), {"ids": ["s"], "set_labels": {"a": "b", "c": None}},
     "POST", "/api/schedules/bulk",
     {"action": "label", "filter": {"ids": ["s"]}, "labels": {"a": "b", "c": None}}),
    ("bulk_runs", ("cancel",), {"schedule_ids": ("s",), "everything": False},
     "POST", "/api/runs/bulk", {"action": "cancel", "filter": {"schedule_ids": ["s"]}, "all": False}),
    ("get_agenda", (), {"start": NOON, "end": "2026-03-02T00:00:00Z", "limit": 9, "bucket_seconds": 60}, "GET",
     "/api/agenda?from=2026-03-01T12%3A00%3A00Z&to=2026-03-02T00%3A00%3A00Z&limit=9&bucket_seconds=60", None),
    ("get_agenda", (), {"schedule_id": ["s", "t"], "text": "x", "labels": {"a": "b"}, "status": "active",
                        "reason": "missed", "timezone": "UTC"}, "GET",
     "/api/agenda?timezone=UTC&schedule_id=s&schedule_id=t&text=x&label=a%3Db&status=active&reason=missed", None),
    ("list_agenda_lanes", (), {"start": NOON, "end": "2026-03-02T00:00:00Z", "bucket_seconds": 60, "lane_limit": 5},
     "GET", "/api/agenda?lanes=true&from=2026-03-01T12%3A00%3A00Z&to=2026-03-02T00%3A00%3A00Z&bucket_seconds=60"
     "&lane_limit=5", None),
    ("get_overview", (), {}, "GET", "/api/overview", None),
    ("get_schedule_year", ("s",), {"year": 2027}, "GET", f"{S}/year?year=2027", None),
    ("get_schedule_history", ("s",), {"limit": 9, "after_sequence": 4, "uid": "u"}, "GET",
     f"{S}/history?limit=9&after_sequence=4&uid=u", None),
    ("list_schedule_runs", ("s",), {"state": ["failed", "running"], "origin": "manual", "include": "skips"}, "GET",
     f"{S}/runs?state=failed&state=running&origin=manual&include=skips", None),
    ("preview_schedule", ("s",), {"n": 3, "start": NOON, "timezone": "UTC"},
     "GET", f"{S}/preview?n=3&from=2026-03-01T12%3A00%3A00Z&timezone=UTC", None),
    ("draft_schedule", ({"note": "a"},), {"max_runs": 3, "n": 5, "year": 2027},
     "POST", "/api/schedules/draft?n=5&year=2027", {"note": "a", "max_runs": 3}),
    ("draft_schedule", (), {"changing": "s", "merge": True},
     "POST", "/api/schedules/draft?schedule_id=s&merge=true", {}),
    ("draft_schedule", (), {"changing": "s", "whole": True},
     "POST", "/api/schedules/draft?schedule_id=s&whole=true", {}),
    ("list_schedule_revisions", ("s",), {"page_size": 5, "next_page_token": "3"},
     "GET", f"{S}/revisions?page_size=5&next_page_token=3", None),
    ("compare_schedule_revisions", ("s", 1, 2), {}, "GET", f"{S}/revisions/compare?from=1&to=2", None),
    ("test_condition", ({"/a": {"eq": 1}},), {"schedule_id": "s"},
     "POST", "/api/conditions/test", {"condition": {"/a": {"eq": 1}}, "schedule_id": "s"}),
    ("explain_schedule", ("s", NOON), {}, "GET", f"{S}/explain?at=2026-03-01T12%3A00%3A00Z", None),
    ("explain_schedule", ("s", "2026-03-01"), {"timezone": "UTC"},
     "GET", f"{S}/explain?at=2026-03-01&timezone=UTC", None),
    ("get_schedule_health", ("s",), {}, "GET", f"{S}/health", None),
    ("set_calendars", ("s", ("a", "b")), {}, "PUT", f"{S}/calendars", {"calendars": ["a", "b"]}),
    ("clear_calendars", ("s",), {}, "DELETE", f"{S}/calendars", None),
    ("set_condition", ("s", {"/x": {"eq": 1}}), {},
     "PUT", f"{S}/condition", {"pre_dispatch_condition": {"/x": {"eq": 1}}}),
    ("clear_condition", ("s",), {}, "DELETE", f"{S}/condition", None),
    ("set_rotation", ("s", [{"a": 1}]), {}, "PUT", f"{S}/rotation", {"inputs_rotation": [{"a": 1}]}),
    ("clear_rotation", ("s",), {}, "DELETE", f"{S}/rotation", None),
    ("list_runs", (), {"state": "failed", "workflow_type": "w", "assignee": "a", "queue": "q", "page_size": 1}, "GET",
     "/api/runs?state=failed&workflow_type=w&assignee=a&queue=q&page_size=1", None),
    ("list_runs", (), {"workflow_id": "w", "parent_run_id": "p", "root_run_id": "t", "include": "steps"}, "GET",
     "/api/runs?workflow_id=w&parent_run_id=p&root_run_id=t&include=steps", None),
    ("get_run", ("r",), {}, "GET", R, None),
    ("get_run_events", ("r",), {"own": True, "next_page_token": "3"}, "GET", f"{R}/events?own=true&next_page_token=3",
     None),
    ("get_run_events", ("r",), {"limit": 2, "after_sequence": 3}, "GET", f"{R}/events?limit=2&after_sequence=3", None),
    ("cancel_run", ("r",), {}, "POST", f"{R}/cancel", {}),
    ("rerun_run", ("r",), {"reason": "x", "even_if_paused": True, "inputs": {"a": 1}}, "POST", f"{R}/rerun",
     {"even_if_paused": True, "inputs": {"a": 1}, "reason": "x"}),
    ("terminate_run", ("r",), {}, "POST", f"{R}/terminate", {}),
    ("report_run", ("r", "failed"),
     {"error": "e", "error_class": "timeout", "cost": 0.5, "tokens": 0, "lease_epoch": 2},
     "POST", f"{R}/report",
     {"state": "failed", "error": "e", "error_class": "timeout", "cost": 0.5, "tokens": 0, "lease_epoch": 2}),
    ("report_runs", ([{"run_id": "r", "state": "failed"}],), {},
     "POST", "/api/runs/reports", {"reports": [{"run_id": "r", "state": "failed"}]}),
    ("heartbeat_run", ("r", 7), {}, "POST", f"{R}/heartbeat", {"lease_epoch": 7}),
    ("get_run_logs", ("r",), {"after": 3}, "GET", f"{R}/logs?after=3", None),
    ("add_run_logs", ("r", 7, ["a", {"text": "b"}]), {"dropped": 2},
     "POST", f"{R}/logs", {"lease_epoch": 7, "lines": ["a", {"text": "b"}], "dropped": 2}),
    ("claim_runs", ("q/1",), {"worker": "w", "limit": 3, "workflow_types": ["a"]},
     "POST", "/api/queues/q%2F1/claim", {"worker": "w", "limit": 3, "workflow_types": ["a"]}),
    ("start_run", ("w",), {"idempotency_key": "k", "version": "latest", "inputs": {}, "scheduled_for": NOON,
                           "user_id": "u"}, "POST",
     "/api/run-launcher/start",
     {"workflow_id": "w", "idempotency_key": "k", "version": "latest",
      "inputs": {}, "scheduled_for": "2026-03-01T12:00:00Z", "user_id": "u"}),
    ("upsert_trigger", ({"workflow_id": "w"},), {"cron_expr": "0 2 * * *"},
     "POST", "/schedules/upsert", {"workflow_id": "w", "cron_expr": "0 2 * * *"}),
    ("pause_trigger", ("s", True), {"reason": "why", "until": "4h", "timezone": "UTC"}, "POST", "/schedules/pause",
     {"schedule_id": "s", "paused": True, "reason": "why", "until": "4h", "timezone": "UTC"}),
    ("get_trigger", ("s",), {}, "GET", "/schedules/s", None),
    ("list_trigger_runs", ("s",), {"limit": 3}, "GET", "/schedules/s/runs?limit=3", None),
    ("delete_trigger", ("s",), {}, "DELETE", "/schedules/s", None),
    ("list_calendars", (), {}, "GET", "/api/calendars", None),
    ("create_calendar", ({"name": "c"},), {"kind": "skip_dates"},
     "POST", "/api/calendars", {"name": "c", "kind": "skip_dates"}),
    ("get_calendar", ("holidays:US",), {"year": 2026}, "GET", "/api/calendars/holidays%3AUS?year=2026", None),
    ("update_calendar", ("c",), {"dates": []}, "PUT", "/api/calendars/c", {"dates": []}),
    ("delete_calendar", ("c",), {}, "DELETE", "/api/calendars/c", None),
    ("clone_calendar", ("c", "d"), {}, "POST", "/api/calendars/c/clone", {"name": "d"}),
    ("list_workflows", (), {"owner": "o", "text": "t", "page_size": 2}, "GET",
     "/api/workflows?owner=o&text=t&page_size=2", None),
    ("validate_workflow", ({"nodes": []},), {}, "POST", "/api/workflows/validate", {"nodes": []}),
    ("put_workflow", ("w", {"nodes": []}), {"if_version": 3}, "PUT", "/api/workflows/w", {"nodes": []}),
    ("get_workflow", ("w",), {"version": "latest"}, "GET", "/api/workflows/w?version=latest", None),
    ("workflow_versions", ("w",), {"page_size": 2}, "GET", "/api/workflows/w/versions?page_size=2", None),
    ("delete_workflow", ("w",), {}, "DELETE", "/api/workflows/w", None),
    ("run_workflow", ("w", {"day": 1}), {"version": 2, "assignee_type": "agent", "assignee_id": "a",
                                         "labels": {"team": "x"}, "idempotency_key": "k"}, "POST",
     "/api/workflows/w/runs",
     {"inputs": {"day": 1}, "version": 2, "assignee_type": "agent", "assignee_id": "a", "labels": {"team": "x"}}),
    ("list_approvals", (), {"status": "all", "schedule_id": "s", "gate": "g", "mine": True, "page_size": 2}, "GET",
     "/api/approvals?status=all&schedule_id=s&gate=g&mine=true&page_size=2", None),
    ("get_approval", ("a",), {}, "GET", "/api/approvals/a", None),
    ("decide_approval", ("a", "modify"), {"reason": "why", "modifications": {"x": 1}, "input_hash": "h"},
     "POST", "/api/approvals/a/decision",
     {"decision": "modify", "reason": "why", "modifications": {"x": 1}, "input_hash": "h"}),
    ("decide_approvals", (["a", "b"], "reject"), {"reason": "why", "input_hashes": {"a": "h"}},
     "POST", "/api/approvals/decisions",
     {"ids": ["a", "b"], "decision": "reject", "reason": "why", "input_hashes": {"a": "h"}}),
    ("approve_run", ("r",), {"modifications": {"x": 1}}, "POST", f"{R}/approve", {"modifications": {"x": 1}}),
    ("reject_run", ("r",), {"reason": "no"}, "POST", f"{R}/reject", {"reason": "no"}),
    ("create_standing_approval", (), {"schedule_id": "s", "gates": ["g"], "until": NOON, "max_uses": 3,
                                     "timezone": "UTC"},
     "POST", "/api/approvals/standing",
     {"schedule_id": "s", "gates": ["g"], "until": "2026-03-01T12:00:00Z", "max_uses": 3, "timezone": "UTC"}),
    ("list_standing_approvals", (), {"page_size": 2}, "GET", "/api/approvals/standing?page_size=2", None),
    ("delete_standing_approval", ("a",), {}, "DELETE", "/api/approvals/standing/a", None),
    ("list_subscriptions", (), {}, "GET", "/api/subscriptions", None),
    ("list_subscriptions", (), {"namespace": "*", "page_size": 2}, "GET",
     "/api/subscriptions?namespace=%2A&page_size=2", None),
    ("get_overview", (), {"namespace": "*"}, "GET", "/api/overview?namespace=%2A", None),
    ("list_schedule_health", (), {"namespace": "*", "unwell": True}, "GET",
     "/api/health/schedules?unwell=true&namespace=%2A", None),
    ("list_runs", (), {"namespace": "*", "state": "unsuccessful"}, "GET",
     "/api/runs?state=unsuccessful&namespace=%2A", None),
    ("list_approvals", (), {"namespace": "*"}, "GET", "/api/approvals?namespace=%2A", None),
    ("create_subscription", (["run_finished"], "https://x.test/", "whsec_x"),
     {"name": "n", "filter": {"states": ["failed"]}},
     "POST", "/api/subscriptions",
     {"kinds": ["run_finished"], "url": "https://x.test/", "secret": "whsec_x", "name": "n",
      "filter": {"states": ["failed"]}}),
    ("get_subscription", ("n",), {}, "GET", "/api/subscriptions/n", None),
    ("update_subscription", ("n",), {"url": "https://y.test/"}, "PUT", "/api/subscriptions/n",
     {"url": "https://y.test/"}),
    ("delete_subscription", ("n",), {}, "DELETE", "/api/subscriptions/n", None),
    ("test_subscription", ("n",), {}, "POST", "/api/subscriptions/n/test", {}),
    ("list_dead_letters", ("n",), {"page_size": 2, "next_page_token": "p"}, "GET",
     "/api/subscriptions/n/dead-letters?page_size=2&next_page_token=p", None),
    ("list_secrets", (), {"page_size": 2}, "GET", "/api/secrets?page_size=2", None),
    ("put_secret", ("n", "v"), {"hosts": ["a.example"]}, "PUT", "/api/secrets/n",
     {"value": "v", "hosts": ["a.example"]}),
    ("delete_secret", ("n",), {"force": True}, "DELETE", "/api/secrets/n?force=true", None),
    ("list_agents", (), {"page_size": 2}, "GET", "/api/agents?page_size=2", None),
    ("create_agent", ({"id": "n"},), {"name": "N"}, "POST", "/api/agents", {"id": "n", "name": "N"}),
    ("get_agent", ("n",), {}, "GET", "/api/agents/n", None),
    ("put_agent", ("n", {"name": "N"}), {"if_version": 3}, "PUT", "/api/agents/n", {"name": "N"}),
    ("patch_agent", ("n", {"capacity": 2}), {"if_version": 3}, "PATCH", "/api/agents/n", {"capacity": 2}),
    ("check_agent", ("n",), {}, "POST", "/api/agents/n/check", None),
    ("create_agent_token", ("n",), {"name": "ci"}, "POST", "/api/agents/n/tokens", {"name": "ci"}),
    ("delete_agent", ("n",), {"purge": True}, "DELETE", "/api/agents/n?purge=true", None),
    ("delete_agent", ("n",), {"dry_run": True}, "DELETE", "/api/agents/n?dry_run=true", None),
    ("list_teams", (), {"page_size": 2}, "GET", "/api/teams?page_size=2", None),
    ("create_team", ({"team_id": "n"},), {"name": "N"}, "POST", "/api/teams", {"team_id": "n", "name": "N"}),
    ("get_team", ("n",), {}, "GET", "/api/teams/n", None),
    ("put_team", ("n", {"name": "N"}), {"if_version": 3}, "PUT", "/api/teams/n", {"name": "N"}),
    ("patch_team", ("n", {"name": "N"}), {"if_version": 3}, "PATCH", "/api/teams/n", {"name": "N"}),
    ("delete_team", ("n",), {}, "DELETE", "/api/teams/n", None),
    ("list_assignments", (), {"page_size": 2}, "GET", "/api/assignments?page_size=2", None),
    ("create_assignment", ({"assignment_id": "n"},), {"name": "N"}, "POST", "/api/assignments",
     {"assignment_id": "n", "name": "N"}),
    ("get_assignment", ("n",), {}, "GET", "/api/assignments/n", None),
    ("put_assignment", ("n", {"name": "N"}), {"if_version": 3}, "PUT", "/api/assignments/n",
     {"name": "N"}),
    ("patch_assignment", ("n",), {"retry_policy": None, "if_version": 3}, "PATCH", "/api/assignments/n",
     {"retry_policy": None}),
    ("delete_assignment", ("n",), {}, "DELETE", "/api/assignments/n", None),
    ("redeliver_dead_letters", ("n", ["d"]), {}, "POST", "/api/subscriptions/n/redeliver", {"ids": ["d"]}),
    ("make_sign_in_link", (), {}, "POST", "/api/session/link", None),
    ("list_tokens", (), {}, "GET", "/api/tokens", None),
    ("issue_token", ("n", "viewer"), {"subject": "s", "expires_at": NOON}, "POST", "/api/tokens",
     {"name": "n", "role": "viewer", "subject": "s", "expires_at": "2026-03-01T12:00:00Z"}),
    ("rotate_token", ("t",), {"overlap_seconds": 0}, "POST", "/api/tokens/t/rotate", {"overlap_seconds": 0}),
    ("delete_namespace", ("n",), {"force": True}, "DELETE", "/api/namespaces/n?force=true", None),
    ("revoke_token", ("t",), {}, "DELETE", "/api/tokens/t", None),
    ("list_namespaces", (), {}, "GET", "/api/namespaces", None),
    ("create_namespace", ("n",), {"description": "d"},
     "POST", "/api/namespaces", {"namespace": "n", "description": "d"}),
    ("change_namespace", ("n",), {"quotas": {"open_runs": None}},
     "PATCH", "/api/namespaces/n", {"quotas": {"open_runs": None}}),
    ("get_namespace", ("n",), {}, "GET", "/api/namespaces/n", None),
    ("list_audit", (), {"namespace": "n", "act": "a", "since": "2026-03-01T00:00:00Z", "order": "oldest"}, "GET",
     "/api/audit?namespace=n&act=a&since=2026-03-01T00%3A00%3A00Z&order=oldest", None),
    ("get_feed", (), {"after": "1-2", "page_size": 4, "next_page_token": "p"}, "GET",
     "/api/feed?after=1-2&page_size=4&next_page_token=p", None),
    ("events", (), {"last_event_id": "7"}, "GET", "/api/events", None),
    ("engine_liveness", (), {}, "GET", "/admin/liveness", None),
    ("list_schedule_health", (), {"unwell": True}, "GET", "/api/health/schedules?unwell=true", None),
    ("admin_schedule_health", (), {}, "GET", "/admin/schedules/health", None),
    ("cluster_info", (), {}, "GET", "/api/cluster/info", None),
    ("get_cluster", (), {}, "GET", "/api/cluster/processes", None),
    ("health", (), {}, "GET", "/healthz", None),
    ("readiness", (), {}, "GET", "/readyz", None),
    ("liveness", (), {}, "GET", "/livez", None),
    ("metrics", (), {}, "GET", "/metrics", None),
]  # fmt: skip

# Routes of other contracts: the calls above say the same in our own words. Hints are sent by agents alone, and sessions
# are for browsers: a program shows its token.
WITHOUT_A_CALL = re.compile(
    r"/run-launcher/.*|/workspaces/.*|/waterline/.*|/api/health|/api/runs/.*/pushes|/api/session"
)


def names() -> set[str]:
    found = {name for kind in Client.__mro__ for name, member in vars(kind).items() if isinstance(member, Method)}
    return found | {"events"}


def shape(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "{}", path)


def test_what_a_call_sends(make_driver: Callable[..., Driver]) -> None:
    seen: list[httpx.Request] = []

    def record(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(204 if request.url.path == "/api/events" else 200, json={})

    driver = make_driver(handler=record)
    for name, args, kwargs, method, path, body in TABLE:
        driver.run(lambda client, name=name, args=args, kwargs=kwargs: getattr(client, name)(*args, **kwargs))
        assert [(each.method, each.url.raw_path.decode()) for each in seen] == [(method, path)], name
        content = seen.pop().content
        assert (json.loads(content) if content else None) == body, (name, path)


def test_every_call_has_a_row() -> None:
    assert {row[0] for row in TABLE} == names()


def test_every_route_has_a_call_of_its_name_and_every_call_a_route(horarium: TestService) -> None:
    made = {row[0]: call(row[0], *row[1], **row[2]) for row in TABLE}
    # The lanes of the agenda are a list with pages, and its rows are not: one route, two calls.
    lanes, agenda = made.pop("list_agenda_lanes"), made["get_agenda"]
    assert (lanes.method, lanes.template) == (agenda.method, agenda.template)
    routes = {
        operation["operationId"]: (method.upper(), shape(path))
        for path, operations in horarium.parts.api.openapi()["paths"].items()
        for method, operation in operations.items()
        if not WITHOUT_A_CALL.fullmatch(path)
    }
    assert {name: (each.method, shape(each.template)) for name, each in made.items()} == routes


def test_only_what_is_safe_is_called_idempotent() -> None:
    """A worker claims and beats again by itself; the secret of a token must not be kept for a repetition."""
    only_once = {
        "claim_runs", "heartbeat_run", "add_run_logs", "issue_token", "rotate_token", "test_subscription",
        "check_agent", "create_agent_token", "make_sign_in_link",
    }  # fmt: skip
    found = {(name, call(name, *args, **kwargs).idempotent) for name, args, kwargs, *_ in TABLE}
    assert found == {(name, name not in only_once) for name in names()}


@pytest.mark.parametrize(
    ("name", "path"),
    [("a/b", "a%2Fb"), ("a?b", "a%3Fb"), ("a#b", "a%23b"), ("a b", "a%20b"), ("ü", "%C3%BC"), ("a%2Fb", "a%252Fb"),
     ("\ud800", "%ED%A0%80"), ("a:b@c", "a%3Ab%40c")],
    ids=ascii,
)  # fmt: skip
def test_a_name_never_becomes_another_path(name: str, path: str) -> None:
    assert Client.describe_schedule(name).path == f"/api/schedules/{path}"


@pytest.mark.parametrize("name", ["", ".", "..", "x" * 1_001], ids=["empty", "dot", "dots", "long"])
def test_a_name_that_is_no_segment_is_refused(name: str) -> None:
    with pytest.raises(InvalidDefinition, match="schedule_id"):
        _ = Client.describe_schedule(name).path


def test_times_are_sent_in_utc_and_naive_ones_refused() -> None:
    late = datetime(2026, 3, 1, 14, tzinfo=timezone(timedelta(hours=2)))
    assert Client.explain_schedule("s", late).params == [("at", "2026-03-01T12:00:00Z")]
    with pytest.raises(InvalidSpec):
        _ = Client.explain_schedule("s", datetime(2026, 3, 1)).params  # noqa: DTZ001 - that is the case


def test_a_version_goes_along_as_an_entity_tag() -> None:
    assert Client.update_schedule("s", if_version=3).headers == {"If-Match": '"3"'}
    assert Client.update_schedule("s").headers == {}


def test_a_document_may_hold_datetimes_and_dates() -> None:
    assert dump({"at": [NOON], "dates": [NOON.date()]}) == b'{"at":["2026-03-01T12:00:00Z"],"dates":["2026-03-01"]}'


def deep() -> list[Any]:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    "body", [{"x": float("nan")}, {"x": object()}, {"x": {1, 2}}, deep()], ids=["nan", "object", "set", "deep"]
)
def test_what_json_cannot_hold_is_refused_before_it_is_sent(body: Any) -> None:
    with pytest.raises(InvalidDefinition, match="cannot be written as JSON"):
        dump(body)
