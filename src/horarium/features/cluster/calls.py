"""Calls about the feed, the audit log, the agenda and the service."""

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
    ClusterInfo,
    FeedEntry,
    Health,
    Liveness,
    SignInLink,
)
from horarium.platform.client.call import EVENTS, TEXT, Call, Method, Page, Pages, When, given, many, one

Document = Mapping[str, Any]


def follow_feed(*, last_event_id: str | None = None) -> Call[FeedEntry]:
    """Stream the feed. `parse` reads the data of one event."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    return Call("GET", "/api/events", one(FeedEntry), headers=headers, accept=EVENTS)


class ServiceCalls:
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
    def make_sign_in_link() -> Call[SignInLink]:
        """Create a code that signs a browser in as the caller, once, within a minute: open `/ui/#token=<code>`."""
        return Call("POST", "/api/session/link", one(SignInLink), idempotent=False)

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
    iter_feed = Pages(get_feed)
    iter_schedule_health = Pages(list_schedule_health)
