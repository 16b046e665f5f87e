"""Whether a request has changed something: what goes wrong after that is not told as a failure to do it.

Clients repeat a request blindly on any 5xx. One that was done, and whose answer could not be made, must not be
done again: it is answered with a 409 that says so.
"""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, TypeVar

from horarium.store.database import Connection, Database
from horarium.store.database.wrapper import DatabaseWrapper

T = TypeVar("T")

REASON = "done_without_answer"
_MARK = "committed"


def has_committed(state: MutableMapping[str, Any]) -> bool:
    """`state` is that of the request."""
    return _MARK in state


def sentence(request_id: str) -> str:
    return f"The change was saved but the response failed. Check before retrying. Request ID: {request_id}."


class CommitNoting(DatabaseWrapper):
    """A database that notes, in the state of a request, that a transaction of this request was committed."""

    def __init__(self, inner: Database, state: MutableMapping[str, Any]) -> None:
        super().__init__(inner)
        self._state = state

    def write(self, work: Callable[[Connection], T]) -> T:
        result = super().write(work)
        self._state[_MARK] = True
        return result

    def write_planned(self, work: Callable[[Connection], T]) -> T:
        result = super().write_planned(work)
        self._state[_MARK] = True
        return result
