"""Calls about subscriptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from horarium.features.webhooks.model import (
    DeadLetter,
    Redelivered,
    Subscription,
    SubscriptionDeleted,
    SubscriptionTested,
)
from horarium.platform.client.call import Call, Method, Page, Pages, given, if_match, many, one

SUBSCRIPTIONS, SUBSCRIPTION = "/api/subscriptions", "/api/subscriptions/{subscription_id}"


class SubscriptionCalls:
    """Calls about subscriptions, which are named by ID or name."""

    @Method
    @staticmethod
    def list_subscriptions(
        *, namespace: str | None = None, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[Subscription]]:
        """List subscriptions by name: all of the namespace, or with `namespace="*"` pages of all namespaces."""
        query = {"namespace": namespace, "page_size": page_size, "next_page_token": next_page_token}
        return Call("GET", SUBSCRIPTIONS, many(Subscription, "subscriptions"), query=query, cursor="next_page_token")

    @Method
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
        body = {"kinds": list(kinds), "url": url, "secret": secret, **given(name=name, filter=filter)}
        return Call("POST", SUBSCRIPTIONS, one(Subscription), body=body)

    @Method
    @staticmethod
    def get_subscription(subscription_id: str) -> Call[Subscription]:
        return Call("GET", SUBSCRIPTION, one(Subscription), {"subscription_id": subscription_id})

    @Method
    @staticmethod
    def update_subscription(
        subscription_id: str, *, if_version: int | None = None, **changes: Any
    ) -> Call[Subscription]:
        """Update `kinds`, `url`, `secret`, `name` or `filter`. Omitted fields are kept."""
        headers = if_match(if_version)
        names = {"subscription_id": subscription_id}
        return Call("PUT", SUBSCRIPTION, one(Subscription), names, body=changes, headers=headers)

    @Method
    @staticmethod
    def delete_subscription(subscription_id: str) -> Call[SubscriptionDeleted]:
        """Delete a subscription and its dead letters."""
        return Call("DELETE", SUBSCRIPTION, one(SubscriptionDeleted), {"subscription_id": subscription_id})

    @Method
    @staticmethod
    def test_subscription(subscription_id: str) -> Call[SubscriptionTested]:
        """Send a test message immediately. A receiver that rejects it is a result, not an error."""
        names = {"subscription_id": subscription_id}
        return Call("POST", f"{SUBSCRIPTION}/test", one(SubscriptionTested), names, body={}, idempotent=False)

    @Method
    @staticmethod
    def list_dead_letters(
        subscription_id: str, *, page_size: int | None = None, next_page_token: str | None = None
    ) -> Call[Page[DeadLetter]]:
        """List messages that could not be delivered, newest first."""
        query = {"page_size": page_size, "next_page_token": next_page_token}
        names = {"subscription_id": subscription_id}
        parse = many(DeadLetter, "dead_letters")
        return Call("GET", f"{SUBSCRIPTION}/dead-letters", parse, names, query=query, cursor="next_page_token")

    @Method
    @staticmethod
    def redeliver_dead_letters(subscription_id: str, ids: Sequence[str] | None = None) -> Call[Redelivered]:
        """Resend the given dead letters (default: all)."""
        body = given(ids=None if ids is None else list(ids))
        return Call(
            "POST", f"{SUBSCRIPTION}/redeliver", one(Redelivered), {"subscription_id": subscription_id}, body=body
        )

    iter_subscriptions = Pages(list_subscriptions)
    iter_dead_letters = Pages(list_dead_letters)
