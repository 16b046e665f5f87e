"""Create, read, change and delete agents. The schedules of a deleted agent are paused, or deleted with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.checks import agent_token_name
from horarium.core.document.definition import pin_of
from horarium.core.document.json_values import UnreadableEntry
from horarium.core.document.states import Status
from horarium.core.policy.queue import PolicyError
from horarium.errors import InvalidDefinition
from horarium.features.agents import rows as agent_rows
from horarium.features.agents.definition import AGENT, AgentDefinition, checked_token, parents_of
from horarium.features.agents.model import AgentAlreadyExists, AgentInUse, AgentNotFound
from horarium.features.agents.rows import AgentSeen
from horarium.features.bundles.values import BundleKind
from horarium.features.documents import CheckedColumns, DocumentKind, StoredDocument
from horarium.features.resources import Address, Resources, open_schedule
from horarium.features.schedules import rows as schedules
from horarium.features.schedules.drafts import require_namespace
from horarium.features.schedules.lifecycle import delete_opened, pause_opened
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.service import seal
from horarium.features.tenants import rows as tenant_rows
from horarium.platform.caller import Caller
from horarium.platform.database import Connection
from horarium.platform.database.installation import CannotUnseal
from horarium.platform.errors import OperationRefused
from horarium.platform.wire import Permission, Role

_UNSAID: Final = object()
_NO_URL: Final = "url: is not set; the agent receives no prompts and only claims work from a queue"
_TOKEN_REMOVED: Final = "token: was removed, because the scheme, host or port of the URL changed; set the token again"

AGENTS: Final = DocumentKind(
    agent_rows.AGENTS,
    AGENT,
    AgentNotFound,
    AgentAlreadyExists,
    lambda *asked: _check(*asked, token=_UNSAID),
)
# Of schedules that one deletion pauses; more are told to be taken away first.
MOST_SCHEDULES = 10_000
_AT_ONCE = 100
# A pause is a few statements; a deletion may cancel hundreds of runs.
_PAUSED_AT_ONCE, _PURGED_AT_ONCE = 10, 1
_MOST_BELOW = 10_000
_USERS_NAMED = 20


@dataclass(frozen=True, slots=True)
class AgentView:
    """An agent with what is known beside its document; `active_runs` None = nobody has asked."""

    kept: StoredDocument[AgentDefinition]
    has_token: bool
    seen: AgentSeen
    active_runs: int | None = None
    children: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentPage:
    agents: tuple[AgentView | UnreadableEntry, ...]
    next_page_token: str | None


@dataclass(frozen=True, slots=True)
class AgentGone:
    """`paused` and `deleted` are the schedules that went with it."""

    agent_id: str
    paused: tuple[str, ...]
    deleted: tuple[str, ...]


def list_agents(
    resources: Resources, caller: Caller, *, page_size: int | None = None, next_page_token: str | None = None
) -> AgentPage:
    page = AGENTS.list_page(resources, caller, page_size, next_page_token)
    names = [kept.value.agent_id for kept in page.found if not isinstance(kept, UnreadableEntry)]

    def look(connection: Connection) -> AgentPage:
        have = secret_rows.find_names(connection, caller.namespace, [token_name(name) for name in names])
        seen = agent_rows.seen_of(connection, caller.namespace, names)
        views = (
            kept
            if isinstance(kept, UnreadableEntry)
            else AgentView(kept, token_name(kept.value.agent_id) in have, seen.get(kept.value.agent_id, AgentSeen()))
            for kept in page.found
        )
        return AgentPage(tuple(views), page.next_page_token)

    return resources.database.read(look)


def get(resources: Resources, caller: Caller, agent_id: str) -> AgentView:
    """Whoever may see nothing but its own work sees itself, and no other."""
    caller.require(Permission.LOOK)

    def look(connection: Connection) -> AgentView:
        require_namespace(connection, caller.namespace)
        if caller.agent_id not in (None, agent_id):
            raise AgentNotFound(agent_id)
        return _view(connection, caller, AGENTS.stored(AGENTS.find(connection, caller, agent_id)))

    return resources.database.read(look)


def create(resources: Resources, caller: Caller, document: Mapping[str, Any]) -> AgentView:
    plain, token = _without_token(document)
    kept = AGENTS.create(resources, caller, plain, lambda *asked: _check(*asked, token=token))
    return _shown(resources, caller, kept)


def put(
    resources: Resources, caller: Caller, agent_id: str, document: Mapping[str, Any], *, if_version: int | None = None
) -> AgentView:
    """A document that says nothing of the token leaves it; null takes it away."""
    plain, token = _without_token(document)
    kept = AGENTS.put(
        resources, caller, agent_id, plain, lambda *asked: _check(*asked, token=token), if_version=if_version
    )
    return _shown(resources, caller, kept)


def patch(
    resources: Resources, caller: Caller, agent_id: str, changes: Mapping[str, Any], *, if_version: int | None = None
) -> AgentView:
    """Change single fields; a null sets one back, and removes the token."""
    plain, token = _without_token(changes)
    kept = AGENTS.patch(
        resources, caller, agent_id, plain, lambda *asked: _check(*asked, token=token), if_version=if_version
    )
    return _shown(resources, caller, kept)


def delete(
    resources: Resources,
    caller: Caller,
    agent_id: str,
    *,
    purge: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> AgentGone:
    """Its schedules, and those of all agents below it, are paused with a reason; `purge` deletes them.

    So are those of teams for which nobody else works.

    Refused while a team or an assignment names it, unless by `force`: then these keep the name of somebody who is
    gone. Agents below it stay, and have no parent any more. What it came to us with is good no more: who has its name
    later is somebody else. `dry_run` only returns the schedules that would stop.
    """
    caller.require(Permission.WRITE)
    concerned = resources.database.read(lambda connection: _concerned(connection, caller, agent_id, force=force))
    if dry_run:
        would_stop = resources.database.read(partial(_stoppable, caller=caller, names=concerned, purge=purge))
        return _gone(agent_id, would_stop, purge=purge)
    reason = f"its agent {agent_id} was deleted"
    done: list[str] = []
    at_once = _PURGED_AT_ONCE if purge else _PAUSED_AT_ONCE
    for start in range(0, len(concerned), at_once):
        names = concerned[start : start + at_once]
        stop = partial(_stop, resources, caller=caller.because(reason), names=names, purge=purge)
        done += resources.database.write(stop)

    orphan = partial(_orphan, resources, caller=caller, agent_id=agent_id)
    for _ in range(_MOST_BELOW // _AT_ONCE):
        if resources.database.write(orphan) < _AT_ONCE:
            break

    def work(connection: Connection) -> None:
        AGENTS.find(connection, caller, agent_id, lock=True)
        orphan(connection)  # whoever has come meanwhile
        secret_rows.delete(connection, caller.namespace, token_name(agent_id))
        tenant_rows.revoke_tokens_of_subject(
            connection, caller.namespace, agent_id, Role.AGENT.value, now=resources.clock.now()
        )
        agent_rows.AGENTS.delete(connection, caller.namespace, agent_id)

    resources.database.write(work)
    return _gone(agent_id, done, purge=purge)


def _gone(agent_id: str, stopped: Sequence[str], *, purge: bool) -> AgentGone:
    return AgentGone(agent_id, () if purge else tuple(stopped), tuple(stopped) if purge else ())


def token_name(agent_id: str) -> str:
    """The generated secret that holds its token."""
    return agent_token_name(agent_id)


def _without_token(document: Mapping[str, Any]) -> tuple[dict[str, Any], object]:
    """The document without what is never kept in it, and that: `_UNSAID` where nothing is said."""
    plain = dict(document)
    token = plain.pop("token", _UNSAID)
    if token is _UNSAID or token is None:
        return plain, token
    try:
        return plain, checked_token(token)
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _check(
    resources: Resources, connection: Connection, caller: Caller, agent: AgentDefinition, *, token: object
) -> CheckedColumns[AgentDefinition]:
    _check_parent(connection, caller, agent)
    before = agent_rows.AGENTS.find(connection, caller.namespace, agent.agent_id)
    has_moved = before is not None and before.document.get("url") != agent.url
    columns = {"parent_id": agent.parent_id, **(agent_rows.NOT_SEEN if has_moved else {})}
    warnings: tuple[str, ...] = () if agent.url is not None else (_NO_URL,)
    if agent.url is not None:
        address = Address("url", agent.url)
        resources.name_addresses(BundleKind.AGENT.value, agent.agent_id, (address,))
    if (
        token is _UNSAID and before is not None and not has_moved
    ):  # also where its pins are those of another release, or of an operator
        return CheckedColumns(columns, False, warnings)
    has_changed = _keep_token(resources, connection, caller, agent, token)
    if token is _UNSAID and has_changed:
        warnings += (_TOKEN_REMOVED,)
    return CheckedColumns(columns, has_changed, warnings)


def _check_parent(connection: Connection, caller: Caller, agent: AgentDefinition) -> None:
    if agent.parent_id is None:
        return
    if agent_rows.AGENTS.find(connection, caller.namespace, agent.parent_id) is None:
        raise InvalidDefinition({"parent_id": [f"agent {agent.parent_id!r} not found"]})
    above = agent_rows.parents_above(connection, caller.namespace, agent.parent_id)
    try:
        parents_of(agent.agent_id, {**above, agent.agent_id: agent.parent_id})
    except PolicyError as wrong:
        raise InvalidDefinition({wrong.field: [wrong.text]}) from None


def _keep_token(
    resources: Resources, connection: Connection, caller: Caller, agent: AgentDefinition, token: object
) -> bool:
    """Keep the token, pinned to scheme, host and port of the agent's url; return whether it has changed."""
    name, namespace = token_name(agent.agent_id), caller.namespace
    destination = pin_of(agent.url)
    hosts = (destination,) if destination else ()
    before = secret_rows.find_all(connection, namespace, [name]).get(name)
    if token is None:
        return secret_rows.delete(connection, namespace, name)
    if token is _UNSAID and (before is None or before.hosts == hosts):
        return False
    sealer = resources.sealer
    if sealer is None:
        raise OperationRefused("this process has no secret key, so it cannot store tokens; set secret_key")
    try:
        known = None if before is None else before.unseal(sealer)
    except CannotUnseal:
        known = None
    if token is _UNSAID:
        # A new address must not be sent what was meant for the old one.
        secret_rows.delete(connection, namespace, name)
        return True
    if known == token and before is not None and before.hosts == hosts:
        return False
    seal(resources, connection, caller, sealer, name, str(token), hosts, generated=True)
    return True


def _shown(resources: Resources, caller: Caller, kept: StoredDocument[AgentDefinition]) -> AgentView:
    return resources.database.read(lambda connection: _view(connection, caller, kept))


def _view(connection: Connection, caller: Caller, kept: StoredDocument[AgentDefinition]) -> AgentView:
    namespace, agent_id = caller.namespace, kept.value.agent_id
    return AgentView(
        kept,
        secret_rows.find(connection, namespace, token_name(agent_id)) is not None,
        agent_rows.seen_of(connection, namespace, [agent_id]).get(agent_id, AgentSeen()),
        agent_rows.active_runs(connection, namespace, agent_id),
        tuple(agent_rows.children_of(connection, namespace, [agent_id], _USERS_NAMED)),
    )


def _concerned(connection: Connection, caller: Caller, agent_id: str, *, force: bool) -> list[str]:
    """The schedules that stop with it."""
    namespace = caller.namespace
    AGENTS.find(connection, caller, agent_id)
    mine = Assignee(AssigneeType.AGENT, agent_id)
    users = [f"team {name}" for name in agent_rows.teams_with_members(connection, namespace, [agent_id], _USERS_NAMED)]
    users += [f"assignment {name}" for name in agent_rows.assignments_of(connection, namespace, [mine], _USERS_NAMED)]
    if users and not force:
        raise AgentInUse(agent_id, users, "remove the agent from them first, or set force")
    below = agent_rows.descendants_of(connection, namespace, agent_id, _MOST_BELOW)
    alone = agent_rows.teams_without_others(connection, namespace, [agent_id, *below])
    everybody = [mine, *(Assignee(AssigneeType.AGENT, each) for each in below)]
    everybody += [Assignee(AssigneeType.TEAM, each) for each in alone]
    found = agent_rows.schedules_of(connection, namespace, everybody, MOST_SCHEDULES + 1)
    given = agent_rows.assignments_of(connection, namespace, everybody, MOST_SCHEDULES)
    found += agent_rows.schedules_with_assignments(connection, namespace, given, MOST_SCHEDULES + 1)
    if len(found) > MOST_SCHEDULES:
        raise OperationRefused(
            f"more than {MOST_SCHEDULES} schedules depend on this agent; delete or reassign some of them first"
        )
    return sorted(set(found))


def _stop(
    resources: Resources, connection: Connection, *, caller: Caller, names: Sequence[str], purge: bool
) -> list[str]:
    stoppable = _stoppable(connection, caller=caller, names=names, purge=purge)
    for name in stoppable:
        opened = open_schedule(resources, connection, caller, name)
        if purge:
            caller.require_owner(opened.row.owner, f"the schedule {name!r}")
            delete_opened(resources, connection, caller, opened)
        else:
            pause_opened(connection, caller, opened)
    return stoppable


def _stoppable(connection: Connection, *, caller: Caller, names: Sequence[str], purge: bool) -> list[str]:
    """Leave out deleted schedules, and paused ones unless by `purge`: a pause keeps its reason."""
    rows = ((name, schedules.find(connection, caller.namespace, name)) for name in names)
    return [name for name, row in rows if row is not None and (purge or row.status is not Status.PAUSED)]


def _orphan(resources: Resources, connection: Connection, *, caller: Caller, agent_id: str) -> int:
    """Some of those right below it have no parent any more; how many these are."""
    children = agent_rows.children_of(connection, caller.namespace, [agent_id], _AT_ONCE)
    for child in children:
        row = agent_rows.AGENTS.find(connection, caller.namespace, child, lock=True)
        if row is not None:
            document = {name: value for name, value in row.document.items() if name != "parent_id"}
            agent_rows.AGENTS.update(
                connection,
                caller.namespace,
                child,
                document,
                expected_version=row.version,
                now=resources.clock.now(),
                parent_id=None,
            )
    return len(children)
