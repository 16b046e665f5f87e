"""The first admin token: there is one, its bearer is `admin`, and whoever has an old one stands before the door."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from horarium import Client
from horarium.client.inprocess import InProcess
from horarium.platform.client.errors import Unauthorized
from horarium.platform.settings import Settings
from horarium.serve.data_dir import FIRST, seed_admin_token, token_file
from horarium.serve.service import Service, open_service


@pytest.fixture
def service(tmp_path: Path, service_url: str) -> Iterator[Service]:
    with open_service(Settings(data_dir=tmp_path, database=service_url, log_level="error"), durable=False) as opened:
        yield opened


def start(service: Service) -> str:
    """What the file holds after a start."""
    path = seed_admin_token(service.settings, service.database, service.clock)
    assert path == token_file(service.settings)
    return path.read_text("utf-8").strip()


def status_with(service: Service, secret: str) -> int:
    transport = InProcess(service.api)
    with httpx.Client(transport=transport, base_url="http://here.invalid") as http:
        return http.get("/api/tokens", headers={"Authorization": f"Bearer {secret}"}).status_code


def test_an_old_admin_token_dies_when_the_next_start_makes_another(service: Service) -> None:
    stolen = start(service)
    assert start(service) == stolen  # a file that opens the database is kept
    token_file(service.settings).unlink()
    fresh = start(service)
    assert (status_with(service, stolen), status_with(service, fresh)) == (401, 200)
    token_file(service.settings).write_text("hor_of-another-house\n")
    assert start(service) not in (stolen, fresh)
    assert status_with(service, fresh) == 401


def test_the_bearer_of_the_first_admin_token_is_admin(service: Service) -> None:
    client = Client("http://here.invalid", token=start(service), transport=InProcess(service.api))
    client.create_schedule(schedule_id="s", cron_expressions=["0 0 * * *"], workflow_type="x")
    assert client.describe_schedule("s").owner == "admin"
    client.close()


def test_rotating_the_first_admin_token_leaves_a_file_that_is_right(service: Service) -> None:
    old = start(service)
    client = Client("http://here.invalid", token=old, transport=InProcess(service.api))
    other = client.issue_token(name="other", role="admin")
    [first] = [each for each in client.list_tokens() if each.name == FIRST]
    client.rotate_token(other.token_id)
    assert token_file(service.settings).read_text().strip() == old  # another token is none of its business
    rotated = client.rotate_token(first.token_id, overlap_seconds=0)
    assert token_file(service.settings).read_text().strip() == rotated.secret
    assert start(service) == rotated.secret
    with pytest.raises(Unauthorized):
        client.list_tokens()
    client.close()
