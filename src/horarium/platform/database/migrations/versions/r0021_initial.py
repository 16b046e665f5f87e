"""Create the schema.

Lower revisions were never released: a database that has one is refused.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy.schema import CreateTable

from horarium.platform.database.migrations.initial import runs, schedules, service
from horarium.platform.database.migrations.initial.indexes import indexes
from horarium.platform.database.migrations.initial.partitions import create_archive, create_default_partitions
from horarium.platform.database.migrations.initial.triggers import create_triggers
from horarium.platform.database.migrations.initial.views import create_views

revision = "0021"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    for module in (schedules, runs, service):
        for table in module.metadata.sorted_tables:
            op.execute(CreateTable(table))
    op.execute(CreateTable(service.history(on_postgres)))
    if on_postgres:
        create_archive()
    for index in indexes(on_postgres):
        op.execute(index.sql())
    if on_postgres:
        create_default_partitions()
    create_views(on_postgres)
    create_triggers(on_postgres)
