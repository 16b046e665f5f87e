"""How the settings reach the parts of a service."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from horarium.serve.service import open_service
from horarium.settings import Settings


@pytest.mark.parametrize("dialect", ["postgresql"], indirect=True)
@pytest.mark.parametrize(
    ("given", "shown"),
    [({}, "30s"), ({"statement_timeout_seconds": 0}, "0"), ({"statement_timeout_seconds": 2.5}, "2500ms")],
    ids=["default", "none", "given"],
)
def test_statements_of_the_service_have_a_timeout(
    empty_url: str, tmp_path: Path, given: dict[str, Any], shown: str
) -> None:
    settings = Settings(database=empty_url, data_dir=tmp_path, **given)
    with open_service(settings) as service:
        timeout = service.database.read(
            lambda connection: connection.exec_driver_sql("SHOW statement_timeout").scalar()
        )
    assert timeout == shown
