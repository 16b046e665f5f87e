"""How an application puts its templates in place: they are the bundle of its name, and follow its releases."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from horarium.errors import InvalidDefinition
from horarium.operations.bundles import apply_bundle
from horarium.operations.caller import Caller
from horarium.operations.errors import NamespaceNotFound
from horarium.operations.lifecycles import pause_opened, resume_opened
from horarium.operations.resources import Resources, open_schedule
from horarium.schedule.bundle import Bundle, BundleKind
from horarium.schedule.position import Status
from horarium.schedule.release import Turn, declared_no_more, turn_of
from horarium.store import namespaces, releases
from horarium.store.database import Connection
from horarium.store.database.joined_transaction import JoinedTransaction
from horarium.store.schedules import rows
from horarium.wire.bundles import Change

Templates = Mapping[str, Mapping[str, Any]]
"""Documents by id."""

APPLICATION = "app"
# More than anybody declares in one program.
_MOST = 10_000


@dataclass(frozen=True, slots=True)
class Registered:
    """`kept` are ids that somebody made by hand, `foreign` those of other bundles: neither was touched."""

    kept: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()


def register(resources: Resources, caller: Caller, app: str | None, release: str, templates: Templates) -> Registered:
    """In the caller's namespace, in one transaction. An application without a name has no bundle and pauses nothing.

    What is declared in code belongs to the application, unless it names another owner there. Raises
    InvalidDefinition where the name is that of a bundle that somebody applies.
    """
    owned = {name: {"owner": owner_of(app), **document} for name, document in templates.items()}

    def work(connection: Connection) -> Registered:
        if not namespaces.lock(connection, caller.namespace):
            raise NamespaceNotFound(caller.namespace)
        inside = replace(resources, database=JoinedTransaction(resources.database, connection))
        turn = None if app is None else _turn(connection, caller.namespace, app, release)
        there = rows.lock_live(connection, caller.namespace, templates)
        foreign = tuple(name for name, (row, _) in there.items() if row.bundle not in (None, app))
        ours = {name: document for name, document in owned.items() if name not in foreign}
        steps = apply_bundle(inside, caller, Bundle(app, {BundleKind.SCHEDULE: ours}), of_app=True)
        kept = tuple(step.name for step in steps if step.change is Change.KEEP)
        if app is None or turn is None:
            return Registered(kept, foreign)
        paused = _pause_gone(inside, connection, caller, app, templates) if turn is Turn.FIRST else ()
        resumed = _resume_found(inside, connection, caller, app, ours) if turn is not Turn.OLDER else ()
        return Registered(kept, foreign, paused, resumed)

    return resources.database.write(work)


def owner_of(app: str | None) -> str:
    """To whom the templates of an application belong."""
    return APPLICATION if app is None else f"{APPLICATION}:{app}"


def _turn(connection: Connection, namespace: str, app: str, release: str) -> Turn:
    known = releases.numbers(connection, namespace, app)
    if not known and rows.ids_of_bundle(connection, namespace, app, 1):
        raise InvalidDefinition({"name": [f"{app!r} is a bundle that somebody applies; choose another name"]})
    turn, number = turn_of(release, known)
    if turn is Turn.FIRST:
        releases.add(connection, namespace, app, release, number)
    return turn


def _pause_gone(
    resources: Resources, connection: Connection, caller: Caller, app: str, templates: Templates
) -> tuple[str, ...]:
    """What fires though nobody declares it any more."""
    gone = set(rows.ids_of_bundle(connection, caller.namespace, app, _MOST)) - templates.keys()
    paused = []
    for name in sorted(gone):
        opened = open_schedule(resources, connection, caller, name)
        if opened.row.status is Status.ACTIVE:
            pause_opened(connection, caller.because(declared_no_more(app)), opened, sets_note=False)
            paused.append(name)
    return tuple(paused)


def _resume_found(
    resources: Resources, connection: Connection, caller: Caller, app: str, templates: Templates
) -> tuple[str, ...]:
    """What was paused because nobody declared it; a pause of anybody else stays."""
    there = rows.lock_live(connection, caller.namespace, templates)
    found = [name for name, (row, _) in there.items() if row.pause_reason == declared_no_more(app)]
    for name in sorted(found):
        resume_opened(resources, connection, caller, open_schedule(resources, connection, caller, name))
    return tuple(sorted(found))
