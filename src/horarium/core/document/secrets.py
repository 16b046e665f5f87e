"""References to secrets in a definition, and credentials that become generated secrets.

A reference is an object whose only key is `$secret`; its value is put in at launch. It may be the value of a header,
and stand anywhere in the inputs of the kinds of action in `KINDS`, and in the arguments of a Celery task. Everywhere
else it is refused: it would be shown, logged or handed to code that does not expect it. What an encoded input holds
is data, and never a reference.

A header whose name says that it authenticates is never stored in plain text: at write its value becomes a generated
secret, and a reference stands in its place. The name of that secret is that of its schedule and header, so the same
definition written again names the same secret. The header in full is the secret, `Bearer` and all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol

from horarium.core.document.definition import Action, pin_of
from horarium.core.document.json_values import DocumentProblems, Json, Places, joined
from horarium.core.policy.names import MAX_ID, PolicyError, checked_id, shown

# ── References ────────────────────────────────────────────────────────────────────────────────────────


SECRET_KEY: Final = "$secret"
SECRET_KINDS: Final = frozenset({"http", "prompt", "celery"})
"""The kinds of action whose inputs may name secrets."""
WITH_HEADERS: Final = "http"
"""The kind whose headers may."""
SECRET_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {SECRET_KEY: {"type": "string", "minLength": 1, "maxLength": MAX_ID}},
    "required": [SECRET_KEY],
    "additionalProperties": False,
}
MAX_REFERENCES: Final = 100
"""In one input."""
MAX_NAMES: Final = 20
"""Of different secrets in one input; each is opened at every launch."""

_NOT_HERE = "references a secret; secrets work only in header values and in the input of {kinds} actions"
_INPUTS = ("action.input", "action.args", "action.kwargs", "inputs_rotation")
# The fields of an action, by its kind, that may name secrets beside its input.
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {WITH_HEADERS: ("headers",), "celery": ("args", "kwargs")}


class SecretReference(NamedTuple):
    path: str
    name: str


class HasAction(Protocol):
    """A definition, whole or as far as a run needs it."""

    @property
    def action(self) -> Action: ...
    @property
    def inputs_rotation(self) -> tuple[Json, ...]: ...


def is_reference(value: object) -> bool:
    """Tell whether it looks like a reference; `checked_name` tells whether it is valid."""
    return isinstance(value, Mapping) and SECRET_KEY in value


def checked_name(field: str, value: Mapping[str, object]) -> str:
    """The name in a reference; raises PolicyError."""
    if len(value) > 1:
        others = ", ".join(shown(key) for key in list(value)[:3] if key != SECRET_KEY)
        raise PolicyError(
            field, f"contains {others} in addition to {SECRET_KEY}; a secret reference has only the key {SECRET_KEY}"
        )
    try:
        return checked_id(SECRET_KEY, value[SECRET_KEY])
    except PolicyError as wrong:
        raise PolicyError(field, f"is not a valid secret reference: {wrong.text}") from None


# ── where they stand ─────────────────────────────────────────────────────────────────────────────────


def found_in(value: Json, path: str = "") -> Iterator[tuple[str, Mapping[str, object]]]:
    """Find values that look like references, with their paths; the depth of a value was checked before."""
    if isinstance(value, Mapping):
        if SECRET_KEY in value:
            yield path, value
            return
        for key, item in value.items():
            if isinstance(item, Mapping | list | tuple):
                yield from found_in(item, joined(path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            if isinstance(item, Mapping | list | tuple):
                yield from found_in(item, f"{path}.{index}" if path else str(index))


def check_places(places: Places, kind: str, problems: DocumentProblems) -> None:
    """Every reference in a document, where it may stand and where it may not."""
    for place, given in places.items():
        if place != "action.headers" and isinstance(given.value, Mapping | list | tuple):  # the field's own check knows
            check_value(given.value, given.path, problems, allowed=kind in SECRET_KINDS and place in _INPUTS)


def check_value(value: Json, path: str, problems: DocumentProblems, *, allowed: bool) -> None:
    names: set[str] = set()
    for number, (where, found) in enumerate(found_in(value, path), start=1):
        if not allowed:
            problems.add(where, _NOT_HERE.format(kinds=", ".join(sorted(SECRET_KINDS))))
        else:
            try:
                names.add(checked_name("", found))
            except PolicyError as wrong:
                problems.add(where, wrong.text)
        if number > MAX_REFERENCES or len(names) > MAX_NAMES:
            problems.add(
                where, f"an input references at most {MAX_NAMES} secrets and has at most {MAX_REFERENCES} references"
            )
            return
        if problems.full:
            return


def references(definition: HasAction) -> list[SecretReference]:
    """All of a definition, under the paths of its canonical document."""
    action = definition.action
    found = [each for name in _fields(action) for each in _of(action.target[name], f"action.{name}")]
    if action.kind in SECRET_KINDS:
        found += _of(action.input, "action.input")
        found += _of(definition.inputs_rotation, "inputs_rotation")
    return found


def secret_names(definition: HasAction) -> frozenset[str]:
    return frozenset(each.name for each in references(definition))


def names_in(action: Action, inputs: Json) -> frozenset[str]:
    """Names in one launch: those in the action, and those in its inputs."""
    names = {each.name for name in _fields(action) for each in _of(action.target[name], "")}
    return frozenset(names | {each.name for each in _of(inputs, "")} if action.kind in SECRET_KINDS else names)


def _fields(action: Action) -> tuple[str, ...]:
    return tuple(name for name in _FIELDS.get(action.kind, ()) if name in action.target)


def _of(value: Json, path: str) -> Iterator[SecretReference]:
    """Find valid references; one that was damaged since it was checked is skipped."""
    for where, found in found_in(value, path):
        name = found[SECRET_KEY]
        if len(found) == 1 and isinstance(name, str):
            yield SecretReference(where, name)


# ── what they stand for ──────────────────────────────────────────────────────────────────────────────


def opened_value(action: Action, values: Mapping[str, str]) -> Action:
    """The action with the values of the secrets that its own fields name."""
    own = {name: resolved_value(action.target[name], values) for name in _fields(action)}
    return replace(action, target={**action.target, **own}) if own else action


def resolved_value(value: Json, values: Mapping[str, str]) -> Json:
    """The same with each reference replaced by its value; one that is not in `values` stays."""
    if isinstance(value, Mapping):
        if SECRET_KEY in value:
            name = value[SECRET_KEY]
            return values.get(name, value) if isinstance(name, str) and len(value) == 1 else value
        return {key: resolved_value(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [resolved_value(item, values) for item in value]
    return value


# ── Credentials ───────────────────────────────────────────────────────────────────────────────────────


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


def move_credentials(action: Action, owner: str) -> tuple[Action, dict[str, str]]:
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
    kept = {header: {SECRET_KEY: names[header]} if header in names else value for header, value in headers.items()}
    return replace(action, target={**action.target, "headers": kept}), {names[each]: plain[each] for each in plain}


def hosts_of(action: Action) -> tuple[str, ...]:
    """Return the pin of its credentials: scheme, host and port that it calls; none where it calls no address."""
    destination = pin_of(action.target.get("url"))
    return (destination,) if destination else ()


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGEST_CHARACTERS]
