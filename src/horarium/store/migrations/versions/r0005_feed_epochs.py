"""Which server has written which part of history, and an index of the runs of a schedule that were asked to stop.

A server is known by its identity and its timeline: the first differs after a restore from a dump, the second after
one to a moment in the past. `horarium_notice_server` is called on every new connection, before anything is written.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_TO_STOP = sa.text("stop_requested_at IS NOT NULL AND finished_at IS NULL AND state <> 'held'")

# '' where a server does not tell, as some that are hosted do not.
_SERVER = """
CREATE FUNCTION horarium_server() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF pg_is_in_recovery() THEN RETURN ''; END IF;
  RETURN left(encode(sha256(convert_to(
    (SELECT system_identifier FROM pg_control_system()) || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8), 'UTF8'
  )), 'hex'), 8);
EXCEPTION WHEN OTHERS THEN RETURN '';
END $$
"""
_NOTICE = """
CREATE FUNCTION horarium_notice_server() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  here text := horarium_server();
  newest feed_epochs%ROWTYPE;
BEGIN
  SELECT * INTO newest FROM feed_epochs ORDER BY epoch DESC LIMIT 1;
  IF here = '' OR here = newest.server THEN RETURN; END IF;
  INSERT INTO feed_epochs (epoch, server, first_feed_id)
  SELECT COALESCE(newest.epoch, 0) + 1, here,
    CASE WHEN newest.epoch IS NULL THEN 0 ELSE COALESCE(max(feed_id), 0) + 1 END
  FROM history ON CONFLICT DO NOTHING;
END $$
"""
# Rows of a transaction that this server has not begun were written by another, before there were epochs.
_RESTORED = """
INSERT INTO feed_epochs (epoch, server, first_feed_id)
SELECT 1, 'former', 0 WHERE EXISTS (
  SELECT 1 FROM history WHERE transaction_id >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint
)
"""


def upgrade() -> None:
    op.create_index(
        "runs_to_stop_by_schedule",
        "runs",
        ["schedule_uid", "run_id"],
        postgresql_where=_TO_STOP,
        sqlite_where=_TO_STOP,
    )
    op.create_table(
        "feed_epochs",
        sa.Column("epoch", sa.Integer(), primary_key=True, autoincrement=False),
        sa.Column("server", sa.Text(), nullable=False),
        sa.Column("first_feed_id", sa.BigInteger(), nullable=False),
    )
    if op.get_bind().dialect.name == "postgresql":
        for statement in (_SERVER, _NOTICE, _RESTORED, "SELECT horarium_notice_server()"):
            op.execute(statement)


def downgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION horarium_notice_server()")
        op.execute("DROP FUNCTION horarium_server()")
    op.drop_table("feed_epochs")
    op.drop_index("runs_to_stop_by_schedule", "runs")
