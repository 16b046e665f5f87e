"""Steps of a bundle for documents: calendars, workflows, agents, teams and assignments."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

from horarium.core.decision.year import fires_moved
from horarium.core.policy.limits import Quotas
from horarium.core.recurrence.spec import Spec
from horarium.errors import (
    CycleDetected,
    HorariumError,
    InvalidCalendar,
    InvalidDefinition,
    InvalidSpec,
    InvalidWorkflow,
)
from horarium.features.bundles.document import (
    Bundle,
    BundleAccess,
    BundleKind,
    Document,
    DocumentDifference,
    bundle_access,
    differences,
    in_order,
)
from horarium.features.bundles.model import Change
from horarium.features.resources import Resources
from horarium.features.schedules.references import Lookups
from horarium.instant import Instant
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.wrapper import JoinedTransaction
from horarium.platform.errors import BundleRefused, InvalidBundle, OperationError, OwnedByAnotherBundle

_MAX_INVALID = 20


@dataclass(frozen=True, slots=True)
class Step:
    """`diff` is that of an update; fires are those of the next seven days, counted by `counted` from `moved`."""

    change: Change
    kind: BundleKind
    name: str
    diff: tuple[DocumentDifference, ...] = ()
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

    def standing(self, kind: BundleKind, name: str, owner: str | None, *, by_hand: bool) -> BundleAccess:
        """Raises OwnedByAnotherBundle."""
        found = bundle_access(owner, self.bundle.name, by_hand=by_hand, adopt=self.adopt)
        if found is BundleAccess.REFUSED:
            raise OwnedByAnotherBundle(f"the {kind} belongs to the bundle {owner!r}; set adopt to take it over")
        return found


class DocumentErrors:
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


MAX_DELETED = 1_000
"""Of each kind, in one request: a deletion may end runs as well."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored document in the form that is compared, with the bundle that brought it and its owner."""

    document: Mapping[str, Any]
    bundle: str | None
    owner: str | None = None
    version: int = 0


@dataclass(frozen=True, slots=True)
class WriteEffects:
    """`diff` is what has changed beside the document; the rest as of a `Step`."""

    diff: tuple[DocumentDifference, ...] = ()
    warnings: tuple[str, ...] = ()
    starts_soon: int = 0
    fires_added: int = 0
    fires_removed: int = 0

    def step(self, change: Change, kind: BundleKind, name: str, diff: tuple[DocumentDifference, ...] = ()) -> Step:
        fires = self.fires_added, self.fires_removed
        return Step(change, kind, name, diff, *fires, warnings=self.warnings, starts_soon=self.starts_soon)


class BundledDocuments(Protocol):
    """One kind. Whatever it does is part of the transaction of the bundle."""

    @property
    def kind(self) -> BundleKind: ...

    def is_built_in(self, name: str) -> bool:
        """It needs no row, and nobody changes it."""

    def named_by(self, document: Document) -> Iterable[str]:
        """Names of documents of the same kind that it refers to: they are written first."""

    def find(self, applying: Applying, names: Collection[str]) -> Mapping[str, Stored]:
        """Those that are there, by name."""

    def of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        """The names of those that a bundle has brought."""

    def read(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Mapping[str, Any]:
        """As `Stored.document` would have it, with what stays as it is there.

        Raises what an ordinary request would be refused with.
        """

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> WriteEffects:
        """Makes it what the document says."""

    def set_bundle(self, applying: Applying, name: str) -> None:
        """From now on it is the bundle's."""

    def delete(self, applying: Applying, name: str) -> None:
        """Raises what an ordinary request would be refused with."""


def apply_documents(applying: Applying, refusals: DocumentErrors, of: BundledDocuments) -> list[Step]:
    """In the order in which they were given, whatever order they are written in."""
    wanted = applying.documents(of.kind)
    there = of.find(applying, list(wanted)) if wanted else {}
    places = {name: index for index, name in enumerate(wanted)}
    steps: dict[str, Step] = {}
    for name in in_order(wanted, lambda each: of.named_by(wanted[each])):
        with refusals.about(of.kind, name, places[name]):
            steps[name] = _apply(applying, of, name, wanted[name], there.get(name))
    return [steps[name] for name in wanted if name in steps]


def _apply(applying: Applying, of: BundledDocuments, name: str, document: Document, there: Stored | None) -> Step:
    """Apply a document. One without a bundle may be manual: a named bundle does not adopt it without `adopt`."""
    bundle = applying.bundle.name
    if of.is_built_in(name):
        return Step(Change.KEEP, of.kind, name)
    read = of.read(applying, name, document, there)
    if there is None:
        made = of.write(applying, name, document, None)
        if bundle is not None:
            of.set_bundle(applying, name)
        return made.step(Change.CREATE, of.kind, name)
    by_hand = there.bundle is None and bundle is not None
    standing = applying.standing(of.kind, name, there.bundle, by_hand=by_hand)
    if standing is BundleAccess.KEPT:
        return Step(Change.KEEP, of.kind, name)
    moves = standing is BundleAccess.TAKEN and there.bundle != bundle
    diff = differences(there.document, read)
    if diff or moves:
        applying.caller.require_owner(there.owner, f"the {of.kind} {name!r}")
    done = of.write(applying, name, document, there)
    diff += done.diff
    if moves:
        of.set_bundle(applying, name)
        diff += (DocumentDifference("bundle", there.bundle, bundle),)
    change = Change.UPDATE if diff else Change.UNCHANGED
    return done.step(change, of.kind, name, diff)


def prune_documents(applying: Applying, refusals: DocumentErrors, of: BundledDocuments) -> list[Step]:
    """Those of the bundle that it does not have any more; refused while something names one."""
    bundle, wanted = applying.bundle.name, applying.documents(of.kind)
    if bundle is None:
        return []
    owned = of.of_bundle(applying.connection, applying.caller.namespace, bundle, MAX_DELETED + len(wanted) + 1)
    there = of.find(applying, gone) if (gone := [name for name in owned if name not in wanted]) else {}
    require_few(of.kind, gone)
    steps = []
    # Those that name others go before them.
    for name in reversed(in_order(sorted(there), lambda each: of.named_by(there[each].document))):
        with refusals.about(of.kind, name, len(wanted)):
            applying.caller.require_owner(there[name].owner, f"the {of.kind} {name!r}")
            of.delete(applying, name)
        steps.append(Step(Change.DELETE, of.kind, name))
    return sorted(steps, key=lambda step: step.name)


def require_few(kind: BundleKind, gone: Collection[str]) -> None:
    if len(gone) > MAX_DELETED:
        raise InvalidDefinition({"prune": [f"would delete more than {MAX_DELETED} {kind.member}; delete some first"]})
