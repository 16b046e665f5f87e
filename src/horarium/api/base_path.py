"""Under which path this service is seen: that of the setting, or where another program has mounted it.

A proxy may take the path away before it hands a request on, or leave it; both are understood, so nobody has to know
which of the two theirs does. Inside, `root_path` says it, and `path` begins with it (ASGI).
"""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import Scope

from horarium.errors import InvalidDefinition


def base_of(scope: Scope) -> str:
    """Without a slash at its end; empty = at the root."""
    return str(scope.get("root_path") or "").rstrip("/")


def inner_path(scope: Scope) -> str:
    """The path as the routes spell it."""
    return without_base(scope["path"], base_of(scope))


def without_base(path: str, base: str) -> str:
    """`/jobs/docs` and `/docs` are `/docs` under `/jobs`; `/jobsite` is another path."""
    if not base or not (path == base or path.startswith(f"{base}/")):
        return path
    return path[len(base) :] or "/"


def based(scope: Scope, base: str) -> Scope:
    """As seen under the base of the setting; whoever has mounted us knows better."""
    if not base or base_of(scope):
        return scope
    return {**scope, "root_path": base, "path": base + without_base(scope["path"], base)}


def check_base(base: str, paths: Iterable[str]) -> None:
    """Raises InvalidDefinition for one with which nobody could tell whether a proxy has taken it away."""
    first = base.split("/")[1:2]
    taken = {path.split("/")[1] for path in paths}
    if base and taken.intersection(first):
        raise InvalidDefinition({"base_path": [f"/{first[0]} is a path of this service. Choose another one."]})
