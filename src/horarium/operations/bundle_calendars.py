"""What applying a bundle does to calendars: a document is the whole of one."""

from __future__ import annotations

from horarium.operations.bundle_steps import Applying, Refusals, Step
from horarium.operations.errors import CalendarInUse
from horarium.operations.quotas import check_bytes
from horarium.schedule.bundle import Difference, Standing, differences
from horarium.schedule.calendar import BUILT_IN, Calendar, parse_calendar, shared_calendar, to_document
from horarium.schedule.holidays import is_rule_name
from horarium.store import calendars
from horarium.store.calendars import CalendarRow
from horarium.store.schedules import references
from horarium.wire.bundles import BundleKind, Change

_KIND = BundleKind.CALENDAR


def apply_calendars(applying: Applying, refusals: Refusals) -> list[Step]:
    wanted = applying.bundle.calendars
    there = calendars.find_many(applying.connection, applying.caller.namespace, wanted) if wanted else {}
    steps = []
    for index, (name, document) in enumerate(wanted.items()):
        with refusals.about(_KIND, name, index):
            if name in BUILT_IN or _is_rule(name):
                steps.append(Step(Change.KEEP, _KIND, name))
            else:
                steps.append(_apply(applying, parse_calendar(document), there.get(name)))
    return steps


def _is_rule(name: str) -> bool:
    """Raises InvalidCalendar for one of a country that nobody knows."""
    return is_rule_name(name) and shared_calendar(name) is not None


def _apply(applying: Applying, calendar: Calendar, row: CalendarRow | None) -> Step:
    """A calendar that no bundle owns may have been made by hand: one with a name does not take it unasked."""
    connection, namespace, bundle = applying.connection, applying.caller.namespace, applying.bundle.name
    name, document = calendar.name, to_document(calendar)
    if row is None:
        owner = applying.caller.principal
        check_bytes(applying.resources, connection, namespace, document, applying.now)
        calendars.insert(connection, namespace, name, document, now=applying.now, bundle=bundle, owner=owner)
        return Step(Change.CREATE, _KIND, name)
    by_hand = row.bundle is None and bundle is not None
    standing = applying.standing(_KIND, name, row.bundle, by_hand=by_hand)
    if standing is Standing.KEPT:
        return Step(Change.KEEP, _KIND, name)
    diff = differences(to_document(parse_calendar(row.document)), document)
    if diff or row.bundle != bundle:
        applying.caller.require_owner(row.owner, f"the calendar {name!r}")
    if standing is Standing.TAKEN and row.bundle != bundle:
        calendars.set_bundle(connection, namespace, name, bundle)
        diff += (Difference("bundle", row.bundle, bundle),)
    if not diff:
        return Step(Change.UNCHANGED, _KIND, name)
    check_bytes(applying.resources, connection, namespace, document, applying.now, before=row.document)
    calendars.update(connection, namespace, name, document, expected_version=row.version, now=applying.now)
    return Step(Change.UPDATE, _KIND, name, diff)


def prune_calendars(applying: Applying, refusals: Refusals, most: int) -> list[Step]:
    """Those of the bundle that it does not have any more; refused while a schedule names one."""
    bundle, connection, namespace = applying.bundle, applying.connection, applying.caller.namespace
    if bundle.name is None:
        return []
    steps = []
    gone = [n for n in calendars.names_of_bundle(connection, namespace, bundle.name, most) if n not in bundle.calendars]
    for name, row in sorted(calendars.find_many(connection, namespace, gone).items() if gone else ()):
        with refusals.about(_KIND, name, len(bundle.calendars)):
            applying.caller.require_owner(row.owner, f"the calendar {name!r}")
            users = references.schedules_with_calendar(connection, namespace, [name])
            if users:
                raise CalendarInUse(name, tuple(schedule_id for schedule_id, _ in users))
            calendars.delete(connection, namespace, name)
        steps.append(Step(Change.DELETE, _KIND, name))
    return steps
