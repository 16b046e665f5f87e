"""Every number that a tenant may write has a bound, which the schema tells; what is beyond it is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from horarium.core.document.document import from_canonical
from horarium.core.document.field import MAX_TIMEOUT_SECONDS
from horarium.features.schedules.rows import find_with_document
from horarium.testing import TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)

PLAIN = {"cron_expressions": ["@hourly"], "action": {"workflow_type": "w"}}
# What runs may use: as many digits as a store can keep.
UNBOUNDED = {"budget.spending_limit_credits", "limits.cost", "limits.tokens", "limits.tool_calls"}


def numbers(schemas: dict[str, Any], name: str, path: tuple[str, ...] = ()) -> Iterator[tuple[str, dict[str, Any]]]:
    for field, schema in schemas[name]["properties"].items():
        if "$ref" in schema:
            part = schema["$ref"].rpartition("/")[2]
            if not path:
                yield from numbers(schemas, part, (field,))
        elif schema.get("type") in ("integer", "number") or "number" in (schema.get("type") or ()):
            yield ".".join((*path, field)), schema


def sent(path: str, value: Any) -> dict[str, Any]:
    part, _, field = path.rpartition(".")
    if not part:
        return {**PLAIN, field: value}
    return {**PLAIN, part: {**PLAIN.get(part, {}), field: value}}  # type: ignore[dict-item]  # parts are objects


def test_every_number_has_bounds_and_what_is_beyond_them_is_refused(http: httpx.Client) -> None:
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    found = dict(numbers(schemas, "ScheduleDocument"))
    assert {"priority", "action.timeout_seconds", "retry_policy.max_retries", "spec.jitter_seconds"} <= set(found)
    assert {path for path, schema in found.items() if "maximum" not in schema} == UNBOUNDED
    wrong = {}
    for path, schema in found.items():
        for value in (10**30, -(10**30), schema.get("minimum", 0) - 1, schema.get("maximum", 10**30) + 1):
            answer = http.post("/api/schedules", json=sent(path, value))
            named = any(name.endswith(path.rpartition(".")[2]) for name in answer.json().get("errors", {}))
            if answer.status_code != 422 or not named:
                wrong[path, value] = answer.text[:200]
    assert wrong == {}


def test_a_longer_timeout_that_was_kept_before_is_still_read(horarium: TestService) -> None:
    horarium.create({**PLAIN, "schedule_id": "s", "timeout_seconds": 60})
    found = horarium.resources.database.read(lambda connection: find_with_document(connection, "default", "s"))
    assert found is not None
    kept = found[1] | {"action": found[1]["action"] | {"timeout_seconds": 2**31 - 1}}
    assert from_canonical(kept).action.timeout_seconds == 2**31 - 1 > MAX_TIMEOUT_SECONDS


SIZES = [
    "/api/schedules?page_size={}",
    "/api/runs?page_size={}",
    "/api/feed?page_size={}",
    "/api/agenda?limit={}",
    "/api/agenda?bucket_seconds={}",
    "/api/health/schedules?page_size={}",
]


def test_the_size_of_a_page_is_bounded(http: httpx.Client) -> None:
    for path in SIZES:
        for value in (0, -1, 10**6, 10**30):
            expected = 200 if "bucket" in path and value == 10**6 else 422
            assert http.get(path.format(value)).status_code == expected, path.format(value)
