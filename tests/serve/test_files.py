"""Whatever the service writes is for its owner's eyes alone, also in a directory that others may look into."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from horarium.platform.cli.contexts import Contexts, NamedConnection, save_contexts
from horarium.platform.clock import SystemClock
from horarium.platform.database.sqlite import database_path
from horarium.platform.settings import Settings
from horarium.serve.checkup import Grade, examine
from horarium.serve.data_dir import addressed, seed_admin_token
from horarium.serve.service import open_service


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_every_file_is_private_in_a_directory_that_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    settings = Settings(data_dir=tmp_path, log_level="error")
    with open_service(settings) as service, addressed(settings, "http://127.0.0.1:1"):
        seed_admin_token(settings, service.database, service.clock)
        save_contexts(tmp_path / "contexts.json", Contexts({"a": NamedConnection("http://x", token="t")}))
        found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir() if path.is_file()}
    assert found.keys() >= {
        *("horarium.db", "horarium.db-wal", "horarium.db-shm"),
        *("admin.token", "secret.key", "server.json", "contexts.json"),
    }
    assert set(found.values()) == {0o600}, found


@pytest.mark.parametrize(("mode", "told"), [(0o600, []), (0o644, [Grade.WARNING])], ids=["ours", "as before"])
def test_the_doctor_sees_a_database_that_others_may_read(service_url: str, mode: int, told: list[Grade]) -> None:
    path = database_path(service_url)
    path.chmod(mode)
    found = examine(Settings(data_dir=path.parent, database=service_url, port=0), SystemClock())
    checks = [check for check in found if check.name == "database file"]
    assert [check.level for check in checks] == told
    assert all(check.remedy == f"chmod 600 {path}*" for check in checks)
