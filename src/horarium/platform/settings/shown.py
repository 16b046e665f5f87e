"""Settings as `horarium config` shows them: every value, and no secret.

A secret setting hides itself. Passwords may also be part of a URL, or of the environment of a command.
"""

from __future__ import annotations

import re
from typing import Any

from horarium.platform.database.postgres import SECRET_PARAMETERS
from horarium.platform.settings import Settings

HIDDEN = "**********"

# Up to the last @, since a password that was not escaped may hold one.
_USERINFO = re.compile(r"(?<=://)([^:/?#@]*):.*@", re.DOTALL)
_PARAMETER = re.compile(rf"(?<=[?&])({'|'.join(SECRET_PARAMETERS)})=[^&#]*", re.IGNORECASE)


def shown_values(settings: Settings) -> dict[str, Any]:
    """As JSON, by the names of the settings."""
    values = settings.model_dump(mode="json")
    shown = {name: without_password(value) if isinstance(value, str) else value for name, value in values.items()}
    commands = {
        name: {**command, "env": dict.fromkeys(command["env"], HIDDEN)} for name, command in values["commands"].items()
    }
    return {**shown, "commands": commands}


def without_password(address: str) -> str:
    """Hide the password of a URL; any other text has none."""
    if "://" not in address:
        return address
    return _PARAMETER.sub(rf"\1={HIDDEN}", _USERINFO.sub(rf"\1:{HIDDEN}@", address))
