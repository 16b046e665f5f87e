"""Routes of subscriptions: create, test, and resend dead letters."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
from fastapi import Query
from starlette.concurrency import run_in_threadpool

from horarium.core.document.json_values import damage_of, known
from horarium.features.history.entry_rows import cursor_text
from horarium.features.webhooks import delivery_rows, service
from horarium.features.webhooks.model import (
    DeadLetter,
    DeadLetterList,
    RedeliverBody,
    Redelivered,
    Subscription,
    SubscriptionBody,
    SubscriptionChange,
    SubscriptionDeleted,
    SubscriptionList,
    SubscriptionTested,
)
from horarium.features.webhooks.operations import SubscriptionOperations
from horarium.features.webhooks.service import StoredSubscription
from horarium.instant import to_datetime
from horarium.launchers.webhook import Delivered
from horarium.platform.bodies import read_body
from horarium.platform.http import examples
from horarium.platform.http.audited import Audited
from horarium.platform.http.limits import readable, within_bytes
from horarium.platform.http.requests import CallerOf, Document, ListCallerOf, ResourcesOf
from horarium.platform.http.responses import IfMatch, Reply, etag, version_of
from horarium.platform.http.routing import Routes
from horarium.platform.ids import id_text
from horarium.platform.wire import RedeliverOutcome, WriteOutcome, time_of

routes = Routes()


@routes.implements(
    SubscriptionOperations.list_subscriptions,
    example=SubscriptionList(subscriptions=(examples.SUBSCRIPTION,), next_page_token=None),
)
def list_subscriptions(
    resources: ResourcesOf,
    caller: ListCallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=512)] = None,
) -> Reply:
    """Sorted by name. Returns all subscriptions of the namespace unless `page_size` is given; with `namespace=*`, 50
    per page.
    """
    page = service.list_subscriptions(resources, caller, page_size=page_size, next_page_token=next_page_token)
    rows = readable(resources, "subscription", page.subscriptions, _shown, lambda each: each.row.subscription_id)
    shown: Any = tuple(rows)
    return Reply(SubscriptionList(subscriptions=shown, next_page_token=page.next_page_token))


@routes.implements(
    SubscriptionOperations.create_subscription,
    audited=Audited.IN_NAMESPACE,
    sends=examples.SUBSCRIBED,
    example=examples.SUBSCRIPTION,
    warns=True,
)
def create_subscription(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    """Receives events from now on."""
    asked = read_body(SubscriptionBody, document)
    kept = service.create(
        resources,
        caller,
        kinds=asked.kinds,
        url=asked.url,
        secret=asked.secret,
        name=asked.name,
        narrowed=asked.filter,
    )
    return _reply(kept, 201)


@routes.implements(SubscriptionOperations.get_subscription, example=examples.SUBSCRIPTION)
def get_subscription(resources: ResourcesOf, caller: CallerOf, subscription_id: str) -> Reply:
    """By ID or name."""
    return _reply(service.get(resources, caller, subscription_id))


@routes.implements(
    SubscriptionOperations.update_subscription,
    audited=Audited.IN_NAMESPACE,
    sends={"kinds": ["run_finished"]},
    example=examples.SUBSCRIPTION,
    warns=True,
)
def update_subscription(
    resources: ResourcesOf, caller: CallerOf, subscription_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Omitted fields and the position in the feed are kept."""
    asked = msgspec.structs.asdict(read_body(SubscriptionChange, document))
    changes = {name: value for name, value in asked.items() if value is not None}
    kept = service.update(resources, caller, subscription_id, changes, if_version=version_of(if_match))
    return _reply(kept)


@routes.implements(
    SubscriptionOperations.delete_subscription,
    audited=Audited.IN_NAMESPACE,
    example=SubscriptionDeleted(subscription_id=examples.UID, name="failures", outcome=WriteOutcome.DELETED),
)
def delete_subscription(resources: ResourcesOf, caller: CallerOf, subscription_id: str) -> Reply:
    """Also deletes its dead letters."""
    row = service.delete(resources, caller, subscription_id)
    gone = id_text(row.subscription_id)
    return Reply(SubscriptionDeleted(subscription_id=gone, name=row.name, outcome=WriteOutcome.DELETED))


@routes.implements(
    SubscriptionOperations.test_subscription,
    example=SubscriptionTested(subscription_id=examples.UID, delivered=True, status=204, error=None),
)
async def test_subscription(resources: ResourcesOf, caller: CallerOf, subscription_id: str) -> Reply:
    """Sends one message immediately and returns the response of the receiver."""
    row, message = await run_in_threadpool(service.test_message, resources, caller, subscription_id)
    outcome = await service.send_test(resources, message)
    delivered = isinstance(outcome, Delivered)
    return Reply(
        SubscriptionTested(
            subscription_id=id_text(row.subscription_id),
            delivered=delivered,
            status=outcome.status,
            error=None if isinstance(outcome, Delivered) else outcome.error,
        )
    )


@routes.implements(
    SubscriptionOperations.list_dead_letters,
    example=DeadLetterList(dead_letters=(examples.DEAD_LETTER,), next_page_token=None),
)
def list_dead_letters(
    resources: ResourcesOf,
    caller: CallerOf,
    subscription_id: str,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=64)] = None,
) -> Reply:
    """Newest first. The newest 1,000 are kept."""
    page, letters = within_bytes(
        page_size,
        lambda most: service.list_dead_letters(
            resources, caller, subscription_id, page_size=most, next_page_token=next_page_token
        ),
        lambda page: readable(resources, "dead letter", page.letters, _letter, lambda each: each.dead_letter_id),
    )
    return Reply(DeadLetterList(dead_letters=letters, next_page_token=page.next_page_token))


@routes.implements(
    SubscriptionOperations.redeliver_dead_letters,
    audited=Audited.IN_NAMESPACE,
    sends={},
    example=Redelivered(subscription_id=examples.UID, outcome=RedeliverOutcome.QUEUED, count=3),
)
def redeliver_dead_letters(resources: ResourcesOf, caller: CallerOf, subscription_id: str, document: Document) -> Reply:
    """Sends each message once, soon. Delivered messages are removed from the list."""
    asked = read_body(RedeliverBody, document)
    row, count = service.redeliver(resources, caller, subscription_id, asked.ids)
    outcome = RedeliverOutcome.QUEUED if count else RedeliverOutcome.UNCHANGED
    return Reply(Redelivered(subscription_id=id_text(row.subscription_id), outcome=outcome, count=count))


def _reply(kept: StoredSubscription, status_code: int = 200) -> Reply:
    return Reply(_shown(kept), status_code, headers={"ETag": etag(kept.row.version)})


def _shown(kept: StoredSubscription) -> Subscription:
    row = kept.row
    return Subscription(
        subscription_id=id_text(row.subscription_id),
        name=row.name,
        namespace=row.namespace,
        kinds=known(tuple(row.kinds)),
        filter={} if damage_of(row.filter) is not None else row.filter,
        url=row.url,
        version=row.version,
        created_at=to_datetime(row.created_at),
        updated_at=to_datetime(row.updated_at),
        cursor=cursor_text(row.cursor),
        failures=row.failures,
        retry_at=time_of(row.retry_at),
        delivered_count=row.delivered_count,
        last_delivered_at=time_of(row.last_delivered_at),
        last_error=row.last_error,
        last_error_at=time_of(row.last_error_at),
        dead_letters=kept.dead,
        broken=row.damage,
        parked_at=time_of(kept.problems.parked_at),
        unreadable_entries=kept.problems.unreadable_count,
        last_unreadable=kept.problems.last_unreadable,
    )


def _letter(letter: delivery_rows.DeadLetterRow) -> DeadLetter:
    return DeadLetter(
        dead_letter_id=id_text(letter.dead_letter_id),
        entry=letter.entry,
        kind=letter.kind,
        attempts=letter.attempts,
        status=letter.status,
        error=letter.error,
        failed_at=to_datetime(letter.failed_at),
        redeliver_at=time_of(letter.redeliver_at),
        body=json.loads(letter.body),
    )
