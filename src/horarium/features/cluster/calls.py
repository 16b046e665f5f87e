"""Calls about calendars, tokens, namespaces, the feed, the audit log and the service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from horarium.features.agents.workspace_model import WatchedSchedule
from horarium.features.audit.model import AuditEntry
from horarium.features.bundles.model import Applied
from horarium.features.cluster.model import Cluster, Overview
from horarium.features.forecast.model import Agenda, AgendaLane
from horarium.features.schedules.model import ScheduleHealth
from horarium.features.tenants.model import (
    Calendar,
    CalendarDeleted,
    ClusterInfo,
    FeedEntry,
    Health,
    IssuedToken,
    Liveness,
    Namespace,
    NamespaceDeleted,
    SignInLink,
    Token,
    TokenRevoked,
)
from horarium.platform.client.call import EVENTS, TEXT, Call, Method, Page, Pages, When, given, if_match, many, one

Document = Mapping[str, Any]

CALENDARS, CALENDAR = "/api/calendars", "/api/calendars/{name}"
TOKENS, TOKEN = "/api/tokens", "/api/tokens/{token_id}"
NAMESPACES, NAMESPACE = "/api/namespaces", "/api/namespaces/{namespace}"


def follow_feed(*, last_event_id: str | None = None) -> Call[FeedEntry]:
    """Stream the feed. `parse` reads the data of one event."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    return Call("GET", "/api/events", one(FeedEntry), headers=headers, accept=EVENTS)


class ServiceCalls:
    @Method
    @staticmethod
    def list_calendars(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Calendar]]:
        """List custom calendars, then built-in ones."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", CALENDARS, many(Calendar, "calendars"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_calendar(document: Document | None = None, /, **fields: Any) -> Call[Calendar]:
        return Call("POST", CALENDARS, one(Calendar), body={**(document or {}), **fields})

    @Method
    @staticmethod
    def get_calendar(name: str, *, year: int | None = None) -> Call[Calendar]:
        """Show a custom or built-in calendar, or a rule such as `holidays:US`; with `year`, its days of that year."""
        return Call("GET", CALENDAR, one(Calendar), {"name": name}, query={"year": year})

    @Method
    @staticmethod
    def update_calendar(
        name: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Calendar]:
        """Update a calendar. Omitted fields are kept."""
        body = {**(changes or {}), **fields}
        return Call("PUT", CALENDAR, one(Calendar), {"name": name}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def delete_calendar(name: str) -> Call[CalendarDeleted]:
        """Delete a calendar. Raises CalendarInUse while a schedule uses it."""
        return Call("DELETE", CALENDAR, one(CalendarDeleted), {"name": name})

    @Method
    @staticmethod
    def clone_calendar(name: str, new_name: str) -> Call[Calendar]:
        """Copy a calendar, for example to change a built-in one."""
        return Call("POST", f"{CALENDAR}/clone", one(Calendar), {"name": name}, body={"name": new_name})

    @Method
    @staticmethod
    def apply(
        document: Document,
        /,
        *,
        bundle: str | None = None,
        dry_run: bool | None = None,
        prune: bool | None = None,
        adopt: bool | None = None,
        confirm: bool | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Applied]:
        """Apply a bundle: all documents or none. `dry_run` only returns the plan.

        `prune` deletes what an earlier version of the bundle created and this version omits. `adopt` takes over
        documents of others. Set `confirm` if more than 1,000 schedules would fire within a minute.
        """
        body = {**document, **given(bundle=bundle, dry_run=dry_run, prune=prune, adopt=adopt)}
        return Call("POST", "/api/apply", one(Applied), query={"confirm": confirm}, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def list_tokens() -> Call[Page[Token]]:
        """List tokens, without secrets."""
        return Call("GET", TOKENS, many(Token, "tokens"))

    @Method
    @staticmethod
    def issue_token(
        name: str,
        role: str,
        *,
        subject: str | None = None,
        expires_at: When | None = None,
        queues: Sequence[str] | None = None,
    ) -> Call[IssuedToken]:
        """Create a token in the namespace of the client. The secret is returned only once.

        The subject of a token for an agent is its agent ID. `queues`: queues it may claim from (None = all).
        """
        told = given(subject=subject, expires_at=expires_at, queues=None if queues is None else list(queues))
        body = {"name": name, "role": role, **told}
        # The answer is a secret, which a server must not keep for a repetition: it is not repeated.
        return Call("POST", TOKENS, one(IssuedToken), body=body, idempotent=False)

    @Method
    @staticmethod
    def make_sign_in_link() -> Call[SignInLink]:
        """Create a code that signs a browser in as the caller, once, within a minute: open `/ui/#token=<code>`."""
        return Call("POST", "/api/session/link", one(SignInLink), idempotent=False)

    @Method
    @staticmethod
    def rotate_token(token_id: str, *, overlap_seconds: int | None = None) -> Call[IssuedToken]:
        """Create a new secret, which is returned only once. The old one stays valid for `overlap_seconds` (default
        86400).
        """
        body = given(overlap_seconds=overlap_seconds)
        return Call("POST", f"{TOKEN}/rotate", one(IssuedToken), {"token_id": token_id}, body=body, idempotent=False)

    @Method
    @staticmethod
    def revoke_token(token_id: str) -> Call[TokenRevoked]:
        return Call("DELETE", TOKEN, one(TokenRevoked), {"token_id": token_id})

    @Method
    @staticmethod
    def list_namespaces() -> Call[Page[Namespace]]:
        return Call("GET", NAMESPACES, many(Namespace, "namespaces"))

    @Method
    @staticmethod
    def create_namespace(namespace: str, *, description: str | None = None) -> Call[Namespace]:
        body = {"namespace": namespace, **given(description=description)}
        return Call("POST", NAMESPACES, one(Namespace), body=body)

    @Method
    @staticmethod
    def delete_namespace(
        namespace: str, *, force: bool | None = None, dry_run: bool | None = None
    ) -> Call[NamespaceDeleted]:
        """Delete a namespace with all its data. Live schedules and open runs require `force`."""
        query = {"force": force, "dry_run": dry_run}
        return Call("DELETE", NAMESPACE, one(NamespaceDeleted), {"namespace": namespace}, query=query)

    @Method
    @staticmethod
    def get_namespace(namespace: str) -> Call[Namespace]:
        return Call("GET", NAMESPACE, one(Namespace), {"namespace": namespace})

    @Method
    @staticmethod
    def change_namespace(
        namespace: str,
        *,
        description: str | None = None,
        quotas: Mapping[str, int | str | None] | None = None,
        retention: Mapping[str, int | str | None] | None = None,
    ) -> Call[Namespace]:
        """Update a namespace. Omitted fields are kept. None = no limit, or kept forever. `"default"` = the value of the
        settings.
        """
        body = given(description=description, quotas=quotas, retention=retention)
        return Call("PATCH", NAMESPACE, one(Namespace), {"namespace": namespace}, body=body)

    @Method
    @staticmethod
    def get_agenda(
        *,
        start: When | None = None,
        end: When | None = None,
        timezone: str | None = None,
        limit: int | None = None,
        bucket_seconds: int | None = None,
        schedule_id: str | Sequence[str] | None = None,
        text: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: str | None = None,
        reason: str | None = None,
    ) -> Call[Agenda]:
        """List the occurrences of all schedules in a time window, decided or predicted (default: the next 24 hours).

        Filters: IDs, part of an ID or name, labels, status, `reason` of a skip. Days and local times are read in
        `timezone`.
        """
        query = {
            "from": start,
            "to": end,
            "timezone": timezone,
            "limit": limit,
            "bucket_seconds": bucket_seconds,
            "schedule_id": schedule_id,
            "text": text,
            "label": labels,
            "status": status,
            "reason": reason,
        }
        return Call("GET", "/api/agenda", one(Agenda), query=query)

    @Method
    @staticmethod
    def list_agenda_lanes(
        *,
        start: When,
        end: When,
        bucket_seconds: int,
        timezone: str | None = None,
        limit: int | None = None,
        lane_limit: int | None = None,
        schedule_id: str | Sequence[str] | None = None,
        text: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: str | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[AgendaLane]]:
        """Count all occurrences by schedule and bucket, sorted by schedule ID. At most 1,000 buckets.

        Rows are in `raw`, at most `limit` per lane.
        """
        query = {
            "lanes": True,
            "from": start,
            "to": end,
            "bucket_seconds": bucket_seconds,
            "timezone": timezone,
            "limit": limit,
            "lane_limit": lane_limit,
            "schedule_id": schedule_id,
            "text": text,
            "label": labels,
            "status": status,
            "next_page_token": next_page_token,
        }
        return Call("GET", "/api/agenda", many(AgendaLane, "lanes"), query=query, cursor="next_page_token")

    iter_agenda_lanes = Pages(list_agenda_lanes)

    @Method
    @staticmethod
    def get_overview(*, namespace: str | None = None) -> Call[Overview]:
        """Count the items that need attention; with `namespace="*"`, in all namespaces."""
        return Call("GET", "/api/overview", one(Overview), query={"namespace": namespace})

    @Method
    @staticmethod
    def get_feed(
        *, after: str | None = None, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[FeedEntry]]:
        """List the events of the namespace, newest first; with `after`, those after this entry, oldest first."""
        query = {"after": after, "page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", "/api/feed", many(FeedEntry, "entries"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def list_audit(
        *,
        namespace: str | None = None,
        act: str | None = None,
        principal: str | None = None,
        since: When | None = None,
        until: When | None = None,
        order: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[AuditEntry]]:
        """List administrative actions and rejected requests, newest first, or with `order="oldest"` oldest first."""
        query = {"namespace": namespace, "act": act, "principal": principal, "since": since, "until": until,
                 "order": order, "page_size": page_size, "next_page_token": next_page_token}  # fmt: skip
        return Call("GET", "/api/audit", many(AuditEntry, "entries"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def cluster_info() -> Call[ClusterInfo]:
        """Show the server and its protocol versions."""
        return Call("GET", "/api/cluster/info", one(ClusterInfo))

    @Method
    @staticmethod
    def get_cluster() -> Call[Cluster]:
        """List the processes on the database and the queue depths. Requires an admin of the default namespace."""
        return Call("GET", "/api/cluster/processes", one(Cluster))

    @Method
    @staticmethod
    def health() -> Call[Health]:
        return Call("GET", "/healthz", one(Health), also=(503,))

    @Method
    @staticmethod
    def readiness() -> Call[Health]:
        """Check whether the service is ready. A service that is not ready is a result, not an error."""
        return Call("GET", "/readyz", one(Health), also=(503,))

    @Method
    @staticmethod
    def liveness() -> Call[Health]:
        return Call("GET", "/livez", one(Health))

    @Method
    @staticmethod
    def metrics() -> Call[str]:
        """Show the metrics in the Prometheus text format."""
        return Call("GET", "/metrics", str, accept=TEXT)

    @Method
    @staticmethod
    def engine_liveness() -> Call[Liveness]:
        """Show the liveness of the loops of all processes. A stuck ticker is a result, not an error."""
        return Call("GET", "/admin/liveness", one(Liveness), also=(503,))

    @Method
    @staticmethod
    def list_schedule_health(
        *,
        unwell: bool | None = None,
        namespace: str | None = None,
        page_size: int | None = None,
        next_page_token: str | None = None,
    ) -> Call[Page[ScheduleHealth]]:
        """List the health of schedules; with `namespace="*"`, of all namespaces. `unwell`: only those that need
        attention.
        """
        query = {"unwell": unwell, "namespace": namespace, "page_size": page_size, "next_page_token": next_page_token}
        return Call(
            "GET", "/api/health/schedules", many(ScheduleHealth, "schedules"), query=query, cursor="next_page_token"
        )

    @Method
    @staticmethod
    def admin_schedule_health(*, after: str | None = None) -> Call[Page[WatchedSchedule]]:
        """List the health of all schedules of the namespace, 1,000 per page. `after`: ID of the last schedule of the
        previous page.
        """
        return Call("GET", "/admin/schedules/health", many(WatchedSchedule), query={"after": after})

    iter_audit = Pages(list_audit)
    iter_calendars = Pages(list_calendars)
    iter_feed = Pages(get_feed)
    iter_schedule_health = Pages(list_schedule_health)
