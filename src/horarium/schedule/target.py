"""What counts as one target: a text that all actions share which burden the same machine, agent or queue.

A kind of action says how its targets are named (`kinds.py`). The shipped ones:

| kind     | target                                              |
|----------|-----------------------------------------------------|
| http     | `http:<scheme>://<host>:<port>`, as it is dialled   |
| pull     | `pull:<queue>`                                      |
| celery   | `celery:<connection>/<queue>`                       |
| prompt   | `prompt:<agent or team>/<id>`, `prompt:` for nobody |
| workflow | `workflow:<name>`                                   |
| python   | `python:`, this process                             |
| command  | `command:`, this machine                            |

It is computed when a schedule is written and kept with its runs, so it never raises: an action that names
nothing we could count has the bare kind, and shares its room with others of its sort.
"""

from __future__ import annotations

import ipaddress
import re
from hashlib import sha256
from urllib.parse import urlsplit

import idna

from horarium.schedule.assignee import Assignee, AssigneeType, worker_of
from horarium.schedule.definition import Action
from horarium.schedule.secret_value import DEFAULT_PORTS, pin

DEFAULT_QUEUE = "default"
DEFAULT_CONNECTION = "default"
MAX_TARGET_LENGTH = 320
# RFC 1035 section 2.3.4; no longer name can be looked up.
_MAX_HOST_NAME = 253
_DIGEST_CHARACTERS = 16
_CELERY = "celery:"
_USER_INFO = re.compile(r"[^:/?#]*://[^/?#]*@")
_PROMPT = "prompt:"
_TO_AGENT = f"{_PROMPT}{AssigneeType.AGENT.value}/"


def target_text(kind: str, name: str) -> str:
    """Long names stay apart by their digest; a column and an index hold the rest."""
    target = f"{kind}:{name}"
    if len(target) <= MAX_TARGET_LENGTH:
        return target
    digest = sha256(target.encode()).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{target[: MAX_TARGET_LENGTH - _DIGEST_CHARACTERS - 1]}~{digest}"


def nobody(_action: Action, _assignee: Assignee | None) -> str:
    """For kinds whose actions all share one room, such as this process."""
    return ""


def origin(action: Action, _assignee: Assignee | None) -> str:
    return _origin(action.target.get("url"))


def queue(action: Action, _assignee: Assignee | None) -> str:
    return _text(action.queue or DEFAULT_QUEUE)


def connection_and_queue(action: Action, _assignee: Assignee | None) -> str:
    return f"{_text(action.connection or DEFAULT_CONNECTION)}/{_text(action.queue)}"


def connection_in(target: str) -> str | None:
    """The connection that a celery run goes over; None for what goes another way."""
    name, slash, _ = target.removeprefix(_CELERY).partition("/")
    return name if slash and target.startswith(_CELERY) else None


def assignee(_action: Action, assignee: Assignee | None) -> str:
    """Recipient of a prompt; the definition names it, not the action."""
    return "" if assignee is None else f"{assignee.type}/{assignee.id}"


def of_worker(target: str, assignee: Assignee | None, member: str | None) -> str:
    """That of a run whose worker is settled: a prompt goes to one agent, also where a team was asked for it."""
    agent_id = worker_of(assignee, member)
    return target if agent_id is None or not target.startswith(_PROMPT) else f"{_TO_AGENT}{agent_id}"


def agent_in(target: str) -> str | None:
    """The agent that a prompt goes to; None for what goes to nobody, or to somebody else."""
    return target.removeprefix(_TO_AGENT) if target.startswith(_TO_AGENT) else None


def work(action: Action, _assignee: Assignee | None) -> str:
    return _text(action.workflow)


def pin_of(url: object) -> str:
    """Return scheme, host and port of an address as pins of secrets name them; empty for one that is never dialled."""
    place = None if isinstance(url, str) and _USER_INFO.match(url) else _place(url)
    return "" if place is None else pin(*place)


def host_in(url: str) -> str | None:
    try:
        host = urlsplit(url).hostname
        return host if host is None or host.isascii() else _host(host)
    except ValueError:  # also what no name can be made of, a UnicodeError
        return None


def _origin(url: object) -> str:
    """Return scheme, host and port in one spelling (RFC 3986 section 6.2); empty for an invalid address."""
    place = _place(url)
    return "" if place is None else "{}://{}:{}".format(*place)


def _place(url: object) -> tuple[str, str, int] | None:
    """None also for an address that is never dialled: with what another reader leaves out."""
    if not isinstance(url, str) or not url.isprintable() or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
        if parts.scheme not in DEFAULT_PORTS or not host or port == 0:
            return None
        return parts.scheme, _host(host), port or DEFAULT_PORTS[parts.scheme]
    except ValueError:  # also what no name can be made of, a UnicodeError
        return None


def _host(name: str) -> str:
    if ":" in name:
        address, percent, zone = name.partition("%")
        return f"[{ipaddress.IPv6Address(address)}{percent}{zone}]"
    # The dot at the end says that the name is whole, as all names in a URL are.
    name = name.removesuffix(".")
    if not name.isascii():
        # IDNA 2008, as it is looked up: the codec of Python is of 2003, and makes another name of some letters.
        name = idna.encode(name.lower()).decode("ascii")
    if not 0 < len(name) <= _MAX_HOST_NAME or not name.isprintable() or " " in name or name.endswith("."):
        raise ValueError("no host name")
    return name


def _text(value: object) -> str:
    """Names come checked from the door; what is no plain text came past it and is not counted apart."""
    return value if isinstance(value, str) and value.isprintable() else ""
