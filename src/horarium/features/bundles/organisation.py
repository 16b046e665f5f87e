"""Organisation bundles: agents inside agents, each with its scheduled prompts.

{"agents": [{"id": "lead", "schedules": [{"name": "Daily audit", "cron_expr": "0 9 * * *", "prompt": "…"}],
             "children": [{"id": "writer", "schedules": […]}]}]}

The bundle is turned into the common form: agents that name their parents, and schedules of their prompts. Where
`schedules` is a text, it is the agent's setting of that name; beside a list, the setting is `token_schedules`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from horarium.core.document.assignee import AssigneeType
from horarium.core.document.json_values import is_storable
from horarium.core.policy.queue import shown
from horarium.features.agents.definition import MAX_DEPTH

CHILDREN, SCHEDULES, PROMPT_FILE = "children", "schedules", "prompt_file"
TOKEN_SCHEDULES = "token_schedules"
_FIELDS: Final = ("name", "cron_expr", "timezone", "prompt", PROMPT_FILE, "enabled")
_REQUIRED: Final = ("name", "cron_expr", "prompt")
_MAX_PROBLEMS = 20
_MAX_AGENT, _MAX_SLUG, _DIGITS = 70, 40, 8
_NOT_IN_A_SLUG = re.compile(r"[^a-z0-9]+")

Problems = dict[str, list[str]]


@dataclass(slots=True)
class Flat:
    """Agents and schedules, each with the place where it stood."""

    agents: list[tuple[str, object]] = field(default_factory=list)
    schedules: list[tuple[str, dict[str, Any]]] = field(default_factory=list)


def flattened(agents: Sequence[object], problems: Problems) -> Flat:
    """Parents before their children, else in the order in which they stood. Into `problems` goes all that is wrong."""
    found, wrong = Flat(), Problems()
    waiting = [(f"agents.{index}", row, None, 1) for index, row in reversed([*enumerate(agents)])]
    while waiting:
        place, row, parent, depth = waiting.pop()
        below = _agent(found, wrong, place, row, parent)
        if below and depth >= MAX_DEPTH:
            _tell(wrong, f"{place}.{CHILDREN}", f"agents are nested more than {MAX_DEPTH} levels deep")
        elif below and isinstance(row, Mapping):
            inside = [
                (f"{place}.{CHILDREN}.{index}", each, row.get("id"), depth + 1) for index, each in enumerate(below)
            ]
            waiting += reversed(inside)
    problems |= wrong
    return found


def seeded_id(agent_id: str, name: str) -> str:
    """Id of the schedule that an organisation gives an agent under this name: always the same, and unique."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = _NOT_IN_A_SLUG.sub("-", plain)[:_MAX_SLUG].strip("-") or "prompt"
    digest = sha256(f"{agent_id}\n{name}".encode("utf-8", "replace")).hexdigest()[:_DIGITS]
    return f"{agent_id[:_MAX_AGENT]}--{slug}-{digest}"


def _agent(found: Flat, wrong: Problems, place: str, row: object, parent: object) -> Sequence[object]:
    """Its children; it and its schedules are in `found`. What is no agent at all is told by whoever reads agents."""
    if not isinstance(row, Mapping):
        found.agents.append((place, row))
        return ()
    plain = {name: value for name, value in row.items() if name not in (CHILDREN, SCHEDULES, TOKEN_SCHEDULES)}
    setting, prompts = row.get(TOKEN_SCHEDULES), row.get(SCHEDULES)
    if isinstance(prompts, str) and setting is not None:
        _tell(wrong, f"{place}.{TOKEN_SCHEDULES}", "is specified twice: here and in schedules")
    setting = prompts if isinstance(prompts, str) else setting
    if setting is not None:
        plain[SCHEDULES] = setting
    if parent is not None:
        if plain.get("parent_id") not in (None, parent):
            _tell(wrong, f"{place}.parent_id", f"must be {shown(parent)}, because the agent is listed as its child")
        plain["parent_id"] = parent
    found.agents.append((place, plain))
    agent_id = row.get("id")
    if not isinstance(agent_id, str):
        return ()
    names: set[str] = set()
    schedules = () if isinstance(prompts, str) else _rows(row, SCHEDULES, place, wrong)
    for index, schedule in enumerate(schedules):
        _schedule(found, wrong, f"{place}.{SCHEDULES}.{index}", agent_id, schedule, names)
    return _rows(row, CHILDREN, place, wrong)


def _rows(row: Mapping[str, Any], member: str, place: str, wrong: Problems) -> Sequence[object]:
    rows = row.get(member)
    if rows is None or isinstance(rows, list | tuple):
        return rows or ()
    _tell(wrong, f"{place}.{member}", f"must be an array of objects, not {shown(rows)}")
    return ()


def _schedule(found: Flat, wrong: Problems, place: str, agent_id: str, row: object, names: set[str]) -> None:
    if not isinstance(row, Mapping):
        _tell(wrong, place, f"must be an object, not {shown(row)}")
        return
    given = {str(name): value for name, value in row.items() if value is not None}
    if problems := _problems(given, names):
        for name, text in problems.items():
            _tell(wrong, f"{place}.{name}", text)
        return
    names.add(given["name"])
    prompt = given["prompt"]
    document = {
        "schedule_id": seeded_id(agent_id, given["name"]),
        "name": given["name"],
        "cron_expr": given["cron_expr"],
        "timezone": given.get("timezone", "UTC"),
        "prompt": prompt.replace("\r", "") if isinstance(prompt, str) else prompt,
        "assignee_type": AssigneeType.AGENT.value,
        "assignee_id": agent_id,
        # Who may bring it in may run it: only the agent's own policy asks for more.
        "approval_policy": {"requires_approval": False},
        "paused": not given.get("enabled", True),
    }
    found.schedules.append((place, document))


def _problems(given: Mapping[str, Any], names: set[str]) -> dict[str, str]:
    """Problems that keep it from being a schedule; cron, zone and prompt are read with all other schedules."""
    unknown = {name[:64]: f"unknown field; allowed: {', '.join(_FIELDS)}" for name in given if name not in _FIELDS}
    wrong = {name: "is required" for name in _REQUIRED if name not in given} | unknown
    if PROMPT_FILE in given:
        wrong.pop("prompt", None)
        wrong[PROMPT_FILE] = "works only in files for `horarium apply`; send the content as prompt"
    name = given.get("name")
    if name is not None and not (isinstance(name, str) and name.strip()):
        wrong["name"] = f"must be a non-blank string, not {shown(name)}"
    elif not is_storable(name):
        wrong["name"] = "contains a character that cannot be stored"
    elif name in names:
        wrong["name"] = f"the agent has another schedule named {shown(name)}"
    if not isinstance(given.get("enabled", True), bool):
        wrong["enabled"] = f"must be true or false, not {shown(given['enabled'])}"
    return wrong


def _tell(wrong: Problems, place: str, text: str) -> None:
    if len(wrong) < _MAX_PROBLEMS:
        wrong[place] = [text]
