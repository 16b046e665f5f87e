"""`horarium subscription`: who is told of what happens, by signed webhooks."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from horarium.cli.naming import by_flags
from horarium.cli.pages import All, AllNamespaces, Limit, Listing, PageToken, Paging, listed_namespace, show_listing
from horarium.cli.present import cell, compact, printable, show_document, warn
from horarium.cli.reading import pairs
from horarium.cli.remote import ExitCode, Remote, with_remote
from horarium.cli.render import Format, talk

if TYPE_CHECKING:
    from horarium.wire.subscriptions import Subscription

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Subscriptions: who is told of what happens, by signed webhooks.",
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

Which = Annotated[str, typer.Argument(metavar="ID", show_default=False, help="Its id or its name.")]


def _many(flag: str, metavar: str, text: str) -> Any:
    return typer.Option(flag, metavar=metavar, show_default=False, help=text)


@app.command("create")
@with_remote
def create_command(
    remote: Remote,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="What to call it.")],
    url: Annotated[str, typer.Option("--url", metavar="URL", show_default=False, help="Where it is sent.")],
    kind: Annotated[
        list[str], _many("--kind", "KIND", "run_finished, schedule_health or another kind of the feed; several.")
    ],
    schedule: Annotated[list[str] | None, _many("--schedule", "ID", "Only of this schedule; several.")] = None,
    label: Annotated[list[str] | None, _many("--label", "NAME=VALUE", "Only of schedules with it; several.")] = None,
    state: Annotated[
        list[str] | None,
        _many("--state", "STATE", "Of run_finished only these ends: a state, or unsuccessful; several."),
    ] = None,
    status: Annotated[
        list[str] | None, _many("--status", "STATUS", "Of schedule_health only these, such as late; several.")
    ] = None,
    secret: Annotated[
        str | None,
        typer.Option(
            "--secret", metavar="WHSEC", envvar=SECRET, show_default="a new one, printed this once", help="Signs it."
        ),
    ] = None,
) -> None:
    """Be told of what happens from now on. Without a secret one is made, and printed this once.

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
        talk("its secret, which is shown this once:")
        typer.echo(made)


@app.command("list")
@with_remote
def list_command(remote: Remote, all_namespaces: AllNamespaces = False) -> None:
    """The subscriptions of the namespace, and how they are doing.

    Example: horarium subscription list
    """
    from horarium.client.subscription_calls import SubscriptionCalls

    call = SubscriptionCalls.list_subscriptions(namespace=listed_namespace(all_namespaces))
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
    """One subscription: what it wants, how far it has been told, and what went wrong last.

    Example: horarium subscription show failures
    """
    found = remote.client.get_subscription(subscription)
    show_document(found.raw, remote.output, _lines(found))


@app.command("delete")
@with_remote
def delete_command(remote: Remote, subscription: Which) -> None:
    """Nobody is told any more; its dead letters go with it.

    Example: horarium subscription delete failures
    """
    gone = remote.client.delete_subscription(subscription)
    talk(printable(f"subscription {gone.name} is deleted"))


@app.command("test")
@with_remote
def test_command(remote: Remote, subscription: Which) -> None:
    """Send a message at once and say what the receiver answered.

    Exit code 0 means that it was delivered, 1 that it was not.

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
    """What could not be delivered, newest first, with the last answer.

    Example: horarium subscription dead-letters failures
    """
    from horarium.client.subscription_calls import SubscriptionCalls

    call = SubscriptionCalls.list_dead_letters(subscription, next_page_token=page_token)
    show_listing(
        Listing(remote, call, Paging("dead_letters"), None if everything else limit),
        ("ID", "Kind", "Entry", "Attempts", "Failed At", "Error"),
        lambda d: (d.dead_letter_id, d.kind, d.entry, d.attempts, d.failed_at, d.error),
        empty="nothing is undelivered",
        hint=_MORE,
    )


@app.command("redeliver")
@with_remote
def redeliver_command(
    remote: Remote,
    subscription: Which,
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="DEAD_LETTER_ID", show_default="all", help="Which of them.")
    ] = None,
) -> None:
    """Send dead letters once more; what arrives leaves the list.

    Example: horarium subscription redeliver failures
    """
    found = remote.client.redeliver_dead_letters(subscription, ids or None)
    show_document(found.raw, remote.output, [("", f"{found.count} will be sent once more")])


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
