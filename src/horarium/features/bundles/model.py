"""Bodies and answers about bundles."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from horarium.features.bundles.values import BundleKind
from horarium.platform.bodies import Body, Name
from horarium.platform.wire import Answer, Object


class Change(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    KEEP = "keep"  # it is not the bundle's to change
    DELETE = "delete"


class ApplyBody(Body, frozen=True, kw_only=True):
    """A bundle and its options.

    An agent may contain `children` (agents) and `schedules` of its prompts: `name`, `cron_expr`, `timezone`, `prompt`,
    `enabled`. If `schedules` is a string, it is the setting `schedules` of the agent; next to a list, use
    `token_schedules` for that setting.
    """

    bundle: Name | None = None
    calendars: tuple[Object, ...] = ()
    agents: tuple[Object, ...] = ()
    teams: tuple[Object, ...] = ()
    workflows: tuple[Object, ...] = ()
    assignments: tuple[Object, ...] = ()
    schedules: tuple[Object, ...] = ()
    dry_run: bool = False
    prune: bool = False
    adopt: bool = False

    def members(self) -> dict[str, tuple[Object, ...]]:
        """The lists of documents by their names."""
        return {kind.member: getattr(self, kind.member) for kind in BundleKind}


class FieldChange(Answer, frozen=True, kw_only=True):
    """A changed field. `path` is dotted. null: the field is absent. Long values are truncated and shown as text."""

    path: str
    old: Any
    new: Any


class BundleChange(Answer, frozen=True, kw_only=True):
    """Change of one document. `fires_added` and `fires_removed`: fires of the next seven days, before guards are
    evaluated. `exhausted`: unchanged because the schedule has reached `max_runs`.
    """

    change: Change
    kind: BundleKind
    name: str
    diff: tuple[FieldChange, ...]
    fires_added: int
    fires_removed: int
    warnings: tuple[str, ...] = ()
    exhausted: bool = False


class Applied(Answer, frozen=True, kw_only=True):
    """Result of an apply. `dry_run`: nothing was changed. `starts_soon`: number of runs that start within a minute."""

    dry_run: bool
    bundle: str | None
    changes: tuple[BundleChange, ...]
    starts_soon: int = 0
