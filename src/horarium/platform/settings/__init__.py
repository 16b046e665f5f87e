"""Settings of an operator: one frozen `Settings`, every setting with its unit and its default.

A flag takes precedence over the environment, the environment over the file `horarium.toml`, the file over the default.
`Settings(...)` alone reads nothing from outside; only `load_settings` does.
"""

from __future__ import annotations

from horarium.platform.settings.fields import DATABASE_FILE, PREFIX, Origin, Settings
from horarium.platform.settings.loading import (
    as_up_takes_them,
    is_loopback,
    load_settings,
    origins,
    unknown_variables,
    variable,
)
from horarium.platform.settings.values import CertificateHolder, Command, WebhookSecret

__all__ = [
    "DATABASE_FILE",
    "PREFIX",
    "CertificateHolder",
    "Command",
    "Origin",
    "Settings",
    "WebhookSecret",
    "as_up_takes_them",
    "is_loopback",
    "load_settings",
    "origins",
    "unknown_variables",
    "variable",
]
