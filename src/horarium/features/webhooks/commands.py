"""The commands of `horarium subscription`."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.platform.cli.lists import All, AllNamespaces, Limit, Listing, PageToken, Paging, scope_of, show_listing
from horarium.platform.cli.program import LaterModule, add_default_commands
from horarium.platform.cli.remote import ExitCode, Remote, by_flags, with_remote
from horarium.platform.cli.streams import Format, cell, compact, pairs, printable, show_document, talk, warn

if TYPE_CHECKING:
    from horarium.features.webhooks.model import Subscription


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage webhook subscriptions.",
    epilog="Example: horarium subscription list",
)

SECRET = "HORARIUM_SUBSCRIPTION_SECRET"
_SECRET_BYTES = 32
_FLAGS = {
    "kinds": "--kind",
    "url": "--url",
    "secret": "--secret",
    "filter.schedule_id": "--schedule",
    "filter.labels": "--label",
    "filter.states": "--state",
    "filter.statuses": "--status",
}
_MORE = "more dead letters: --all, or --page-token {cursor}"

Which = Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Subscription ID or name.")]


def _many(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, show_default=False, help=text)


@app.command("create")
@with_remote
def create_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="Name.")],
    url: Annotated[str, typer.Option("--url", metavar="URL", show_default=False, help="URL of the webhook.")],
    kind: Annotated[
        list[str], _many("--kind", "KIND", "Event kind to send, such as run_finished or schedule_health; repeatable.")
    ],
    schedule: Annotated[
        list[str] | None, _many("--schedule", "ID", "Send only events of this schedule; repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None, _many("--label", "NAME=VALUE", "Send only events of schedules with this label; repeatable.")
    ] = None,
    state: Annotated[
        list[str] | None,
        _many("--state", "STATE", "Send run_finished only for this state, or unsuccessful; repeatable."),
    ] = None,
    status: Annotated[
        list[str] | None,
        _many("--status", "STATUS", "Send schedule_health only for this status, such as late; repeatable."),
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret", metavar="WHSEC", envvar=SECRET, show_default="generated", help="Secret that signs the messages."
        ),
    ] = None,
) -> None:
    """Create a subscription to future events. A generated secret is printed only once.

    Example: horarium subscription create failures --kind run_finished --state unsuccessful --url https://ops.example.com/hook
    """
    made = None if secret else f"whsec_{base64.b64encode(os.urandom(_SECRET_BYTES)).decode()}"
    narrowed = {
        "schedule_id": schedule or None,
        "labels": pairs("--label", label) if label else None,
        "states": state or None,
        "statuses": status or None,
    }
    with by_flags(_FLAGS):
        found = remote.client.create_subscription(
            kind, url, secret or made or "", name=name, filter={key: value for key, value in narrowed.items() if value}
        )
    warn(found.warnings)
    if remote.output is not Format.TABLE:
        show_document({**found.raw, **({"secret": made} if made else {})}, remote.output, [])
        return
    talk(printable(f"subscription {found.name} ({found.subscription_id}) sends to {found.url}"))
    if made:
        talk("secret (shown only once):")
        typer.echo(made)


@app.command("list")
@with_remote
def list_command(remote: Remote, all_namespaces: AllNamespaces = False) -> None:
    """List subscriptions with their deliveries and failures.

    Example: horarium subscription list
    """
    from horarium.features.webhooks.operations import SubscriptionOperations

    call = SubscriptionOperations.list_subscriptions(namespace=scope_of(all_namespaces))
    show_listing(
        Listing(remote, call, Paging("subscriptions"), None),
        ("Name", "Kinds", "URL", "Delivered", "Failures", "Dead Letters", "Last Error"),
        lambda s: (s.name, ", ".join(s.kinds), s.url, s.delivered_count, s.failures, s.dead_letters, s.last_error),
        empty="no subscriptions in namespace {namespace}",
        hint="",
    )


@app.command("show")
@with_remote
def show_command(remote: Remote, subscription: Which) -> None:
    """Show a subscription: filter, deliveries and last error.

    Example: horarium subscription show failures
    """
    found = remote.client.get_subscription(subscription)
    show_document(found.raw, remote.output, _lines(found))


@app.command("delete")
@with_remote
def delete_command(remote: Remote, subscription: Which) -> None:
    """Delete a subscription and its dead letters.

    Example: horarium subscription delete failures
    """
    gone = remote.client.delete_subscription(subscription)
    talk(printable(f"subscription {gone.name} deleted"))


@app.command("test")
@with_remote
def test_command(remote: Remote, subscription: Which) -> None:
    """Send a test message now and show the response.

    Exit code 0: the message was delivered; 1: it was not.

    Example: horarium subscription test failures
    """
    found = remote.client.test_subscription(subscription)
    said = f"delivered: HTTP {found.status}" if found.delivered else f"not delivered: {found.error}"
    show_document(found.raw, remote.output, [("", said)])
    if not found.delivered:
        raise typer.Exit(ExitCode.NO)


@app.command("dead-letters")
@with_remote
def dead_letters_command(
    remote: Remote,
    subscription: Which,
    limit: Limit = 50,
    page_token: PageToken = None,
    everything: All = False,
) -> None:
    """List dead letters, newest first, with their last error.

    Example: horarium subscription dead-letters failures
    """
    from horarium.features.webhooks.operations import SubscriptionOperations

    call = SubscriptionOperations.list_dead_letters(subscription, next_page_token=page_token)
    show_listing(
        Listing(remote, call, Paging("dead_letters"), None if everything else limit),
        ("ID", "Kind", "Entry", "Attempts", "Failed At", "Error"),
        lambda d: (d.dead_letter_id, d.kind, d.entry, d.attempts, d.failed_at, d.error),
        empty="no dead letters",
        hint=_MORE,
    )


@app.command("redeliver")
@with_remote
def redeliver_command(
    remote: Remote,
    subscription: Which,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="DEAD_LETTER_ID", show_default="all", help="Dead letter ID.")
    ] = None,
) -> None:
    """Redeliver dead letters. Delivered ones leave the list.

    Example: horarium subscription redeliver failures
    """
    found = remote.client.redeliver_dead_letters(subscription, ids or None)
    show_document(found.raw, remote.output, [("", f"{found.count} queued for redelivery")])


def _lines(found: Subscription) -> list[tuple[str, str]]:
    times = ("created_at", "updated_at", "last_delivered_at", "retry_at", "last_error_at")
    told: dict[str, Any] = {
        "name": found.name,
        "subscription_id": found.subscription_id,
        "kinds": ", ".join(found.kinds),
        "filter": compact(dict(found.filter)),
        "url": found.url,
        "delivered": found.delivered_count,
        "failures": found.failures,
        "dead letters": found.dead_letters,
        "last_error": found.last_error,
        **{name: getattr(found, name) for name in times},
    }
    return [(name.replace("_", " "), cell(value)) for name, value in told.items() if value is not None]


add_default_commands(app, "subscription", LaterModule("horarium.features.webhooks.operations").SubscriptionOperations)
