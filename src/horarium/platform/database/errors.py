"""Errors of the database, told apart by what the caller can do about them.

HorariumError
├── StoreUnavailable       store_unavailable      the database is down, full or read-only: try later
│   ├── Transient          store_unavailable      this attempt lost a race or its connection: `write` tries again
│   └── Contended          store_unavailable      others change what the write reads: try later, or write less at once
├── CommitUnknown          commit_unknown         the connection broke while committing: look before trying again
├── DataError              data_error             a value that the database cannot hold: the fault is in the row
├── CannotRead             unreadable_row         a stored row that this program cannot read: damaged, or of a newer one
├── UniqueConflict         conflict               a unique constraint is taken; `constraint` says which
├── SchemaMissing          schema_missing         the tables are not there, or are older than this program
├── SchemaTooOld           schema_too_old         no migration exists: an unreleased version, another program, or damage
└── SchemaTooNew           schema_too_new         the tables were made by a newer program

Any other error of SQLAlchemy or of a driver is a mistake in our own SQL.
"""

from __future__ import annotations

from sqlalchemy.exc import SQLAlchemyError

from horarium.errors import HorariumError, InvalidTransition
from horarium.platform.ids import id_text

DATABASE_REMEDY = "check that the database is running, reachable and not locked, and has free disk space"


class StoreUnavailable(HorariumError):
    """`outcome_known`: whether a commit that failed like this has certainly not happened.

    `driver` is what the driver or the server said, which names machines, ports and processes: it is part of the
    message, for the log and for whoever runs the service, and not of `shown`, which callers are told.

    `busy`: the database is there, but a lock or all connections are in use by others.
    """

    reason = "store_unavailable"

    def __init__(self, message: str, *, driver: str = "", outcome_known: bool = True, busy: bool = False) -> None:
        super().__init__(f"{message}: {driver}" if driver else message)
        self.shown = message
        self.outcome_known = outcome_known
        self.busy = busy


class Transient(StoreUnavailable):
    """The same transaction may succeed if it is run again from its start."""


class Contended(StoreUnavailable):
    """Others change what a planned write has read, each time before it is written."""


class CommitUnknown(HorariumError):
    """`shown` is what callers are told."""

    reason = "commit_unknown"
    shown = "the commit was not confirmed, so the transaction may or may not be saved"

    def __init__(self, failed: str) -> None:
        super().__init__(f"{self.shown}: {failed}")


class DataError(HorariumError, ValueError):
    reason = "data_error"


class CannotRead(HorariumError, ValueError):
    """`key` names the row, which is left as it is."""

    reason = "unreadable_row"

    def __init__(self, kind: str, key: object, detail: str) -> None:
        name = id_text(key) if isinstance(key, bytes) and len(key) == 16 else key
        super().__init__(
            f"The stored {kind} {name} cannot be read: {detail}. It was written by a newer version or is damaged"
        )
        self.detail = detail


class UniqueConflict(HorariumError):
    """`constraint` is the name of the unique index or primary key, such as `runs_one_per_occurrence`."""

    reason = "conflict"

    def __init__(self, constraint: str) -> None:
        super().__init__(f"already taken: {constraint}")
        self.constraint = constraint


class SchemaMissing(HorariumError):
    reason = "schema_missing"


class SchemaTooOld(HorariumError):
    reason = "schema_too_old"


class SchemaTooNew(HorariumError):
    reason = "schema_too_new"


def shown(error: HorariumError) -> str:
    """Message for callers, without the driver's text, which names machines, ports and processes."""
    return error.shown if isinstance(error, StoreUnavailable | CommitUnknown) else error.message


def is_outage(error: BaseException) -> bool:
    """Return whether the database or the machine is in trouble, which may end at any moment."""
    return isinstance(error, StoreUnavailable | CommitUnknown | OSError | MemoryError)


# What Python raises for a value that cannot be read, planned or encoded.
_OF_A_VALUE = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, AssertionError, RecursionError)


def is_fault_of_a_row(error: BaseException) -> bool:
    """Tell whether a single row can have caused the error, so that setting that row aside helps the others.

    Only the errors named here count. Any other error of a database, a driver or a machine, now or in a later version,
    affects every row alike, and no row is set aside for it.
    """
    # Some errors of SQLAlchemy are KeyErrors as well.
    return isinstance(error, (DataError, UniqueConflict, InvalidTransition, *_OF_A_VALUE)) and not isinstance(
        error, SQLAlchemyError
    )
