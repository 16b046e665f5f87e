"""SQL of agents, teams and assignments: versioned documents by name, their dependents, and cards of agents.

The last card of an agent is stored beside its document, and written when something in it is new.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection, Table

from horarium.core.document.assignee import Assignee, AssigneeType, parse_team, workers_of
from horarium.core.document.json_values import Json
from horarium.errors import HorariumError
from horarium.features.agents.definition import MAX_DEPTH
from horarium.instant import SECOND, Instant
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.run_states import OPEN_OF_ASSIGNEE, OPEN_OF_MEMBER
from horarium.platform.database.statements import Row, from_text, page_within_bytes, sized, storable_text, to_text
from horarium.platform.database.tables import agents, assignments, runs, schedule_revisions, schedules, teams


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """`text` is the document as it is kept: one that cannot be read must not break a list."""

    namespace: str
    name: str
    text: str
    version: int
    created_at: Instant
    updated_at: Instant
    bundle: str | None = None

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = from_text(self.text)
        return found


class NamedDocuments:
    """The rows of one table, whose primary key is the namespace and a name."""

    def __init__(self, table: Table) -> None:
        self.table = table
        _, self.key = table.primary_key.columns
        c = table.c
        columns = (c.namespace, self.key, c.document, c.version, c.created_at, c.updated_at, c.bundle)
        self._select = sa.select(*columns)
        self._sized = sized(self._select, c.document)

    def insert(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        document: Mapping[str, Any],
        *,
        now: Instant,
        **more: Any,
    ) -> None:
        """`more` are other columns. Raises Conflict if the name is taken."""
        values = {"namespace": namespace, self.key.name: name, "document": to_text(document), "version": 1}
        connection.execute(sa.insert(self.table).values(**values, created_at=now, updated_at=now, **more))

    def update(
        self,
        connection: Connection,
        namespace: str,
        name: str,
        document: Mapping[str, Any],
        *,
        expected_version: int,
        now: Instant,
        **more: Any,
    ) -> int:
        """The new version. Raises Conflict if it is gone or was changed since."""
        values = {"document": to_text(document), "version": expected_version + 1, "updated_at": now, **more}
        is_same = self.table.c.version == expected_version
        changed = connection.execute(
            sa.update(self.table).where(*self._named(namespace, name), is_same).values(**values)
        )
        if changed.rowcount != 1:
            raise UniqueConflict(f"{self.table.name}.version")
        return expected_version + 1

    def delete(self, connection: Connection, namespace: str, name: str) -> bool:
        """Return whether a document was deleted."""
        return connection.execute(sa.delete(self.table).where(*self._named(namespace, name))).rowcount == 1

    def set_bundle(self, connection: Connection, namespace: str, name: str, bundle: str | None) -> None:
        connection.execute(sa.update(self.table).where(*self._named(namespace, name)).values(bundle=bundle))

    def find(self, connection: Connection, namespace: str, name: str, *, lock: bool = False) -> NamedDocument | None:
        statement = self._select.where(*self._named(namespace, name))
        found = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
        return None if found is None else NamedDocument(*found)

    def find_many(self, connection: Connection, namespace: str, names: Collection[str]) -> dict[str, NamedDocument]:
        """Those that exist, by name."""
        if not names:
            return {}
        wanted = self._select.where(self.table.c.namespace == namespace, self.key.in_(names))
        return {row.name: row for row in (NamedDocument(*each) for each in connection.execute(wanted))}

    def names_of_bundle(self, connection: Connection, namespace: str, bundle: str, most: int) -> list[str]:
        own = (self.table.c.namespace == namespace, self.table.c.bundle == bundle)
        return list(connection.execute(sa.select(self.key).where(*own).order_by(self.key).limit(most)).scalars())

    def list_page(
        self,
        connection: Connection,
        namespace: str,
        *,
        after: str | None = None,
        limit: int,
        where: Sequence[sa.ColumnElement[bool]] = (),
    ) -> tuple[list[NamedDocument], bool]:
        """By name, as many as fit in a page; and whether there are more."""
        statement = self._sized.where(self.table.c.namespace == namespace, *where).order_by(self.key).limit(limit + 1)
        if after is not None:
            statement = statement.where(self.key > after)
        found = connection.execute(statement).all()

        def load(rows: Sequence[Row]) -> Mapping[Row, Any]:
            by_name = {row[1]: row for row in rows}
            own = (self.table.c.namespace == namespace, self.key.in_(list(by_name)))
            documents = connection.execute(sa.select(self.key, self.table.c.document).where(*own))
            return {by_name[name]: document for name, document in documents}

        rows, more = page_within_bytes(found, limit, 2, load)
        return [NamedDocument(*row) for row in rows], more

    def _named(self, namespace: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
        return self.table.c.namespace == namespace, self.key == name


_SEEN_EVERY = 30 * SECOND
# SQLite takes a thousand terms of an OR, and long before that looking at each document is no slower.
_MOST_NARROWED = 100
_ROWS_AT_ONCE = 500

AGENTS = NamedDocuments(agents)
TEAMS = NamedDocuments(teams)
ASSIGNMENTS = NamedDocuments(assignments)


class AgentSeen(NamedTuple):
    """When it was here, what it said of itself and when it was asked, or why it could not be had.

    `dialect` is that in which it answered last.
    """

    last_seen_at: Instant | None = None
    card: Mapping[str, Any] | None = None
    card_at: Instant | None = None
    card_error: str | None = None
    dialect: str | None = None


# Of one whose address has changed nothing is known any more.
NOT_SEEN: Final = {"card": None, "card_etag": None, "card_at": None, "card_error": None, "dialect": None}


def seen_of(connection: Connection, namespace: str, agent_ids: Collection[str]) -> dict[str, AgentSeen]:
    c = agents.c
    columns = (c.agent_id, c.last_seen_at, c.card, c.card_at, c.card_error, c.dialect)
    rows = connection.execute(sa.select(*columns).where(c.namespace == namespace, c.agent_id.in_(agent_ids)))
    return {agent_id: AgentSeen(at, _card(card), *rest) for agent_id, at, card, *rest in rows}


def _card(text: str | None) -> Mapping[str, Any] | None:
    """None also for what cannot be read: it can be asked for again."""
    try:
        found = None if text is None else from_text(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def set_seen(connection: Connection, namespace: str, agent_id: str, now: Instant) -> None:
    """It was here; how exactly that is told is not worth a write at every question."""
    own = (agents.c.namespace == namespace, agents.c.agent_id == agent_id)
    is_old = sa.or_(agents.c.last_seen_at.is_(None), agents.c.last_seen_at < now - _SEEN_EVERY)
    connection.execute(sa.update(agents).where(*own, is_old).values(last_seen_at=now))


def parents_above(connection: Connection, namespace: str, *agent_ids: str) -> dict[str, str | None]:
    """Return the parents of agents and of all above them, up to the permitted depth; unknown agents are left out.

    One statement whatever it finds, so its time does not tell whether an agent exists.
    """
    named = sa.select(agents.c.agent_id, agents.c.parent_id, sa.literal(0).label("height")).where(
        agents.c.namespace == namespace, agents.c.agent_id.in_(agent_ids)
    )
    line = named.cte("line", recursive=True)
    above = sa.select(agents.c.agent_id, agents.c.parent_id, line.c.height + 1).where(
        agents.c.namespace == namespace, agents.c.agent_id == line.c.parent_id, line.c.height < MAX_DEPTH
    )
    line = line.union_all(above)
    return {row.agent_id: row.parent_id for row in connection.execute(sa.select(line.c.agent_id, line.c.parent_id))}


def children_of(connection: Connection, namespace: str, agent_ids: Collection[str], most: int) -> list[str]:
    own = (agents.c.namespace == namespace, agents.c.parent_id.in_(agent_ids))
    return list(
        connection.execute(sa.select(agents.c.agent_id).where(*own).order_by(agents.c.agent_id).limit(most)).scalars()
    )


def descendants_of(connection: Connection, namespace: str, agent_id: str, most: int) -> list[str]:
    """All below it, without itself."""
    found: dict[str, None] = {}
    level = [agent_id]
    while level and len(found) < most:
        below = children_of(connection, namespace, level, most)
        level = [each for each in below if each != agent_id and each not in found]
        found |= dict.fromkeys(level)
    return list(found)[:most]


def active_runs(connection: Connection, namespace: str, agent_id: str) -> int:
    """Runs and steps of it that have not ended: its own, and those where it works for a team."""
    is_agent = sa.func.coalesce(runs.c.assignee_type, AssigneeType.AGENT.value) == AssigneeType.AGENT.value
    own = (runs.c.assignee == agent_id, sa.text(OPEN_OF_ASSIGNEE), is_agent)
    as_member = (runs.c.member == agent_id, sa.text(OPEN_OF_MEMBER))
    count = sa.select(sa.func.count()).select_from(runs).where(runs.c.namespace == namespace)
    return sum(connection.execute(count.where(*mine)).scalar_one() for mine in (own, as_member))


def teams_with_members(connection: Connection, namespace: str, agent_ids: Collection[str], most: int) -> list[str]:
    """Teams that count one of them among their members, by id."""
    wanted = set(agent_ids)
    rows = _teams_that_mention(connection, namespace, wanted)
    return [team_id for team_id, text in rows if wanted.intersection(from_text(text).get("members", ()))][:most]


def teams_without_others(connection: Connection, namespace: str, agent_ids: Collection[str]) -> list[str]:
    """Teams for which nobody else works, by id: whoever leads, or all members where they take turns."""
    gone, found = set(agent_ids), []
    for team_id, text in _teams_that_mention(connection, namespace, gone):
        with suppress(HorariumError, ValueError, TypeError):  # of one that cannot be read nobody knows who works
            if gone.issuperset(workers_of(parse_team(from_text(text)))):
                found.append(team_id)
    return found


def _teams_that_mention(connection: Connection, namespace: str, agent_ids: Collection[str]) -> list[tuple[str, str]]:
    """With their documents, by id."""
    rows = connection.execute(
        sa.select(teams.c.team_id, teams.c.document)
        .where(teams.c.namespace == namespace, _mentions(teams.c.document, agent_ids))
        .order_by(teams.c.team_id)
    )
    return [(team_id, text) for team_id, text in rows]


def _mentions(text: sa.Column[str], names: Collection[str]) -> sa.ColumnElement[bool]:
    """Narrows a search, after which the document decides; of very many names each document is looked at instead."""
    if len(names) > _MOST_NARROWED:
        return sa.true()
    return sa.or_(*(text.contains(to_text(each), autoescape=True) for each in names))


def assignments_of(connection: Connection, namespace: str, assignees: Collection[Assignee], most: int) -> list[str]:
    """Assignments that give work to one of them, by id."""
    wanted = {(each.type.value, each.id) for each in assignees}
    mentioned = _mentions(assignments.c.document, {name for _, name in wanted})
    rows = connection.execute(
        sa.select(assignments.c.assignment_id, assignments.c.document)
        .where(assignments.c.namespace == namespace, mentioned)
        .order_by(assignments.c.assignment_id)
    )
    read = ((found, from_text(text)) for found, text in rows)
    return [found for found, said in read if (said.get("assignee_type", "agent"), said.get("assignee_id")) in wanted][
        :most
    ]


def schedules_of(connection: Connection, namespace: str, assignees: Collection[Assignee], most: int) -> list[str]:
    """Live schedules that name one of them as their assignee, by id."""
    return _schedules_that_say(
        connection,
        namespace,
        [each.id for each in assignees],
        {(each.type.value, each.id) for each in assignees},
        ("assignee_type", "assignee_id"),
        most,
    )


def schedules_with_assignments(connection: Connection, namespace: str, names: Collection[str], most: int) -> list[str]:
    """Live schedules that stand for one of the assignments, by id."""
    wanted: set[tuple[object, ...]] = {(name,) for name in names}
    return _schedules_that_say(connection, namespace, list(names), wanted, ("workflow_assignment_id",), most)


def _schedules_that_say(
    connection: Connection,
    namespace: str,
    mentioned: Sequence[str],
    wanted: Collection[tuple[object, ...]],
    members: tuple[str, ...],
    most: int,
) -> list[str]:
    if not mentioned:
        return []
    newest = sa.and_(
        schedule_revisions.c.schedule_uid == schedules.c.schedule_uid,
        schedule_revisions.c.revision == schedules.c.revision,
    )
    narrowed = _mentions(schedule_revisions.c.document, mentioned)
    rows = connection.execute(
        sa.select(schedules.c.schedule_id, schedule_revisions.c.document)
        .join_from(schedules, schedule_revisions, newest)
        .where(schedules.c.namespace == namespace, schedules.c.deleted_at.is_(None), narrowed)
        .order_by(schedules.c.schedule_id),
        execution_options={"yield_per": _ROWS_AT_ONCE},
    )
    found: list[str] = []
    for schedule_id, text in rows:
        document = from_text(text)
        said = tuple(document.get(name, "agent" if name == "assignee_type" else None) for name in members)
        if said in wanted and len(found) < most:
            found.append(schedule_id)
    return found


MAX_ERROR = 1_000


class SeenCard(NamedTuple):
    """`card` None = it could not be had, `error` says why; `dialect` None = nobody has spoken with it."""

    card: Mapping[str, Json] | None
    etag: str | None = None
    error: str | None = None
    dialect: str | None = None


def save_card(connection: Connection, namespace: str, agent_id: str, seen: SeenCard, now: Instant) -> None:
    """A card that cannot be had now leaves the one that was there before, with the reason beside it."""
    values: dict[str, Any] = {
        "card_at": now,
        "card_error": None if seen.error is None else storable_text(seen.error, MAX_ERROR),
    }
    if seen.card is not None:
        values |= {"card": to_text(seen.card), "card_etag": seen.etag}
    if seen.dialect is not None:
        values["dialect"] = seen.dialect
    if seen.card is not None or seen.dialect is not None:
        values["last_seen_at"] = now
    connection.execute(
        sa.update(agents).where(agents.c.namespace == namespace, agents.c.agent_id == agent_id).values(values)
    )
