"""How commands share options: a parameter whose value is made of several of them.

    @with_options(remote=remote_options)
    def show_command(remote: Remote, run_id: str) -> None: ...

On the command line `remote` is not seen; the parameters of `remote_options` are, and what it makes of them is handed
in. What it makes may be a context manager, which is then open while the command runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any

Command = Callable[..., None]
Maker = Callable[..., Any]


def with_options(**makers: Maker) -> Callable[[Command], Command]:
    """The command's own parameters come first, so that help shows them first."""

    def decorate(command: Command) -> Command:
        own = [each for each in _parameters(command) if each.name not in makers]
        asked = {name: _parameters(maker) for name, maker in makers.items()}

        def run(**given: Any) -> None:
            with ExitStack() as stack:
                for name, maker in makers.items():
                    made = maker(**{each.name: given.pop(each.name) for each in asked[name]})
                    given[name] = stack.enter_context(made) if isinstance(made, AbstractContextManager) else made
                command(**given)

        shared = [each for parameters in asked.values() for each in parameters]
        return _like(command, run, [*own, *shared])

    return decorate


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]


def _like(command: Command, run: Command, parameters: list[inspect.Parameter]) -> Command:
    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # what typer reads
    return run
