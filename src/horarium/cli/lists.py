"""Lists without pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from horarium.cli.pages import tell_unreadable
from horarium.cli.present import show_columns, show_document
from horarium.cli.remote import Remote
from horarium.cli.render import Format, show_json, talk

if TYPE_CHECKING:
    from horarium.client.page import Page
    from horarium.platform.wire import Answer

A = TypeVar("A", bound="Answer")


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
