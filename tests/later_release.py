"""The next release, invented: this program with one more migration."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

from horarium.platform.database import schema
from horarium.platform.database.schema import DIRECTORY, newest_revision

SOURCE = Path(__file__).parents[1] / "src"
HEAD = newest_revision()
LATER = f"{int(HEAD) + 1:04}"
# What its migration declares.
EXPANDS = f"oldest_code, brings = {HEAD!r}, 'second thoughts'"
CONTRACTS = ""
# It drops what this release does not use any more, as far as the test is concerned.
DROPS = f"""{EXPANDS}
drops = ("index runs_reruns on runs", "column schedules.note")"""

_MIGRATION = """
from alembic import op
import sqlalchemy as sa
revision, down_revision, branch_labels, depends_on = {later!r}, {head!r}, None, None
drops = ()
{declared}
def upgrade() -> None:
    op.create_table("later", sa.Column("id", sa.Integer(), primary_key=True))
    op.add_column("runs", sa.Column("remark", sa.Text()))
    if op.get_bind().dialect.name == "postgresql":
        op.add_column("runs_archive", sa.Column("remark", sa.Text()))
    op.add_column("history", sa.Column("weight", sa.Integer(), nullable=False, server_default="1"))
    op.create_index("runs_by_remark", "runs", ["remark"])
    for dropped in drops:
        kind, _, name = dropped.partition(" ")
        if kind == "index":
            op.drop_index(*name.split(" on "))
        else:
            op.drop_column(*name.split("."))
"""


def become_later(monkeypatch: pytest.MonkeyPatch, directory: Path, declared: str = EXPANDS) -> None:
    """Become the next release until the patches are undone."""
    more = directory / "later"
    more.mkdir()
    _write_migration(more, declared)
    scripts = ScriptDirectory(str(DIRECTORY), version_locations=[str(DIRECTORY / "versions"), str(more)])
    monkeypatch.setattr(schema, "_scripts", lambda: scripts)
    monkeypatch.setattr(schema, "OLDEST_SCHEMA", HEAD)


def later_source(into: Path) -> Path:
    """Make the source of the next release, for processes of their own, and return where it is."""
    made = into / "src"
    shutil.copytree(SOURCE / "horarium", made / "horarium", ignore=shutil.ignore_patterns("__pycache__", "static"))
    _write_migration(made / DIRECTORY.relative_to(SOURCE) / "versions", EXPANDS)
    return made


def _write_migration(folder: Path, declared: str) -> None:
    (folder / f"r{LATER}_later.py").write_text(_MIGRATION.format(later=LATER, head=HEAD, declared=declared))
