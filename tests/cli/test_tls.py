"""The command line and the clients where the server speaks TLS, and asks for certificates itself."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import DNS, LOOPBACK, Authority, Files
from cli.served import Answer, set_environment
from world import serving

from horarium.cli.main import main
from horarium.client.client import AsyncClient, Client
from horarium.errors import InvalidDefinition
from horarium.platform.client.errors import ServerUnavailable
from horarium.platform.client.exchange import NEVER
from horarium.serve.sockets import open_tls
from horarium.testing import service


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    monkeypatch.chdir(tmp_path)
    return Authority(tmp_path)


@pytest.fixture
def own(authority: Authority) -> Files:
    return authority.issue("own", DNS("ci.example.org"))


@pytest.fixture
def url(authority: Authority, service_url: str) -> Iterator[str]:
    shown = authority.issue("server", LOOPBACK)
    knobs = {
        "tls_cert": shown.cert,
        "tls_key": shown.key,
        "tls_client_ca": authority.ca,
        "tls_principals": {"ci.example.org": {"principal": "ci", "role": "operator", "namespace": "default"}},
    }
    with (
        service(database=service_url, settings=knobs) as running,
        serving(running.parts, open_tls(running.parts.settings)) as url,
    ):
        yield url


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> Answer:
    capsys.readouterr()
    return Answer(main(arguments), *capsys.readouterr())


def test_the_command_line_shows_its_certificate_and_checks_the_server_s(
    url: str, authority: Authority, own: Files, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, token=None)
    where = ("--server", url, "--ca-file", str(authority.ca))
    mine = ("--client-cert", str(own.cert), "--client-key", str(own.key))
    by_flags = ask(capsys, "schedule", "list", *where, *mine)
    assert by_flags.code == 0, by_flags.err
    assert ask(capsys, *where, *mine, "schedule", "list").code == 0, "before the noun as well"
    assert ask(capsys, "schedule", "list", *where).code == 3, "nobody comes in without one"
    unknown = ask(capsys, "schedule", "list", "--server", url, *mine)
    assert (unknown.code, "--ca-file" in unknown.err) == (3, True), "nobody vouches for the server"
    refused = ask(capsys, "schedule", "list", *where, "--client-key", str(own.key))
    assert (refused.code, "client_cert" in refused.err) == (2, True)
    missing = ask(capsys, "schedule", "list", "--server", url, "--ca-file", "nowhere.pem")
    assert (missing.code, "nowhere.pem" in missing.err) == (2, True)
    # Kept with the name of the server, and said by the environment.
    made = ask(capsys, "context", "create", "prod", *where, *mine)
    assert made.code == 0, made.err
    assert ask(capsys, "schedule", "list", "--context", "prod").code == 0
    assert str(own.cert) in ask(capsys, "context", "show", "prod").out.replace("\n", "")
    for name, value in (("CA_FILE", authority.ca), ("CLIENT_CERT", own.cert), ("CLIENT_KEY", own.key)):
        monkeypatch.setenv(f"HORARIUM_{name}", str(value))
    assert ask(capsys, "schedule", "list", "--server", url).code == 0


def test_both_clients_come_with_a_certificate(
    url: str, authority: Authority, own: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_environment(monkeypatch, token=None)
    ca, (cert, key) = str(authority.ca), own.pair
    with Client(url, ca_file=ca, client_cert=cert, client_key=key) as client:
        assert list(client.list_schedules()) == []

    async def asked() -> list[object]:
        async with AsyncClient(url, ca_file=ca, client_cert=cert, client_key=key) as client:
            return list(await client.list_schedules())

    assert asyncio.run(asked()) == []
    with Client(url, ca_file=ca, retries=NEVER) as stranger, pytest.raises(ServerUnavailable):
        stranger.list_schedules()


@pytest.mark.parametrize(
    ("files", "field"),
    [
        ({"ca_file": "own.key"}, "ca_file"),
        ({"client_cert": "own.pem"}, "client_cert"),
        ({"client_cert": "own.pem", "client_key": "locked.key"}, "client_cert"),
        ({"client_cert": "own.pem", "client_key": "\0"}, "client_key"),
    ],
    ids=["no authority", "no key", "a locked key", "no name of a file"],
)
def test_a_file_that_cannot_be_used_is_told_at_once(
    authority: Authority, own: Files, monkeypatch: pytest.MonkeyPatch, files: dict[str, str], field: str
) -> None:
    authority.issue("locked", password="open sesame")
    set_environment(monkeypatch)
    with pytest.raises(InvalidDefinition) as refused:
        Client("https://127.0.0.1:1", **files)  # type: ignore[arg-type]  # names of arguments from the table
    assert list(refused.value.errors) == [field]
