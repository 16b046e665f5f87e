"""What applying a bundle does to one document, and how its refusal names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from horarium.decision.fires import fires_moved
from horarium.errors import (
    CycleDetected,
    HorariumError,
    InvalidCalendar,
    InvalidDefinition,
    InvalidSpec,
    InvalidWorkflow,
)
from horarium.instant import Instant
from horarium.operations.caller import Caller
from horarium.operations.errors import BundleRefused, InvalidBundle, OperationError, OwnedByAnotherBundle
from horarium.operations.lookups import Lookups
from horarium.operations.resources import Resources
from horarium.policy.quotas import Quotas
from horarium.recurrence.spec import Spec
from horarium.schedule.bundle import Bundle, BundleKind, Difference, Document, Standing, standing
from horarium.store.database import Connection
from horarium.store.database.joined_transaction import JoinedTransaction
from horarium.wire.bundles import Change

_MAX_INVALID = 20


@dataclass(frozen=True, slots=True)
class Step:
    """`diff` is that of an update; fires are those of the next seven days, counted by `counted` from `moved`."""

    change: Change
    kind: BundleKind
    name: str
    diff: tuple[Difference, ...] = ()
    fires_added: int = 0
    fires_removed: int = 0
    warnings: tuple[str, ...] = ()
    exhausted: bool = False
    moved: tuple[Spec | None, Spec | None] | None = None
    """What fired before and what fires now; None = nothing does."""
    starts_soon: int = 0
    """Runs: one if it is new, or its next occurrence is, and that is due within a minute; and held ones it lets go."""


def counted(step: Step, now: Instant) -> Step:
    """For when nothing is locked any more: of a hundred crons in one schedule it takes a tenth of a second."""
    if step.moved is None:
        return step
    added, removed = fires_moved(*step.moved, now=now)
    return replace(step, fires_added=added, fires_removed=removed, moved=None)


@dataclass(frozen=True, slots=True)
class Applying:
    """One application of a bundle, inside its transaction."""

    resources: Resources
    connection: Connection
    caller: Caller
    bundle: Bundle
    adopt: bool
    now: Instant
    lookups: Lookups
    limits: Quotas

    def inside(self) -> Resources:
        """For operations that open a transaction elsewhere: here they are part of this one."""
        return replace(self.resources, database=JoinedTransaction(self.resources.database, self.connection))

    def documents(self, kind: BundleKind) -> Mapping[str, Document]:
        return self.bundle.of(kind)

    def standing(self, kind: BundleKind, name: str, owner: str | None, *, by_hand: bool) -> Standing:
        """Raises OwnedByAnotherBundle."""
        found = standing(owner, self.bundle.name, by_hand=by_hand, adopt=self.adopt)
        if found is Standing.REFUSED:
            raise OwnedByAnotherBundle(f"the {kind} belongs to the bundle {owner!r}; set adopt to take it over")
        return found


class Refusals:
    """All documents that cannot be read are told at once; any other refusal ends the whole at once."""

    def __init__(self, places: Mapping[tuple[BundleKind, str], str]) -> None:
        self._places = places
        self._errors: dict[str, list[str]] = {}
        self._sentences: list[str] = []
        self._first: str | None = None

    @contextmanager
    def about(self, kind: BundleKind, name: str, index: int) -> Iterator[None]:
        """Around the work on one document, the `index`th of its kind unless it stands in another place."""
        try:
            yield
        except CycleDetected as wrong:
            raise self._refused(kind, name, wrong) from wrong
        except (InvalidDefinition, InvalidWorkflow) as wrong:
            if not self._sentences:
                self._first = _schedule(kind, name)
            self._sentences.append(_sentence(kind, name, wrong))
            place = self._places.get((kind, name), f"{kind.member}.{index}")
            self._errors |= {f"{place}.{path}" if path else place: texts for path, texts in wrong.errors.items()}
            if len(self._sentences) == _MAX_INVALID:
                self.raise_any()
        except (OperationError, InvalidCalendar, InvalidSpec) as wrong:
            raise self._refused(kind, name, wrong) from wrong

    def _refused(self, kind: BundleKind, name: str, wrong: HorariumError) -> BundleRefused:
        status = wrong.status if isinstance(wrong, OperationError) else 422
        said = _sentence(kind, name, wrong)
        return BundleRefused(said, reason=wrong.reason, status=status, schedule_id=_schedule(kind, name))

    def raise_any(self) -> None:
        if self._sentences:
            raise InvalidBundle(self._errors, "; ".join(self._sentences), schedule_id=self._first)


def _sentence(kind: BundleKind, name: str, wrong: HorariumError) -> str:
    return f"{kind} {name[:128]!r}: {wrong.message}"


def _schedule(kind: BundleKind, name: str) -> str | None:
    return name[:128] if kind is BundleKind.SCHEDULE else None
