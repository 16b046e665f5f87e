"""Lists of a command, with a hint where more rows follow, and lists without pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

import typer

from horarium.platform.cli.remote import Remote, by_flags
from horarium.platform.cli.streams import Format, counting, show_columns, show_document, show_json, talk

if TYPE_CHECKING:
    from horarium.platform.client.call import Call, Page
    from horarium.platform.wire import Answer


A = TypeVar("A", bound="Answer")

Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000_000, metavar="N", help="Maximum number of rows.")]
All = Annotated[bool, typer.Option("--all", help="List all rows; --limit does not apply.")]
PageToken = Annotated[
    str | None,
    typer.Option(
        "--page-token", metavar="TOKEN", show_default=False, help="Continue after an earlier list, with its token."
    ),
]

AllNamespaces = Annotated[
    bool, typer.Option("--all-namespaces", help="Include all namespaces; requires an admin of the installation.")
]
_EVERY = "*"

# The flags by query parameter, for error messages.
_FLAGS = {
    "status": "--status",
    "state": "--state",
    "origin": "--origin",
    "source": "--source",
    "namespace": "--all-namespaces",
    "schedule_id": "--schedule",
    "query": "--query",
    "next_page_token": "--page-token",
}


@dataclass(frozen=True, slots=True)
class Paging:
    """The pagination of a list: names in query and answer, and the largest page."""

    member: str
    size: str = "page_size"
    most: int = 200
    cursor: str = "next_page_token"


@dataclass(slots=True)
class Listing(Generic[A]):
    """A list to iterate once; `cursor` is then the start of the next page, None at the end."""

    remote: Remote
    call: Call[Page[A]]
    paging: Paging
    limit: int | None
    cursor: str | int | None = field(default=None, init=False)

    def __iter__(self) -> Iterator[A]:
        following: Call[Page[A]] | None = self.call
        left = self.limit
        while following is not None and left != 0:
            size = self.paging.most if left is None else min(left, self.paging.most)
            asked = replace(following, query={**following.query, self.paging.size: size})
            with by_flags(_FLAGS):
                page = self.remote.send(asked)
            tell_unreadable(self.paging.member, page)
            yield from page
            self.cursor = page.cursor
            left = None if left is None else max(0, left - len(page))
            following = asked.after(page)


def scope_of(all_namespaces: bool) -> str | None:
    """Return the value of the query parameter `namespace`."""
    return _EVERY if all_namespaces else None


def with_namespace(
    columns: Sequence[str], row: Callable[[A], Sequence[Any]], namespace: object
) -> tuple[Sequence[str], Callable[[A], Sequence[Any]]]:
    """Prepend a namespace column where all namespaces are listed."""
    if namespace != _EVERY:
        return columns, row
    return ("Namespace", *columns), lambda item: (item.raw.get("namespace"), *row(item))


def tell_unreadable(member: str, page: Page[A]) -> None:
    """Report on stderr the rows that the server could not read."""
    for row in page.unreadable_rows:
        talk(f"{member}: {row.id} is unreadable: {row.detail}")


def show_listing(
    listing: Listing[A],
    columns: Sequence[str],
    row: Callable[[A], Sequence[Any]],
    *,
    empty: str,
    hint: str,
    below: Callable[[A], Sequence[str]] | None = None,
) -> None:
    """Show a list; JSON lines are printed as they arrive. `below` returns the lines under a row."""
    remote, paging = listing.remote, listing.paging
    asked = listing.call.query.get("namespace")
    columns, row = with_namespace(columns, row, asked)
    if remote.output is Format.JSONL:
        for item in listing:
            show_json(dict(item.raw))
        return
    with counting(paging.member) as count:
        found: list[A] = []
        for item in listing:
            found.append(item)
            count(len(found))
    if remote.output is Format.TABLE:
        if found:
            more = None if below is None else [below(item) for item in found]
            show_columns(columns, [row(item) for item in found], below=more)
        else:
            # The namespace may be known only after the answer.
            whose = "any namespace" if asked == _EVERY else f"namespace {remote.namespace}"
            talk(empty.replace("namespace {namespace}", whose))
        if listing.cursor is not None:
            talk(hint.format(cursor=listing.cursor))
        return
    envelope = {
        "namespace": asked or remote.namespace,
        paging.member: [dict(item.raw) for item in found],
        "has_more": listing.cursor is not None,
        paging.cursor: listing.cursor,
    }
    show_document(envelope, remote.output, [])


def show_list(
    remote: Remote, member: str, page: Page[A] | Sequence[A], columns: Sequence[str], row: Callable[[A], Sequence[Any]]
) -> None:
    if not isinstance(page, Sequence):
        tell_unreadable(member, page)
    match remote.output:
        case Format.TABLE if len(page):
            show_columns(columns, [row(item) for item in page])
        case Format.TABLE:
            talk(f"no {member}")
        case Format.JSONL:
            for item in page:
                show_json(dict(item.raw))
        case Format.JSON | Format.YAML:
            show_document({member: [dict(item.raw) for item in page]}, remote.output, [])
