"""Every call about calendars, tokens, namespaces, the feed, the audit and the service itself, described once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from horarium.client.call import EVENTS, TEXT, Call, When, given, if_match, many, one
from horarium.client.methods import Method, Pages
from horarium.client.page import Page
from horarium.wire.agenda import Agenda, AgendaLane
from horarium.wire.audit import AuditEntry
from horarium.wire.bundles import Applied
from horarium.wire.cluster import Cluster
from horarium.wire.overview import Overview
from horarium.wire.schedules import ScheduleHealth
from horarium.wire.service import (
    Calendar,
    CalendarDeleted,
    ClusterInfo,
    FeedEntry,
    Health,
    IssuedToken,
    Liveness,
    Namespace,
    NamespaceDeleted,
    Token,
    TokenRevoked,
)
from horarium.wire.sessions import SignInLink
from horarium.wire.workspaces import WatchedSchedule

Document = Mapping[str, Any]

CALENDARS, CALENDAR = "/api/calendars", "/api/calendars/{name}"
TOKENS, TOKEN = "/api/tokens", "/api/tokens/{token_id}"
NAMESPACES, NAMESPACE = "/api/namespaces", "/api/namespaces/{namespace}"


def follow_feed(*, last_event_id: str | None = None) -> Call[FeedEntry]:
    """The feed as a stream; `parse` reads the data of one event."""
    headers = {} if last_event_id is None else {"Last-Event-ID": last_event_id}
    return Call("GET", "/api/events", one(FeedEntry), headers=headers, accept=EVENTS)


class ServiceCalls:
    @Method
    @staticmethod
    def list_calendars(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Calendar]]:
        """One's own, then the built-in ones."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", CALENDARS, many(Calendar, "calendars"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def create_calendar(document: Document | None = None, /, **fields: Any) -> Call[Calendar]:
        return Call("POST", CALENDARS, one(Calendar), body={**(document or {}), **fields})

    @Method
    @staticmethod
    def get_calendar(name: str, *, year: int | None = None) -> Call[Calendar]:
        """Also a built-in one, or a rule such as `holidays:US`; with `year`, its days in that year."""
        return Call("GET", CALENDAR, one(Calendar), {"name": name}, query={"year": year})

    @Method
    @staticmethod
    def update_calendar(
        name: str, changes: Document | None = None, /, *, if_version: int | None = None, **fields: Any
    ) -> Call[Calendar]:
        """What is not said stays."""
        body = {**(changes or {}), **fields}
        return Call("PUT", CALENDAR, one(Calendar), {"name": name}, body=body, headers=if_match(if_version))

    @Method
    @staticmethod
    def delete_calendar(name: str) -> Call[CalendarDeleted]:
        """Raises CalendarInUse while a schedule names it."""
        return Call("DELETE", CALENDAR, one(CalendarDeleted), {"name": name})

    @Method
    @staticmethod
    def clone_calendar(name: str, new_name: str) -> Call[Calendar]:
        """How one begins to change a built-in calendar."""
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
        """Make schedules, and what they need, what a bundle says, all or none; `dry_run` only tells what it would do.

        `prune` deletes what the bundle has brought before and has no more; `adopt` takes over what others made. Where
        more than 1,000 schedules would fire within a minute, `confirm` is needed.
        """
        body = {**document, **given(bundle=bundle, dry_run=dry_run, prune=prune, adopt=adopt)}
        return Call("POST", "/api/apply", one(Applied), query={"confirm": confirm}, body=body, key=idempotency_key)

    @Method
    @staticmethod
    def list_tokens() -> Call[Page[Token]]:
        """Without their secrets, which nobody has any more."""
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
        """For the client's namespace. The secret is in the answer, and nowhere else.

        The subject of an agent is its agent id. `queues` are those that it may claim from; None = all.
        """
        told = given(subject=subject, expires_at=expires_at, queues=None if queues is None else list(queues))
        body = {"name": name, "role": role, **told}
        # The answer is a secret, which a server must not keep for a repetition: it is not repeated.
        return Call("POST", TOKENS, one(IssuedToken), body=body, idempotent=False)

    @Method
    @staticmethod
    def make_sign_in_link() -> Call[SignInLink]:
        """A code that signs a browser in as whoever asks, within a minute: `/ui/#token=<code>` below the server."""
        return Call("POST", "/api/session/link", one(SignInLink), idempotent=False)

    @Method
    @staticmethod
    def rotate_token(token_id: str, *, overlap_seconds: int | None = None) -> Call[IssuedToken]:
        """A new secret, which is in the answer and nowhere else; the old one is good for that long, or for a day."""
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
        """With all that belongs to it; live schedules and open runs only with `force`."""
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
        """What is given changes; None = no limit, or for ever, and `"default"` = as the settings say."""
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
        """What all schedules of the namespace do in a window of time, decided or predicted; the next 24 hours.

        Or some of them: by id, by part of an id or a name, by labels, by status; `reason`: what was skipped for it.
        Days and local times are those of `timezone`.
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
        """Counts of all occurrences by schedule and bucket, in the order of schedule ids.

        Single rows are in `raw`, at most `limit` of each lane. At most 1,000 buckets.
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
        """Count what needs attention, with `namespace="*"` in all namespaces; each count is the length of a list."""
        return Call("GET", "/api/overview", one(Overview), query={"namespace": namespace})

    @Method
    @staticmethod
    def get_feed(
        *, after: str | None = None, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[FeedEntry]]:
        """What happened in the namespace, newest first; after the entry with the id `after`, oldest first."""
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
        """Who did what: administrative acts and refusals, newest first, or with `order="oldest"` oldest first."""
        query = {"namespace": namespace, "act": act, "principal": principal, "since": since, "until": until,
                 "order": order, "page_size": page_size, "next_page_token": next_page_token}  # fmt: skip
        return Call("GET", "/api/audit", many(AuditEntry, "entries"), query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def cluster_info() -> Call[ClusterInfo]:
        """Which server this is, and what it speaks."""
        return Call("GET", "/api/cluster/info", one(ClusterInfo))

    @Method
    @staticmethod
    def get_cluster() -> Call[Cluster]:
        """All processes on the database, with their versions, and what waits; for admins of the default namespace."""
        return Call("GET", "/api/cluster/processes", one(Cluster))

    @Method
    @staticmethod
    def health() -> Call[Health]:
        return Call("GET", "/healthz", one(Health), also=(503,))

    @Method
    @staticmethod
    def readiness() -> Call[Health]:
        """Whether the service does its work; one that does not is an answer, not an error."""
        return Call("GET", "/readyz", one(Health), also=(503,))

    @Method
    @staticmethod
    def liveness() -> Call[Health]:
        return Call("GET", "/livez", one(Health))

    @Method
    @staticmethod
    def metrics() -> Call[str]:
        """In the text format of Prometheus."""
        return Call("GET", "/metrics", str, accept=TEXT)

    @Method
    @staticmethod
    def engine_liveness() -> Call[Liveness]:
        """Which loops complete their steps, in all processes; a ticker that is stuck is an answer, not an error."""
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
        """List the health of schedules, with `namespace="*"` of all namespaces; `unwell`: those that need attention."""
        query = {"unwell": unwell, "namespace": namespace, "page_size": page_size, "next_page_token": next_page_token}
        return Call(
            "GET", "/api/health/schedules", many(ScheduleHealth, "schedules"), query=query, cursor="next_page_token"
        )

    @Method
    @staticmethod
    def admin_schedule_health(*, after: str | None = None) -> Call[Page[WatchedSchedule]]:
        """How each schedule of the namespace is doing, 1000 in one answer; `after` is the id of the last one seen."""
        return Call("GET", "/admin/schedules/health", many(WatchedSchedule), query={"after": after})

    iter_audit = Pages(list_audit)
    iter_calendars = Pages(list_calendars)
    iter_feed = Pages(get_feed)
    iter_schedule_health = Pages(list_schedule_health)
