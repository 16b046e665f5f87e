"""Which headers carry credentials, and the secrets that they become."""

from __future__ import annotations

import pytest

from horarium.core.document.canonical import to_document
from horarium.core.document.checks import carries_credentials, generated_name, hosts_of, is_generated_for, of_schedule
from horarium.core.document.definition import Action
from horarium.core.document.document import parse_definition
from horarium.core.policy.queue import MAX_ID, checked_id
from horarium.instant import from_rfc3339

NOW = from_rfc3339("2026-03-01T00:00:00Z")

CREDENTIALS = [
    "Authorization",
    "Proxy-Authorization",
    "cookie",
    "Set-Cookie",
    "X-API-Key",
    "api-key",
    "apikey",
    "X-Auth",
    "X-Auth-Token",
    "x-access-token",
    "X-CSRF-Token",
    "X-XSRF",
    "X-Amz-Security-Token",
    "X-Vault-Token",
    "PRIVATE-TOKEN",
    "X-Goog-Api-Key",
    "Ocp-Apim-Subscription-Key",
    "x-functions-key",
    "x_api_key",
    "X-Client-Secret",
    "X-Password",
    "X-My-Credentials",
    "X-Session-Id",
    "JWT",
    "X-Authkey",
    "DD-APPLICATION-KEY",
    "X-App-Key",
    "X-Master-Key",
    "X-Key",
    "Api-Pass",
    "X-Pwd",
]
PLAIN = [
    "Accept",
    "Content-Type",
    "User-Agent",
    "X-Team",
    "X-Author",
    "X-Request-Id",
    "X-Partition-Key",
    "Prefer",
    "If-Match",
    "X-Monkey",
    "Authority",
    "X-Patient",
    "X-Sidecar",
    "X-Passenger",
    "Surrogate-Key",
]


@pytest.mark.parametrize("header", CREDENTIALS)
def test_a_header_that_authenticates_is_known(header: str) -> None:
    assert carries_credentials(header)


@pytest.mark.parametrize("header", PLAIN)
def test_a_header_that_tells_something_else_stays(header: str) -> None:
    assert not carries_credentials(header)


def test_credentials_become_names_and_the_rest_stays() -> None:
    headers = {"Authorization": "Bearer x", "X-Api-Key": {"$secret": "mine"}, "X-Team": "red", "Cookie": ""}
    document = {"schedule_id": "a", "cron_expressions": ["0 * * * *"], "url": "https://h/", "headers": headers}
    parsed = parse_definition(document, now=NOW)
    kept = parsed.definition.action.target["headers"]
    assert kept == {**headers, "Authorization": {"$secret": "schedule.a.authorization"}}
    assert dict(parsed.credentials) == {"schedule.a.authorization": "Bearer x"}
    assert "Bearer x" not in repr(parsed)
    again = parse_definition(to_document(parsed.definition), now=NOW)
    assert (again.definition, dict(again.credentials)) == (parsed.definition, {})


def test_generated_names_are_ids_and_no_two_owners_share_one() -> None:
    owners = ["a", "a.b", "a" * 128, "a" * 127 + "b", "schedule.a"]
    headers = ["authorization", "b.authorization", "token!", "token#", "x" * 128 + "token", "Token"]
    names = {generated_name(of_schedule(owner), header): owner for owner in owners for header in headers}
    assert len(names) == len(owners) * len(headers)
    for name, owner in names.items():
        assert checked_id("name", name)
        assert len(name) <= MAX_ID
        assert [each for each in owners if is_generated_for(of_schedule(each), name)] == [owner]


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("https://API.example.com/x?y", ("api.example.com",)),
        ("https://API.example.com:8443/x?y", ("https://api.example.com:8443",)),
        ("http://[::1]:80/", ("http://[::1]:80",)),
        ("http://exa%6dple.com/", ("http://exa%6dple.com:80",)),
        ("http://erp+x.example.com/", ("http://erp+x.example.com:80",)),
        ("http://b\u00fccher.example/", ("http://xn--bcher-kva.example:80",)),
        ("http://[", ()),
        (None, ()),
    ],
)
def test_credentials_go_to_the_host_that_is_called(url: str | None, hosts: tuple[str, ...]) -> None:
    """Never to any: who may name a generated secret does not know its value."""
    assert hosts_of(Action("http", {} if url is None else {"url": url})) == hosts
