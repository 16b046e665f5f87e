"""The schedules that the browser is shown: two days of a past, made on a clock that moves when told, in a few seconds.

A real `horarium up` goes on from there. So there is everything that takes days to come about, and nothing has waited
for it: successes and failures with durations, skips with their reasons, a downtime, runs that wait, run or are held.

What falls due while the tests run must not change what they look for. Work for a queue waits there, since nobody takes
it; calls fail, since nobody listens. So what was well and falls due every hour is work for a queue.

| namespace | holds |
|---|---|
| `default` | what a small company has: one schedule of each kind and each state of health |
| `warehouse` | a second tenant with a few of its own, one of them with an id that `default` has too |
| `hostile` | names that are markup, that turn the writing around, or that are as long as is allowed |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx

from horarium.core.lifecycle.outcome import Outcome
from horarium.features.history import service as history_service
from horarium.features.schedules import decision_rows
from horarium.features.tenants import service as tenant_service
from horarium.instant import DAY, HOUR, MINUTE, SECOND, Instant, to_datetime, to_rfc3339
from horarium.launchers.launcher import LaunchRequest
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.wire import Role
from horarium.testing import Accepted, FakeClock, Finished, RunFailed, TestService, service

MAIN, SECOND_TENANT, HOSTILE = "default", "warehouse", "hostile"
ROLES = ("viewer", "operator", "admin")
MARKUP = "<img src=x onerror=alert(1)>"
TURNED = "\u202eelcyc yraunaj\u202c \u2067שלום\u2069"
LONG = "the-longest-name-" * 14 + "of-all"
DISCARD = "http://127.0.0.1:9/"  # nobody listens there, so what is sent fails at once

# How many seconds the work of these takes, give or take a third; that of the others takes none.
_SECONDS = {"nightly-report": 42, "price-sync": 14, "stock-check": 6, "thumbnails": 25, "ledger-close": 33}
_NEVER_ENDS = ("crawl-suppliers", "reindex")
_DAYS = 2


@dataclass(frozen=True)
class Fleet:
    """Tokens by namespace and role, and what pages need the ids of."""

    tokens: Mapping[tuple[str, str], str]
    run_id: str  # of a run that has ended well
    failed_run_id: str
    workflow_run_id: str
    approval_id: str


def schedules(now: Instant) -> list[dict[str, Any]]:
    """One of each kind and each state; those of the last hours are written later, see `_grow`."""
    nightly = _work("report")
    call = {"kind": "http", "url": DISCARD}
    hourly = f"{_just_over(now)} * * * *"
    return [
        _entry("nightly-report", "0 2 * * *", nightly, "Nightly report", timezone="Europe/Berlin", team="finance"),
        _entry("invoice-export", hourly, call, "Invoices to the bank", timezone="Europe/Istanbul", team="finance"),
        _entry(
            "price-sync", "*/30 * * * *", _work("prices"), "Prices from suppliers", calendars=["weekdays"], team="shop"
        ),
        _entry("stock-check", "10 * * * *", _work("stock"), "Stock below the line", team="shop", condition="stock"),
        _entry("thumbnails", "45 */2 * * *", nightly, "Thumbnails of new pictures", team="shop"),
        _entry("ledger-close", "5 */2 * * *", call, "Close the ledger", catchup_policy="skip", team="finance"),
        _entry("half-past-two", "30 2 * * *", call, "At an hour that one night lacks", timezone="America/New_York"),
        _entry("quarter-close", "0 6 1 */3 *", call, "Close of the quarter", team="finance"),
        _entry("archive-mail", "0 3 * * 6", call, "Archive the mail"),
        {
            **_entry("move-office", None, call, "The day we move"),
            "at": [to_rfc3339(now - now % DAY + 40 * DAY + 8 * HOUR)],
        },
        {**_entry("launch-day", None, call, "The day we launched"), "at": [to_rfc3339(now - now % HOUR - 30 * HOUR)]},
        {
            "schedule_id": "morning-brief",
            "name": "Morning brief",
            "cron_expressions": ["0 6 * * *"],
            "timezone": "Europe/Berlin",
            "action": {"kind": "workflow", "workflow_id": "brief", "version": "latest"},
            "labels": {"team": "office"},
        },
        {
            "schedule_id": "standup",
            "name": "Ask for the state of things",
            "cron_expressions": ["30 9 * * 1-5"],
            "timezone": "Europe/Berlin",
            "action": {"kind": "prompt", "prompt": "What did everybody do yesterday?"},
            "assignee_type": "agent",
            "assignee_id": "writer",
            "approval_policy": {"requires_approval": False},
        },
    ]


def herd(now: Instant) -> list[dict[str, Any]]:
    """Many at one minute, from two hours ago on."""
    look, since = _work("mailbox"), to_rfc3339(now - now % HOUR - 2 * HOUR)
    return [
        _entry(f"mailbox-{number:02}", "0 * * * *", look, f"Look into mailbox {number}", team="office", start_at=since)
        for number in range(1, 13)
    ]


def _work(kind: str) -> dict[str, str]:
    return {"kind": "workflow", "workflow_type": kind, "queue": "reports"}


def _just_over(now: Instant) -> int:
    """Full ten minutes of the hour, twenty minutes ago at most: they come again when the tests are over."""
    return (now // MINUTE % 60 // 10 * 10 - 10) % 60


def _entry(
    schedule_id: str,
    cron: str | None,
    action: Mapping[str, Any],
    name: str,
    *,
    team: str | None = None,
    condition: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    document: dict[str, Any] = {"schedule_id": schedule_id, "name": name, "action": dict(action), **more}
    if cron is not None:
        document["cron_expressions"] = [cron]
    if team is not None:
        document["labels"] = {"team": team}
    if condition is not None:
        document["pre_dispatch_condition"] = {"/last_24h_stats/total": {"lt": 12}}
    return document


# ── the past ─────────────────────────────────────────────────────────────────────────────────────────


def build(database: str, now: Instant) -> Fleet:
    """Into a migrated database; `now` is where the past ends."""
    targets = Targets(failing_from=now - 6 * HOUR)
    with service(at=now - now % HOUR - _DAYS * DAY, answer=targets.answer, database=database) as horarium:
        targets.clock = horarium.clock
        _put_parts(horarium.http(), now)
        for document in [*herd(now), *schedules(now)]:
            _send(horarium.http(), "POST", "/api/schedules", document)
        _second_tenants(horarium)
        horarium.advance_to(now - 20 * HOUR)
        horarium.sleep(hours=3)  # nobody was there: of what falls due every two hours, one at least was missed
        horarium.advance_to(now - 2 * HOUR)
        _grow(horarium)
        horarium.advance_to(max(now, horarium.now))
        return _read(horarium)


@dataclass
class Targets:
    """What those say who are given work, by the schedule that asks; their work takes time on the clock of the past."""

    failing_from: Instant
    clock: FakeClock | None = None

    def answer(self, request: LaunchRequest) -> Outcome:
        asked = request.schedule_id or ""
        if asked in _NEVER_ENDS:
            return Accepted(reference=f"job-{request.trigger_number}")
        # There is no chance in the house: how long it takes depends on the hour.
        seconds = _SECONDS.get(asked, 0) * (100 + 7 * (request.nominal // HOUR % 10 - 5)) / 100
        assert self.clock is not None
        self.clock.advance(seconds)
        if asked == "invoice-export" and request.nominal >= self.failing_from:
            return RunFailed("the bank answered 503: maintenance", error_class="provider_error")
        if request.node_id == "collect":
            return Finished({"names": ["Ada", "Grace", "Edsger"]})
        return Finished({"rows": 120 + request.nominal // HOUR % 40}, cost=0.012, tokens=900)


def _grow(horarium: TestService) -> None:
    """What is newer, or was changed since: edits, pauses, one that is set aside, runs that are open."""
    http, call = horarium.http(), {"kind": "http", "url": DISCARD}
    long = {"kind": "http", "url": DISCARD, "timeout_seconds": 3 * DAY // SECOND}
    crawl = _entry("crawl-suppliers", "*/40 * * * *", long, "Crawl suppliers", team="shop")
    index = _entry("reindex", "*/25 * * * *", long, "Search index", overlap_policy="buffer_one", team="shop")
    asks = {"requires_approval": True, "gates": ["external_message"], "expires_after_seconds": None}
    letter = _entry("newsletter", "0 7 * * *", call, "Newsletter to all customers", timezone="Asia/Kathmandu")
    for document in (crawl, index, {**letter, "approval_policy": asks}):
        _send(http, "POST", "/api/schedules", document)
    _send(http, "PATCH", "/api/schedules/nightly-report", {"cron_expressions": ["15 2 * * *"], "note": "after backups"})
    _send(http, "PATCH", "/api/schedules/nightly-report", {"cron_expressions": ["30 2 * * 1-6"]})
    _send(http, "POST", "/api/schedules/quarter-close/pause", {"reason": "the auditors are here"})
    until = to_rfc3339(horarium.now + 3 * DAY)
    _send(http, "POST", "/api/schedules/archive-mail/pause", {"reason": "storage is moved", "until": until})
    odd = _entry("import-orders", "50 * * * *", call, "Orders of the old shop")
    _send(http, "POST", "/api/schedules", odd)
    _set_aside(horarium, "import-orders")
    _send(http, "POST", "/api/schedules/newsletter/trigger", {})


def _set_aside(horarium: TestService, schedule_id: str) -> None:
    """As the ticker does with one whose plan raises."""
    said = "the time zone America/Old_Town is not known any more"

    def park(connection: Connection) -> bool:
        uid = history_service.find_any(connection, horarium.caller, schedule_id).schedule_uid
        return decision_rows.park(connection, uid, error=said, error_class="InvalidSpec", now=horarium.now)

    assert horarium.resources.database.write(park)


# ── beside the schedules ─────────────────────────────────────────────────────────────────────────────


def _put_parts(http: httpx.Client, now: Instant) -> None:
    """Agents under one another and in a team, a calendar, a workflow in two versions, who does it."""
    year = to_datetime(now + 30 * DAY).year
    _send(http, "POST", "/api/agents", {"id": "editor", "name": "The editor", "url": DISCARD})
    writer = {"id": "writer", "name": "The writer", "url": DISCARD, "parent_id": "editor"}
    _send(http, "POST", "/api/agents", {**writer, "policies": {"budget": {"spending_limit_credits": 5}}})
    _send(http, "POST", "/api/teams", {"team_id": "desk", "name": "News desk", "members": ["editor", "writer"]})
    days = {"name": "company-holidays", "kind": "skip_dates", "timezone": "Europe/Istanbul"}
    _send(http, "POST", "/api/calendars", {**days, "dates": [f"{year}-12-24", f"{year}-12-31", f"{year + 1}-01-01"]})
    nodes = [
        {"id": "collect", "action": {"kind": "http", "url": DISCARD}},
        {"id": "weather", "action": {"kind": "http", "url": DISCARD}},
        {
            "id": "compose",
            "needs": ["collect", "weather"],
            "action": {"kind": "http", "url": DISCARD},
            "input": {"names": {"$from": "/results/collect/names"}},
        },
        {"id": "send", "needs": ["compose"], "gates": ["external_message"], "action": {"kind": "http", "url": DISCARD}},
    ]
    _send(http, "PUT", "/api/workflows/brief", {"name": "Brief", "nodes": nodes[:1]})
    _send(http, "PUT", "/api/workflows/brief", {"name": "Brief", "nodes": nodes})
    done = {"assignment_id": "brief-by-desk", "workflow_id": "brief", "assignee_type": "team", "assignee_id": "desk"}
    _send(http, "POST", "/api/assignments", done)


def _second_tenants(horarium: TestService) -> None:
    http = horarium.http()
    for namespace in (SECOND_TENANT, HOSTILE):
        _send(http, "POST", "/api/namespaces", {"namespace": namespace, "description": f"the {namespace}"})
    call = {"kind": "http", "url": DISCARD}
    for schedule_id, cron in (("stock-check", "40 * * * *"), ("pick-list", "0 5 * * *")):
        document = _entry(schedule_id, cron, call, f"Of the warehouse: {schedule_id}")
        _send(horarium.http(namespace=SECOND_TENANT), "POST", "/api/schedules", document)
    for number, name in enumerate((MARKUP, TURNED, LONG)):
        document = _entry(f"hostile-{number}", "0 */6 * * *", call, name, team=name[:60], timezone="Asia/Kathmandu")
        document |= {"note": name, "action": {**call, "input": {name[:100]: name}}}
        _send(horarium.http(namespace=HOSTILE), "POST", "/api/schedules", document)


# ── what the tests need of it ────────────────────────────────────────────────────────────────────────


def _read(horarium: TestService) -> Fleet:
    http = horarium.http()
    issued = {
        (namespace, role): tenant_service.issue_token(
            horarium.resources,
            Caller("root", Role.ADMIN, namespace),
            name=f"{role} of {namespace}",
            role=role,
            subject=f"{role}@{namespace}",
        ).secret
        for namespace in (MAIN, SECOND_TENANT, HOSTILE)
        for role in ROLES
    }

    def newest(**wanted: str) -> str:
        found: str = _send(http, "GET", "/api/runs", params={**wanted, "page_size": "1"})["runs"][0]["run_id"]
        return found

    return Fleet(
        issued,
        run_id=newest(schedule_id="stock-check", state="succeeded"),
        failed_run_id=newest(schedule_id="invoice-export", state="failed"),
        workflow_run_id=newest(schedule_id="morning-brief"),
        approval_id=_send(http, "GET", "/api/approvals")["approvals"][0]["approval_id"],
    )


def _send(http: httpx.Client, method: str, path: str, body: Any = None, **more: Any) -> Any:
    answer = http.request(method, path, json=body, **more) if body is not None else http.request(method, path, **more)
    assert answer.is_success, f"{method} {path}: {answer.text}"
    return answer.json()
