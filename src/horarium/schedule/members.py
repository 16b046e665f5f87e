"""How the members of an object are read: each by its check; what is wrong is kept under its path, not raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from horarium.policy.names import PolicyError, read_object, shown
from horarium.schedule.problems import Problems

T = TypeVar("T")


class MemberReader:
    def __init__(self, problems: Problems) -> None:
        self.problems = problems

    def members(self, path: str, value: object, keys: Sequence[str], aliases: Mapping[str, str]) -> dict[str, object]:
        """Read an object's members by their canonical names; unknown members are reported."""
        if not isinstance(value, Mapping):
            self.problems.add(path or "document", f"must be an object, not {shown(value)}")
            return {}
        found: dict[str, object] = {}
        for key, item in value.items():
            try:
                said = read_object({key: item}, "", keys, aliases)
            except PolicyError as wrong:
                self.problems.add(_inside(path, wrong.field), wrong.text)
                continue
            for name, each in said.items():
                if name in found:
                    self.problems.add(_inside(path, name), "is specified twice in different spellings")
                found[name] = each
        return found

    def array(self, field: str, given: Mapping[str, object], most: int) -> Sequence[object]:
        value = given.get(field, ())
        if not isinstance(value, list | tuple):
            self.problems.add(field, f"must be an array, not {shown(value)}")
        elif len(value) > most:
            self.problems.add(field, f"{len(value)} {field}; at most {most} are allowed per workflow")
        else:
            return value
        return ()

    def one(
        self,
        path: str,
        name: str,
        given: Mapping[str, Any],
        check: Callable[[str, object], T],
        default: T,
        *,
        needed: bool = False,
    ) -> T:
        if given.get(name) is None and not needed:
            return default
        found = self.checked(path, lambda: check(name, given.get(name)))
        return default if found is None else found

    def checked(self, path: str, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except PolicyError as wrong:
            self.problems.add(_inside(path, wrong.field), wrong.text)
            return None

    def policy(self, name: str, given: Mapping[str, object], parse: Callable[[object], T], path: str = "") -> T | None:
        """A parser stops at its first refusal; it is asked again without that key."""
        value = given.get(name)
        if value is None:
            return None
        left: object = dict(value) if isinstance(value, Mapping) else value
        while True:
            try:
                return parse(left)
            except PolicyError as wrong:
                inside = _inside(path, name)
                self.problems.add(inside if wrong.field in ("", name) else f"{inside}.{wrong.field}", wrong.text)
                blamed = [key for key in left if _plain(key) == _plain(wrong.field)] if isinstance(left, dict) else []
                if not isinstance(left, dict) or not blamed or self.problems.full:
                    return None
                for key in blamed:
                    del left[key]


def _plain(key: object) -> str:
    return str(key).replace("_", "").lower()


def _inside(path: str, name: str) -> str:
    return f"{path}.{name}" if path and name else path or name or "document"
