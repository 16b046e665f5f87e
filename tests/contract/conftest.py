"""A real server on loopback and the published Durable Workflow client in its own interpreter; a namespace a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest
from contract.published import Process, Published
from environments import CONTRACT, RegistryUnreachable

from horarium.features.tenants import rows as tenant_rows
from horarium.platform.database import Database, open_database
from horarium.platform.ids import id_text, new_id

TOKEN = "hor_contract"


@dataclass(frozen=True)
class Server:
    """`database` is the server's own, opened a second time, as another process of a cluster would."""

    url: str
    database: Database

    def new_namespace(self) -> str:
        name = f"ns-{id_text(new_id()).lower()}"
        self.database.write(lambda connection: tenant_rows.insert_namespace(connection, name, "", now=0))
        return name


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    data_dir = tmp_path_factory.mktemp("contract")
    process = subprocess.Popen(
        [sys.executable, "-m", "horarium", "up", "--data-dir", str(data_dir), "--port", "0"],
        env={**os.environ, "HORARIUM_TOKEN": TOKEN, "HORARIUM_LOG_LEVEL": "error"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "ready at" in line, f"the server did not start: {line!r}"
    database = open_database(f"sqlite:///{data_dir / 'horarium.db'}")
    try:
        yield Server(next(word for word in line.split() if word.startswith("http")), database)
    finally:
        database.close()
        process.terminate()
        process.wait(60)
        process.stdout.close()
    assert process.returncode == 0


@pytest.fixture(scope="session")
def client_process() -> Iterator[Process]:
    try:
        python = CONTRACT.ready()
    except RegistryUnreachable as away:
        pytest.skip(str(away))
    process = Process(python)
    yield process
    process.close()


@pytest.fixture
def namespace(server: Server) -> str:
    return server.new_namespace()


@pytest.fixture
def published(client_process: Process, server: Server, namespace: str) -> Published:
    """The async client, as a program would make it."""
    return Published(client_process, {"base_url": server.url, "token": TOKEN, "namespace": namespace})


@pytest.fixture
def http(server: Server, namespace: str) -> Iterator[httpx.Client]:
    """By hand, as the command line of Durable Workflow speaks: its headers on every request."""
    headers = {
        "Authorization": f"Bearer {TOKEN}",
        "X-Namespace": namespace,
        "X-Durable-Workflow-Control-Plane-Version": "2",
        "X-Durable-Workflow-Protocol-Version": "1.0",
        "Accept": "application/json",
    }
    # Plain HTTP: to read the trusted certificates would take longer than a test.
    with httpx.Client(base_url=server.url, headers=headers, verify=False) as client:
        yield client
