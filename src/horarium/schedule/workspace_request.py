"""What somebody asks of a schedule of a workspace: five fields, read leniently and turned into an ordinary document.

A field that is not known is ignored, null is the same as absent, and a carriage return has no place in a prompt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from horarium.policy.names import shown
from horarium.schedule.assignee import AssigneeType
from horarium.schedule.kinds import PROMPT
from horarium.schedule.source import Source

REQUIRED: Final = "cron_expr and prompt are required"
MOST_PROMPT_BYTES = 200
_UTC: Final = "UTC"
_TEXTS = ("name", "cron_expr", "timezone", "prompt")
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Wish:
    """None = not given."""

    name: str | None = None
    cron_expr: str | None = None
    timezone: str | None = None
    prompt: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class Wrong:
    """`text` is the whole sentence; `field` is the part of the body that it is about."""

    field: str
    text: str


def read_new(body: object) -> Wish | Wrong:
    """Read the request to create a schedule."""
    if not isinstance(body, Mapping) or not all(_is_text(body.get(name)) for name in ("cron_expr", "prompt")):
        return Wrong("body", REQUIRED)
    read = read_change(body)
    return Wrong("prompt", REQUIRED) if isinstance(read, Wrong) and read.field == "prompt" else read


def read_change(body: object) -> Wish | Wrong:
    """Read the request to change a schedule."""
    if not isinstance(body, Mapping):
        return Wrong("body", "invalid JSON: the body must be an object")
    for name in _TEXTS:
        if body.get(name) is not None and not isinstance(body[name], str):
            return Wrong(name, f"invalid request body: {name} must be a string, not {shown(body[name])}")
    enabled, prompt, zone = body.get("enabled"), body.get("prompt"), body.get("timezone")
    if not isinstance(enabled, bool | None):
        return Wrong("enabled", f"invalid request body: enabled must be true or false, not {shown(enabled)}")
    if prompt is not None:
        prompt = prompt.replace("\r", "")
    if prompt == "":
        return Wrong("prompt", "invalid request body: prompt must not be empty")
    return Wish(body.get("name"), body.get("cron_expr"), _UTC if zone == "" else zone, prompt, enabled)


def new_document(wish: Wish, workspace_id: str) -> dict[str, Any]:
    """A schedule like any other. Who may write here may run it: only the agent's own policy asks for more."""
    return {
        "name": wish.name or "",
        "spec": {"cron_expressions": [wish.cron_expr], "timezone": wish.timezone or _UTC},
        "action": {"kind": PROMPT.name, "prompt": wish.prompt},
        "assignee_type": AssigneeType.AGENT.value,
        "assignee_id": workspace_id,
        "approval_policy": {"requires_approval": False},
        "source": Source.RUNTIME.value,
        **({} if wish.enabled is None else {"enabled": wish.enabled}),
    }


def change_document(wish: Wish) -> dict[str, Any]:
    """A merge patch that says nothing of what was not given. One cron expression takes the place of all that was."""
    spec: dict[str, Any] = {}
    if wish.cron_expr is not None:
        spec = {"cron_expressions": [wish.cron_expr], "intervals": None, "at": None}
    if wish.timezone is not None:
        spec["timezone"] = wish.timezone
    parts = {
        "name": wish.name,
        "spec": spec or None,
        "action": None if wish.prompt is None else {"prompt": wish.prompt},
        "enabled": wish.enabled,
    }
    return {name: value for name, value in parts.items() if value is not None}


def refusal(errors: Mapping[str, Sequence[str]], wish: Wish) -> Wrong:
    """Translate the first error about a schedule into the terms of this API."""
    path, texts = next(iter(errors.items()))
    if path.rpartition(".")[2] == "timezone" and wish.timezone is not None:
        return Wrong("timezone", f"invalid timezone: {wish.timezone[:_LONGEST]}")
    field = next((name for part, name in _OURS.items() if path.startswith(part)), path)
    return Wrong(field, f"invalid request body: {field}: {texts[0]}")


_OURS: Final[Mapping[str, str]] = {"spec": "cron_expr", "action": "prompt", "name": "name"}


def cron_of(document: Mapping[str, Any]) -> str:
    """The one expression that says all of when; empty where none does."""
    spec = _part(document, "spec")
    crons: Sequence[object] = spec.get("cron_expressions") or ()
    return str(crons[0]) if len(crons) == 1 and not spec.get("intervals") and not spec.get("at") else ""


def zone_of(document: Mapping[str, Any]) -> str:
    return str(_part(document, "spec").get("timezone") or _UTC)


def prompt_of(document: Mapping[str, Any]) -> str:
    return str(_part(document, "action").get("prompt") or "")


def cut_prompt(prompt: str) -> str:
    """As history shows it: 200 bytes at most, none of its characters cut in two."""
    raw = prompt.encode("utf-8", "replace")
    if len(raw) <= MOST_PROMPT_BYTES:
        return prompt
    return f"{raw[:MOST_PROMPT_BYTES].decode('utf-8', 'ignore')}..."


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""
