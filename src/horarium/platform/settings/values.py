"""Values of settings besides numbers and texts: commands, secrets, brokers, holders of certificates."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr

from horarium.audience import parse_audience


def _checked_namespaces(names: tuple[str, ...]) -> tuple[str, ...]:
    parse_audience(names)
    return names


Namespaces: TypeAlias = Annotated[tuple[str, ...], AfterValidator(_checked_namespaces)]


class Command(BaseModel):
    """A program that schedules may run, by its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    argv: tuple[str, ...] = Field(min_length=1, description="Program and arguments. No shell is used.")
    cwd: str | None = Field(None, description="Working directory.")
    env: Mapping[str, str] = Field(default_factory=dict, description="Additional environment variables.")
    timeout_seconds: float | None = Field(
        None, gt=0, description="Maximum seconds; the run's own timeout applies if it is shorter."
    )
    allow_arguments: bool = Field(False, description="Let schedules append arguments.")
    namespaces: Namespaces | None = Field(
        None, description='Namespaces that may use it; ["*"] = all. Unset: the default namespace only.'
    )


class WebhookSecret(BaseModel):
    """A secret that signs requests, and for whom."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    secret: SecretStr = Field(description="Standard Webhooks secrets (whsec_…), separated by spaces.")
    namespaces: Namespaces | None = Field(
        None, description='Namespaces that may use it; ["*"] = all. Unset: the default namespace only.'
    )


class CeleryConnection(BaseModel):
    """Where tasks of Celery are published, where their results are looked up, and who may use it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    broker: SecretStr = Field(description="URL of the broker, such as redis://… or amqps://…")
    result: SecretStr | None = Field(
        None, description="URL of the workers' result backend. Unset: runs end only by reports."
    )
    namespaces: Namespaces | None = Field(
        None, description='Namespaces that may use it; ["*"] = all. Unset: the default namespace only.'
    )


class CertificateHolder(BaseModel):
    """Holder of a client certificate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    principal: str = Field(min_length=1, max_length=255, description="Principal shown as owner and in history.")
    role: str = Field(description="Role of the holder.")
    namespace: str = Field(min_length=1, max_length=128, description="Namespace of the holder.")


def _network(text: str) -> str:
    ipaddress.ip_network(text)
    return text


NetworkText: TypeAlias = Annotated[str, AfterValidator(_network)]


_SEGMENTS = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)+")
_MAX_BASE_PATH = 200


def _base_path(text: str) -> str:
    """A slash at its end is taken off: it says the same."""
    base = text.rstrip("/")
    if base and (len(base) > _MAX_BASE_PATH or not _SEGMENTS.fullmatch(base)):
        raise ValueError("must be a path such as /horarium with only letters, digits and - . _ ~")
    return base


BasePath: TypeAlias = Annotated[str, AfterValidator(_base_path)]
