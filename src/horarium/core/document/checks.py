"""Checks of the values of fields, and of references to secrets.

Each check returns the value to store, or the problem with it.

A reference is an object whose only key is `$secret`; its value is put in at launch. It may be the value of a header,
and stand anywhere in the inputs of the kinds of action in `KINDS`, and in the arguments of a Celery task. Everywhere
else it is refused: it would be shown, logged or given to code that does not expect it. An encoded input is data, and
never contains a reference.

A header whose name says that it authenticates is never stored in plain text: at write its whole value, `Bearer`
included, becomes a generated secret, and a reference stands in its place. The secret is named after its schedule and
header, so the same definition written again names the same secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from horarium.condition import compile_condition
from horarium.core.document.definition import Action, IntervalText, pin_of
from horarium.core.document.json_values import MAX_URL, DocumentProblems, Json, Places, joined
from horarium.core.policy.queue import MAX_ID, PolicyError, checked_id, read_object, shown, whole_number
from horarium.core.recurrence.parts import parse_interval
from horarium.core.recurrence.spec import compile_spec
from horarium.core.recurrence.zone import load_zone
from horarium.errors import ConditionError, InvalidSpec
from horarium.instant import Instant, from_rfc3339

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


MAX_NAME = 255
MAX_KEY = 128
MAX_NOTE = 1_000
MAX_MEMO_BYTES = 262_144
MAX_ATTRIBUTE_BYTES = 2_048
MAX_JITTER_SECONDS = 86_400
MAX_PROMPT_BYTES = 100_000
MAX_HEADERS = 100
MAX_HEADER_VALUE = 8_192
MAX_COMMAND_ARGUMENTS = 1_000
METHODS: Final = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD")

# Twelve digits before the point and six after, as the amounts themselves.
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# RFC 9110 section 5.6.2, `token`.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
# RFC 9110 section 5.5: visible ASCII, blanks and tabs; no line may begin inside a value.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
# These frame the message or choose its receiver; the launcher sets them.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


# ── texts and maps ────────────────────────────────────────────────────────────────────────────────


def any_text(most: int) -> Callable[[str, object], str]:
    """Text of a person: any characters, a bounded length."""

    def check(field: str, value: object) -> str:
        if not isinstance(value, str):
            raise PolicyError(field, f"must be a string, not {shown(value)}")
        if len(value) > most:
            raise PolicyError(field, f"has {len(value)} characters; at most {most} are allowed")
        return value

    return check


_short = any_text(MAX_NAME)
_spec_text = any_text(1_024)


def mapping(field: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PolicyError(field, f"must be an object, not {shown(value)}")
    if not all(isinstance(key, str) for key in value):
        raise PolicyError(field, "has a key that is not a string")
    return value


def one_line(field: str, value: object) -> str:
    name = _short(field, value)
    if _CONTROL.search(name):
        raise PolicyError(field, "must be one line without control characters")
    return name


def entry_key(field: str, key: object) -> str:
    """The name of a label, or of a search attribute."""
    if not isinstance(key, str) or not 1 <= len(key) <= MAX_KEY:
        raise PolicyError(field, f"a key has between 1 and {MAX_KEY} characters")
    return key


def label(field: str, value: object) -> str:
    """Labels are texts; a number or a boolean is kept as JSON spells it."""
    if isinstance(value, float) or (isinstance(value, int) and value.bit_length() <= 64):
        return json.dumps(value)
    if not isinstance(value, str):
        raise PolicyError(field, f"must be a string, a number or a boolean, not {shown(value)}")
    return _bounded(field, value)


def attribute(field: str, value: object) -> Json:
    if isinstance(value, list | tuple):
        if not all(isinstance(item, str) for item in value):
            raise PolicyError(field, "an array must contain only strings")
        _bounded(field, "".join(value))
        return value
    if not isinstance(value, str | bool | int | float):
        raise PolicyError(field, f"must be a string, a number, a boolean or an array of strings, not {shown(value)}")
    return _bounded(field, value) if isinstance(value, str) else value


def _bounded(field: str, value: str) -> str:
    if len(value.encode("utf-8", "replace")) > MAX_ATTRIBUTE_BYTES:
        raise PolicyError(field, f"is longer than {MAX_ATTRIBUTE_BYTES} bytes")
    return value


def small_memo(field: str, value: object, _key: str) -> Mapping[str, object]:
    memo = mapping(field, value)
    size = len(json.dumps(memo, ensure_ascii=False, separators=(",", ":")).encode())
    if size > MAX_MEMO_BYTES:
        raise PolicyError(field, f"has {size} bytes as JSON; at most {MAX_MEMO_BYTES} are allowed")
    return memo


def calendar(field: str, value: object) -> str:
    """An id, or an id and a zone: `holidays:US@America/New_York`. Whether it exists is not for us to know."""
    if not isinstance(value, str) or "/" not in value:
        return checked_id(field, value)
    name, _, zone = value.partition("@")
    checked_id(field, name)
    load_zone(zone)
    return value


def condition(field: str, value: object) -> Mapping[str, object] | None:
    """No clauses and no condition mean the same."""
    return mapping(field, value) or None


def compiled_condition(field: str, value: object, _key: str) -> Mapping[str, object] | None:
    try:
        compile_condition(value)
    except ConditionError as wrong:
        raise PolicyError(field, wrong.message) from None
    return condition(field, value)


# ── when ──────────────────────────────────────────────────────────────────────────────────────────


def spec_text(field: str, value: object) -> str:
    return _spec_text(field, value)


def compiled_cron(field: str, value: object, key: str) -> str:
    text = _spec_text(field, value)
    compile_spec(cron_expressions=[text], key=key)
    return text


def interval(field: str, value: object) -> IntervalText:
    given = read_object(value, field, ("every", "offset"))
    if "every" not in given:
        raise PolicyError("every", "is required: an ISO-8601 duration such as PT30M")
    offset = given.get("offset")
    return IntervalText(_spec_text("every", given["every"]), None if offset is None else _spec_text("offset", offset))


def compiled_interval(field: str, value: object, _key: str) -> IntervalText:
    found = interval(field, value)
    try:
        parse_interval(found.every, found.offset)
    except InvalidSpec as wrong:
        raise PolicyError(wrong.field or field, without_prefix(wrong, wrong.field or "")) from None
    return found


def compiled_one_off(field: str, value: object, _key: str) -> str:
    text = _spec_text(field, value)
    compile_spec(at=[text])
    return text


def zone(field: str, value: object, _key: str) -> str:
    return load_zone(_spec_text(field, value)).key


def instant(field: str, value: object) -> Instant:
    if not isinstance(value, str):
        raise PolicyError(field, f"must be an RFC 3339 time such as 2026-03-08T07:00:00Z, not {shown(value)}")
    return from_rfc3339(value, field=field)


def jitter_ms(field: str, value: object) -> int:
    """Seconds, with up to three digits after the point."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise PolicyError(field, f"must be a number of seconds, not {shown(value)}")
    if not 0 <= value <= MAX_JITTER_SECONDS:
        raise PolicyError(field, f"must be between 0 and {MAX_JITTER_SECONDS} seconds")
    whole = round(value * 1_000)
    # Both sides are the float nearest to the same decimal, so equal means: no digit was lost.
    if whole / 1_000 != value:
        raise PolicyError(field, "must be a whole number of milliseconds")
    return whole


def without_prefix(wrong: InvalidSpec, field: str) -> str:
    """The message of a spec begins with the field; the path says it already."""
    return wrong.message.removeprefix(f"{field}: ") if field else wrong.message


# ── what ──────────────────────────────────────────────────────────────────────────────────────────


def version(field: str, value: object) -> int | str:
    if isinstance(value, str) and value.lower() == "latest":
        return "latest"
    if isinstance(value, str):
        raise PolicyError(field, f"must be a version number or latest, not {shown(value)}")
    return whole_number(field, value, least=1)


def prompt(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PolicyError(field, f"must be a non-blank string, not {shown(value)}")
    if len(value) > MAX_PROMPT_BYTES or len(value.encode("utf-8", "replace")) > MAX_PROMPT_BYTES:
        raise PolicyError(field, f"is longer than {MAX_PROMPT_BYTES} bytes")
    return value


def url(field: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_URL:
        raise PolicyError(field, f"must be a URL of at most {MAX_URL} characters")
    # Readers of URLs disagree about a backslash, and so about whose host it is.
    if not value.isascii() or not value.isprintable() or " " in value or "\\" in value:
        raise PolicyError(field, "must be ASCII without spaces and backslashes; percent-encode other characters")
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise PolicyError(field, f"{shown(value)} is not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise PolicyError(field, "must begin with http:// or https:// and contain a host")
    if "@" in parts.netloc:
        raise PolicyError(
            field, "contains a user name or password, which every reader of the schedule can see; use a header instead"
        )
    return value


def method(field: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= 16 and value.upper() in METHODS:
        return value.upper()
    raise PolicyError(field, f"must be one of {', '.join(METHODS)}, not {shown(value)}")


def headers(field: str, value: object) -> dict[str, Json]:
    """A value is a text, or names the secret that is sent in its place."""
    given = mapping(field, value)
    if len(given) > MAX_HEADERS:
        raise PolicyError(field, f"has {len(given)} headers; at most {MAX_HEADERS} are allowed")
    seen: set[str] = set()
    kept: dict[str, Json] = {}
    for name, item in given.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise PolicyError(field, f"{shown(name)} is not a valid header name")
        if name.lower() in _OWN_HEADERS or name.lower() in seen:
            raise PolicyError(
                f"{field}.{name}", "is set by the launcher" if name.lower() not in seen else "is specified twice"
            )
        seen.add(name.lower())
        kept[name] = _header_value(f"{field}.{name}", item)
    return kept


def _header_value(field: str, value: object) -> Json:
    if isinstance(value, Mapping) and is_reference(value):
        return {SECRET_KEY: checked_name(field, value)}
    if not isinstance(value, str) or len(value) > MAX_HEADER_VALUE or _HEADER_VALUE.fullmatch(value) is None:
        raise PolicyError(
            field, f"must be one line of at most {MAX_HEADER_VALUE} ASCII characters, or a reference to a secret"
        )
    return value


def array(field: str, value: object) -> object:
    if isinstance(value, list | tuple):
        return value
    raise PolicyError(field, f"must be an array, not {shown(value)}")


def any_input(field: str, value: object) -> object:
    """An array of arguments, an object, or an encoded envelope, which is an object to us."""
    if isinstance(value, list | tuple | Mapping):
        return value
    raise PolicyError(field, f"must be an array or an object, not {shown(value)}")


def command_input(field: str, value: object) -> object:
    if not isinstance(value, list | tuple):
        return any_input(field, value)
    if len(value) > MAX_COMMAND_ARGUMENTS or not all(isinstance(item, str) for item in value):
        raise PolicyError(field, f"must be an array of at most {MAX_COMMAND_ARGUMENTS} strings")
    return value
