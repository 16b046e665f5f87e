"""Routes for bulk changes of schedules and runs that match a filter."""

from __future__ import annotations

from horarium.core.document.states import RunState, Status
from horarium.features.schedules import bulk
from horarium.features.schedules.change_model import (
    BulkAction,
    BulkBody,
    BulkChange,
    BulkChanges,
    BulkOutcome,
    BulkRunsBody,
    BulkStop,
    BulkStops,
    RunChoice,
    ScheduleChoice,
    StopAction,
)
from horarium.features.schedules.creation import end_text
from horarium.features.schedules.triggers import check_key
from horarium.platform.bodies import read_body
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.requests import CallerOf, Confirm, Document, ResourcesOf, same_namespace
from horarium.platform.http.responses import Reply
from horarium.platform.http.routing import OPERATE, IdempotencyKey, Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import time_of

routes = Routes("/api", tag="bulk")


@routes(
    "POST",
    "/schedules/bulk",
    needs=OPERATE,
    audited=Audited.IN_NAMESPACE,
    summary="Pause, resume, trigger, label or delete many schedules",
    body=BulkBody,
    sends={"action": "pause", "filter": {"labels": {"team": "data"}}, "reason": "the warehouse moves"},
    answer=BulkChanges,
    example=BulkChanges(
        namespace="default",
        action=BulkAction.PAUSE,
        dry_run=False,
        outcomes=(BulkChange(schedule_id="nightly-report", outcome=BulkOutcome.PAUSED, status=Status.PAUSED),),
        next_page_token=None,
    ),
    repeatable=False,  # one transaction each, so that none undoes another; what is done is left alone the second time
)
def bulk_schedules(
    resources: ResourcesOf,
    caller: CallerOf,
    body: Document,
    confirm: Confirm = False,
    idempotency_key: IdempotencyKey = None,
) -> Reply:
    """Applies to all schedules that match `filter`, at most 100 per request, each in its own transaction. An empty
    filter requires `all`.

    `delete` and `label` require the permission `write`. A repeated idempotency key triggers nothing again. Set
    `confirm` if the request would start more than 1,000 runs.
    """
    caller = caller.confirming(confirm)
    asked = read_body(BulkBody, body)
    same_namespace(caller, asked.namespace)
    check_key(idempotency_key)
    written = end_text(asked.until, asked.timezone)
    until = None if written is None else written.instant(resources.clock.now())
    wish = bulk.Bulk(asked.action, asked.labels, until, asked.reason, asked.dry_run, idempotency_key)
    outcomes, token = bulk.change_schedules(
        resources,
        caller,
        wish,
        asked.filter or ScheduleChoice(),
        everything=asked.all,
        limit=asked.limit,
        next_page_token=asked.next_page_token,
    )
    return Reply(
        BulkChanges(
            namespace=caller.namespace,
            action=asked.action,
            dry_run=asked.dry_run,
            outcomes=tuple(_changed(each) for each in outcomes),
            next_page_token=token,
            until=time_of(until),
        )
    )


@routes(
    "POST",
    "/runs/bulk",
    needs=OPERATE,
    audited=Audited.IN_NAMESPACE,
    summary="Cancel or terminate many runs",
    body=BulkRunsBody,
    sends={"action": "cancel", "filter": {"schedule_ids": ["nightly-report"]}},
    answer=BulkStops,
    example=BulkStops(
        namespace="default",
        action=StopAction.CANCEL,
        dry_run=False,
        outcomes=(
            BulkStop(
                run_id=examples.RUN_ID,
                schedule_id="nightly-report",
                outcome=BulkOutcome.CANCELLED,
                state=RunState.CANCELLED,
            ),
        ),
        next_page_token=None,
    ),
    repeatable=False,  # as above
)
def bulk_runs(resources: ResourcesOf, caller: CallerOf, body: Document) -> Reply:
    """Applies to all runs that have not ended and match `filter`, at most 100 per request."""
    asked = read_body(BulkRunsBody, body)
    same_namespace(caller, asked.namespace)
    outcomes, token = bulk.stop_runs(
        resources,
        caller,
        asked.action,
        asked.filter or RunChoice(),
        everything=asked.all,
        dry_run=asked.dry_run,
        limit=asked.limit,
        next_page_token=asked.next_page_token,
    )
    return Reply(
        BulkStops(
            namespace=caller.namespace,
            action=asked.action,
            dry_run=asked.dry_run,
            outcomes=tuple(_stopped(each) for each in outcomes),
            next_page_token=token,
        )
    )


def _changed(each: bulk.Changed) -> BulkChange:
    return BulkChange(
        schedule_id=each.schedule_id,
        outcome=each.outcome,
        status=each.status,
        run_id=None if each.run_id is None else id_text(each.run_id),
        state=each.state,
        reason=each.reason,
        message=each.message,
    )


def _stopped(each: bulk.StoppedOne) -> BulkStop:
    return BulkStop(
        run_id=each.run_id,
        schedule_id=each.schedule_id,
        outcome=each.outcome,
        state=each.state,
        reason=each.reason,
        message=each.message,
    )
