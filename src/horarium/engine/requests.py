"""Build the request of a launch: action and inputs from the revision of the run, secrets, and the agent's address.

Secrets and agents are fetched together for all runs of a claim, and judged one by one. An opened secret is not stored,
and the token of an agent goes only to its allowed hosts.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from horarium.core.decision.run_policies import assignee_document, terms_of
from horarium.core.document.checks import SECRET_KINDS, agent_token_name, names_in, opened_value, resolved_value
from horarium.core.document.definition import Action, RunDefinition, agent_in
from horarium.core.document.json_values import Json, decode_input, unreadable_of
from horarium.core.document.reader import PROMPT
from horarium.core.document.secret_values import may_go_to, not_allowed
from horarium.core.document.states import Delivery, Origin, delivery_key, instance_id, occurrence_key, step_key
from horarium.core.lifecycle.live_run import NO_RULES, Rules, rules_for
from horarium.core.lifecycle.outcome import Refused, ReportTokens
from horarium.core.policy.approval import UNASKED, LaunchRetry
from horarium.core.policy.queue import inputs_for
from horarium.features.agents.definition import AgentDefinition
from horarium.features.agents.policy_rows import Key, UnreadableDocument, find_agents
from horarium.features.runs.work_rows import RunWork
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets.rows import SecretRow
from horarium.instant import MILLISECOND
from horarium.launchers.launcher import AgentLine, LaunchRequest
from horarium.launchers.requests import destination_of
from horarium.platform.database import Connection
from horarium.platform.database.installation import CannotUnseal, Sealer
from horarium.platform.ids import id_text
from horarium.platform.run_log import RunLog

NO_SECRETS: Final[Mapping[str, str]] = MappingProxyType({})
_OCCURRENCES = (Origin.SCHEDULED.value, Origin.BACKFILL.value)


def key_of(work: RunWork) -> str:
    """An occurrence is named by its schedule and time, a step by its root and its place; any other run by itself."""
    if work.root_run_id is not None and work.node_path is not None:
        return step_key(id_text(work.root_run_id), work.node_path, fallback=work.fallback)
    if work.schedule_uid is not None and work.origin in _OCCURRENCES:
        return occurrence_key(id_text(work.schedule_uid), work.nominal)
    return occurrence_key(id_text(work.run_id), work.nominal)


def rules_of(work: RunWork, definition: RunDefinition | Exception, launch_retry: LaunchRetry) -> Rules:
    """Rules for the run. Steps of a workflow are retried one by one, the workflow itself is not."""
    if isinstance(definition, Exception):
        return NO_RULES
    retry = definition.retry if work.workflow_version is None else UNASKED
    return rules_for(work.kind, retry, definition.limits, launch_retry)


def inputs_of(work: RunWork, definition: RunDefinition) -> Json:
    """As they are written down: encoded, and with the names of secrets."""
    if work.inputs is not None:
        return json.loads(work.inputs)
    return inputs_for(definition.action.input, definition.inputs_rotation, work.rotation_index or 0)


def named_secrets(work: RunWork, definition: RunDefinition | Exception) -> frozenset[str]:
    """The names of the secrets that its launch needs; of what cannot be read there is no launch."""
    if isinstance(definition, Exception) or definition.action.kind not in SECRET_KINDS:
        return frozenset()
    try:
        return names_in(definition.action, inputs_of(work, definition))
    except (ValueError, RecursionError):  # its own inputs are no JSON, which the request will say
        return frozenset()


def with_approved(
    definitions: Mapping[bytes, RunDefinition | Exception], approved: Mapping[bytes, tuple[str, ...]]
) -> Mapping[bytes, RunDefinition | Exception]:
    """Each with the gates that its run has a yes for."""
    if not approved:
        return definitions
    return {
        run_id: definition
        if isinstance(definition, Exception) or run_id not in approved
        else definition._replace(approved_gates=approved[run_id])
        for run_id, definition in definitions.items()
    }


def _place_of(work: RunWork) -> dict[str, Any]:
    """Where a run stands: which stored workflow it is a run or a step of, and below which runs."""
    of_workflow, version = work.of_workflow, work.of_version
    if work.workflow_version is not None:
        of_workflow, version = work.workflow, work.workflow_version
    return {
        "workflow": None if version is None else {"workflow_id": of_workflow, "version": version},
        "node_id": work.node_id,
        "parent_run_id": None if work.parent_run_id is None else id_text(work.parent_run_id),
        "root_run_id": None if work.root_run_id is None else id_text(work.root_run_id),
    }


def build_request(
    work: RunWork,
    definition: RunDefinition,
    tokens: ReportTokens | None = None,
    cancelled: asyncio.Event | None = None,
    log: RunLog | None = None,
    secrets: Mapping[str, str] = NO_SECRETS,
) -> LaunchRequest:
    """`secrets` are the values of those that it names."""
    run_id = id_text(work.run_id)
    inputs, action = inputs_of(work, definition), definition.action
    if secrets:
        inputs = resolved_value(inputs, secrets)
        action = opened_value(action, secrets)
    return LaunchRequest(
        run_id=run_id,
        namespace=work.namespace,
        key=delivery_key(key_of(work), work.attempt, work.gates_passed),
        nominal=work.nominal,
        due=work.due,
        origin=work.origin,
        action=action,
        deadline=work.deadline if work.deadline is not None else work.due + work.allowed_ms * MILLISECOND,
        instance_id=instance_id(definition.schedule_id, Origin(work.origin), work.nominal, run_id),
        schedule_id=None if work.schedule_uid is None else definition.schedule_id,
        attempt=work.attempt,
        inputs=decode_input(inputs),
        own_inputs=work.inputs is not None or bool(definition.inputs_rotation),
        priority=work.priority,
        trigger_number=work.trigger_number,
        user_id=definition.user_id,
        labels=definition.labels,
        memo=definition.memo,
        search_attributes=definition.search_attributes,
        **_place_of(work),
        assignee=assignee_document(work.assignee_type, work.assignee, work.member),
        terms=terms_of(
            definition.approval,
            definition.limits,
            action.global_model_id,
            has_assignee=work.assignee is not None,
            node_gates=definition.node_gates,
            approved_gates=definition.approved_gates,
        ),
        report_url=None if tokens is None else tokens.report_url(run_id),
        report_token=None if tokens is None else tokens.make(work.run_id, work.attempt, work.gates_passed),
        cancelled=cancelled,
        log=log,
        reference=work.reference,
        heard=work.heard,
        once=work.delivery == Delivery.AT_MOST_ONCE,
        secrets=tuple(secrets.values()),
    )


# A statement takes only so many values.
_AT_ONCE = 1_000
MAX_CHARACTERS = 262_144
"""Maximum characters of all secrets of one launch. Every launch in flight holds its own."""

FoundSecrets: TypeAlias = Mapping[str, Mapping[str, SecretRow]]
"""Encrypted secrets by namespace and name."""


def fetch_secrets(connection: Connection, wanted: Iterable[tuple[str, frozenset[str]]]) -> FoundSecrets:
    """Fetch named secrets of each namespace by one query or a few; missing ones are left out."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for namespace, named in wanted:
        if named:
            names[namespace] |= named
    return {namespace: _find(connection, namespace, sorted(named)) for namespace, named in names.items()}


def _find(connection: Connection, namespace: str, names: Sequence[str]) -> dict[str, SecretRow]:
    found: dict[str, SecretRow] = {}
    for first in range(0, len(names), _AT_ONCE):
        found |= secret_rows.find_listed(connection, namespace, names[first : first + _AT_ONCE])
    return found


def open_secrets(
    sealer: Sealer | None,
    action: Action,
    names: frozenset[str],
    rows: Mapping[str, SecretRow],
    url: str | None = None,
) -> dict[str, str] | Refused:
    """Open the values that a launch of this action needs, or say why it cannot be launched.

    `url` is where it goes; None = to the address that stands in the action.
    """
    if not names:
        return {}
    if sealer is None:
        return Refused("This process has no secret key and cannot decrypt the secrets of this run")
    destination = destination_of(action.target.get("url") if url is None else url)
    values: dict[str, str] = {}
    for name in sorted(names):
        row = rows.get(name)
        if row is None:
            return Refused(f"Secret {name!r} does not exist")
        unreadable = unreadable_of(row)
        if unreadable is not None:
            return Refused(f"Secret {name!r} cannot be read ({unreadable.detail}). Set it again")
        if not may_go_to(row.hosts, destination):
            return Refused(not_allowed(name, row.hosts, destination))
        try:
            values[name] = row.unseal(sealer)
        except CannotUnseal:
            return Refused(f"Secret {name!r} cannot be decrypted with this installation's key. Set it again")
    if sum(map(len, values.values())) > MAX_CHARACTERS:
        return Refused(f"The secrets of this run exceed {MAX_CHARACTERS} characters in total")
    return values


def pins_of(names: frozenset[str], rows: Mapping[str, SecretRow]) -> tuple[tuple[str, ...], ...]:
    """Return the pins of each of these secrets that has any: what carries them goes only where all allow it."""
    found = (rows[name].hosts for name in sorted(names) if name in rows)
    return tuple(tuple(hosts) for hosts in found if hosts is not None)


Agents: TypeAlias = Mapping[Key, AgentDefinition | UnreadableDocument]
"""Agents by namespace and ID; a missing key means that the agent does not exist."""

NO_AGENTS: Final[Agents] = MappingProxyType({})


def agent_of(work: RunWork) -> str | None:
    """Agent of a prompt; None for any other run, and for a prompt without an agent."""
    return agent_in(work.target) if work.kind == PROMPT.name else None


def requested_agents(works: Iterable[RunWork]) -> set[Key]:
    return {(work.namespace, agent_id) for work in works if (agent_id := agent_of(work)) is not None}


def token_names(works: Iterable[RunWork]) -> list[tuple[str, frozenset[str]]]:
    """Names of agent tokens by namespace, in the form for secrets."""
    return [(namespace, frozenset({agent_token_name(agent_id)})) for namespace, agent_id in requested_agents(works)]


def answered_in(work: RunWork) -> bytes | None:
    """The approval that may hold the answer to what the agent has asked: while its task is there to go on with."""
    return work.approval_id if work.reference is not None and work.gates_passed and agent_of(work) else None


def to_agent(
    request: LaunchRequest, line: AgentLine, answer: str | None, confided: Collection[str] = ()
) -> LaunchRequest:
    """Add the agent's data; its token and `confided` texts are masked in what it returns."""
    secrets = (*request.secrets, *confided, *(() if line.token is None else (line.token,)))
    return replace(request, agent=line, answer=answer, secrets=secrets)


def find_lines(connection: Connection, sealer: Sealer | None, keys: Collection[Key]) -> dict[Key, AgentLine | Refused]:
    """For who speaks with agents about other things than a launch."""
    found: FoundSecrets = fetch_secrets(
        connection, [(ns, frozenset({agent_token_name(agent_id)})) for ns, agent_id in keys]
    )
    rows = find_agents(connection, keys)
    return {
        (namespace, agent_id): line_to(sealer, agent_id, rows.get((namespace, agent_id)), found.get(namespace, {}))
        for namespace, agent_id in keys
    }


def line_of(
    sealer: Sealer | None, work: RunWork, rows: Agents, secrets: Mapping[str, SecretRow]
) -> AgentLine | Refused:
    agent_id = agent_of(work)
    if agent_id is None:
        whom = f"{work.assignee_type} {work.assignee!r} has no known agent" if work.assignee else "no agent is assigned"
        return Refused(f"The prompt has no recipient: {whom}")
    return line_to(sealer, agent_id, rows.get((work.namespace, agent_id)), secrets)


def line_to(
    sealer: Sealer | None,
    agent_id: str,
    agent: AgentDefinition | UnreadableDocument | None,
    secrets: Mapping[str, SecretRow],
) -> AgentLine | Refused:
    if agent is None:
        return Refused(f"Agent {agent_id!r} does not exist")
    if isinstance(agent, UnreadableDocument):
        return Refused(f"Agent {agent_id!r} cannot be read: {agent.why}")
    if agent.url is None:
        return Refused(f"Agent {agent_id!r} has no url to send prompts to")
    row = secrets.get(agent_token_name(agent_id))
    token = _token(sealer, agent_id, agent.url, row)
    if isinstance(token, Refused):
        return token
    token_hosts = None if row is None else row.hosts
    return AgentLine(agent_id, agent.url, agent.protocol, agent.context, token, agent.allowed_hosts, token_hosts)


def _token(sealer: Sealer | None, agent_id: str, url: str, row: SecretRow | None) -> str | Refused | None:
    if row is None:
        return None
    if sealer is None:
        return Refused(f"This process has no secret key and cannot decrypt the token of agent {agent_id!r}")
    destination = destination_of(url)
    if not may_go_to(row.hosts, destination):
        return Refused(f"{not_allowed(row.name, row.hosts, destination)}, or save the agent again with its token")
    try:
        return row.unseal(sealer)
    except CannotUnseal:
        return Refused(
            f"The token of agent {agent_id!r} cannot be decrypted with this installation's key. Set the token again"
        )
