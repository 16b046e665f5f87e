"""An admin token that a start makes is on record: nobody gets one unseen."""

from __future__ import annotations

from pathlib import Path

from horarium.features.audit.service import check
from horarium.platform.database import audit_chain, open_database
from horarium.platform.settings import Settings
from horarium.serve.data_dir import seed_admin_token, token_file
from horarium.testing import FakeClock


def test_each_admin_token_that_is_made_leaves_an_entry(service_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "data")
    database = open_database(service_url)
    clock = FakeClock("2026-03-01T00:00:00Z")
    for _ in range(2):
        seed_admin_token(settings, database, clock)
    token_file(settings).unlink()  # as somebody would who wants to be let in as admin
    seed_admin_token(settings, database, clock)
    made = database.read(lambda connection: audit_chain.read_page(connection, "default"))
    checked = list(check(database))
    database.close()
    assert [(entry.deed.act, entry.deed.source) for entry in made] == [("admin_token_made", "service")] * 2
    assert len({entry.deed.detail["token_id"] for entry in made}) == 2
    assert [each.broken for each in checked] == [None]
