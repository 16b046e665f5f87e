"""What is sent and answered about bundles: what to apply, and what became of each document."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from horarium.schedule.bundle_kind import BundleKind
from horarium.wire.answer import Answer, Object
from horarium.wire.bodies import Body, Name


class Change(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    UNCHANGED = "unchanged"
    KEEP = "keep"  # it is not the bundle's to change
    DELETE = "delete"


class ApplyBody(Body, frozen=True, kw_only=True):
    """A bundle, and what may be done for it.

    An agent may hold `children`, which are agents, and `schedules` of its prompts: `name`, `cron_expr`, `timezone`,
    `prompt`, `enabled`. A text in `schedules` is the agent's setting of that name; beside a list, the setting is
    `token_schedules`.
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
    """`path` is dotted; null = it is not there. Long values are cut and shown as text."""

    path: str
    old: Any
    new: Any


class BundleChange(Answer, frozen=True, kw_only=True):
    """`fires_added` and `fires_removed` are those of the next seven days, whatever guards will say to them.

    `exhausted`: it is unchanged, since its runs are used up.
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
    """`dry_run`: this is what would be done, and nothing was. `starts_soon` runs start within a minute."""

    dry_run: bool
    bundle: str | None
    changes: tuple[BundleChange, ...]
    starts_soon: int = 0
