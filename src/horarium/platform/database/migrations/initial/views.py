"""Views for psql and sqlite3: ids as the API writes them, instants as timestamps."""

from __future__ import annotations

from alembic import op

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_HEX = "0123456789ABCDEF"

# `id:` marks columns with 16-byte ids, `at:` columns with microseconds.
_V_SCHEDULES = """
    s.namespace s.schedule_id s.name p.status at:p.next_due at:p.decided_until s.revision p.generation s.version
    s.workflow s.source s.owner p.active p.held p.runs_born p.fires_count p.failures_count p.failures_in_a_row
    p.skipped_count p.rotation_index at:p.last_fired_at id:p.last_run_id p.last_skip_reason at:p.last_skipped_at
    p.last_dispatch_status p.last_error at:p.last_error_at at:p.last_completed_at id:p.last_completed_run_id
    at:p.paused_at p.pause_reason at:s.created_at at:s.updated_at at:s.deleted_at id:s.schedule_uid
"""
_V_RUNS = """
    r.namespace s.schedule_id r.state at:r.nominal at:r.due r.origin r.kind id:r.run_id r.revision r.workflow r.node_id
    r.attempt r.launches at:r.ready_at at:r.deadline r.priority r.queue r.delivery r.lease_epoch r.lease_owner
    at:r.lease_until r.reference r.needs_approval id:r.approval_id r.rotation_index r.trigger_number
    at:r.covers_first at:r.covers_last r.covers_count r.concurrency_key r.assignee r.external_key r.inputs r.result
    r.error r.error_class r.cause r.cost r.tokens r.tool_calls at:r.stop_requested_at id:r.parent_run_id
    id:r.root_run_id at:r.created_at at:r.started_at at:r.finished_at id:r.schedule_uid
    r.workflow_version r.of_workflow r.of_version r.node_path r.fallback r.assignee_type r.member r.effective
    r.progress r.gates_passed r.heard
"""
_V_HISTORY = """
    h.namespace s.schedule_id h.sequence h.event_type at:h.recorded_at at:h.nominal at:h.nominal_last id:h.run_id
    h.payload h.feed_id id:h.schedule_uid
"""


def create_views(on_postgres: bool) -> None:
    runs = "runs r"
    if on_postgres:
        # A function once, instead of a page of SQL for each id of each view.
        spelled = _spelled("upper(encode(id, 'hex'))", "strpos")
        op.execute(
            "CREATE FUNCTION horarium_id(id bytea) RETURNS text "
            f"LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$ SELECT {spelled} $$"
        )
        runs = "(SELECT * FROM runs UNION ALL SELECT * FROM runs_archive) r"
    schedules = "LEFT JOIN schedules s USING (schedule_uid)"
    _create_view("v_schedules", _V_SCHEDULES, "schedules s JOIN positions p USING (schedule_uid)", on_postgres)
    _create_view("v_runs", _V_RUNS, f"{runs} {schedules}", on_postgres)
    _create_view("v_history", _V_HISTORY, f"history h {schedules}", on_postgres)


def _create_view(name: str, columns: str, source: str, on_postgres: bool) -> None:
    shown = ", ".join(_shown(column, on_postgres) for column in columns.split())
    op.execute(f"CREATE VIEW {name} AS SELECT {shown} FROM {source}")


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
    """Return SQL for 26 characters of five bits each; two zero bits precede the 32 hexadecimal digits."""
    first = f"substr('{_ALPHABET}', 1 + {_digit(digits, find, 0)} / 2, 1)"
    return " || ".join([first, *(_character(digits, find, 5 * place - 2) for place in range(1, 26))])


def _character(digits: str, find: str, first_bit: int) -> str:
    """Return SQL for the five bits from `first_bit`; they lie in two adjacent hexadecimal digits."""
    digit, offset = divmod(first_bit, 4)
    both = f"({_digit(digits, find, digit)} * 16 + {_digit(digits, find, digit + 1)})"
    return f"substr('{_ALPHABET}', 1 + {both} / {2 ** (3 - offset)} % 32, 1)"


def _digit(digits: str, find: str, place: int) -> str:
    return f"({find}('{_HEX}', substr({digits}, {place + 1}, 1)) - 1)"
