"""What an operator may choose: one frozen `Settings`, every knob with its unit and its default.

A value given as a flag wins over the environment, the environment over the file `horarium.toml`, the
file over the default. `Settings(...)` alone reads nothing from outside; only `load_settings` does.
"""

from horarium.settings.environment import unknown_variables
from horarium.settings.knobs import DATABASE_FILE, PREFIX, Origin, Settings
from horarium.settings.loading import as_up_takes_them, is_loopback, load_settings, origins, variable
from horarium.settings.parts import CertificateHolder, Command, WebhookSecret

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
