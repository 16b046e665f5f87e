"""Operations of the service, declared once more, as if no command had been written for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from horarium.features.secrets.model import Secret, SecretBody, SecretDeleted, SecretList
from horarium.features.tenants.model import Calendar, Namespace, NamespaceList
from horarium.platform.bodies import CalendarBody
from horarium.platform.client.call import Call, Page
from horarium.platform.operation import ADMINISTER, READ, WRITE, Operations

operation = Operations("/api", tag="sample")
_NAMED = {"name": "secret_name"}
SECRET = "/secrets/{secret_name}"


class SampleOperations:
    @operation("GET", "/secrets", needs=READ, summary="List secrets", answer=SecretList)
    @staticmethod
    def list_samples(*, page_size: int | None = None, next_page_token: str | None = None) -> Call[Page[Secret]]:
        """List samples by name."""

    @operation("PUT", SECRET, needs=WRITE, summary="Put", body=SecretBody, answer=Secret, renamed=_NAMED)
    @staticmethod
    def put_sample(name: str, value: str, *, hosts: Sequence[str] | None = None) -> Call[Secret]:
        """Create or replace a sample.

        Example: horarium sample put erp s3cret --hosts erp.example.com
        """

    @operation("DELETE", SECRET, needs=WRITE, summary="Delete", answer=SecretDeleted, renamed=_NAMED)
    @staticmethod
    def delete_sample(name: str, *, force: bool | None = None) -> Call[SecretDeleted]:
        """Delete a sample."""

    @operation("POST", "/calendars", needs=WRITE, summary="Create", body=CalendarBody, answer=Calendar, status=201)
    @staticmethod
    def create_day(document: dict[str, Any], /) -> Call[Calendar]: ...

    @operation("GET", "/calendars/{name}", needs=READ, summary="Show a sample", answer=Calendar)
    @staticmethod
    def get_sample(name: str, *, year: int | None = None) -> Call[Calendar]:
        """Show a day."""

    @operation("GET", "/namespaces", needs=ADMINISTER, summary="List owners", answer=NamespaceList)
    @staticmethod
    def list_owners() -> Call[Page[Namespace]]:
        """List owners."""

    @operation("GET", "/namespaces/{name}", needs=READ, summary="Hidden", answer=Namespace, has_command=False)
    @staticmethod
    def hide_sample(name: str) -> Call[Namespace]:
        """Have no command."""
