"""Sources of settings: flags, then the environment, then `horarium.toml`, then the defaults.

Variables that begin with HORARIUM_ and that nothing reads are spelling mistakes.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError

from horarium.errors import InvalidDefinition
from horarium.platform.settings.fields import PREFIX, Origin, Settings

FILE = "horarium.toml"


def load_settings(flags: Mapping[str, Any] | None = None, *, file: Path | None = None) -> Settings:
    """Raises InvalidDefinition with one message for each bad knob. A flag that is None was not given.

    Without `file`, `horarium.toml` of the working directory is read if it is there.
    """
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    environment = _from_environment()
    written = _from_file(file)
    try:
        settings = Settings(**{**written, **environment, **given})
    except ValidationError as wrong:
        raise InvalidDefinition(_problems(wrong)) from None
    layers: tuple[tuple[Origin, Mapping[str, Any]], ...] = (
        ("flag", given),
        ("environment", environment),
        ("file", written),
    )
    settings._origins = MappingProxyType(
        {name: next((origin for origin, layer in layers if name in layer), "default") for name in Settings.model_fields}
    )
    return settings


def origins(settings: Settings) -> Mapping[str, Origin]:
    """Where each value comes from; settings made by hand know only what was said and what was not."""
    if settings._origins:
        return settings._origins
    return {name: "flag" if name in settings.model_fields_set else "default" for name in Settings.model_fields}


def as_up_takes_them(settings: Settings) -> Settings:
    """`up` on a loopback address is one person's machine, whose ports that person reaches anyway.

    No other process may conclude that from its address: a worker has none, and a proxy or another program may stand
    in front of the rest. What the operator has said stays as it was said.
    """
    came_from = origins(settings)
    if settings.behind_proxy or not is_loopback(settings.host) or came_from["allow_loopback_targets"] != "default":
        return settings
    opened = settings.model_copy(update={"allow_loopback_targets": True})
    opened._origins = MappingProxyType({**came_from, "allow_loopback_targets": "up"})
    return opened


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def variable(name: str) -> str:
    """The environment variable of a knob."""
    return PREFIX + name.upper()


def _from_environment() -> dict[str, Any]:
    try:
        found = EnvSettingsSource(Settings)()
    except SettingsError as wrong:  # a map or a list that is no JSON
        raise InvalidDefinition({"environment": [str(wrong)]}) from None
    names = {name.lower(): name for name in Settings.model_fields}
    return {names[key.lower().removeprefix(PREFIX.lower())]: value for key, value in found.items()}


def _from_file(file: Path | None) -> dict[str, Any]:
    path = file or Path(os.environ.get(f"{PREFIX}CONFIG") or FILE)
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if file is None:
            return {}
        raise InvalidDefinition({"file": [f"{path} does not exist"]}) from None
    except (OSError, ValueError) as wrong:
        raise InvalidDefinition({"file": [f"{path} cannot be read: {wrong}"]}) from None


def _problems(wrong: ValidationError) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for error in wrong.errors(include_input=False, include_url=False):
        path = ".".join(str(part) for part in error["loc"]).lower().removeprefix(PREFIX.lower()) or "settings"
        text = "unknown setting" if error["type"] == "extra_forbidden" else error["msg"]
        found.setdefault(path, []).append(text)
    return found


# Read by commands and clients, which have no settings.
OTHERS: Final = frozenset(
    f"{PREFIX}{name}"
    for name in (
        "CA_FILE",
        "CELERY_SPOOL",
        "CLIENT_CERT",
        "CLIENT_KEY",
        "CONFIG",
        "CONTEXT",
        "NAMESPACE",
        "SERVER",
        "SUBSCRIPTION_SECRET",
        "TOKEN",
        "TZ",
        "URL",
    )
)
# What a cluster adds for a service of this name, and what a run gives the command that it starts.
_GIVEN: Final = re.compile(
    PREFIX + r"(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP)(_\w+)?|(RUN|ROOT_RUN|PARENT_RUN|REPORT|TEST)_\w+"
    r"|SCHEDULE_ID|NODE_ID|INSTANCE_ID|WORKFLOW_(ID|VERSION)|USER_ID|LIMITS|COMPLETE)",
    re.ASCII,
)
_MOST: Final = 20


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """One sentence for each, with the nearest name that is read. Values are not repeated."""
    known = {f"{PREFIX}{name}".upper() for name in Settings.model_fields} | OTHERS
    wrong = sorted(
        name
        for name in environment
        if name.upper().startswith(PREFIX) and name.upper() not in known and not _GIVEN.fullmatch(name.upper())
    )
    return [f"{name[:100]} is not a setting{_hint(name.upper(), known)}" for name in wrong[:_MOST]]


def _hint(name: str, known: set[str]) -> str:
    close = get_close_matches(name.removeprefix(PREFIX), [each.removeprefix(PREFIX) for each in known], n=1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""
