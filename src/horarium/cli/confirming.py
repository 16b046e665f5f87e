"""The confirmation that very many runs start at once: by --confirm or a prompt."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Annotated, TypeVar

import typer

from horarium.cli.reading import refuse
from horarium.cli.remote import ExitCode
from horarium.cli.render import talk

T = TypeVar("T")

Confirm = Annotated[bool, typer.Option("--confirm", help="Proceed even if more than 1,000 runs would start at once.")]


def if_meant(act: Callable[[bool | None], T], confirm: bool) -> T:
    """Call `act` with the confirmation; prompt for it where the server requires it."""
    from horarium.client.errors import ConfirmNeeded

    try:
        return act(confirm or None)
    except ConfirmNeeded as needed:
        ask_whether_meant(needed.count or 0)
    return act(True)


def ask_whether_meant(count: int) -> None:
    """Prompt for the confirmation; refuse without a terminal."""
    question = f"Start {count} runs at once?"
    if not sys.stdin.isatty():
        refuse(f"{question} No terminal for the confirmation; use --confirm")
    if not typer.confirm(question, err=True):
        talk("cancelled; nothing changed")
        raise typer.Exit(ExitCode.NO)
