"""Routes of agents. The token of an agent is accepted and never shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query
from starlette.concurrency import run_in_threadpool

from horarium.core.document.assignee import AgentContext, AgentProtocol, AgentSchedules, policies_document
from horarium.features.agents import service, teams
from horarium.features.agents.model import (
    Agent,
    AgentBody,
    AgentCard,
    AgentChecked,
    AgentDeleted,
    AgentInterface,
    AgentList,
)
from horarium.features.agents.service import AgentView
from horarium.features.agents.teams import AgentCheck
from horarium.instant import to_datetime
from horarium.launchers.a2a.card import summary
from horarium.platform.http.audited import Audited
from horarium.platform.http.examples import AT
from horarium.platform.http.limits import readable, within_bytes
from horarium.platform.http.requests import CallerOf, Document, ResourcesOf
from horarium.platform.http.responses import IfMatch, Reply, etag, version_of
from horarium.platform.http.routing import LOOK, OPERATE, READ, WRITE, Routes
from horarium.platform.wire import WriteOutcome, time_of

routes = Routes("/api/agents", tag="agents")

_SENT: dict[str, Any] = {
    "id": "writer",
    "name": "Writer",
    "url": "https://agents.example.com/writer",
    "policies": {"approval_policy": {"gates": ["publish"]}, "budget": {"spending_limit_credits": 5}},
}
_EXAMPLE = Agent(
    id="writer",
    name="Writer",
    url="https://agents.example.com/writer",
    parent_id=None,
    capacity=1,
    has_token=False,
    protocol=AgentProtocol.AUTO,
    context=AgentContext.FRESH,
    policies=_SENT["policies"],
    native_scheduler=False,
    allowed_hosts=(),
    schedules=AgentSchedules.OWN,
    last_seen_at=None,
    card=AgentCard(name="Writer", version="2.1.0", protocol="1.0"),
    card_at=AT,
    card_error=None,
    version=1,
    created_at=AT,
    updated_at=AT,
    active_runs=0,
    children=(),
    outcome=WriteOutcome.CREATED,
)


@routes(
    "GET",
    "",
    needs=READ,
    summary="List agents",
    answer=AgentList,
    example=AgentList(agents=(_EXAMPLE,), next_page_token=None),
)
def list_agents(
    resources: ResourcesOf,
    caller: CallerOf,
    page_size: Annotated[int | None, Query(description="Page size, 1 to 200.")] = None,
    next_page_token: Annotated[str | None, Query(max_length=128)] = None,
) -> Reply:
    """Sorted by ID."""
    page, shown = within_bytes(
        page_size,
        lambda most: service.list_agents(resources, caller, page_size=most, next_page_token=next_page_token),
        lambda page: readable(resources, "agent", page.agents, _shown, lambda each: each.kept.value.agent_id),
    )
    return Reply(AgentList(agents=shown, next_page_token=page.next_page_token))


@routes(
    "POST",
    "",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create an agent",
    body=AgentBody,
    sends=_SENT,
    answer=Agent,
    status=201,
    example=_EXAMPLE,
    warns=True,
)
def create_agent(resources: ResourcesOf, caller: CallerOf, document: Document) -> Reply:
    return _reply(service.create(resources, caller, document), 201)


@routes("GET", "/{agent_id}", needs=LOOK, summary="Show an agent", answer=Agent, example=_EXAMPLE)
def get_agent(resources: ResourcesOf, caller: CallerOf, agent_id: str) -> Reply:
    """A caller with the role `agent` can show only its own agent."""
    return _reply(service.get(resources, caller, agent_id))


@routes(
    "PUT",
    "/{agent_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Create or replace an agent",
    body=AgentBody,
    sends={"name": "Writer", "capacity": 2},
    answer=Agent,
    also=(201,),
    example=_EXAMPLE,
    warns=True,
)
def put_agent(
    resources: ResourcesOf, caller: CallerOf, agent_id: str, document: Document, if_match: IfMatch = None
) -> Reply:
    """Replaces the whole agent. An omitted `token` is kept as long as `url` does not change."""
    view = service.put(resources, caller, agent_id, document, if_version=version_of(if_match))
    return _reply(view, 201 if view.kept.outcome is WriteOutcome.CREATED else 200)


@routes(
    "PATCH",
    "/{agent_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Update fields of an agent",
    body=AgentBody,
    sends={"capacity": 2, "policies": {"budget": {"max_daily_runs": 50}}},
    answer=Agent,
    example=_EXAMPLE,
    warns=True,
)
def patch_agent(
    resources: ResourcesOf, caller: CallerOf, agent_id: str, changes: Document, if_match: IfMatch = None
) -> Reply:
    """JSON merge patch (RFC 7396): omitted fields are kept, objects are merged, null restores the default."""
    return _reply(service.patch(resources, caller, agent_id, changes, if_version=version_of(if_match)))


@routes(
    "DELETE",
    "/{agent_id}",
    needs=WRITE,
    audited=Audited.IN_NAMESPACE,
    summary="Delete an agent",
    answer=AgentDeleted,
    example=AgentDeleted(
        id="writer", outcome=WriteOutcome.DELETED, paused_schedules=("daily-brief",), deleted_schedules=()
    ),
    in_parts=True,
)
def delete_agent(
    resources: ResourcesOf,
    caller: CallerOf,
    agent_id: str,
    purge: Annotated[bool, Query(description="Delete its schedules instead of pausing them.")] = False,
    force: Annotated[bool, Query(description="Delete even if a team or an assignment uses it.")] = False,
    dry_run: Annotated[bool, Query(description="Only list the schedules that would be paused or deleted.")] = False,
) -> Reply:
    """Pauses its schedules and those of the agents below it. With `dry_run` the outcome is `unchanged`."""
    gone = service.delete(resources, caller, agent_id, purge=purge, force=force, dry_run=dry_run)
    return Reply(
        AgentDeleted(
            id=agent_id,
            outcome=WriteOutcome.UNCHANGED if dry_run else WriteOutcome.DELETED,
            paused_schedules=gone.paused,
            deleted_schedules=gone.deleted,
        )
    )


@routes(
    "POST",
    "/{agent_id}/check",
    needs=OPERATE,
    summary="Fetch the card of an agent",
    answer=AgentChecked,
    example=AgentChecked(
        id="writer",
        reachable=True,
        card=AgentCard(name="Writer", version="2.1.0", protocol="1.0"),
        dialect="1.0",
        error=None,
        interfaces=(
            AgentInterface(
                url="https://agents.example.com/writer", dialect="1.0", used=True, with_token=True, why_not=None
            ),
        ),
        etag='"1f2e"',
        checked_at=AT,
    ),
    repeatable=False,  # it is there to be asked each time
)
async def check_agent(resources: ResourcesOf, caller: CallerOf, agent_id: str) -> Reply:
    """Fetches the agent card (timeout 10 s) and reports the URL that prompts go to. Sends no prompt and no token.

    If the agent cannot be reached, `reachable` is false and `error` has the cause.
    """
    line = await run_in_threadpool(teams.line_of, resources, caller, agent_id)
    seen = await teams.ask(resources, caller, line)
    found = await run_in_threadpool(teams.keep, resources, caller, line, seen)
    return Reply(_checked(found))


def _checked(found: AgentCheck) -> AgentChecked:
    return AgentChecked(
        id=found.agent_id,
        reachable=found.seen.answered,
        card=shown_card(summary(found.seen.card)),
        dialect=found.dialect,
        error=found.seen.error,
        interfaces=tuple(
            AgentInterface(
                url=each.interface.url,
                dialect=each.interface.dialect.value,
                used=each.why_not is None,
                with_token=each.with_token,
                why_not=each.why_not,
            )
            for each in found.interfaces
        ),
        etag=found.seen.etag,
        checked_at=to_datetime(found.checked_at),
    )


def _reply(view: AgentView, status_code: int = 200) -> Reply:
    return Reply(_shown(view), status_code, headers={"ETag": etag(view.kept.version)})


def _shown(view: AgentView) -> Agent:
    kept, agent = view.kept, view.kept.value
    is_list = view.active_runs is None
    return Agent(
        id=agent.agent_id,
        name=agent.name,
        url=agent.url,
        parent_id=agent.parent_id,
        capacity=agent.capacity,
        has_token=view.has_token,
        protocol=agent.protocol,
        context=agent.context,
        policies=policies_document(agent.policies),
        native_scheduler=agent.native_scheduler,
        allowed_hosts=agent.allowed_hosts,
        schedules=agent.schedules,
        last_seen_at=time_of(view.seen.last_seen_at),
        card=shown_card(view.seen.card),
        card_at=time_of(view.seen.card_at),
        card_error=view.seen.card_error,
        version=kept.version,
        created_at=to_datetime(kept.created_at),
        updated_at=to_datetime(kept.updated_at),
        bundle=kept.bundle,
        active_runs=view.active_runs,
        children=None if is_list else view.children,
        outcome=None if is_list else kept.outcome,
        warnings=kept.warnings,
    )


def shown_card(card: Mapping[str, Any] | None) -> AgentCard | None:
    """Off what is kept of it, or off the card itself."""
    if card is None or not isinstance(card.get("name"), str):
        return None
    version, protocol = (each if isinstance(each, str) else None for each in map(card.get, ("version", "protocol")))
    return AgentCard(name=card["name"], version=version, protocol=protocol)
