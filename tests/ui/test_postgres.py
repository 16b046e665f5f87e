"""The same pages in front of PostgreSQL: the fleet is moved there as an operator would move it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from databases import empty_postgres
from node_here import Node
from ui.conftest import OpenPage, fleet_of
from ui.looking import follow, settled
from ui.serving import Served, up
from ui.test_pages import PAGES, assert_seen

from horarium.serve import maintenance

LOOKED_AT = ("now", "schedules", "schedule", "runs", "run", "approvals")


@pytest.fixture(scope="module")
def served(node: Node, past: Path, postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("served-postgres")
    with empty_postgres(postgres_server) as url:
        with maintenance.opened(f"sqlite:///{past / 'horarium.db'}", url) as move:
            move.copy(lambda *_told: None)
        with up(folder, fleet_of(past), url) as running_service:
            yield running_service


def test_the_pages_are_the_same_on_postgresql(open_page: OpenPage, served: Served) -> None:
    """One page after the other, as somebody who looks around."""
    page = open_page("/workflows")
    settled(page)
    for shown in (each for each in PAGES if each.name in LOOKED_AT):
        follow(page, shown.address(served))
        assert_seen(page, shown)
