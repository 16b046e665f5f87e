"""Move options that precede the command behind it.

`horarium --server URL -o json schedule list` is `horarium schedule list --server URL -o json`. An option behind the
command takes precedence, and a command without the option refuses it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from horarium.cli.reading import refuse

SHORT = {"-o": "--output"}
LEADING = (
    "--server", "--token", "--namespace", "--data-dir", "--context", "--output", "--ca-file", "--client-cert",
    "--client-key",
)  # fmt: skip


def moved(arguments: Sequence[str], root: Any) -> list[str]:
    """Return the arguments in their usual order; an unknown command is left for `root` to refuse."""
    flags, rest = _split(arguments)
    if not flags:
        return list(arguments)
    depth, command = _command(rest, root)
    if getattr(command, "commands", None) is not None:
        return list(arguments)
    known = {name for param in command.params for name in param.opts}
    for flag in flags:
        if flag not in known:
            refuse(f"{flag}: `{' '.join(['horarium', *rest[:depth]])}` has no such option")
    return [*rest[:depth], *(word for pair in flags.items() for word in pair), *rest[depth:]]


def _split(arguments: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Split the leading options, by their long names, from the rest; the last value of each counts."""
    found: dict[str, str] = {}
    left = list(arguments)
    while left:
        name, equals, value = left[0].partition("=")
        if left[0][:2] in SHORT and len(left[0]) > 2:
            name, equals, value = left[0][:2], "=", left[0][2:].removeprefix("=")
        name = SHORT.get(name, name)
        if name not in LEADING or (not equals and len(left) < 2):
            break
        found[name] = value if equals else left[1]
        del left[: 1 if equals else 2]
    return found, left


def _command(words: Sequence[str], root: Any) -> tuple[int, Any]:
    """Return the number of words that name the command, and the command."""
    depth, command = 0, root
    while depth < len(words):
        children: Mapping[str, Any] | None = getattr(command, "commands", None)
        if children is None or words[depth] not in children:
            break
        command = children[words[depth]]
        depth += 1
    return depth, command
