"""The way back that the page describes lets programs of this release in again."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa
from docs.pages import ROOT, blocks_of, section
from later_release import HEAD, LATER, become_later

from horarium.instant import SECOND
from horarium.platform.database import Connection, Database, schema
from horarium.platform.database.errors import SchemaTooNew
from horarium.platform.database.schema import Fit, SchemaState, read_state

PAGE = ROOT / "docs/how-to/upgrade.md"


def test_programs_of_this_release_may_start_again(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    become_later(monkeypatch, tmp_path)
    schema.migrate(database)

    def may_use(connection: Connection, seconds: int) -> bool:
        return schema.may_use(connection, LATER, seconds * SECOND)

    assert [database.write(partial(may_use, seconds=seconds)) for seconds in (1_000, 1_030)] == [False, True]
    monkeypatch.undo()
    with pytest.raises(SchemaTooNew):
        schema.check_schema(database)
    [block] = blocks_of(PAGE, section(PAGE, "Return to the previous version"))
    database.write(lambda c: c.execute(sa.text(block.text)))
    assert database.read(read_state) == SchemaState(LATER, HEAD)
    assert schema.check_schema(database).fit is Fit.NEWER
