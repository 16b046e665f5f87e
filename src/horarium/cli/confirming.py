"""How a person says that very many runs are meant to start at once: by --confirm, or when asked."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from horarium.cli.reading import refuse
from horarium.cli.remote import ExitCode
from horarium.cli.render import talk

T = TypeVar("T")

Confirm = Annotated[bool, typer.Option("--confirm", help="It is meant, also where more than 1,000 runs start at once.")]


def if_meant(act: Callable[[bool | None], T], confirm: bool) -> T:
    """`act` is told whether it was confirmed; where the server wants it, and somebody is there, it is asked."""
    from horarium.client.errors import ConfirmNeeded

    try:
        return act(confirm or None)
    except ConfirmNeeded as needed:
        ask_whether_meant(needed.count or 0)
    return act(True)


def ask_whether_meant(count: int) -> None:
    """Nobody there to ask: then nothing is done."""
    question = f"start {count} runs at once?"
    if not sys.stdin.isatty():
        refuse(f"{question} there is no terminal to ask on: say --confirm")
    if not typer.confirm(question, err=True):
        talk("nothing was done")
        raise typer.Exit(ExitCode.NO)
