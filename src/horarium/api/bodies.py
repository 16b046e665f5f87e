"""Reads the few fields of a command's body, such as a trigger's; every problem is named, none is guessed away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.instant import Instant, from_rfc3339
from horarium.policy.names import PolicyError
from horarium.policy.overlap import OverlapPolicy
from horarium.policy.overlap import parse as parse_overlap

T = TypeVar("T")

MAX_NOTE = 1_000


class Fields:
    """Ask for each field, then call `check`; null is the same as absent."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._left = {name: value for name, value in body.items() if value is not None}
        self._errors: dict[str, list[str]] = {}

    def text(self, *names: str, most: int = MAX_NOTE) -> str | None:
        """By any of its names; the first one that is given counts."""

        def read(value: object, _name: str) -> str:
            if not isinstance(value, str) or len(value) > most:
                raise ValueError(f"must be a text of at most {most} characters")
            return value

        return self._take(names, read)

    def flag(self, *names: str) -> bool:
        def read(value: object, _name: str) -> bool:
            if not isinstance(value, bool):
                raise ValueError("must be true or false")
            return value

        return self._take(names, read) or False

    def number(self, *names: str, most: int = 2**31 - 1) -> int | None:
        def read(value: object, _name: str) -> int:
            if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
                raise ValueError(f"must be a whole number from 0 to {most}")
            return value

        return self._take(names, read)

    def moment(self, *names: str) -> Instant | None:
        def read(value: object, name: str) -> Instant:
            if not isinstance(value, str) or len(value) > 64:
                raise ValueError("must be a time such as 2026-03-08T07:00:00Z")
            return from_rfc3339(value, field=name)

        return self._take(names, read)

    def overlap_policy(self, name: str = "overlap_policy") -> OverlapPolicy | None:
        return self._take((name,), parse_overlap)

    def anything(self, *names: str) -> Any:
        return self._take(names, lambda value, _name: value)

    def require(self, name: str, value: T | None) -> T | None:
        if value is None and name not in self._errors:
            self._errors[name] = ["is required"]
        return value

    def check(self) -> None:
        for name in sorted(self._left)[:10]:
            self._errors[name[:100]] = ["unknown field"]
        if self._errors:
            raise InvalidDefinition(self._errors)

    def _take(self, names: tuple[str, ...], read: Callable[[Any, str], T]) -> T | None:
        given = [(name, self._left.pop(name)) for name in names if name in self._left]
        if not given:
            return None
        name, value = given[0]
        try:
            return read(value, name)
        except PolicyError as wrong:
            self._errors[name] = [wrong.text]
        except InvalidSpec as wrong:
            self._errors[name] = [wrong.message]
        except ValueError as wrong:
            self._errors[name] = [str(wrong)]
        return None
