"""The routes of schedules."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request

from horarium.core.document.canonical import UpdateMode
from horarium.core.document.states import Status
from horarium.errors import InvalidDefinition
from horarium.features.schedules import lifecycle, lists, service, views
from horarium.features.schedules.creation import ScheduleChange, end_text
from horarium.features.schedules.filters import ScheduleFilter, UnsupportedFilter, parse_query
from horarium.features.schedules.health_rows import SIGNED
from horarium.features.schedules.model import Schedule, ScheduleList, WriteResult
from horarium.features.schedules.views import assignee_type_of, check_texts, health_of, labels_of, status_of
from horarium.platform.bodies import NoteBody, PauseScheduleBody, read_body
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.limits import readable, within_bytes
from horarium.platform.http.requests import CallerOf, Confirm, Document, ResourcesOf, same_namespace
from horarium.platform.http.responses import IfMatch, Reply, etag, version_of
from horarium.platform.http.routing import OPERATE, READ, WRITE, Routes, ScheduleDocument
from horarium.platform.wire import WriteOutcome

routes = Routes("/api/schedules", tag="schedules")
# Where the monitoring pages of Durable Workflow read.
waterline = Routes("/waterline/api/v2/schedules", tag="waterline")

# `namespace` is the header's business; clients of Durable Workflow may send it here too.
_LIST_FILTERS = frozenset(
    {"status", "workflow_type", "workflow_id", "query", "owner", "source", "bundle", "text", "label", "namespace"}
) | {"health", "calendar", "assignee", "assignee_type"}
_LIST_PARAMETERS = _LIST_FILTERS | {"page_size", "next_page_token", "include_deleted", "include"}
RECENT = "recent"

_STATUSES = {status.value: status for status in Status}
IncludeDeleted = Annotated[bool, Query(description="Include deleted schedules, with the status `deleted`.")]


@routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.NAMING_OWNER,
    summary="Create a schedule",
    body=ScheduleDocument,
    sends=examples.SCHEDULE,
    answer=WriteResult,
    status=201,
    example=examples.CREATED,
    warns=True,
)
def create_schedule(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    done = service.create(resources, caller, document)
    return write_reply(done, status_code=201)


@routes(
    "POST",
    "/upsert",
    needs=WRITE,
    audited=Audited.NAMING_OWNER,
    summary="Create a schedule or replace its definition",
    body=ScheduleDocument,
    sends=examples.SCHEDULE,
    answer=WriteResult,
    also=(201,),
    example=examples.UPDATED,
    warns=True,
)
def upsert_schedule(resources: ResourcesOf, caller: CallerOf, document: Document, confirm: Confirm = False) -> Reply:
    """Identified by `schedule_id`, or without an ID by its content. An equal definition changes nothing."""
    done = service.upsert(resources, caller.confirming(confirm), document)
    return write_reply(done, status_code=201 if done.outcome is WriteOutcome.CREATED else 200)


_LIST: dict[str, Any] = {
    "needs": READ,
    "summary": "List schedules",
    "answer": ScheduleList,
    "example": ScheduleList(
        namespace="default", schedules=(examples.DESCRIBED,), schedule_count=1, next_page_token=None
    ),
}


@routes("GET", "", **_LIST)
@waterline("GET", "", name="waterline_list_schedules", **_LIST)
def list_schedules(
    resources: ResourcesOf,
    caller: CallerOf,
    request: Request,
    status: Annotated[str | None, Query(description=f"Schedule status: {', '.join(_STATUSES)}.")] = None,
    workflow_type: str | None = None,
    workflow_id: Annotated[str | None, Query(description="ID of a stored workflow. Same as workflow_type.")] = None,
    query: Annotated[
        str | None, Query(description='Filter expression, such as `TaskQueue = "slow" AND tenant = 42`.')
    ] = None,
    owner: str | None = None,
    source: str | None = None,
    bundle: Annotated[str | None, Query(description="Bundle that created the schedule.")] = None,
    text: Annotated[
        str | None, Query(max_length=200, description="Only schedules whose ID or name contains this text.")
    ] = None,
    label: Annotated[
        list[str] | None, Query(description="Label filter as name=value. All given labels must match.")
    ] = None,
    health: Annotated[str | None, Query(description=f"Health status: {', '.join(SIGNED)}.")] = None,
    calendar: Annotated[
        str | None, Query(max_length=256, description="Name of a calendar that the schedule uses.")
    ] = None,
    assignee: Annotated[str | None, Query(max_length=256, description="ID of the assigned agent or team.")] = None,
    assignee_type: Annotated[str | None, Query(description="Type of the assignee: agent or team.")] = None,
    include_deleted: IncludeDeleted = False,
    include: Annotated[str | None, Query(description="`recent` adds the last 30 occurrences of each schedule.")] = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> Reply:
    """Newest first. With the filters health, calendar or assignee, a page may be short and still have a next page."""
    _check_parameters(request)
    if include not in (None, RECENT):
        raise InvalidDefinition({"include": [f"must be {RECENT}"]})
    wanted_status = None if status is None else status_of(status, _STATUSES)
    with_deleted = include_deleted or wanted_status is Status.DELETED
    if with_deleted and (label or query):  # attributes end with their schedule: the list would silently be short
        field = "include_deleted" if include_deleted else "status"
        raise UnsupportedFilter(
            field, "cannot be combined with label or query: deleted schedules have no labels or search attributes"
        )
    wanted = ScheduleFilter(
        statuses=None if wanted_status is None else [wanted_status],
        workflow=workflow_id or workflow_type,
        owner=owner,
        source=source,
        bundle=bundle,
        text=text,
        labels=labels_of(label or []),
        query=() if query is None else parse_query(query),
        include_deleted=with_deleted,
        health=None if health is None else health_of(health),
        calendar=calendar,
        assignee=assignee,
        assignee_type=None if assignee_type is None else assignee_type_of(assignee_type),
    )
    page, shown = within_bytes(
        page_size,
        lambda most: lists.list_schedules(
            resources,
            caller,
            wanted,
            page_size=most,
            next_page_token=next_page_token,
            with_recent=include == RECENT,
        ),
        lambda page: readable(
            resources,
            "schedule",
            page.schedules,
            lambda each: views.listed(each, resources),
            lambda each: each.row.schedule_id,
        ),
    )
    return Reply(
        ScheduleList(
            namespace=caller.namespace,
            schedules=shown,
            schedule_count=len(shown),
            next_page_token=page.next_page_token,
        )
    )


_DESCRIBE: dict[str, Any] = {
    "needs": READ,
    "summary": "Show a schedule",
    "answer": Schedule,
    "example": examples.DESCRIBED,
}


@routes("GET", "/{schedule_id}", **_DESCRIBE)
@waterline("GET", "/{schedule_id}", name="waterline_describe_schedule", **_DESCRIBE)
def describe_schedule(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, include_deleted: IncludeDeleted = False
) -> Reply:
    """Includes its next fire times, newest runs and buffered runs."""
    found = lists.describe(resources, caller, schedule_id, include_deleted=include_deleted)
    return Reply(views.described(found, resources), headers={"ETag": etag(found.row.version)})


@routes(
    "PUT",
    "/{schedule_id}",
    needs=WRITE,
    audited=Audited.NAMING_OWNER,
    summary="Update a schedule",
    body=ScheduleDocument,
    sends={"spec": {"cron_expressions": ["0 3 * * *"], "timezone": "Europe/Istanbul"}},
    answer=WriteResult,
    example=examples.UPDATED,
    warns=True,
)
def update_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    document: Document,
    confirm: Confirm = False,
    whole: Annotated[bool, Query(description="Replace the whole definition: remove what the document omits.")] = False,
    if_match: IfMatch = None,
) -> Reply:
    """Given parts replace the old ones, other parts are kept, and an action is merged key by key. With `whole`, omitted
    parts are removed, except the note, source and pause.
    """
    meant, version = caller.confirming(confirm), version_of(if_match)
    how = UpdateMode.WHOLE if whole else UpdateMode.PARTS
    done = service.update(resources, meant, schedule_id, document, how=how, if_version=version)
    return write_reply(done)


@routes(
    "PATCH",
    "/{schedule_id}",
    needs=WRITE,
    audited=Audited.NAMING_OWNER,
    summary="Merge changes into a schedule",
    body=ScheduleDocument,
    sends={"note": "every night at three"},
    answer=WriteResult,
    example=examples.UPDATED,
    warns=True,
)
def patch_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    document: Document,
    confirm: Confirm = False,
    if_match: IfMatch = None,
) -> Reply:
    """JSON merge patch (RFC 7396): objects are merged, null clears a field."""
    meant, version = caller.confirming(confirm), version_of(if_match)
    done = service.update(resources, meant, schedule_id, document, how=UpdateMode.MERGE, if_version=version)
    return write_reply(done)


@routes(
    "DELETE",
    "/{schedule_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete a schedule",
    answer=WriteResult,
    example=examples.DELETED,
)
def delete_schedule(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Reply:
    """Cancels runs that have not started. History stays available."""
    return write_reply(lifecycle.delete(resources, caller, schedule_id, if_version=version_of(if_match)))


@routes(
    "POST",
    "/{schedule_id}/pause",
    needs=OPERATE,
    summary="Pause a schedule",
    body=PauseScheduleBody,
    sends={"reason": "maintenance"},
    answer=WriteResult,
    example=examples.PAUSED,
)
def pause_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    body: Document,
    confirm: Confirm = False,
    if_match: IfMatch = None,
) -> Reply:
    """Stops firing until the schedule is resumed, or until `until`. Active runs continue. A new pause replaces the
    current one. Set `confirm` if the end of the pause would start more than 1,000 buffered runs.
    """
    asked, version = read_body(PauseScheduleBody, body), version_of(if_match)
    same_namespace(caller, asked.namespace)
    until = end_text(asked.until, asked.timezone)
    meant = caller.confirming(confirm)
    done = lifecycle.pause(
        resources, meant, schedule_id, reason=asked.reason, note=asked.note, until=until, if_version=version
    )
    return write_reply(done)


@routes(
    "POST",
    "/{schedule_id}/resume",
    needs=OPERATE,
    summary="Resume a schedule",
    body=NoteBody,
    sends={"reason": "done"},
    answer=WriteResult,
    example=examples.RESUMED,
)
def resume_schedule(
    resources: ResourcesOf,
    caller: CallerOf,
    schedule_id: str,
    body: Document,
    confirm: Confirm = False,
    if_match: IfMatch = None,
) -> Reply:
    """Occurrences missed while paused do not run. Buffered runs are released."""
    asked, version = read_body(NoteBody, body), version_of(if_match)
    same_namespace(caller, asked.namespace)
    meant = caller.confirming(confirm)
    done = lifecycle.resume(resources, meant, schedule_id, reason=asked.reason, note=asked.note, if_version=version)
    return write_reply(done)


def write_reply(done: ScheduleChange, status_code: int = 200) -> Reply:
    return Reply(views.write_result(done), status_code, headers={"ETag": etag(done.version)})


def _check_parameters(request: Request) -> None:
    """A filter that nobody knows would be no filter at all, and a blank one none that anybody means."""
    given = request.query_params
    for name in given:
        if name not in _LIST_PARAMETERS:
            allowed = ", ".join(sorted(_LIST_PARAMETERS))
            raise UnsupportedFilter(name[:64], f"unknown filter {name[:64]!r}; allowed: {allowed}")
    check_texts({name: given.getlist(name) for name in given})
