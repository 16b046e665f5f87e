"""What a schedule has been: each definition with who wrote it, and what differs between two of them."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from horarium.testing import TestService

pytestmark = pytest.mark.parametrize("dialect", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture(autouse=True)
def edited(http: httpx.Client, horarium: TestService) -> None:
    """Four definitions, and one change of what is no part of any."""
    horarium.create(schedule_id="nightly", cron_expressions=["0 2 * * *"], workflow_type="report")
    horarium.advance(hours=3)
    for change in (
        {"spec": {"cron_expressions": ["0 3 * * *"]}},
        {"note": "said beside it"},
        {"calendars": ["weekdays"]},
        {"labels": {"team": "data"}},
    ):
        answer = http.put("/api/schedules/nightly", json=change)
        assert answer.status_code == 200, answer.text
        horarium.advance(minutes=1)


def page(http: httpx.Client, **params: Any) -> dict[str, Any]:
    answer = http.get("/api/schedules/nightly/revisions", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def compared(http: httpx.Client, **params: Any) -> dict[str, Any]:
    answer = http.get("/api/schedules/nightly/revisions/compare", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_they_come_newest_first_in_pages_with_who_wrote_them(http: httpx.Client) -> None:
    found = page(http)
    assert [each["revision"] for each in found["revisions"]] == [4, 3, 2, 1]
    assert found["next_page_token"] is None
    assert [each["principal"] for each in found["revisions"]] == ["admin", "admin", "admin", "test"]
    assert found["revisions"][0]["document"]["labels"] == {"team": "data"}
    assert "labels" not in found["revisions"][1]["document"]
    first = page(http, page_size=3)
    rest = page(http, page_size=3, next_page_token=first["next_page_token"])
    assert [each["revision"] for each in first["revisions"] + rest["revisions"]] == [4, 3, 2, 1]
    assert rest["next_page_token"] is None


def test_a_comparison_names_fields_and_fires(http: httpx.Client) -> None:
    found = compared(http, **{"from": 1, "to": 2})
    assert (found["from"], found["to"]) == (1, 2)
    assert found["fields"] == [
        {"path": "spec.cron_expressions", "before": ["0 2 * * *"], "after": ["0 3 * * *"]},
    ]
    assert found["changes"]["moved"][0] == {"from": "2026-03-02T02:00:00Z", "to": "2026-03-02T03:00:00Z"}
    calendar = compared(http, **{"from": 2, "to": 3})
    assert calendar["changes"]["removed"][0] == "2026-03-07T03:00:00Z"
    newest = compared(http)
    assert (newest["from"], newest["to"], newest["fields"][0]["path"]) == (3, 4, "labels")


WRONG: list[tuple[str, dict[str, Any], int]] = [
    ("", {"page_size": 0}, 422),
    ("", {"page_size": 101}, 422),
    ("", {"next_page_token": "x"}, 400),
    ("", {"next_page_token": "9" * 400}, 400),
    ("/compare", {"from": 9}, 422),
    ("/compare", {"to": 10**30}, 422),
    ("/compare", {"from": 0, "to": -1}, 422),
]


def test_they_are_kept_when_the_schedule_is_deleted_and_others_are_not_there(http: httpx.Client) -> None:
    assert http.delete("/api/schedules/nightly").status_code == 200
    assert len(page(http)["revisions"]) == 4
    for path, params, status in WRONG:
        answer = http.get(f"/api/schedules/nightly/revisions{path}", params=params)
        assert answer.status_code == status, (path, params, answer.text)
    for path in ("revisions", "revisions/compare"):
        assert http.get(f"/api/schedules/nobody/{path}").status_code == 404
