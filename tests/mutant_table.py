"""The table of planted defects for `mutants.py`.

A module is named by its path below `horarium`, and a test file or folder by its path below `tests`. Where the source
moved, add a line to `MOVED`, old path first, instead of editing the entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

MOVED: Final[Mapping[str, str]] = {
    "api/audited": "platform/http/audited",
    "api/cross_site": "platform/http/browser_sessions",
    "api/idempotency": "platform/http/routing",
    "api/jwts": "platform/http/jwts",
    "api/limits": "platform/http/connections",
    "audit": "core/audit_entries",
    "celery/answers": "celery/sender",
    "celery/spool_lines": "celery/spool_file",
    "cli/dates": "features/calendars/commands",
    "cli/verify": "cli/maintenance",
    "client/call": "platform/client/call",
    "client/discover": "platform/client/connection",
    "client/exchange": "platform/client/exchange",
    "decision/backfill": "core/decision/decide",
    "decision/certainty": "core/decision/predicted_runs",
    "decision/guards": "core/decision/guards",
    "decision/release": "core/decision/decide",
    "decision/tick": "core/decision/tick",
    "engine/heartbeat": "engine/chores",
    "launchers/celery/message": "launchers/celery/broker",
    "life/react": "core/lifecycle/react",
    "life/report_token": "core/lifecycle/outcome",
    "operations/approvals": "features/approvals/service",
    "operations/caller": "platform/caller",
    "operations/deciding": "features/approvals/service",
    "operations/namespaces": "features/tenants/service",
    "operations/secrets": "features/secrets/service",
    "policy/approval": "core/policy/approval",
    "policy/overlap": "core/policy/queue",
    "policy/quotas": "core/policy/limits",
    "policy/retry": "core/policy/approval",
    "recurrence/cron": "core/recurrence/cron",
    "recurrence/interval": "core/recurrence/parts",
    "recurrence/jitter": "core/recurrence/spec",
    "recurrence/wall": "core/recurrence/parts",
    "schedule/graph": "core/document/workflow_parts",
    "schedule/redaction": "core/document/secret_values",
    "serve/hosts": "serve/asgi",
    "serve/seats": "serve/sockets",
    "serve/secret_key": "serve/data_dir",
    "settings/loading": "platform/settings/loading",
    "store/idempotency": "platform/database/idempotency",
    "store/quotas": "features/tenants/rows",
    "store/runs/claims": "features/runs/claim_rows",
    "store/schedules/due": "features/schedules/due_rows",
    "store/subscriptions/deliveries": "features/webhooks/delivery_rows",
    "store/tokens": "features/tenants/rows",
    "wire/answer": "platform/wire",
    "wire/audit": "features/audit/model",
}
"""New paths of modules, test files and test folders by their old paths."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One defect: `old`, which occurs once in the function `name` of `module`, becomes `new`.

    `name` is qualified by its class; a table or statement at module level has the name of its variable. `tests` are
    the files or folders that must fail, and `keyword` selects among their tests.
    """

    defect: str
    module: str
    name: str
    old: str
    new: str
    tests: tuple[str, ...]
    keyword: str = ""


MUTANTS: Final[tuple[Mutant, ...]] = (
    # ── recurrence ───────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A repeated hour fires twice at the end of DST",
        "recurrence/wall", "CronSchedule.walls",
        "return start + before, stop + offset", "return start + offset, stop + offset",
        ("unit/recurrence/test_vectors.py", "unit/recurrence/test_moves.py")),
    Mutant(
        "An interval ignores its offset",
        "recurrence/interval", "Interval.next_after",
        "(t - self.offset) % self.every", "t % self.every",
        ("unit/recurrence/test_interval.py",)),
    Mutant(
        "The workday nearest to a Saturday the 1st is a Sunday",
        "recurrence/cron", "_nearest_workday",
        "if day > 1 else 3", "if day > 1 else 2",
        ("unit/recurrence/test_nearest_workday.py",)),
    Mutant(
        "Jitter reaches the next occurrence",
        "recurrence/jitter", "jitter_delay",
        "// _MILLISECOND - 1)", "// _MILLISECOND)",
        ("unit/recurrence/test_jitter.py",)),
    # ── policy ───────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "The overlap policy skip lets one run too many start",
        "policy/overlap", "decide_overlap",
        "active + own >= capacity", "active + own > capacity",
        ("unit/policy/test_overlap.py",)),
    Mutant(
        "The first retry waits twice the initial backoff",
        "policy/retry", "backoff",
        "min(attempt - 1, max_ms.bit_length())", "min(attempt, max_ms.bit_length())",
        ("unit/policy/test_retry.py",)),
    Mutant(
        "A quota refuses the last schedule that it allows",
        "policy/quotas", "definitions_exceed",
        "used + asked > limit", "used + asked >= limit",
        ("unit/policy/test_quotas.py",)),
    Mutant(
        "An approval is required only where every level requires it",
        "policy/approval", "merge_approval_policies",
        "asks = any(", "asks = all(",
        ("unit/policy/test_approval.py",)),
    # ── decision ─────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A schedule starts one run more than max_runs",
        "decision/guards", "_exhausted",
        "born < most", "born <= most",
        ("unit/decision/test_guards.py",)),
    Mutant(
        "Occurrences within the grace count as missed after a restart",
        "decision/tick", "_Walk.catch_up",
        "min(grace, alive)", "max(grace, alive)",
        ("unit/decision/test_tick.py",)),
    Mutant(
        "A forecast calls the outcome of a condition likely",
        "decision/certainty", "Uncertainty._of_guard",
        "return CertaintyLevel.UNKNOWN, _CONDITION", "return CertaintyLevel.LIKELY, _CONDITION",
        ("unit/decision/test_evaluator.py", "unit/decision/test_agenda.py")),
    Mutant(
        "A backfill includes the occurrence at its end",
        "decision/backfill", "occurrences_to_fill",
        "min(end - 1, position.decided_until)", "min(end, position.decided_until)",
        ("unit/decision/test_backfill.py",)),
    Mutant(
        "A paused schedule does not continue its backfill",
        "decision/release", "plan_release",
        "held = [run for run in held if run.backfilled]", "held = []",
        ("unit/decision/test_release.py",)),
    # ── life ─────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A run that must be delivered at most once is retried",
        "life/react", "_failed",
        "if run.delivery == Delivery.AT_MOST_ONCE:", "if rules.recovers and run.delivery == Delivery.AT_MOST_ONCE:",
        ("unit/life/test_react.py",)),
    Mutant(
        "The loss of an old lease ends the attempt of the next holder",
        "life/react", "react",
        "return lost_lease(run, epoch, now) or _without_holder(", "return _without_holder(",
        ("unit/life/test_react.py",)),
    Mutant(
        "Report tokens of the previous key are rejected",
        "life/report_token", "ReportTokens.fence_of",
        "for key in self.keys)", "for key in (self.key,))",
        ("unit/life/test_report_token.py",)),
    # ── schedule, audit ──────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A secret in a form body is not masked",
        "schedule/redaction", "_encoded",
        'yield quote_plus(part, errors="replace")', 'yield quote(part, errors="replace")',
        ("unit/schedule/test_redaction.py",)),
    Mutant(
        "A cycle in a graph is not found from its second node on",
        "schedule/graph", "_cycle_from",
        "return tuple(path[place[node] :])", "return tuple(path)",
        ("unit/schedule/test_graph.py",)),
    Mutant(
        "A replaced end of the audit chain passes the check",
        "audit", "check_end",
        "if head.hash != last.hash:", "if head.sequence != last.sequence:",
        ("unit/test_audit.py",)),
    # ── operations ───────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A worker approves the run that it claimed",
        "operations/approvals", "voter_of",
        "is_worker=principal in (run.claimed_by, run_principal(run.run_id))",
        "is_worker=principal == run_principal(run.run_id)",
        ("api/test_bypasses.py",), "whoever_works_never_decide"),
    Mutant(
        "An approver without the permission to write adds a secret to the inputs",
        "operations/deciding", "_modified",
        "caller.require(Permission.WRITE)", "pass",
        ("api/test_approvals.py",), "brings_in_no_secret"),
    Mutant(
        "A namespace may have one secret more than the limit",
        "operations/secrets", "keep",
        ">= most:", "> most:",
        ("api/test_secrets.py",), "full_namespace"),
    Mutant(
        "A namespace with schedules but no open runs is deleted without force",
        "operations/namespaces", "delete_namespace",
        "found.schedules or found.open_runs", "found.schedules and found.open_runs",
        ("api/test_namespace_removal.py",), "without_schedules"),
    Mutant(
        "An agent sees the work of a team that has its name",
        "operations/caller", "Caller.sees",
        "None if run.assignee_type == AssigneeType.TEAM else run.assignee", "run.assignee",
        ("operations/test_callers.py",)),
    Mutant(
        "An attempt to bypass an approval is not recorded",
        "operations/deciding", "_Voice.refused",
        'record_bypass(self.connection, self.caller, self.run, f"decision {self.said.decision}", self.now)', "pass",
        ("api/test_bypasses.py",), "whoever_works_never_decide"),
    # ── store ────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "Dispatchers wait for each other's candidates",
        "store/runs/claims", "_CANDIDATES_POSTGRES",
        "FOR UPDATE SKIP LOCKED", "FOR UPDATE",
        ("store/test_claims.py",), "(at_once or pass_over) and postgresql"),
    Mutant(
        "Tickers claim the same schedules",
        "store/schedules/due", "_CLAIM_POSTGRES",
        '"FOR UPDATE SKIP LOCKED"', '""',
        ("store/test_due.py",), "pass_over and postgresql"),
    Mutant(
        "An idempotency key returns the answer of another namespace",
        "store/idempotency", "recall",
        "idempotency.c.namespace == namespace, idempotency.c.key == key", "idempotency.c.key == key",
        ("store/test_idempotency.py",), "sqlite"),
    Mutant(
        "A token of another namespace can be revoked by its ID",
        "store/tokens", "_named",
        "return tokens.c.namespace == namespace, tokens.c.token_id == token_id",
        "return (tokens.c.token_id == token_id,)",
        ("store/test_tokens.py",), "sqlite"),
    Mutant(
        "A deliverer that lost its lease moves the subscription",
        "store/subscriptions/deliveries", "_held",
        "subscriptions.c.lease_epoch == row.lease_epoch,", "",
        ("api/test_subscriptions.py",), "lost_its_lease"),
    Mutant(
        "The rate quota ignores runs counted in the next minute",
        "store/quotas", "_BORN",
        "between(_MINUTE, _MINUTE + 1)", "between(_MINUTE, _MINUTE)",
        ("store/test_quotas.py",), "sqlite"),
    # ── engine ───────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A ticker that waits for the database loses its heartbeat",
        "engine/heartbeat", "ProcessHeartbeat.step",
        "await self._threads.run(lambda: ticker.beat(waits=False))", "pass",
        ("engine/test_heartbeat.py",), "sqlite"),
    Mutant(
        "A deliverer that stops forgets what it delivered",
        "engine/deliverer", "Deliverer._deliver_page",
        "await asyncio.shield(self._note(serving))", "pass",
        ("api/test_subscriptions.py",), "stops_records"),
    Mutant(
        "Runs that cannot be cleaned up hide those behind a full list",
        "engine/janitor", "_behind",
        "if len(read) == _BATCH", "if len(read) > _BATCH",
        ("engine/test_janitor.py",), "sqlite"),
    Mutant(
        "Runs are deleted before the announced time",
        "engine/retention", "RetentionLoop._may_forget_runs",
        "return now >= self._forgets_from", "return True",
        ("engine/test_retention.py",), "sqlite"),
    Mutant(
        "A crowd of one namespace delays the others",
        "engine/ticker", "Ticker._claim",
        "more=len(claims) == batch", "more=False",
        ("engine/test_ticker_turns.py",), "sqlite"),
    # ── api ──────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A reused idempotency key returns the answer of another request",
        "api/idempotency", "_again",
        "(asked.of, *asked.others)", "(earlier.request_hash,)",
        ("api/test_idempotency.py",), "belongs_to_one_request"),
    Mutant(
        "A page of another origin may write with the session of the browser",
        "api/cross_site", "is_our_page",
        "return shown and sender.source == UI", "return shown or sender.source == UI",
        ("unit/api/test_cross_site.py",)),
    Mutant(
        "The rate limit of a token allows part of a request too much",
        "api/limits", "Buckets.take",
        "enough = left >= 1", "enough = left > 0",
        ("unit/api/test_limits.py",)),
    Mutant(
        "An administrative request leaves no audit entry",
        "api/audited", "audited",
        "audit_chain.append(connection, chain, [told], now=resources.clock.now())", "pass",
        ("api/test_audit.py",), "every_act"),
    Mutant(
        "A JWT may be valid for any time",
        "api/jwts", "check_times",
        "if not 0 < expires - issued <= longest:", "if not 0 < expires - issued:",
        ("unit/api/test_jwts.py",)),
    # ── wire ─────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A row that the server could not read is shown as a row",
        "wire/answer", "is_unreadable",
        'value.get("unreadable") is True', 'value.get("unreadable") is False',
        ("api/test_damaged_rows.py",), "a_step_that_cannot_be_read"),
    Mutant(
        "Audit entries do not show the address of the caller",
        "wire/audit", "shown_entry",
        "address=deed.address", "address=None",
        ("api/test_audit.py",), "every_act or flood"),
    # ── client ───────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "The client makes one attempt too many",
        "client/exchange", "Attempts._again",
        "self.failures >= self.retries.attempts", "self.failures > self.retries.attempts",
        ("client/test_retries.py",)),
    Mutant(
        "A slash in a name is not escaped in the path",
        "client/call", "_segment",
        'safe=""', 'safe="/"',
        ("client/test_calls.py",)),
    Mutant(
        "The token of one server is sent to another",
        "client/discover", "discover",
        "and server and usual and not same_server(server, usual)", "and server and usual and False",
        ("client/test_discover.py",)),
    # ── cli ──────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A usage error has the exit code of a negative result",
        "cli/main", "_fail",
        "return _USAGE_ERROR", "return _NEGATIVE",
        ("cli/test_program.py",)),
    Mutant(
        "`horarium verify` exits with 0 despite findings",
        "cli/verify", "verify_command",
        "raise typer.Exit(1)", "raise typer.Exit(0)",
        ("cli/test_service.py",), "verify"),
    Mutant(
        "An all-day event includes the day after it",
        "cli/dates", "_span",
        "(end - start).days", "(end - start).days + 1",
        ("cli/test_calendar.py",), "a_file_lists_days"),
    # ── launchers ────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "Permission for loopback addresses covers private ones",
        "launchers/ssrf", "AddressPolicy.permits",
        "where is Range.PRIVATE and self.allow_private", "where is Range.PRIVATE and self.allow_loopback",
        ("launchers/test_ssrf.py",)),
    Mutant(
        "Redis takes the lowest priority first",
        "launchers/celery/message", "priority_at",
        'HIGHEST_PRIORITY - priority if driver == "redis" else priority', "priority",
        ("launchers/test_celery_message.py",)),
    Mutant(
        "Children of a command survive its timeout",
        "launchers/command", "_end_group",
        "_signal_group(group, signal.SIGKILL)", "pass",
        ("launchers/test_command.py",), "children"),
    Mutant(
        "A redirect counts as a delivered webhook",
        "launchers/webhook", "_delivery",
        "if 200 <= answer.status < 300:", "if 200 <= answer.status < 400:",
        ("api/test_subscriptions.py",), "growing_pauses"),
    # ── celery ───────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A full spool drops the ends of runs before their progress",
        "celery/spool_lines", "to_keep",
        "for final in (True, False):", "for final in (False, True):",
        ("worker_side/test_spool.py",), "ends_are_kept"),
    Mutant(
        "A rate-limited report is given up",
        "celery/answers", "_of_each",
        "if each.status in _REFUSED and each.status != 429:", "if each.status in _REFUSED:",
        ("worker_side/test_answers.py",)),
    # ── serve ────────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "A process accepts one connection more than its limit",
        "serve/seats", "seat_for",
        "taken < limits.most", "taken <= limits.most",
        ("unit/serve/test_seats.py",)),
    Mutant(
        "A host name that contains an allowed domain is accepted",
        "serve/hosts", "is_ours",
        "name.endswith(each) for each in hosts.names", "each in name for each in hosts.names",
        ("unit/serve/test_hosts.py",)),
    Mutant(
        "A process with another secret key starts",
        "serve/secret_key", "installation_key",
        "if theirs != mine:", "if known is None and theirs != mine:",
        ("serve/test_secret_key.py",)),
    # ── settings ─────────────────────────────────────────────────────────────────────────────────────────────────
    Mutant(
        "The settings file overrides the environment",
        "settings/loading", "load_settings",
        "{**written, **environment, **given}", "{**environment, **written, **given}",
        ("unit/test_settings.py",), "flag_wins"),
    Mutant(
        "A service behind a proxy opens loopback targets",
        "settings/loading", "as_up_takes_them",
        "settings.behind_proxy or not is_loopback(settings.host)", "not is_loopback(settings.host)",
        ("unit/test_settings.py",), "what_up_opens"),
)  # fmt: skip
