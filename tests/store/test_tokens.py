"""Tokens: shown once, kept as a hash, dead when revoked or expired."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.features.tenants import rows as tenant_rows
from horarium.features.tenants.rows import NewToken, TokenRow
from horarium.platform.database import Database
from horarium.platform.database.errors import DataError


def issue(database: Database, **given: Any) -> NewToken:
    values: dict[str, Any] = {"namespace": "default", "name": "ci", "role": "operator", "now": 10} | given
    return database.write(lambda c: tenant_rows.issue_token(c, **values))


def find(database: Database, secret: str, now: int = 11) -> TokenRow | None:
    return database.read(lambda c: tenant_rows.find_token_by_secret(c, secret, now=now))


def test_a_token_is_known_by_its_secret(database: Database) -> None:
    issued = issue(database, subject="ada", expires_at=20)
    row = find(database, issued.secret)
    assert row == TokenRow(issued.token_id, "default", "ci", "operator", "ada", 10, 20, None, None, None, None)


def test_the_secret_is_kept_nowhere(database: Database) -> None:
    issued = issue(database)
    stored = database.read(lambda c: c.exec_driver_sql("SELECT * FROM tokens").one())
    assert issued.secret not in repr(stored)
    assert issued.secret not in repr(issued)
    assert issued.secret.startswith(tenant_rows.PREFIX)
    assert issued.secret != issue(database).secret


@pytest.mark.parametrize("secret", ["", "hor_", "x" * 10_000, "\ud800", "nul \0", "' OR 1=1 --"])
def test_what_was_never_issued_opens_nothing(database: Database, secret: str) -> None:
    issue(database)
    assert find(database, secret) is None


def test_a_token_dies_at_its_expiry(database: Database) -> None:
    secret = issue(database, expires_at=20).secret
    assert find(database, secret, now=19) is not None
    assert find(database, secret, now=20) is None


def test_a_revoked_token_is_dead_and_stays_on_record(database: Database) -> None:
    issued = issue(database)
    assert not database.write(lambda c: tenant_rows.revoke_token(c, "other", issued.token_id, now=12))
    assert database.write(lambda c: tenant_rows.revoke_token(c, "default", issued.token_id, now=12))
    assert not database.write(lambda c: tenant_rows.revoke_token(c, "default", issued.token_id, now=13))
    assert find(database, issued.secret) is None
    row = database.read(lambda c: tenant_rows.find_token(c, "default", issued.token_id))
    assert row is not None
    assert row.revoked_at == 12
    assert database.read(lambda c: tenant_rows.find_token(c, "other", issued.token_id)) is None


def test_use_is_noted_and_tokens_are_listed_by_namespace(database: Database) -> None:
    first, second = issue(database, name="first"), issue(database, name="second")
    database.write(lambda c: tenant_rows.touch_token(c, first.token_id, now=15))
    rows = database.read(lambda c: tenant_rows.all_tokens(c, "default"))
    assert [(row.token_id, row.last_used_at) for row in rows] == [(first.token_id, 15), (second.token_id, None)]
    assert database.read(lambda c: tenant_rows.all_tokens(c, "other")) == []


def test_a_token_needs_a_namespace_that_exists(database: Database) -> None:
    with pytest.raises(DataError):
        issue(database, namespace="nowhere")
