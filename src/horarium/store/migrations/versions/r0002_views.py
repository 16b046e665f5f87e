"""Views for people with psql or sqlite3: ids as the API spells them, instants as times."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_HEX = "0123456789ABCDEF"

# `id:` and `at:` mark the columns that are stored in a form for machines.
_V_SCHEDULES = """
    s.namespace s.schedule_id s.name p.status at:p.next_due at:p.decided_until s.revision p.generation s.version
    s.workflow s.source s.owner p.active p.held p.runs_born p.fires_count p.failures_count p.failures_in_a_row
    p.skipped_count p.rotation_index at:p.last_fired_at id:p.last_run_id p.last_skip_reason at:p.last_skipped_at
    p.last_dispatch_status p.last_error at:p.last_error_at at:p.last_completed_at id:p.last_completed_run_id
    at:p.paused_at p.pause_reason at:s.created_at at:s.updated_at at:s.deleted_at id:s.schedule_uid
"""
V_RUNS = """
    r.namespace s.schedule_id r.state at:r.nominal at:r.due r.origin r.kind id:r.run_id r.revision r.workflow r.node_id
    r.attempt r.launches at:r.ready_at at:r.deadline r.priority r.queue r.delivery r.lease_epoch r.lease_owner
    at:r.lease_until r.reference r.needs_approval id:r.approval_id r.rotation_index r.trigger_number
    at:r.covers_first at:r.covers_last r.covers_count r.concurrency_key r.assignee r.external_key r.inputs r.result
    r.error r.error_class r.cause r.cost r.tokens r.tool_calls at:r.stop_requested_at id:r.parent_run_id
    id:r.root_run_id at:r.created_at at:r.started_at at:r.finished_at id:r.schedule_uid
"""
RUNS = "runs r LEFT JOIN schedules s USING (schedule_uid)"
V_HISTORY = """
    h.namespace s.schedule_id h.sequence h.event_type at:h.recorded_at at:h.nominal at:h.nominal_last id:h.run_id
    h.payload h.feed_id id:h.schedule_uid
"""


def upgrade() -> None:
    on_postgres = op.get_bind().dialect.name == "postgresql"
    if on_postgres:
        # Once, instead of a page of text for each id of each view.
        spelled = _spelled("upper(encode(id, 'hex'))", "strpos")
        op.execute(
            "CREATE FUNCTION horarium_id(id bytea) RETURNS text "
            f"LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT {spelled} $$"
        )
    create_view("v_schedules", _V_SCHEDULES, "schedules s JOIN positions p USING (schedule_uid)", on_postgres)
    create_view("v_runs", V_RUNS, RUNS, on_postgres)
    create_view("v_history", V_HISTORY, "history h LEFT JOIN schedules s USING (schedule_uid)", on_postgres)


def create_view(name: str, columns: str, source: str, on_postgres: bool, *, anew: bool = False) -> None:
    """`anew`: with more columns at its end than it has; on PostgreSQL who was allowed to read it still may."""
    if anew and not on_postgres:
        op.execute(f"DROP VIEW {name}")
    create = "CREATE OR REPLACE VIEW" if anew and on_postgres else "CREATE VIEW"
    shown = ", ".join(_shown(column, on_postgres) for column in columns.split())
    op.execute(f"{create} {name} AS SELECT {shown} FROM {source}")


def _shown(word: str, on_postgres: bool) -> str:
    kind, _, column = word.rpartition(":")
    match kind, on_postgres:
        case "id", True:
            shown = f"horarium_id({column})"
        case "id", False:
            shown = f"CASE WHEN {column} IS NOT NULL THEN {_spelled(f'hex({column})', 'instr')} END"
        case "at", True:
            shown = f"timestamptz 'epoch' + {column} * interval '1 microsecond'"
        case "at", False:
            shown = f"strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1000000.0, 'unixepoch')"
        case _:
            shown = column
    return f"{shown} AS {column.rpartition('.')[2]}"


def _spelled(digits: str, find: str) -> str:
    """26 characters of five bits; in front of the 32 hexadecimal digits stand two bits that are zero."""
    first = f"substr('{_ALPHABET}', 1 + {_digit(digits, find, 0)} / 2, 1)"
    return " || ".join([first, *(_character(digits, find, 5 * place - 2) for place in range(1, 26))])


def _character(digits: str, find: str, first_bit: int) -> str:
    """Five bits lie in two neighbouring digits, with up to three bits of others after them."""
    digit, offset = divmod(first_bit, 4)
    both = f"({_digit(digits, find, digit)} * 16 + {_digit(digits, find, digit + 1)})"
    return f"substr('{_ALPHABET}', 1 + {both} / {2 ** (3 - offset)} % 32, 1)"


def _digit(digits: str, find: str, place: int) -> str:
    return f"({find}('{_HEX}', substr({digits}, {place + 1}, 1)) - 1)"
