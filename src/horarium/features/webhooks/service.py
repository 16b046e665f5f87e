"""Subscriptions to the feed, test messages, and entries that could not be delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from horarium.core.document.json_values import damage_of
from horarium.core.policy.queue import PolicyError, checked_id
from horarium.errors import InvalidDefinition
from horarium.features.history import entry_rows
from horarium.features.history.model import cloud_event, message_id
from horarium.features.resources import Address, Resources
from horarium.features.schedules.drafts import hold_namespace
from horarium.features.tenants.model import FeedEntry
from horarium.features.webhooks import delivery_rows, rows
from horarium.features.webhooks.delivery_rows import DeadLetterRow
from horarium.features.webhooks.filters import SubscriptionFilter, read_filter
from horarium.features.webhooks.rows import NO_PROBLEMS, DeliveryProblems, SubscriptionRow
from horarium.instant import to_datetime
from horarium.launchers.webhook import Delivery, Undelivered, WebhookMessage, check_address, check_secret
from horarium.platform.caller import Caller, checked_limit
from horarium.platform.database import Connection
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.installation import hold_key_fingerprint, seal_in
from horarium.platform.errors import OperationRefused, SubscriptionAlreadyExists, SubscriptionNotFound, VersionMismatch
from horarium.platform.ids import id_text, new_id, parse_id
from horarium.platform.wire import Permission

MOST_AT_ONCE = delivery_rows.MOST_DEAD_LETTERS
TEST_KIND = "test"
_KIND = "subscription"


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """`dead` is how many of its entries could not be delivered."""

    row: SubscriptionRow
    dead: int
    problems: DeliveryProblems = NO_PROBLEMS


@dataclass(frozen=True, slots=True)
class SubscriptionPage:
    subscriptions: tuple[StoredSubscription, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class DeadPage:
    letters: tuple[DeadLetterRow, ...]
    next_page_token: str | None


def create(
    resources: Resources,
    caller: Caller,
    *,
    kinds: object,
    url: str,
    secret: str,
    name: str | None = None,
    narrowed: object = None,
) -> StoredSubscription:
    """It begins with what happens from now on."""
    caller.require(Permission.WRITE)
    identity, now = new_id(), resources.clock.now()
    wanted = _checked(kinds, narrowed, name, url, secret)

    def work(connection: Connection) -> StoredSubscription:
        hold_namespace(connection, caller.namespace)
        most = resources.settings.subscriptions_per_namespace
        if rows.count(connection, caller.namespace) >= most:
            raise OperationRefused(
                f"the namespace has {most} subscriptions, the maximum (setting subscriptions_per_namespace)"
            )
        row = SubscriptionRow(
            subscription_id=identity,
            namespace=caller.namespace,
            name=name or id_text(identity),
            kinds=sorted(wanted.kinds),
            filter=wanted.filter_document(),
            url=url,
            secret=_sealed(resources, connection, secret, identity),
            version=1,
            created_at=now,
            updated_at=now,
            cursor=entry_rows.end(connection),
            failures=0,
            retry_at=None,
            delivered_count=0,
            last_delivered_at=None,
            last_error=None,
            last_error_at=None,
            lease_epoch=0,
        )
        rows.insert(connection, row)
        resources.name_addresses(_KIND, row.name, (Address("url", url),))
        return StoredSubscription(row, 0)

    try:
        return resources.database.write(work)
    except UniqueConflict:
        raise SubscriptionAlreadyExists(name or "") from None


def update(
    resources: Resources, caller: Caller, which: str, changes: dict[str, Any], *, if_version: int | None = None
) -> StoredSubscription:
    """`changes` may have kinds, filter, url, secret and name; the place in the feed stays."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> StoredSubscription:
        hold_key_fingerprint(connection)  # a secret that stays is written again as it was read
        before = _find(connection, caller, which)
        if if_version is not None and before.version != if_version:
            raise VersionMismatch(if_version, before.version)
        _refuse_unreadable(before, changes)
        kinds, narrowed = changes.get("kinds", before.kinds), changes.get("filter", before.filter)
        name, url, secret = changes.get("name", before.name), changes.get("url", before.url), changes.get("secret")
        wanted = _checked(kinds, narrowed, name, url, secret)
        after = replace(
            before,
            name=name,
            kinds=sorted(wanted.kinds),
            filter=wanted.filter_document(),
            url=url,
            secret=before.secret if secret is None else _sealed(resources, connection, secret, before.subscription_id),
            version=before.version + 1,
            updated_at=resources.clock.now(),
            failures=0,
            retry_at=None,
        )
        if not rows.update(connection, after, expected_version=before.version):
            raise VersionMismatch(before.version, before.version + 1)
        resources.name_addresses(_KIND, after.name, (Address("url", after.url),))
        return _stored(connection, [after])[0]

    try:
        return resources.database.write(work)
    except UniqueConflict:
        raise SubscriptionAlreadyExists(str(changes.get("name"))) from None


def _refuse_unreadable(before: SubscriptionRow, changes: Mapping[str, Any]) -> None:
    """A part that cannot be read is replaced, or nothing is: it would be written again as something else."""
    parts = {"kinds": before.kinds, "filter": before.filter}
    wrong = {name: why for name, part in parts.items() if name not in changes and (why := damage_of(part)) is not None}
    if wrong:
        texts = {
            name: [f"the stored value cannot be read ({why}); include it in the request"] for name, why in wrong.items()
        }
        raise InvalidDefinition(texts)


def list_subscriptions(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> SubscriptionPage:
    """By name, of all namespaces by namespace and name. One namespace is a single page unless a size is asked for."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size) if caller.all_namespaces or page_size is not None else None
    after = None if next_page_token is None else _after(next_page_token)

    def look(connection: Connection) -> SubscriptionPage:
        found = rows.page(connection, caller.scope, after=after, limit=None if limit is None else limit + 1)
        shown = found[:limit]
        is_cut = limit is not None and len(found) > limit
        token = f"{shown[-1].namespace}/{shown[-1].name}" if is_cut else None
        return SubscriptionPage(tuple(_stored(connection, shown)), token)

    return resources.database.read(look)


def _after(token: str) -> tuple[str, str]:
    """Neither a namespace nor a name has a slash."""
    namespace, slash, name = token.partition("/")
    if not slash or not token.isprintable():
        raise InvalidDefinition({"next_page_token": ["is not a valid page token"]})
    return namespace, name


def get(resources: Resources, caller: Caller, which: str) -> StoredSubscription:
    """By id or by name."""
    caller.require(Permission.READ)
    return resources.database.read(lambda connection: _stored(connection, [_find(connection, caller, which)])[0])


def delete(resources: Resources, caller: Caller, which: str) -> SubscriptionRow:
    """With its dead letters."""
    caller.require(Permission.WRITE)

    def work(connection: Connection) -> SubscriptionRow:
        row = _find(connection, caller, which)
        rows.delete(connection, caller.namespace, row.subscription_id)
        return row

    return resources.database.write(work)


def test_message(resources: Resources, caller: Caller, which: str) -> tuple[SubscriptionRow, WebhookMessage]:
    """Build the message of `send_test`: an entry of the kind `test`, which no feed has."""
    caller.require(Permission.WRITE)
    row = resources.database.read(lambda connection: _find(connection, caller, which))
    if resources.sealer is None:
        raise OperationRefused("this process has no secret key; set secret_key")
    entry = FeedEntry(
        id=f"test-{id_text(new_id())}",
        kind=TEST_KIND,
        at=to_datetime(resources.clock.now()),
        namespace=row.namespace,
        schedule_id=None,
        run_id=None,
        reason=None,
        occurrence_time=None,
        event_type=None,
        sequence=None,
        payload={"subscription": row.name},
    )
    secret = resources.sealer.unseal(row.secret, row.subscription_id)
    name = message_id(row.subscription_id, entry.id)
    return row, WebhookMessage(row.url, name, cloud_event(entry), secret, row.namespace)


async def send_test(resources: Resources, message: WebhookMessage) -> Delivery:
    if resources.sender is None:
        return Undelivered("this process does not send webhooks")
    return await resources.sender.send(message)


def list_dead_letters(
    resources: Resources,
    caller: Caller,
    which: str,
    *,
    page_size: int | None = None,
    next_page_token: str | None = None,
) -> DeadPage:
    """Newest first."""
    caller.require(Permission.READ)
    limit = checked_limit(page_size)
    before = None if next_page_token is None else parse_id(next_page_token, "next_page_token")

    def look(connection: Connection) -> DeadPage:
        row = _find(connection, caller, which)
        found = delivery_rows.dead_letter_page(connection, row.subscription_id, before=before, limit=limit + 1)
        shown = tuple(found[:limit])
        return DeadPage(shown, id_text(shown[-1].dead_letter_id) if len(found) > limit else None)

    return resources.database.read(look)


def redeliver(
    resources: Resources, caller: Caller, which: str, ids: Sequence[object] | None = None
) -> tuple[SubscriptionRow, int]:
    """Asks for another delivery, of all dead letters or of some; how many that are."""
    caller.require(Permission.WRITE)
    if ids is not None and (not isinstance(ids, list | tuple) or len(ids) > MOST_AT_ONCE):
        raise InvalidDefinition({"ids": [f"must be an array of at most {MOST_AT_ONCE} IDs"]})
    wanted = None if ids is None else [parse_id(each, "ids") for each in ids]

    def work(connection: Connection) -> tuple[SubscriptionRow, int]:
        row = _find(connection, caller, which)
        return row, delivery_rows.request_redelivery(connection, row.subscription_id, wanted, resources.clock.now())

    return resources.database.write(work)


def _find(connection: Connection, caller: Caller, which: str) -> SubscriptionRow:
    try:
        found = rows.find(connection, caller.namespace, parse_id(which, "subscription_id"))
    except InvalidDefinition:
        found = None
    found = found or rows.find_by_name(connection, caller.namespace, which)
    if found is None:
        raise SubscriptionNotFound(which)
    return found


def _stored(connection: Connection, found: Sequence[SubscriptionRow]) -> list[StoredSubscription]:
    dead = delivery_rows.count_dead_letters(connection, [row.subscription_id for row in found]) if found else {}
    problems = rows.problems_of(connection, [row.subscription_id for row in found])
    return [
        StoredSubscription(row, dead.get(row.subscription_id, 0), problems.get(row.subscription_id, NO_PROBLEMS))
        for row in found
    ]


def _checked(kinds: object, narrowed: object, name: object, url: object, secret: str | None) -> SubscriptionFilter:
    """Raises InvalidDefinition with every problem; whether an address may be called is judged when it is."""
    errors: dict[str, list[str]] = {}
    wanted: SubscriptionFilter | None = None
    try:
        wanted = read_filter(kinds, narrowed)
    except InvalidDefinition as wrong:
        errors |= {field: list(texts) for field, texts in wrong.errors.items()}
    if name is not None:
        try:
            checked_id("name", name)
        except PolicyError as wrong:
            errors["name"] = [wrong.text]
    problem = check_address(url)
    if problem is not None:
        errors["url"] = [problem]
    problem = None if secret is None else check_secret(secret)
    if problem is not None:
        errors["secret"] = [problem]
    if errors or wanted is None:
        raise InvalidDefinition(errors)
    return wanted


def _sealed(resources: Resources, connection: Connection, secret: str, owner: bytes) -> str:
    if resources.sealer is None:
        raise OperationRefused("this process has no secret key, so it cannot store secrets; set secret_key")
    return seal_in(connection, resources.sealer, secret, owner)
