"""The routes of schedules."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request

from horarium.api import views
from horarium.api.answers import Answer
from horarium.api.bodies import Fields
from horarium.api.etags import IfMatch, etag, version_of
from horarium.api.idempotency import idempotent
from horarium.api.requests import CallerOf, Document, ResourcesOf
from horarium.errors import InvalidDefinition
from horarium.operations import lifecycles, listings, schedules
from horarium.operations.filters import LISTED, ScheduleFilter
from horarium.operations.list_errors import UnsupportedFilter
from horarium.operations.visibility import parse_query
from horarium.operations.write_result import Outcome, WriteResult
from horarium.schedule.patch import Update
from horarium.schedule.position import Status

router = APIRouter(prefix="/api/schedules", tags=["schedules"])

# `namespace` is the header's business; clients of Durable Workflow may send it here too.
_LIST_FILTERS = frozenset({"status", "workflow_type", "query", "owner", "source", "text", "label", "namespace"})
# Each is a condition of its own in the query.
_MAX_LABELS = 20
_LIST_PARAMETERS = _LIST_FILTERS | {"page_size", "next_page_token"}


@router.post("", status_code=201)
@idempotent
def create(resources: ResourcesOf, caller: CallerOf, document: Document) -> Answer:
    done = schedules.create(resources, caller, document)
    return _written(done, status_code=201)


@router.post("/upsert")
@idempotent
def upsert(resources: ResourcesOf, caller: CallerOf, document: Document) -> Answer:
    done = schedules.upsert(resources, caller, document)
    return _written(done, status_code=201 if done.outcome is Outcome.CREATED else 200)


@router.get("")
def list_schedules(
    resources: ResourcesOf,
    caller: CallerOf,
    request: Request,
    status: Annotated[str | None, Query(description="active, paused, finished or broken")] = None,
    workflow_type: str | None = None,
    query: Annotated[str | None, Query(description='such as `TaskQueue = "slow" AND tenant = 42`')] = None,
    owner: str | None = None,
    source: str | None = None,
    text: Annotated[str | None, Query(max_length=200, description="part of an id or a name")] = None,
    label: Annotated[list[str] | None, Query(description="name=value; all must fit")] = None,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> Answer:
    _check_parameters(request)
    wanted = ScheduleFilter(
        statuses=None if status is None else [_status(status)],
        workflow=workflow_type,
        owner=owner,
        source=source,
        text=text,
        labels=_labels(label or []),
        query=() if query is None else parse_query(query),
    )
    page = listings.list_schedules(resources, caller, wanted, page_size=page_size, next_page_token=next_page_token)
    rows = [views.listed(each) for each in page.schedules]
    return Answer(
        {
            "namespace": caller.namespace,
            "schedules": rows,
            "schedule_count": len(rows),
            "next_page_token": page.next_page_token,
        }
    )


@router.get("/{schedule_id}")
def describe(resources: ResourcesOf, caller: CallerOf, schedule_id: str) -> Answer:
    found = listings.describe(resources, caller, schedule_id)
    return Answer(views.described(found), headers={"ETag": etag(found.row.version)})


@router.put("/{schedule_id}")
@idempotent
def replace_parts(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, document: Document, if_match: IfMatch = None
) -> Answer:
    version = version_of(if_match)
    return _written(schedules.update(resources, caller, schedule_id, document, how=Update.PARTS, if_version=version))


@router.patch("/{schedule_id}")
@idempotent
def merge(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, document: Document, if_match: IfMatch = None
) -> Answer:
    version = version_of(if_match)
    return _written(schedules.update(resources, caller, schedule_id, document, how=Update.MERGE, if_version=version))


@router.delete("/{schedule_id}")
@idempotent
def delete(resources: ResourcesOf, caller: CallerOf, schedule_id: str, if_match: IfMatch = None) -> Answer:
    return _written(lifecycles.delete(resources, caller, schedule_id, if_version=version_of(if_match)))


@router.post("/{schedule_id}/pause")
@idempotent
def pause(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Document, if_match: IfMatch = None
) -> Answer:
    reason = note_of(body)
    return _written(lifecycles.pause(resources, caller, schedule_id, reason=reason, if_version=version_of(if_match)))


@router.post("/{schedule_id}/resume")
@idempotent
def resume(
    resources: ResourcesOf, caller: CallerOf, schedule_id: str, body: Document, if_match: IfMatch = None
) -> Answer:
    reason = note_of(body)
    return _written(lifecycles.resume(resources, caller, schedule_id, reason=reason, if_version=version_of(if_match)))


def note_of(body: dict[str, Any]) -> str | None:
    """Why, in the words of whoever asks: `note` in the Durable Workflow contract, `reason` here."""
    fields = Fields(body)
    note = fields.text("note", "reason")
    fields.check()
    return note


def _written(done: WriteResult, status_code: int = 200) -> Answer:
    return Answer(views.written(done), status_code, headers={"ETag": etag(done.version)})


def _check_parameters(request: Request) -> None:
    """A filter that nobody knows would be no filter at all, and a blank one none that anybody means."""
    given = request.query_params
    for name in given:
        if name not in _LIST_PARAMETERS:
            raise UnsupportedFilter(name[:64], f"there is no filter {name[:64]!r}")
    blank = {name: ["must not be blank"] for name, value in given.multi_items() if not value.strip()}
    if blank:
        raise InvalidDefinition(blank)


def _status(text: str) -> Status:
    found = LISTED.get(text.lower())
    if found is None:
        raise InvalidDefinition({"status": [f"must be one of {', '.join(LISTED)}"]})
    return found


def _labels(pairs: list[str]) -> dict[str, str] | None:
    split = [pair.partition("=") for pair in pairs]
    if any(not name or not equals for name, equals, _ in split):
        raise InvalidDefinition({"label": ["must be name=value"]})
    if len(pairs) > _MAX_LABELS:
        raise InvalidDefinition({"label": [f"at most {_MAX_LABELS} may be asked for at once"]})
    return {name: value for name, _, value in split} or None
