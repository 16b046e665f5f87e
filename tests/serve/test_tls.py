"""TLS at our own door, with real certificates: who gets in, as whom, and who does not."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from certificates import DNS, EMAIL, LOOPBACK, URI, Authority, Files
from world import serving

from horarium.errors import InvalidDefinition
from horarium.platform.clock import SystemClock
from horarium.platform.settings import Settings
from horarium.serve.checkup import Grade, examine
from horarium.serve.sockets import Tls, in_the_clear, open_tls
from horarium.testing import TestService, service
from horarium.testing.service import TOKEN

PRINCIPALS = {
    "ci.example.org": {"principal": "ci", "role": "viewer", "namespace": "default"},
    "spiffe://example.org/tenant": {"principal": "worker", "role": "admin", "namespace": "tenant"},
    "root@example.org": {"principal": "root", "role": "admin", "namespace": "default"},
    "plain": {"principal": "plain", "role": "viewer", "namespace": "default"},
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Files:
    return authority.issue("server", LOOPBACK, DNS("localhost"))


@contextmanager
def secured(database: str, server: Files, **knobs: Any) -> Iterator[tuple[str, TestService, Tls]]:
    settings = {"tls_cert": server.cert, "tls_key": server.key, **knobs}
    with service(at="2026-03-01T00:00:00Z", database=database, settings=settings) as running:
        tls = open_tls(running.parts.settings)
        assert tls is not None
        with serving(running.parts, tls) as url:
            yield url, running, tls


def trust(authority: Authority, files: Files | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca)
    if files is not None:
        context.load_cert_chain(files.cert, files.key)
    return context


def ask(url: str, verify: ssl.SSLContext, token: str | None = TOKEN, path: str = "/api/schedules") -> httpx.Response:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    with httpx.Client(verify=verify, trust_env=False, headers=headers) as http:
        return http.get(f"{url}{path}")


def test_tokens_come_by_tls_and_by_nothing_else(service_url: str, authority: Authority, server: Files) -> None:
    with secured(service_url, server) as (url, _, _):
        assert url.startswith("https://")
        assert ask(url, trust(authority)).status_code == 200
        with pytest.raises(httpx.TransportError):
            httpx.get(url.replace("https:", "http:"), headers={"Authorization": f"Bearer {TOKEN}"}, trust_env=False)
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            ask(url, ssl.create_default_context())
        old = trust(authority)
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1"):
            old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
        with pytest.raises(httpx.ConnectError, match=r"EOF|ALERT"):
            ask(url, old)


def test_a_certificate_says_who_asks(service_url: str, authority: Authority, server: Files) -> None:
    known = {"tls_client_ca": authority.ca, "tls_principals": PRINCIPALS}
    with secured(service_url, server, **known) as (url, horarium, _):
        horarium.http().post("/api/namespaces", json={"namespace": "tenant"})
        ci = trust(authority, authority.issue("ci", DNS("CI.example.org")))
        assert ask(url, ci, None).status_code == 200
        assert ask(url, ci, None, "/api/tokens").status_code == 403
        tenant = trust(authority, authority.issue("tenant", URI("spiffe://example.org/tenant")))
        assert ask(url, tenant, None).json()["namespace"] == "tenant"
        with httpx.Client(verify=tenant, trust_env=False, headers={"X-Namespace": "default"}) as http:
            assert http.get(f"{url}/api/schedules").status_code == 404
        root = trust(authority, authority.issue("root", EMAIL("root@example.org")))
        assert ask(url, root, None, "/api/namespaces").status_code == 200
        assert ask(url, trust(authority, authority.issue("plain", common="plain")), None).status_code == 200


def test_a_page_of_another_site_gets_nowhere_with_a_certificate(
    service_url: str, authority: Authority, server: Files
) -> None:
    known = {"tls_client_ca": authority.ca, "tls_principals": PRINCIPALS}
    ci = trust(authority, authority.issue("ci", DNS("ci.example.org")))
    with (
        secured(service_url, server, **known) as (url, _, _),
        httpx.Client(verify=ci, trust_env=False, base_url=url) as http,
    ):
        said = http.get("/api/session").json()  # a certificate needs no session
        assert (said["principal"], said["ends_at"]) == ("ci", None)
        evil = {"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}
        for path in ("/api/schedules/s/trigger", "/api/session/link"):
            refused = http.post(path, headers=evil)
            assert (refused.status_code, refused.json()["reason"]) == (403, "cross_site")
        assert http.get("/api/schedules", headers={"Origin": "null"}).status_code == 403
        assert http.post("/api/session/link").status_code == 401  # there is no token that could stand in one
        page = {"Origin": url, "X-Horarium-Source": "ui"}
        cookie = http.post("/api/session", json={"token": TOKEN}, headers=page).headers["set-cookie"]
        assert cookie.endswith("; Secure")
        assert http.get("/api/session").json()["principal"] == "admin"


def test_a_certificate_that_is_not_known_or_not_good_opens_nothing(
    service_url: str, authority: Authority, server: Files, tmp_path: Path
) -> None:
    known = {"tls_client_ca": authority.ca, "tls_principals": PRINCIPALS}
    with secured(service_url, server, **known) as (url, _, _):
        stranger = trust(authority, authority.issue("stranger", DNS("stranger.example.org"), common="plain"))
        assert [ask(url, stranger, token).status_code for token in (None, TOKEN)] == [401, 401]
        ci = authority.issue("ci", DNS("ci.example.org"))
        assert ask(url, trust(authority, ci), "hor_wrong").status_code == 401, "both must be good"
        assert ask(url, trust(authority, ci), TOKEN, "/api/tokens").status_code == 200, "the token says who asks"
        forged = Authority(tmp_path).issue("ci", DNS("ci.example.org"))
        expired = authority.issue("expired", DNS("ci.example.org"), days=(-3, -1))
        for context in (trust(authority), trust(authority, forged), trust(authority, expired)):
            with pytest.raises(httpx.TransportError):
                ask(url, context)


def test_a_certificate_that_expires_while_its_connection_lives_is_good_no_more(
    service_url: str, authority: Authority, server: Files
) -> None:
    known = {"tls_client_ca": authority.ca, "tls_principals": PRINCIPALS}
    with secured(service_url, server, **known) as (url, horarium, _):
        ci = trust(authority, authority.issue("ci", DNS("ci.example.org")))
        with httpx.Client(verify=ci, trust_env=False) as http:
            assert http.get(f"{url}/api/schedules").status_code == 200
            horarium.clock.set("2100-01-01T00:00:00Z")
            assert http.get(f"{url}/api/schedules").status_code == 401


@pytest.mark.parametrize("optional", [True, False], ids=["optional", "needed"])
def test_without_a_certificate_one_gets_in_only_where_it_is_optional(
    service_url: str, authority: Authority, server: Files, optional: bool
) -> None:
    known = {"tls_client_ca": authority.ca, "tls_client_optional": optional}
    with secured(service_url, server, **known) as (url, _, _):
        if optional:
            assert [ask(url, trust(authority), token).status_code for token in (TOKEN, None)] == [200, 401]
        else:
            with pytest.raises(httpx.TransportError):
                ask(url, trust(authority))
        # Nobody is known by a certificate: it opens the connection, and a token says who asks.
        some = trust(authority, authority.issue("some", DNS("some.example.org")))
        assert [ask(url, some, token).status_code for token in (TOKEN, None)] == [200, 401]


def test_a_new_certificate_is_shown_without_a_restart_and_a_bad_one_is_not(
    service_url: str, authority: Authority, tmp_path: Path
) -> None:
    own = Authority(tmp_path)
    files = own.issue("server", LOOPBACK, common="old")
    with secured(service_url, files) as (url, _, tls):
        port = int(url.rpartition(":")[2])
        assert (shown(port, own), tls.renew()) == ("old", False)
        own.issue("server", LOOPBACK, common="new")
        assert (tls.renew(), shown(port, own)) == (True, "new")
        files.key.write_bytes(own.issue("other").key.read_bytes())
        with pytest.raises(InvalidDefinition):
            tls.renew()
        files.cert.unlink()
        with pytest.raises(InvalidDefinition):
            tls.renew()
        assert shown(port, own) == "new"


def shown(port: int, authority: Authority) -> str:
    with (
        socket.create_connection(("127.0.0.1", port), 20) as plain,
        trust(authority).wrap_socket(plain, server_hostname="127.0.0.1") as wrapped,
    ):
        subject: Any = (wrapped.getpeercert() or {})["subject"]
        return str(subject[0][0][1])


def test_whoever_connects_and_says_nothing_is_let_go(
    service_url: str, authority: Authority, server: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("horarium.serve.sockets.HANDSHAKE_SECONDS", 0.2)
    with secured(service_url, server) as (url, _, _):
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 60) as silent:
            assert silent.recv(1) == b""
        assert ask(url, trust(authority)).status_code == 200


def test_whoever_opens_many_connections_and_says_nothing_pushes_out_its_own(
    service_url: str, authority: Authority, server: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their files would be missing to the database, and nobody behind TLS counts them."""
    monkeypatch.setattr("horarium.serve.sockets.MOST_ARRIVING_OF_ADDRESS", 4)
    with secured(service_url, server) as (url, _, _), ExitStack() as stack:
        where = ("127.0.0.1", int(url.rpartition(":")[2]))
        silent = [stack.enter_context(socket.create_connection(where, 60)) for _ in range(20)]
        assert ask(url, trust(authority)).status_code == 200
        for each in silent[:16]:
            with suppress(ConnectionResetError):
                assert each.recv(1) == b""


def test_a_request_that_comes_with_the_last_of_the_handshake_is_heard(
    service_url: str, authority: Authority, server: Files
) -> None:
    with secured(service_url, server) as (url, _, _):
        where = ("127.0.0.1", int(url.rpartition(":")[2]))
        coming, going = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = trust(authority).wrap_bio(coming, going, server_hostname="127.0.0.1")
        with socket.create_connection(where, 60) as connection:

            def until_done(step: Callable[[], Any]) -> Any:
                while True:
                    try:
                        return step()
                    except ssl.SSLWantReadError:
                        connection.sendall(going.read())
                        coming.write(connection.recv(65_536))

            until_done(client.do_handshake)
            client.write(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert until_done(lambda: client.read(65_536)).startswith(b"HTTP/1.1 200 OK")


# ── what is set ──────────────────────────────────────────────────────────────────────────────────────


def test_a_locked_key_needs_its_password_and_nobody_is_asked_at_a_terminal(authority: Authority) -> None:
    files = authority.issue("locked", LOOPBACK, password="open sesame")
    knobs: dict[str, Any] = {"tls_cert": files.cert, "tls_key": files.key}
    assert open_tls(Settings(**knobs, tls_key_password="open sesame")) is not None
    for password in (None, "wrong"):
        with pytest.raises(InvalidDefinition) as refused:
            open_tls(Settings(**knobs, tls_key_password=password))
        assert "wrong" not in str(refused.value)


@pytest.mark.parametrize(
    ("knobs", "field"),
    [
        ({"tls_key": "server.key"}, "tls_key"),
        ({"tls_client_ca": "authority.pem"}, "tls_client_ca"),
        ({"tls_cert": "server.pem", "tls_key": "server.key", "tls_principals": PRINCIPALS}, "tls_principals"),
        ({"tls_cert": "server.pem", "tls_key": "server.key", "tls_client_optional": True}, "tls_client_optional"),
        ({"tls_cert": "nowhere.pem"}, "tls_cert"),
        ({"tls_cert": "."}, "tls_cert"),
        ({"tls_cert": "server.pem"}, "tls_cert"),
        ({"tls_cert": "server.pem", "tls_key": "nowhere.key"}, "tls_key"),
        ({"tls_cert": "server.pem", "tls_key": "other.key"}, "tls_cert"),
        ({"tls_cert": "server.pem", "tls_key": "server.key", "tls_client_ca": "server.key"}, "tls_client_ca"),
    ],
    ids=lambda each: ",".join(each) if isinstance(each, dict) else each,
)
def test_what_cannot_be_used_is_told_at_the_start(
    authority: Authority, server: Files, monkeypatch: pytest.MonkeyPatch, knobs: dict[str, Any], field: str
) -> None:
    authority.issue("other")
    monkeypatch.chdir(server.cert.parent)
    with pytest.raises(InvalidDefinition) as refused:
        open_tls(Settings(**knobs))
    assert list(refused.value.errors) == [field]


@pytest.mark.parametrize(
    ("knobs", "clear"),
    [
        ({}, False),
        ({"host": "::1"}, False),
        ({"host": "0.0.0.0"}, True),
        ({"host": "10.0.0.1"}, True),
        ({"host": "horarium.internal"}, True),
        ({"host": "0.0.0.0", "behind_proxy": True}, False),
        ({"host": "0.0.0.0", "tls_cert": "server.pem"}, False),
    ],
    ids=str,
)
def test_an_address_that_others_reach_without_tls_is_told(knobs: dict[str, Any], clear: bool) -> None:
    assert (in_the_clear(Settings(**knobs)) is not None) is clear


# ── doctor ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("host", "proxied", "days", "level", "told"),
    [
        pytest.param("127.0.0.1", False, None, Grade.OK, "not needed", id="this machine alone"),
        pytest.param("0.0.0.0", False, None, Grade.WARNING, "unencrypted", id="in the clear"),
        pytest.param("0.0.0.0", True, None, Grade.OK, "a proxy terminates TLS", id="behind a proxy"),
        pytest.param("0.0.0.0", False, 30, Grade.OK, "expires at", id="good"),
        pytest.param("0.0.0.0", False, 13, Grade.WARNING, "expires at", id="good for a few days"),
        pytest.param("0.0.0.0", False, 0, Grade.FAILURE, "expired at", id="expired"),
    ],
)
def test_doctor_looks_at_tls(
    authority: Authority, tmp_path: Path, host: str, proxied: bool, days: int | None, level: Grade, told: str
) -> None:
    files = None if days is None else authority.issue("looked-at", LOOPBACK, days=(-1, days))
    knobs: dict[str, Any] = {} if files is None else {"tls_cert": files.cert, "tls_key": files.key}
    settings = Settings(host=host, port=0, behind_proxy=proxied, data_dir=tmp_path / "none", **knobs)
    [check] = [each for each in examine(settings, SystemClock()) if each.name == "tls"]
    assert (check.level, told in check.found) == (level, True)
    assert bool(check.remedy) is (level is not Grade.OK)
