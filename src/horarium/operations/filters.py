"""Which schedules a list shows: filters that must all fit, given one by one or as a query."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from horarium.decision.health_status import HealthStatus
from horarium.operations.attributes import field_attribute, searchable
from horarium.operations.list_errors import InvalidQuery
from horarium.operations.list_tokens import fingerprint
from horarium.operations.visibility import FIELD, TEXT_FIELDS, Clause
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.position import Status
from horarium.store.database.json_text import to_text
from horarium.store.schedules.lists import Filter
from horarium.store.schedules.write import Attribute

LISTED: Final = {status.value: status for status in Status if status is not Status.DELETED}


@dataclass(frozen=True, slots=True)
class ScheduleFilter:
    """None = any."""

    statuses: Collection[Status] | None = None
    workflow: str | None = None
    owner: str | None = None
    source: str | None = None
    bundle: str | None = None
    text: str | None = None
    schedule_ids: tuple[str, ...] | None = None
    labels: Mapping[str, str] | None = None
    search_attributes: Mapping[str, object] | None = None
    query: tuple[Clause, ...] = ()
    include_deleted: bool = False
    health: HealthStatus | None = None
    calendar: str | None = None
    assignee: str | None = None
    assignee_type: AssigneeType | None = None

    @property
    def attributes(self) -> frozenset[str]:
        """The search attributes that the query names."""
        return frozenset(clause.field for clause in self.query if clause.field not in TEXT_FIELDS)

    def fingerprint(self) -> str:
        """The same for the same filters, in whatever order they come."""
        statuses = None if self.statuses is None else sorted(self.statuses)
        query = sorted(f"{clause.field}={type(clause.value).__name__}:{clause.value}" for clause in self.query)
        return fingerprint(asdict(self) | {"statuses": statuses, "query": query or None})

    def filter(self) -> Filter | None:
        """For the store; None where two filters contradict each other, so that nothing can fit."""
        attributes = [Attribute("label", name, value) for name, value in (self.labels or {}).items()]
        attributes += [_search(name, value) for name, value in (self.search_attributes or {}).items()]
        found: Filter | None = Filter(
            statuses=self.statuses,
            workflow=self.workflow,
            owner=self.owner,
            source=self.source,
            bundle=self.bundle,
            text=self.text,
            schedule_ids=self.schedule_ids,
            attributes=attributes,
            include_deleted=self.include_deleted,
            health=self.health,
            mentions=tuple(self._mentions()),
        )
        for clause in self.query:
            found = None if found is None else _narrowed(found, clause)
        return found

    def _mentions(self) -> Iterator[str]:
        """Texts that each matching document contains, as documents are spelled; others may contain them too."""
        if self.calendar is not None:
            yield to_text(self.calendar)
        if self.assignee is not None:
            yield f'"assignee_id":{to_text(self.assignee)}'
        if self.assignee_type is not None:
            yield f'"assignee_type":{to_text(self.assignee_type.value)}'

    def fits(self, document: Mapping[str, Any]) -> bool:
        """Tell whether a document uses the calendar and names the assignee; a damaged one does not."""
        calendars = document.get("calendars")
        return (
            (self.calendar is None or (isinstance(calendars, list) and self.calendar in calendars))
            and self.assignee in (None, document.get("assignee_id"))
            and self.assignee_type in (None, document.get("assignee_type"))
        )


EVERYTHING = ScheduleFilter()


def _narrowed(given: Filter, clause: Clause) -> Filter | None:
    text = str(clause.value)
    match clause.field:
        case "Status":
            status = _status(text)
            fits = given.statuses is None or status in given.statuses
            return replace(given, statuses=[status]) if fits else None
        case "ScheduleId":
            return replace(given, schedule_id=text) if given.schedule_id in (None, text) else None
        case "WorkflowType":
            return replace(given, workflow=text) if given.workflow in (None, text) else None
        case "TaskQueue" | "Note":
            return replace(given, attributes=[*given.attributes, field_attribute(clause.field, text)])
        case name:
            return replace(given, attributes=[*given.attributes, _search(name, clause.value)])


def _search(name: str, value: object) -> Attribute:
    return Attribute("search_attribute", name, searchable(value))


def _status(text: str) -> Status:
    found = LISTED.get(text.lower())
    if found is None:
        raise InvalidQuery(FIELD, f"Status must be one of {', '.join(LISTED)}")
    return found
