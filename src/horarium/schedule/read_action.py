"""Reads the *what* of a document: which kind of action it is, and whether its fields make one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from horarium.policy.names import PolicyError, parse_name, shown, text, whole, whole_or_none
from horarium.schedule.definition import Action, ActionKind
from horarium.schedule.naming import checked_id
from horarium.schedule.reading import Reader, mapping
from horarium.schedule.run import Delivery
from horarium.schedule.storable import same_json

MAX_URL = 2_048
MAX_PROMPT_BYTES = 100_000
MAX_HEADERS = 100
MAX_HEADER_VALUE = 8_192
MAX_COMMAND_ARGUMENTS = 1_000
METHODS: Final = ("POST", "GET", "PUT", "PATCH", "DELETE", "HEAD")

# RFC 9110 section 5.6.2, `token`.
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}", re.ASCII)
# RFC 9110 section 5.5: visible ASCII, blanks and tabs; no line may begin inside a value.
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*", re.ASCII)
# These frame the message or choose its receiver; the launcher sets them.
_OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection"})

_ASKED = "give workflow_type, workflow_id, prompt, url, task, callable or command"


def _version(field: str, value: object) -> int | str:
    if isinstance(value, str) and value.lower() == "latest":
        return "latest"
    if isinstance(value, str):
        raise PolicyError(field, f"must be a version number or latest, not {shown(value)}")
    return whole(field, value, least=1)


def _prompt(field: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise PolicyError(field, f"must be text that is not blank, not {shown(value)}")
    if len(value) > MAX_PROMPT_BYTES or len(value.encode("utf-8", "replace")) > MAX_PROMPT_BYTES:
        raise PolicyError(field, f"is longer than {MAX_PROMPT_BYTES} bytes")
    return value


def _url(field: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_URL:
        raise PolicyError(field, f"must be a URL of at most {MAX_URL} characters")
    # Readers of URLs disagree about a backslash, and so about whose host it is.
    if not value.isascii() or not value.isprintable() or " " in value or "\\" in value:
        raise PolicyError(field, "must be ASCII without blanks and backslashes; percent-encode what is not")
    try:
        parts = urlsplit(value)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise PolicyError(field, f"{shown(value)} is not a URL") from None
    if parts.scheme not in ("http", "https") or not host:
        raise PolicyError(field, "must begin with http:// or https:// and name a host")
    if "@" in parts.netloc:
        raise PolicyError(field, "holds a user or a password, which would be shown to every reader; use `secret`")
    return value


def _method(field: str, value: object) -> str:
    if isinstance(value, str) and len(value) <= 16 and value.upper() in METHODS:
        return value.upper()
    raise PolicyError(field, f"must be one of {', '.join(METHODS)}, not {shown(value)}")


def _headers(field: str, value: object) -> dict[str, str]:
    given = mapping(field, value)
    if len(given) > MAX_HEADERS:
        raise PolicyError(field, f"has {len(given)} headers; at most {MAX_HEADERS} are sent")
    seen: set[str] = set()
    headers: dict[str, str] = {}
    for name, item in given.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise PolicyError(field, f"{shown(name)} is not the name of a header")
        if name.lower() in _OWN_HEADERS or name.lower() in seen:
            raise PolicyError(
                f"{field}.{name}", "is set by the launcher" if name.lower() not in seen else "is given twice"
            )
        if not isinstance(item, str) or len(item) > MAX_HEADER_VALUE or _HEADER_VALUE.fullmatch(item) is None:
            raise PolicyError(
                f"{field}.{name}", f"must be ASCII text of at most {MAX_HEADER_VALUE} characters in one line"
            )
        seen.add(name.lower())
        headers[name] = item
    return headers


_Check = Callable[[str, object], object]

# The fields that a target may have, for all kinds together, and which kind has which.
_CHECKS: Final[Mapping[str, _Check]] = {
    "workflow_type": text,
    "workflow_id": checked_id,
    "workflow_class": text,
    "version": _version,
    "prompt": _prompt,
    "url": _url,
    "method": _method,
    "headers": _headers,
    "secret": text,
    "task": text,
    "callable": text,
    "command": text,
}
# In the order in which a kind is guessed: the first that has all the fields given.
FIELDS: Final[Mapping[ActionKind, tuple[str, ...]]] = {
    ActionKind.WORKFLOW: ("workflow_type", "workflow_id", "workflow_class", "version"),
    ActionKind.PROMPT: ("prompt",),
    ActionKind.HTTP: ("url", "method", "headers", "secret"),
    ActionKind.CELERY: ("task",),
    ActionKind.PYTHON: ("task", "callable"),
    ActionKind.COMMAND: ("command",),
    ActionKind.PULL: ("workflow_type",),
}
_REQUIRED: Final[Mapping[ActionKind, tuple[str, ...]]] = {
    ActionKind.WORKFLOW: ("workflow_type", "workflow_id", "workflow_class"),
    ActionKind.PROMPT: ("prompt",),
    ActionKind.HTTP: ("url",),
    ActionKind.CELERY: ("task",),
    ActionKind.PYTHON: ("task", "callable"),
    ActionKind.COMMAND: ("command",),
    ActionKind.PULL: ("workflow_type",),
}


def read_action(reader: Reader) -> Action:
    """Where the kind is unknown the rest is read all the same: the reader keeps what is wrong."""
    kind = _kind(reader)
    action = Action(
        kind=kind or ActionKind.WORKFLOW,
        target={} if kind is None else _target(reader, kind),
        input=reader.one("action.input", _command_input if kind is ActionKind.COMMAND else _input, None),
        connection=reader.one("action.connection", text, None),
        queue=reader.one("action.queue", text, None),
        global_model_id=reader.one("action.global_model_id", text, None),
        execution_timeout_seconds=reader.one("action.execution_timeout_seconds", _timeout, None),
        run_timeout_seconds=reader.one("action.run_timeout_seconds", _timeout, None),
        timeout_seconds=reader.one("action.timeout_seconds", _timeout, None),
        delivery=reader.one("action.delivery", _delivery, Delivery.AT_LEAST_ONCE),
    )
    if kind is ActionKind.PULL and not reader.given("action.queue"):
        reader.blame("action.queue", "is required: the queue that workers claim from")
    return action


def _kind(reader: Reader) -> ActionKind | None:
    if reader.given("action.kind"):
        return reader.one("action.kind", lambda field, value: parse_name(ActionKind, {}, value, field), None)
    present = [name for name in _CHECKS if reader.given(f"action.{name}")]
    if not present:
        reader.problems.add("action", f"is required: {_ASKED}")
        return None
    for kind, fields in FIELDS.items():
        if set(present) <= set(fields):
            return kind
    paths = " and ".join(f"`{reader.path(f'action.{name}')}`" for name in present)
    reader.problems.add("action", f"{paths} belong to different kinds of action; give those of one")
    return None


def _target(reader: Reader, kind: ActionKind) -> dict[str, object]:
    target: dict[str, object] = {}
    for name, check in _CHECKS.items():
        place = f"action.{name}"
        if name in FIELDS[kind]:
            value = reader.one(place, check, None)
            if value is not None:
                target[name] = value
        elif reader.given(place):
            owners = " or ".join(owner for owner, fields in FIELDS.items() if name in fields)
            reader.blame(place, f"belongs to an action of kind {owners}, not {kind}; null clears it")
    if not any(reader.given(f"action.{name}") for name in _REQUIRED[kind]):
        asked = " or ".join(_REQUIRED[kind])
        reader.blame(f"action.{_REQUIRED[kind][0]}", f"is required: an action of kind {kind} needs {asked}")
    if kind is ActionKind.HTTP:
        target.setdefault("method", METHODS[0])
    if kind is ActionKind.PYTHON:
        _join_callable(reader, target)
    return target


def _join_callable(reader: Reader, target: dict[str, object]) -> None:
    """`callable` is another word for the task of a Python action; it tells us that there is no Celery."""
    called = target.pop("callable", None)
    if called is not None and not same_json(target.setdefault("task", called), called):
        other = reader.path("action.task")
        reader.blame("action.callable", f"disagrees with `{other}`, which says the same thing; give one of them")


def _input(field: str, value: object) -> object:
    """An array of arguments, an object, or an encoded envelope, which is an object to us."""
    if isinstance(value, list | tuple | Mapping):
        return value
    raise PolicyError(field, f"must be an array or an object, not {shown(value)}")


def _command_input(field: str, value: object) -> object:
    if not isinstance(value, list | tuple):
        return _input(field, value)
    if len(value) > MAX_COMMAND_ARGUMENTS or not all(isinstance(item, str) for item in value):
        raise PolicyError(field, f"the arguments of a command are at most {MAX_COMMAND_ARGUMENTS} texts")
    return value


def _timeout(field: str, value: object) -> int | None:
    return whole_or_none(field, value, least=1)


def _delivery(field: str, value: object) -> Delivery:
    return parse_name(Delivery, {}, value, field)
