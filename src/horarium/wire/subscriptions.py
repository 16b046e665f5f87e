"""What goes over the wire about subscriptions: bodies, answers, dead letters. No answer holds a secret."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from horarium.schedule.json_limits import MAX_URL
from horarium.wire.answer import Answer, Object, Rows, Time
from horarium.wire.bodies import Body, Name
from horarium.wire.outcomes import RedeliverOutcome, WriteOutcome

Url = Annotated[str, Meta(max_length=MAX_URL)]
Secret = Annotated[str, Meta(max_length=200)]


class SubscriptionBody(Body, frozen=True, kw_only=True):
    """`kinds` are those of the feed; `filter` may name `schedule_id`, `labels`, `states` and `statuses`.

    `secret` is base64 of 16 bytes or more, with or without `whsec_` in front; it is kept sealed and never told.
    """

    kinds: tuple[str, ...]
    url: Url
    secret: Secret
    name: Name | None = None
    filter: Object | None = None


class SubscriptionChange(Body, frozen=True, kw_only=True):
    """What it does not say stays."""

    kinds: tuple[str, ...] | None = None
    url: Url | None = None
    secret: Secret | None = None
    name: Name | None = None
    filter: Object | None = None


class RedeliverBody(Body, frozen=True, kw_only=True):
    """Which dead letters; without `ids` all of them."""

    ids: tuple[str, ...] | None = None


class Subscription(Answer, frozen=True, kw_only=True):
    """`cursor` is the entry of the feed that was settled last; `failures` are those of the one after it.

    `parked_at` is set while the subscription itself cannot be read. It receives no messages until it is edited;
    `broken` says which part. `unreadable_entries` counts the skipped entries of the feed; `last_unreadable` names the
    last one and the cause.
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
    """What came of a message that was sent at once; `status` is that of the answer, null = nobody answered."""

    subscription_id: str
    delivered: bool
    status: int | None
    error: str | None


class DeadLetter(Answer, frozen=True, kw_only=True):
    """`body` is what was sent, `error` what came of it last; `redeliver_at` says that it was asked for again."""

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
    """`count` dead letters will be sent once more, each once."""

    subscription_id: str
    outcome: RedeliverOutcome
    count: int
