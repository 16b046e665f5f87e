"""The command `horarium events`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.platform.cli import options
from horarium.platform.cli.remote import Remote, with_remote
from horarium.platform.cli.streams import Format, refuse, show_columns, show_document, show_json, talk
from horarium.platform.cli.waiting import Growing, PollingLimit, until_interrupted

if TYPE_CHECKING:
    from horarium.features.tenants.model import FeedEntry


app = typer.Typer(add_completion=False)

_COLUMNS = ("Time", "Kind", "Schedule ID", "Run ID", "Reason")
# The number of entries that are searched for matches.
_MOST = 10_000
_PAGE = 200
_BEGINNING = "0-0"

Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="KIND",
        show_default="any",
        help="Filter by kind, such as schedule_skipped; repeatable.",
        autocompletion=options.feed_kinds,
    ),
]
OfSchedule = Annotated[
    str | None,
    typer.Option(
        "--schedule",
        metavar="ID",
        show_default="any",
        help="Filter by schedule.",
        autocompletion=options.schedule_ids,
    ),
]


@dataclass(frozen=True, slots=True)
class EventFilter:
    """The filter for entries."""

    kinds: frozenset[str]
    schedule_id: str | None

    @property
    def chooses(self) -> bool:
        return bool(self.kinds) or self.schedule_id is not None

    def fits(self, entry: FeedEntry) -> bool:
        return (not self.kinds or entry.kind in self.kinds) and self.schedule_id in (None, entry.schedule_id)


@app.command("events")
@with_remote
def events_command(
    remote: Remote,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print new events until Ctrl-C.")] = False,
    kind: Kinds = None,
    schedule_id: OfSchedule = None,
    limit: Annotated[int, typer.Option("--limit", min=0, max=1_000, metavar="N", help="Number of past events.")] = 20,
) -> None:
    """List the latest events of the namespace, newest last.

    --follow reconnects after a restart of the server and loses no event.

    Example: horarium events --follow --kind schedule_skipped --schedule nightly
    """
    wanted = EventFilter(_known(kind or ()), schedule_id)
    if follow:
        _follow(remote, wanted, limit)
        return
    found, _ = _newest(remote, wanted, limit)
    match remote.output:
        case Format.TABLE if found:
            show_columns(_COLUMNS, [_row(entry) for entry in found])
        case Format.TABLE:
            talk(f"no matching events in namespace {remote.namespace}" if wanted.chooses else "no events yet")
        case Format.JSONL:
            for entry in found:
                show_json(dict(entry.raw))
        case Format.JSON | Format.YAML:
            show_document({"entries": [dict(entry.raw) for entry in found]}, remote.output, [])


def _known(kinds: Sequence[str]) -> frozenset[str]:
    """Return the kinds; refuse unknown ones."""
    from horarium.core.document.states import FEED_KINDS

    known = sorted({*FEED_KINDS.values()})
    if not {*kinds} <= {*known}:
        refuse(f"--kind: must be one of {', '.join(known)}")
    return frozenset(kinds)


def _newest(remote: Remote, wanted: EventFilter, limit: int) -> tuple[list[FeedEntry], str]:
    """Return the newest entries, oldest first, and the ID at which the stream continues."""
    size = _PAGE if wanted.chooses else min(_PAGE, max(1, limit))
    entries = islice(remote.client.iter_feed(page_size=size), _MOST)
    first = next(entries, None)
    if first is None:
        return [], _BEGINNING
    fitting = (entry for entry in _after(first, entries) if wanted.fits(entry))
    return list(islice(fitting, limit))[::-1], first.id


def _after(first: FeedEntry, others: Iterator[FeedEntry]) -> Iterator[FeedEntry]:
    yield first
    yield from others


def _follow(remote: Remote, wanted: EventFilter, limit: int) -> None:
    growing: Growing[FeedEntry] = Growing(remote.output, _COLUMNS, _row)
    with until_interrupted():
        found, last = _newest(remote, wanted, limit)
        growing.show(found)
        for entry in stream(remote, last, PollingLimit()):
            if wanted.fits(entry):
                growing.show([entry])


def stream(remote: Remote, last: str, patience: PollingLimit) -> Iterator[FeedEntry]:
    """Yield each entry after `last` once, also across restarts of the server."""
    from horarium.platform.client.errors import ServerUnavailable

    while True:
        try:
            for entry in remote.client.events(last_event_id=last):
                patience.answered()
                last = entry.id
                yield entry
            return  # the server closed the stream
        except ServerUnavailable as away:
            if not patience.bears(away.message):
                raise


def _row(entry: FeedEntry) -> tuple[object, ...]:
    return entry.at, entry.kind, entry.schedule_id, entry.run_id, entry.reason
