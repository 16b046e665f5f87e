"""Bodies and answers about subscriptions. No answer contains a secret."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from horarium.core.document.json_values import MAX_URL
from horarium.platform.bodies import Body, Name
from horarium.platform.wire import Answer, Object, RedeliverOutcome, Rows, Time, WriteOutcome

Url = Annotated[str, Meta(max_length=MAX_URL)]
Secret = Annotated[str, Meta(max_length=200)]


class SubscriptionBody(Body, frozen=True, kw_only=True):
    """A subscription. `kinds`: kinds of feed entries. `filter` may contain `schedule_id`, `labels`, `states` and
    `statuses`. `secret`: base64 of at least 16 bytes, with or without the prefix `whsec_`; it is stored encrypted and
    never returned.
    """

    kinds: tuple[str, ...]
    url: Url
    secret: Secret
    name: Name | None = None
    filter: Object | None = None


class SubscriptionChange(Body, frozen=True, kw_only=True):
    """Changes to a subscription. Omitted fields are kept."""

    kinds: tuple[str, ...] | None = None
    url: Url | None = None
    secret: Secret | None = None
    name: Name | None = None
    filter: Object | None = None


class RedeliverBody(Body, frozen=True, kw_only=True):
    """IDs of dead letters. Default: all."""

    ids: tuple[str, ...] | None = None


class Subscription(Answer, frozen=True, kw_only=True):
    """A subscription. `cursor`: last settled feed entry. `failures`: failed attempts of the next one.

    `parked_at` is set while the subscription cannot be read; it receives no messages until it is edited. `broken` names
    the damaged part. `unreadable_entries` counts skipped feed entries; `last_unreadable` has the last one and the
    cause.
    """

    subscription_id: str
    name: str
    namespace: str
    kinds: tuple[str, ...]
    filter: Object
    url: str
    version: int
    created_at: Time
    updated_at: Time
    cursor: str
    failures: int
    retry_at: Time | None
    delivered_count: int
    last_delivered_at: Time | None
    last_error: str | None
    last_error_at: Time | None
    dead_letters: int
    broken: str | None = None
    parked_at: Time | None = None
    unreadable_entries: int = 0
    last_unreadable: str | None = None
    warnings: tuple[str, ...] = ()


class SubscriptionList(Answer, frozen=True, kw_only=True):
    subscriptions: Rows[Subscription]
    next_page_token: str | None


class SubscriptionDeleted(Answer, frozen=True, kw_only=True):
    subscription_id: str
    name: str
    outcome: WriteOutcome


class SubscriptionTested(Answer, frozen=True, kw_only=True):
    """Outcome of a test message. `status`: HTTP status of the receiver (null = no response)."""

    subscription_id: str
    delivered: bool
    status: int | None
    error: str | None


class DeadLetter(Answer, frozen=True, kw_only=True):
    """A message that could not be delivered. `body`: the message. `error`: the last error. `redeliver_at` is set if a
    resend was requested.
    """

    dead_letter_id: str
    entry: str
    kind: str
    attempts: int
    status: int | None
    error: str
    failed_at: Time
    redeliver_at: Time | None
    body: Object


class DeadLetterList(Answer, frozen=True, kw_only=True):
    dead_letters: Rows[DeadLetter]
    next_page_token: str | None


class Redelivered(Answer, frozen=True, kw_only=True):
    """`count` dead letters will be sent again, each once."""

    subscription_id: str
    outcome: RedeliverOutcome
    count: int
