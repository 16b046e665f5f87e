"""How a place is read: by a check that returns the value or says what is wrong; problems are kept, not raised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeVar

from horarium.errors import InvalidDefinition, InvalidSpec
from horarium.policy.names import PolicyError
from horarium.schedule.checks import entry_key, without_prefix
from horarium.schedule.field import Part
from horarium.schedule.places import Place
from horarium.schedule.problems import Given, Places, Problems, joined

T = TypeVar("T")

MAX_ENTRIES = 64
FAILED: Final = object()
"""Stands for a value that could not be read."""


class Reader:
    """`bad` are places that were given and could not be understood: they are not missing."""

    def __init__(self, places: Places, problems: Problems, bad: Collection[str] = ()) -> None:
        self.places = places
        self.problems = problems
        self.bad = set(bad)

    def given(self, place: str) -> bool:
        return place in self.places or place in self.bad

    def path(self, place: str) -> str:
        return self.places[place].path if place in self.places else place

    def blame(self, place: str, text: str, error: type[InvalidDefinition] = InvalidDefinition) -> None:
        self.bad.add(place)
        self.problems.add(self.path(place), text, error)

    def one(self, place: str, check: Callable[[str, object], T], default: T) -> T:
        given = self.places.get(place)
        if given is None:
            return default
        value: T = self._checked(place, given, place.rpartition(".")[2], check, default)
        return value

    def value(self, place: Place, given: Given, key: str | None) -> Any:
        """Read a value for a definition, or FAILED. With a key, which `H` hashes, compilable values are compiled."""
        field = place.field
        check = field.check
        if key is not None and (compiles := field.compiles) is not None:
            check = lambda name, value: compiles(name, value, key)  # noqa: E731 - a partial would put the key first
        if check is None:
            return given.value
        if field.array:
            return self._array(place, given, check)
        if field.entries:
            return self._entries(place, given, check)
        return self._checked(place.path, given, place.name, check, FAILED)

    def _checked(self, path: str, given: Given, name: str, check: Callable[[str, object], Any], failed: Any) -> Any:
        try:
            return check(name, given.value)
        except (PolicyError, InvalidSpec) as wrong:
            self.bad.add(path)
            self._add(given.path, name, wrong)
            return failed

    def _array(self, place: Place, given: Given, check: Callable[[str, object], T]) -> Any:
        most = place.field.schema["maxItems"]
        values = given.value
        if not isinstance(values, list | tuple) or len(values) > most:
            self.blame(place.path, f"must be an array of at most {most} entries")
            return FAILED
        read: list[T] = []
        for index, value in enumerate(values):
            try:
                read.append(check("", value))
            except (PolicyError, InvalidSpec) as wrong:
                self.bad.add(place.path)
                self._add(given.item(index), "", wrong)
                if self.problems.full:
                    break
        return tuple(dict.fromkeys(read)) if place.field.unique else tuple(read)

    def _entries(self, place: Place, given: Given, check: Callable[[str, object], T]) -> Any:
        if not isinstance(given.value, Mapping) or len(given.value) > MAX_ENTRIES:
            self.blame(place.path, f"must be an object of at most {MAX_ENTRIES} entries")
            return FAILED
        read: dict[str, T] = {}
        for key, value in given.value.items():
            try:
                read[entry_key("", key)] = check("", value)
            except PolicyError as wrong:
                self.problems.add(joined(given.path, key), wrong.text)
        return read

    def part(self, part: Part, prefix: str, values: dict[str, Any]) -> Any:
        """Places that make one policy. A parser stops at its first refusal; it is asked again without that key."""
        blamed: set[str] = set()
        while True:
            try:
                return part.parse(values)
            except PolicyError as wrong:
                key, dot, rest = wrong.field.partition(".")
                if key not in blamed and prefix + key not in self.bad:
                    self.problems.add(self.path(prefix + key) + dot + rest, wrong.text)
                blamed.add(key)
                if values.pop(key, None) is None:
                    return FAILED

    def _add(self, path: str, field: str, wrong: PolicyError | InvalidSpec) -> None:
        if isinstance(wrong, InvalidSpec):
            self.problems.add(path, without_prefix(wrong, field))
        elif wrong.field == field:
            self.problems.add(path, wrong.text)
        else:
            inner = wrong.field.removeprefix(f"{field}.")
            self.problems.add(f"{path}.{inner}" if inner else path, wrong.text)
