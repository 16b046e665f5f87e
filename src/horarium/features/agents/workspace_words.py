"""Words of the workspace paths: the status of a schedule, and the fields of requests.

The paths exist for clients that already use these words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from horarium.core.decision.statuses import LastStatus, status_of_end
from horarium.core.document.assignee import AssigneeType
from horarium.core.document.states import FINAL, HANDED_OUT, RunState, Source
from horarium.core.policy.queue import shown

_MOST_ERROR = 1_000
_BUSY = "workspace busy"


class RunStatus(StrEnum):
    """Status of a run in the history of a workspace schedule."""

    SUCCESS = "success"
    ERROR = "error"
    SKIPPED = "skipped"
    RUNNING = "running"
    WAITING = "waiting"  # not begun: it waits for its turn, for a place or for a yes


def run_status(state: RunState) -> RunStatus:
    if state in FINAL:
        return RunStatus(status_of_end(state).value)
    return RunStatus.RUNNING if state in HANDED_OUT else RunStatus.WAITING


def run_error(state: RunState, error: str | None, cause: str | None) -> str:
    """Why a run did not succeed; empty for one that did, or has not ended."""
    if state is RunState.SUCCEEDED or state not in FINAL:
        return ""
    return (error or cause or state.value.replace("_", " "))[:_MOST_ERROR]


def last_error(
    status: LastStatus, last_state: str | None, error: str | None, *, skip_reason: str | None, empty_in_a_row: int
) -> str:
    """The sentence beside a status. `last_state` is that of the run that ended last, None where a skip came after it.

    `error` is what the last failure said.
    """
    ended = RunState(last_state) if last_state in frozenset(RunState) else None
    match status:
        case LastStatus.NOTHING | LastStatus.SUCCESS:
            return ""
        case LastStatus.STALE:
            return f"empty response {empty_in_a_row} consecutive times: the agent answers without a text"
        case LastStatus.SKIPPED if ended is None:
            return f"skipped: {skip_reason or 'not run'}"
        case LastStatus.SKIPPED:
            return f"skipped: {_BUSY if ended is RunState.SKIPPED else ended}"
        case LastStatus.ERROR:
            was_stopped = ended in (RunState.CANCELLED, RunState.TERMINATED)
            return run_error(ended or RunState.FAILED, None if was_stopped else error, None)


REQUIRED: Final = "cron_expr and prompt are required"
MOST_PROMPT_BYTES = 200
_UTC: Final = "UTC"
_TEXTS = ("name", "cron_expr", "timezone", "prompt")
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class ScheduleRequest:
    """None = not given."""

    name: str | None = None
    cron_expr: str | None = None
    timezone: str | None = None
    prompt: str | None = None
    enabled: bool | None = None


@dataclass(frozen=True, slots=True)
class RequestError:
    """`text` is the whole sentence; `field` is the part of the body that it is about."""

    field: str
    text: str


def read_new(body: object) -> ScheduleRequest | RequestError:
    """Read the request to create a schedule."""
    if not isinstance(body, Mapping) or not all(_is_text(body.get(name)) for name in ("cron_expr", "prompt")):
        return RequestError("body", REQUIRED)
    read = read_change(body)
    return RequestError("prompt", REQUIRED) if isinstance(read, RequestError) and read.field == "prompt" else read


def read_change(body: object) -> ScheduleRequest | RequestError:
    """Read the request to change a schedule."""
    if not isinstance(body, Mapping):
        return RequestError("body", "invalid JSON: the body must be an object")
    for name in _TEXTS:
        if body.get(name) is not None and not isinstance(body[name], str):
            return RequestError(name, f"invalid request body: {name} must be a string, not {shown(body[name])}")
    enabled, prompt, zone = body.get("enabled"), body.get("prompt"), body.get("timezone")
    if not isinstance(enabled, bool | None):
        return RequestError("enabled", f"invalid request body: enabled must be true or false, not {shown(enabled)}")
    if prompt is not None:
        prompt = prompt.replace("\r", "")
    if prompt == "":
        return RequestError("prompt", "invalid request body: prompt must not be empty")
    return ScheduleRequest(body.get("name"), body.get("cron_expr"), _UTC if zone == "" else zone, prompt, enabled)


def new_document(wish: ScheduleRequest, workspace_id: str) -> dict[str, Any]:
    """Return the document of an ordinary schedule. Only the policy of the agent can require an approval."""
    from horarium.core.document.reader import PROMPT  # the client needs only the words

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


def change_document(wish: ScheduleRequest) -> dict[str, Any]:
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


def refusal(errors: Mapping[str, Sequence[str]], wish: ScheduleRequest) -> RequestError:
    """Translate the first error about a schedule into the terms of this API."""
    path, texts = next(iter(errors.items()))
    if path.rpartition(".")[2] == "timezone" and wish.timezone is not None:
        return RequestError("timezone", f"invalid timezone: {wish.timezone[:_LONGEST]}")
    field = next((name for part, name in _OURS.items() if path.startswith(part)), path)
    return RequestError(field, f"invalid request body: {field}: {texts[0]}")


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
