"""One key for all processes on a database: from the settings, or from a file that the first start makes."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from horarium.platform.ids import new_id
from horarium.platform.settings import Settings
from horarium.serve.data_dir import WrongSecretKey, key_file, write_once
from horarium.serve.service import open_service

RUN = new_id()


def token(url: str, folder: Path, **given: Any) -> str:
    with open_service(Settings(database=url, data_dir=folder, **given)) as service:
        return service.resources.tokens.make(RUN, 0)


def test_the_first_start_makes_a_key_that_only_its_owner_can_read(empty_url: str, tmp_path: Path) -> None:
    first = token(empty_url, tmp_path)
    assert stat.S_IMODE(key_file(Settings(data_dir=tmp_path)).stat().st_mode) == 0o600
    assert token(empty_url, tmp_path) == first
    assert [path.name for path in tmp_path.iterdir() if ".new" in path.name] == []


def test_processes_with_the_same_key_understand_each_other(empty_url: str, tmp_path: Path) -> None:
    assert token(empty_url, tmp_path / "a", secret_key="s") == token(empty_url, tmp_path / "b", secret_key="s")
    assert not (tmp_path / "a" / "secret.key").exists()


@pytest.mark.parametrize("other", [{"secret_key": "another"}, {}], ids=["another", "none"])
def test_a_process_with_another_key_refuses_to_start(empty_url: str, tmp_path: Path, other: dict[str, str]) -> None:
    token(empty_url, tmp_path / "a", secret_key="s")
    with pytest.raises(WrongSecretKey, match="HORARIUM_SECRET_KEY"):
        token(empty_url, tmp_path / "b", **other)
    assert not (tmp_path / "b" / "secret.key").exists()


def test_of_two_that_start_at_once_one_writes_and_both_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    assert (write_once(path, "mine"), write_once(path, "yours")) == ("mine", "mine")


def test_the_key_is_shown_nowhere(empty_url: str, tmp_path: Path) -> None:
    settings = Settings(database=empty_url, data_dir=tmp_path, secret_key="very secret")
    with open_service(settings) as service:
        assert "very secret" not in repr(service) + repr(settings)
