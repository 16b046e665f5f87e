"""How a place is read: by a check that returns the value or says what is wrong; problems are kept, not raised."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from horarium.errors import InvalidSpec
from horarium.instant import Instant, from_rfc3339
from horarium.policy.names import PolicyError, shown
from horarium.schedule.problems import Given, Places, Problems, joined

T = TypeVar("T")

MAX_ENTRIES = 64
MAX_KEY = 128


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

    def blame(self, place: str, text: str) -> None:
        self.bad.add(place)
        self.problems.add(self.path(place), text)

    def one(self, place: str, check: Callable[[str, object], T], default: T) -> T:
        given = self.places.get(place)
        if given is None:
            return default
        field = place.rpartition(".")[2]
        try:
            return check(field, given.value)
        except (PolicyError, InvalidSpec) as wrong:
            self.bad.add(place)
            self._add(given.path, field, wrong)
            return default

    def array(self, place: str, check: Callable[[str, object], T], *, most: int) -> tuple[T, ...]:
        """Every item is checked, so that all the bad ones are named."""
        given = self.places.get(place)
        if given is None:
            return ()
        if not isinstance(given.value, list | tuple) or len(given.value) > most:
            self.blame(place, f"must be an array of at most {most} entries")
            return ()
        return tuple(self._items(place, given, given.value, check))

    def _items(
        self, place: str, given: Given, values: Collection[object], check: Callable[[str, object], T]
    ) -> list[T]:
        read: list[T] = []
        for index, value in enumerate(values):
            try:
                read.append(check("", value))
            except (PolicyError, InvalidSpec) as wrong:
                self.bad.add(place)
                self._add(given.item(index), "", wrong)
                if self.problems.full:
                    break
        return read

    def entries(self, place: str, check: Callable[[str, object], T]) -> dict[str, T]:
        """A small map whose keys are the user's own."""
        given = self.places.get(place)
        if given is None:
            return {}
        if not isinstance(given.value, Mapping) or len(given.value) > MAX_ENTRIES:
            self.blame(place, f"must be an object of at most {MAX_ENTRIES} entries")
            return {}
        read: dict[str, T] = {}
        for key, value in given.value.items():
            try:
                if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY:
                    raise PolicyError("", f"a key has between 1 and {MAX_KEY} characters")
                read[key] = check("", value)
            except PolicyError as wrong:
                self.problems.add(joined(given.path, key), wrong.text)
        return read

    def group(self, prefix: str, keys: Collection[str], parse: Callable[[dict[str, object]], T], default: T) -> T:
        """Places that make one policy. A parser stops at its first refusal; it is asked again without that key."""
        values = {key: self.places[prefix + key].value for key in keys if prefix + key in self.places}
        if not values:
            return default
        blamed: set[str] = set()
        while True:
            try:
                return parse(values)
            except PolicyError as wrong:
                key, dot, rest = wrong.field.partition(".")
                if key not in blamed and prefix + key not in self.bad:
                    self.problems.add(self.path(prefix + key) + dot + rest, wrong.text)
                blamed.add(key)
                if values.pop(key, None) is None:
                    return default

    def _add(self, path: str, field: str, wrong: PolicyError | InvalidSpec) -> None:
        if isinstance(wrong, InvalidSpec):
            self.problems.add(path, without_prefix(wrong, field))
        elif wrong.field == field:
            self.problems.add(path, wrong.text)
        else:
            inner = wrong.field.removeprefix(f"{field}.")
            self.problems.add(f"{path}.{inner}" if inner else path, wrong.text)


def without_prefix(wrong: InvalidSpec, field: str) -> str:
    """The message of a spec begins with the field; the path says it already."""
    return wrong.message.removeprefix(f"{field}: ") if field else wrong.message


# ── checks that several places share ──────────────────────────────────────────────────────────────


def moment(field: str, value: object) -> Instant:
    if not isinstance(value, str):
        raise PolicyError(field, f"must be an RFC 3339 time such as 2026-03-08T07:00:00Z, not {shown(value)}")
    return from_rfc3339(value, field=field)


def any_text(most: int) -> Callable[[str, object], str]:
    """Text of a person: any characters, a bounded length."""

    def check(field: str, value: object) -> str:
        if not isinstance(value, str):
            raise PolicyError(field, f"must be text, not {shown(value)}")
        if len(value) > most:
            raise PolicyError(field, f"has {len(value)} characters; at most {most} are kept")
        return value

    return check


def mapping(field: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(value)}")
    if not all(isinstance(key, str) for key in value):
        raise PolicyError(field, "has a key that is no text")
    return value
