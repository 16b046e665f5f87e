"""For whom something is: the namespaces that may use what an operator has configured or written.

Tasks, commands, signing secrets and the launchers of other packages act with the operator's own rights. Whoever is
not in the audience of one is told what would be told if it did not exist.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

EVERY = "*"
NAMESPACE = r"^[A-Za-z0-9][A-Za-z0-9._:@-]{0,127}$"
MAX_NAMESPACES = 1_000

_NAMESPACE = re.compile(NAMESPACE, re.ASCII)


@dataclass(frozen=True, slots=True)
class Audience:
    """`namespaces` None = every one, also those that are made tomorrow."""

    namespaces: frozenset[str] | None

    def __contains__(self, namespace: object) -> bool:
        return self.namespaces is None or namespace in self.namespaces

    def __or__(self, other: Audience) -> Audience:
        if self.namespaces is None or other.namespaces is None:
            return EVERYBODY
        return Audience(self.namespaces | other.namespaces)

    def document(self) -> list[str]:
        """Document for `parse_audience`."""
        return [EVERY] if self.namespaces is None else sorted(self.namespaces)


EVERYBODY = Audience(None)
USUAL = Audience(frozenset({"default"}))
"""Without a list of namespaces, the default namespace only."""


def parse_audience(names: Iterable[object]) -> Audience:
    """Names of namespaces, or `*` alone; an empty list is nobody. Raises ValueError."""
    if isinstance(names, str):
        raise ValueError(f"must be a list of namespaces, such as [{names[:100]!r}]")
    given = list(names)
    if given == [EVERY]:
        return EVERYBODY
    if len(given) > MAX_NAMESPACES:
        raise ValueError(f"lists more than {MAX_NAMESPACES} namespaces; use ['{EVERY}'] for all")
    if EVERY in given:
        raise ValueError(f"'{EVERY}' means every namespace, so it must be the only entry")
    for each in given:
        if not isinstance(each, str) or _NAMESPACE.fullmatch(each) is None:
            raise ValueError(f"{str(each)[:100]!r} is not a valid name of a namespace")
    return Audience(frozenset(str(each) for each in given))
