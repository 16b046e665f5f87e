"""The table of fields tells what the readers do: no field more or less, no other default, no other bound."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Unpack

import pytest

from horarium.core.document.definition import Definition
from horarium.core.document.document import parse_definition, to_document
from horarium.core.document.fields import ScheduleFields
from horarium.core.document.places import PARTS, PLACES, other_names
from horarium.core.document.reader import schema_of
from horarium.errors import InvalidDefinition

SCHEMAS = {path: place.schema() for path, place in PLACES.items()}

NOW = 1_770_000_000_000_000
BASE: dict[str, Any] = {
    "schedule_id": "s",
    "spec": {"cron_expressions": ["0 2 * * *"]},
    "action": {"workflow_type": "w"},
}
# A field of one kind of action needs an action of that kind.
ACTIONS: dict[str, dict[str, Any]] = {
    "action.method": {"kind": "http", "url": "https://example.com"},
    "action.headers": {"kind": "http", "url": "https://example.com"},
}


def document(place: str, value: object) -> dict[str, Any]:
    part, _, name = place.rpartition(".")
    base = {**BASE, "action": ACTIONS.get(place, BASE["action"])}
    return {**base, part: {**base.get(part, {}), name: value}} if part else {**base, name: value}


def written(given_document: dict[str, Any]) -> dict[str, object]:
    """Canonical, with what the spec means: `UTC` is kept where somebody wrote it."""
    definition = parse_definition(given_document, now=NOW).definition
    return to_document(definition) | {"spec": definition.spec.compile("s")}


def test_every_attribute_of_a_definition_is_in_the_table_and_no_other() -> None:
    told = {place.attribute if place.part is None else place.part.attribute for place in PLACES.values()}
    assert told - {"paused"} == {each.name for each in fields(Definition)}


def test_the_keywords_of_a_client_are_the_fields_nested_and_flat() -> None:
    flat = {place.name for place in PLACES.values() if place.owner in ("", "spec", "action", "budget")}
    assert ScheduleFields.__annotations__.keys() == flat | PARTS.keys() | {"retries"}

    def create(**given: Unpack[ScheduleFields]) -> dict[str, Any]:
        return dict(given)

    document = create(schedule_id="x", cron_expressions=["0 2 * * *"], action={"workflow_type": "report"})
    assert parse_definition(document, now=NOW).definition.schedule_id == "x"


@pytest.mark.parametrize("place", [place for place, schema in SCHEMAS.items() if "default" in schema])
def test_a_default_means_what_leaving_the_field_out_means(place: str) -> None:
    plain = {**BASE, "action": ACTIONS.get(place, BASE["action"])}
    if place.startswith("retry_policy."):  # its defaults are those of a policy that somebody wrote
        plain |= {"retry_policy": {"max_retries": 1}}
    assert written(document(place, SCHEMAS[place]["default"])) == written(plain)


@pytest.mark.parametrize(
    ("place", "bound", "beyond"),
    [
        (place, name, schema[name] + (1 if name == "maximum" else -1))
        for place, schema in SCHEMAS.items()
        for name in ("minimum", "maximum")
        if name in schema
    ],
)
def test_a_bound_is_where_the_readers_draw_it(place: str, bound: str, beyond: int) -> None:
    written(document(place, SCHEMAS[place][bound]) | ({"catchup_policy": "skip"} if "catchup" in place else {}))
    with pytest.raises(InvalidDefinition):
        written(document(place, beyond))


@pytest.mark.parametrize("place", [place for place, schema in SCHEMAS.items() if "enum" in schema])
def test_every_word_is_known_and_no_other(place: str) -> None:
    with pytest.raises(InvalidDefinition):
        written(document(place, "no-such-word"))


def test_other_names_are_those_that_the_readers_know() -> None:
    assert other_names("spec.cron_expressions") == (
        "cron_expr",
        "cron_expression",
        "spec.cron_expr",
        "spec.cron_expression",
    )
    assert other_names("spec.at") == ()


def test_the_schema_is_nested_as_documents_are() -> None:
    schema = schema_of()
    assert schema["properties"]["spec"]["properties"]["timezone"]["default"] == "UTC"
    assert "spec.timezone" not in schema["properties"]
