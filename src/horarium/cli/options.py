"""Options that commands share: one parameter of a command stands for several options.

    @with_options(remote=remote_options)
    def show_command(remote: Remote, run_id: str) -> None: ...

The command line has the parameters of `remote_options` instead of `remote`, which receives its result. The result may
be a context manager, which is open while the command runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from typing import Any

Command = Callable[..., None]
Maker = Callable[..., Any]


def with_options(**makers: Maker) -> Callable[[Command], Command]:
    """Decorate a command; its own parameters come first, so that help shows them first."""
    return lambda command: _Sharing(command, makers)


class _Sharing:
    """A command with shared options; parameters are read on first use, because a program runs one command."""

    def __init__(self, command: Command, makers: Mapping[str, Maker]) -> None:
        self._command = command
        self._makers = makers
        self.__name__, self.__doc__, self.__module__ = command.__name__, command.__doc__, command.__module__

    def __call__(self, **given: Any) -> None:
        with ExitStack() as stack:
            for name, maker in self._makers.items():
                made = maker(**{each.name: given.pop(each.name) for each in self._asked[name]})
                given[name] = stack.enter_context(made) if isinstance(made, AbstractContextManager) else made
            self._command(**given)

    @cached_property
    def _asked(self) -> Mapping[str, list[inspect.Parameter]]:
        return {name: _parameters(maker) for name, maker in self._makers.items()}

    @property
    def __signature__(self) -> inspect.Signature:
        """The signature that Typer reads."""
        own = [each for each in _parameters(self._command) if each.name not in self._makers]
        return inspect.Signature([*own, *(each for shared in self._asked.values() for each in shared)])

    @property
    def __annotations__(self) -> dict[str, Any]:  # type: ignore[override]  # a class has them as a plain attribute
        return {name: each.annotation for name, each in self.__signature__.parameters.items()}


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in found]
