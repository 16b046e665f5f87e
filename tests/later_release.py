"""How this program becomes that of the next release for a while, which has one migration more."""

from __future__ import annotations

from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from horarium.store import migrate
from horarium.store.migrate import DIRECTORY, newest_revision

HEAD = newest_revision()
LATER = f"{int(HEAD) + 1:04}"
# What its migration says of itself.
EXPANDS = f"oldest_code, brings = {HEAD!r}, 'second thoughts'"
CONTRACTS = ""

_MIGRATION = """
from alembic import op
import sqlalchemy as sa
revision, down_revision, branch_labels, depends_on = {later!r}, {head!r}, None, None
{declared}
def upgrade() -> None:
    op.create_table("later", sa.Column("id", sa.Integer(), primary_key=True))
"""


def become_later(monkeypatch: pytest.MonkeyPatch, directory: Path, declared: str = EXPANDS) -> None:
    """Until the patches are undone."""
    more = directory / "later"
    more.mkdir()
    (more / "later.py").write_text(_MIGRATION.format(later=LATER, head=HEAD, declared=declared))
    scripts = ScriptDirectory(str(DIRECTORY), version_locations=[str(DIRECTORY / "versions"), str(more)])
    monkeypatch.setattr(migrate, "_scripts", lambda: scripts)
