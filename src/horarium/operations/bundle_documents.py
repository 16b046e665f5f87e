"""How a bundle brings things that are nothing but their document: calendars, and what is kept like them.

What is particular to a kind is its entry: how it is read, written and taken away. What a bundle may do to others'
things, what it tells and what it prunes is the same for all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from horarium.errors import InvalidDefinition
from horarium.operations.bundle_steps import Applying, Refusals, Step
from horarium.schedule.bundle import BundleKind, Difference, Document, Standing, differences, in_order
from horarium.store.database import Connection
from horarium.wire.bundles import Change

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
class Written:
    """`diff` is what has changed beside the document; the rest as of a `Step`."""

    diff: tuple[Difference, ...] = ()
    warnings: tuple[str, ...] = ()
    starts_soon: int = 0
    fires_added: int = 0
    fires_removed: int = 0

    def step(self, change: Change, kind: BundleKind, name: str, diff: tuple[Difference, ...] = ()) -> Step:
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

    def write(self, applying: Applying, name: str, document: Document, there: Stored | None) -> Written:
        """Makes it what the document says."""

    def set_bundle(self, applying: Applying, name: str) -> None:
        """From now on it is the bundle's."""

    def delete(self, applying: Applying, name: str) -> None:
        """Raises what an ordinary request would be refused with."""


def apply_documents(applying: Applying, refusals: Refusals, of: BundledDocuments) -> list[Step]:
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
    if standing is Standing.KEPT:
        return Step(Change.KEEP, of.kind, name)
    moves = standing is Standing.TAKEN and there.bundle != bundle
    diff = differences(there.document, read)
    if diff or moves:
        applying.caller.require_owner(there.owner, f"the {of.kind} {name!r}")
    done = of.write(applying, name, document, there)
    diff += done.diff
    if moves:
        of.set_bundle(applying, name)
        diff += (Difference("bundle", there.bundle, bundle),)
    change = Change.UPDATE if diff else Change.UNCHANGED
    return done.step(change, of.kind, name, diff)


def prune_documents(applying: Applying, refusals: Refusals, of: BundledDocuments) -> list[Step]:
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
