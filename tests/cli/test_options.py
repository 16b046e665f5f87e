"""A parameter that is made of several options."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from horarium.platform.cli.options import with_options

opened: list[str] = []


@contextmanager
def door(key: str = "k", *, wide: bool = False) -> Iterator[str]:
    opened.append("open")
    try:
        yield f"{key}:{wide}"
    finally:
        opened.append("closed")


def total(first: int = 1, second: int = 2) -> int:
    return first + second


@with_options(number=total, way=door)
def command(number: int, way: str, name: str) -> None:
    """Says."""
    opened.append(f"{name} {number} {way}")
    if name == "bad":
        raise ValueError(name)


@pytest.fixture(autouse=True)
def nothing_yet() -> None:
    opened.clear()


def test_the_command_line_sees_the_options_and_not_what_is_made_of_them() -> None:
    seen = inspect.signature(command)
    assert list(seen.parameters) == ["name", "first", "second", "key", "wide"]
    assert seen.parameters["first"].annotation is int
    assert (command.__name__, command.__doc__) == ("command", "Says.")


def test_what_is_made_is_handed_in_and_open_while_the_command_runs() -> None:
    command(name="x", first=5, second=2, key="a", wide=True)
    assert opened == ["open", "x 7 a:True", "closed"]


def test_what_is_open_is_closed_when_the_command_fails() -> None:
    with pytest.raises(ValueError, match="bad"):
        command(name="bad", first=1, second=2, key="a", wide=False)
    assert opened[-1] == "closed"
