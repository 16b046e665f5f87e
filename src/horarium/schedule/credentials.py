"""Which parts of a definition are credentials, and how they are moved out of it into secrets of their own.

A header whose name says that it authenticates somebody is never kept in plain: at write its value becomes a generated
secret, and a reference stands in its place. The name of that secret is that of its schedule and header, so the same
definition written again names the same secret. The header in full is the secret, `Bearer` and all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final

from horarium.schedule.definition import Action
from horarium.schedule.naming import MAX_ID
from horarium.schedule.secret import KEY, WITH_HEADERS
from horarium.schedule.target import pin_of

# A header carries credentials if one of the words between its dashes is one of these …
_WORDS: Final = frozenset(
    {
        "auth",
        "authentication",
        "authkey",
        "authorization",
        "bearer",
        "cookie",
        "cookie2",
        "csrf",
        "jwt",
        "pass",
        "pat",
        "pw",
        "pwd",
        "session",
        "sessionid",
        "sid",
        "xsrf",
    }
)
# … or if its name contains one of these.
_PARTS: Final = (
    "accesskey",
    "access-key",
    "apikey",
    "api-key",
    "app-key",
    "application-key",
    "authorization",
    "credential",
    "csrftoken",
    "functions-key",
    "master-key",
    "passphrase",
    "passwd",
    "password",
    "private-key",
    "secret",
    "subscription-key",
    "token",
)
# … or if it is one of these.
_NAMES: Final = frozenset({"key", "x-key"})
_OWNER_CHARACTERS = 80
_HEADER_CHARACTERS = 40
_DIGEST_CHARACTERS = 16
_WORKFLOW_CHARACTERS = 36
_PLAIN_HEADER = re.compile(r"[a-z0-9_-]+", re.ASCII)
_NOT_PLAIN = re.compile(r"[^a-z0-9_-]+", re.ASCII)

assert _OWNER_CHARACTERS + 1 + _HEADER_CHARACTERS <= MAX_ID


def carries_credentials(header: str) -> bool:
    name = header.lower().replace("_", "-")
    return name in _NAMES or not _WORDS.isdisjoint(name.split("-")) or any(part in name for part in _PARTS)


def of_schedule(schedule_id: str) -> str:
    """Prefix of the names of a schedule's generated secrets."""
    return f"schedule.{schedule_id}"


def of_run(run_id: str) -> str:
    """The same for a run that no schedule asked for."""
    return f"run.{run_id}"


def of_workflow(workflow_id: str) -> str:
    """Prefix of the names of all generated secrets of a workflow, and of no other workflow's."""
    return f"workflow.{workflow_id[:_WORKFLOW_CHARACTERS]}:{_digest(workflow_id)}:"


def of_node(workflow_id: str, node_id: str) -> str:
    """Prefix for one node in all versions of its workflow."""
    return f"{of_workflow(workflow_id)}{_digest(node_id)}"


def generated_name(owner: str, header: str) -> str:
    """The last dot stands between both: no header of one owner can be taken for that of another."""
    name = header.lower()
    if len(name) > _HEADER_CHARACTERS or _PLAIN_HEADER.fullmatch(name) is None:
        kept = _NOT_PLAIN.sub("-", name)[: _HEADER_CHARACTERS - _DIGEST_CHARACTERS - 1]
        name = f"{kept}-{_digest(name)}"
    return f"{prefix_of(owner)}{name}"


def agent_token_name(agent_id: str) -> str:
    """The generated secret that holds the token of an agent."""
    return generated_name(f"agent.{agent_id}", "token")


def prefix_of(owner: str) -> str:
    if len(owner) > _OWNER_CHARACTERS:
        owner = f"{owner[: _OWNER_CHARACTERS - _DIGEST_CHARACTERS - 1]}:{_digest(owner)}"
    return f"{owner}."


def is_generated_for(owner: str, name: str) -> bool:
    prefix = prefix_of(owner)
    return name.startswith(prefix) and "." not in name[len(prefix) :]


def moved(action: Action, owner: str) -> tuple[Action, dict[str, str]]:
    """The action without plain credentials, and what was taken out of it, by the names of the secrets."""
    headers = action.target.get("headers")
    if action.kind != WITH_HEADERS or not isinstance(headers, Mapping):
        return action, {}
    plain = {
        name: value for name, value in headers.items() if isinstance(value, str) and value and carries_credentials(name)
    }
    if not plain:
        return action, {}
    names = {header: generated_name(owner, header) for header in plain}
    kept = {header: {KEY: names[header]} if header in names else value for header, value in headers.items()}
    return replace(action, target={**action.target, "headers": kept}), {names[each]: plain[each] for each in plain}


def hosts_of(action: Action) -> tuple[str, ...]:
    """Return the pin of its credentials: scheme, host and port that it calls; none where it calls no address."""
    destination = pin_of(action.target.get("url"))
    return (destination,) if destination else ()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARACTERS]
