"""The texts of runs whose action is a template: rendered in the transaction that creates the run, and kept.

A row of `run_definitions` holds them under the id of the run, and `Definitions` reads it back, so every reader of a
run finds the same texts: the approval, the launch and its retries, and the answers of the API.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection

from horarium.ids import id_text
from horarium.instant import Instant
from horarium.recurrence.spec import Spec
from horarium.schedule.damage import damage_of
from horarium.schedule.document import run_part_of
from horarium.schedule.json_limits import Json
from horarium.schedule.rendering import RunFacts, ScheduleName, literals_of, render
from horarium.store.database.json_text import from_text, object_from_text, to_text
from horarium.store.database.set_wise import Insert, select_by_ids
from horarium.store.runs.definitions import OWN_TEXTS, RevisionKey, is_template, revisions
from horarium.store.tables import run_definitions

_INSERT = Insert(run_definitions, ("run_id", "document"))
_GIVEN = "given"
# Each may have a megabyte.
_AT_ONCE: Final = 20


class Created(NamedTuple):
    """A run of a schedule that was just created, with what its texts depend on."""

    run_id: bytes
    namespace: str
    schedule_uid: bytes
    revision: int
    spec: Spec
    nominal: Instant
    due: Instant
    rotation_index: int


def keep(
    connection: Connection, created: Sequence[Created], *, now: Instant, origin: str, given: Json = None
) -> Counter[str]:
    """Return the bytes that were written by namespace. `given` are the inputs that a caller gave.

    Raises TemplateError where they do not fit the template.
    """
    sizes: Counter[str] = Counter()
    by_revision: dict[RevisionKey, list[Created]] = defaultdict(list)
    for run in created:
        by_revision[run.schedule_uid, run.revision].append(run)
    more = {} if given is None else {_GIVEN: given}
    keys = list(by_revision)
    for start in range(0, len(keys), _AT_ONCE):
        rows = []
        for key, text in revisions(connection, keys[start : start + _AT_ONCE]).items():
            document = from_text(text)
            definition, name = run_part_of(document), str(document.get("name", ""))
            literals = literals_of(definition.action)
            for run in by_revision[key]:
                facts = RunFacts(
                    run.namespace,
                    origin,
                    run.nominal,
                    run.due,
                    run.spec,
                    ScheduleName(definition.schedule_id, name),
                    id_text(run.run_id),
                    now,
                )
                rendered = render(definition, facts, index=run.rotation_index, given=given, literals=literals)
                rows.append((run.run_id, to_text({**rendered.document(), **more})))
                sizes[run.namespace] += len(rows[-1][1])
        _INSERT.run(connection, rows)
    return sizes


def keep_steps(
    connection: Connection, texts: Mapping[bytes, Mapping[str, Json]], definitions: Mapping[bytes, object]
) -> None:
    """The texts of steps by run; `definitions` say which of them are templates."""
    rows = [
        (run_id, to_text({"texts": dict(some), "input": None}))
        for run_id, some in texts.items()
        if is_template(definitions[run_id])
    ]
    _INSERT.run(connection, rows)


def given_to(connection: Connection, run_id: bytes) -> Json:
    """The inputs that a caller gave to the template of a run; None = none. Raises ValueError where no one can tell."""
    found = select_by_ids(connection, OWN_TEXTS, [run_id])
    if not found:
        raise ValueError("the rendered texts of this run do not exist any more")
    kept = object_from_text(found[0][1])
    if (why := damage_of(kept)) is not None:
        raise ValueError(f"the rendered texts of this run cannot be read: {why}")
    return kept.get(_GIVEN)


def were_given(connection: Connection, run_ids: Collection[bytes]) -> set[bytes]:
    """The runs among these whose templates were given inputs by a caller, or may have been: their row is damaged."""
    kept = {run_id: object_from_text(text) for run_id, text in select_by_ids(connection, OWN_TEXTS, list(run_ids))}
    return {run_id for run_id, document in kept.items() if _GIVEN in document or damage_of(document) is not None}
