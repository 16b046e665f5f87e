"""Operations on subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
from horarium.platform.client.call import Call, Page, Pages, one
from horarium.platform.operation import READ, WRITE, Operations

SUBSCRIPTION = "/api/subscriptions/{subscription_id}"

operation = Operations("/api/subscriptions", tag="subscriptions")


class SubscriptionOperations:
    """Operations on subscriptions, which are named by ID or name."""

    @operation("GET", "", needs=READ, summary="List subscriptions", answer=SubscriptionList)
    @staticmethod
    def list_subscriptions(
        *, namespace: str | None = None, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[Subscription]]:
        """List subscriptions by name: all of the namespace, or with `namespace="*"` pages of all namespaces."""

    @operation(
        "POST",
        "",
        needs=WRITE,
        summary="Create a subscription",
        body=SubscriptionBody,
        answer=Subscription,
        status=201,
    )
    @staticmethod
    def create_subscription(
        kinds: Sequence[str],
        url: str,
        secret: str,
        *,
        name: str | None = None,
        filter: Mapping[str, Any] | None = None,
    ) -> Call[Subscription]:
        """Send feed entries of these kinds to `url` as signed webhooks, from now on."""

    @operation("GET", "/{subscription_id}", needs=READ, summary="Show a subscription", answer=Subscription)
    @staticmethod
    def get_subscription(subscription_id: str) -> Call[Subscription]: ...

    @operation(
        "PUT",
        "/{subscription_id}",
        needs=WRITE,
        summary="Update a subscription",
        body=SubscriptionChange,
        answer=Subscription,
        has_command=False,
    )
    @staticmethod
    def update_subscription(
        subscription_id: str, *, if_version: int | None = None, **changes: Any
    ) -> Call[Subscription]:
        """Update `kinds`, `url`, `secret`, `name` or `filter`. Omitted fields are kept."""

    @operation("DELETE", "/{subscription_id}", needs=WRITE, summary="Delete a subscription", answer=SubscriptionDeleted)
    @staticmethod
    def delete_subscription(subscription_id: str) -> Call[SubscriptionDeleted]:
        """Delete a subscription and its dead letters."""

    @operation(
        "POST",
        "/{subscription_id}/test",
        needs=WRITE,
        summary="Send a test message",
        answer=SubscriptionTested,
        repeatable=False,  # it is there to be sent each time
        retried=False,
        by_hand=True,
    )
    @staticmethod
    def test_subscription(subscription_id: str) -> Call[SubscriptionTested]:
        """Send a test message immediately. A receiver that rejects it is a result, not an error."""
        names = {"subscription_id": subscription_id}
        return Call("POST", f"{SUBSCRIPTION}/test", one(SubscriptionTested), names, body={}, idempotent=False)

    @operation(
        "GET",
        "/{subscription_id}/dead-letters",
        needs=READ,
        summary="List dead letters",
        answer=DeadLetterList,
        has_command=False,
    )
    @staticmethod
    def list_dead_letters(
        subscription_id: str, *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[DeadLetter]]:
        """List messages that could not be delivered, newest first."""

    @operation(
        "POST",
        "/{subscription_id}/redeliver",
        needs=WRITE,
        summary="Resend dead letters",
        body=RedeliverBody,
        answer=Redelivered,
        has_command=False,  # subscription redeliver
    )
    @staticmethod
    def redeliver_dead_letters(subscription_id: str, ids: Sequence[str] | None = None) -> Call[Redelivered]:
        """Resend the given dead letters (default: all)."""

    iter_subscriptions = Pages(list_subscriptions)
    iter_dead_letters = Pages(list_dead_letters)
