"""A spec of several parts has one sentence, which stays short whatever somebody wrote."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.core.document.descriptions import spec_words

CASES: dict[str, tuple[dict[str, Any], str | None]] = {
    "a cron": ({"cron_expressions": ["0 9 * * 1-5"]}, "at 09:00, Monday to Friday (UTC)"),
    "with its zone": (
        {"cron_expressions": ["0 9 * * *"], "timezone": "Europe/Istanbul"},
        "at 09:00 every day (Europe/Istanbul time)",
    ),
    "with its zone before it": (
        {"cron_expressions": ["CRON_TZ=Asia/Tokyo 0 9 * * *"]},
        "at 09:00 every day (Asia/Tokyo time)",
    ),
    "two crons": (
        {"cron_expressions": ["0 9 * * *", "30 17 * * *"]},
        "at 09:00 every day; and at 17:30 every day (UTC)",
    ),
    "an interval": ({"intervals": [{"every": "PT30M"}]}, "every 30 minutes"),
    "an interval of one": ({"intervals": [{"every": "PT1H"}]}, "every hour"),
    "a shifted interval": (
        {"intervals": [{"every": "PT1H", "offset": "PT5M"}]},
        "every hour, offset by 5 minutes",
    ),
    "an interval as a cron": ({"cron_expressions": ["@every PT90M"]}, "every 1 hour 30 minutes (UTC)"),
    "once": ({"at": ["2026-05-04T09:00:00Z"]}, "once at 2026-05-04T09:00:00Z"),
    "some times": (
        {"at": ["2026-05-05T09:00:00Z", "2026-05-04T09:00:00Z"]},
        "at 2 one-time runs, the first at 2026-05-04T09:00:00Z",
    ),
    "all kinds": (
        {"cron_expressions": ["0 9 * * *"], "intervals": [{"every": "PT1H"}], "at": ["2026-05-04T09:00:00Z"]},
        "at 09:00 every day; every hour; and once at 2026-05-04T09:00:00Z (UTC)",
    ),
    "many": (
        {"cron_expressions": [f"{n} 9 * * *" for n in range(7)], "at": ["2026-05-04T09:00:00Z"]},
        "at 09:00 every day; at 09:01 every day; at 09:02 every day; at 09:03 every day; and 4 more (UTC)",
    ),
    "what nobody can read": ({"cron_expressions": ["soon"]}, None),
    "nothing": ({}, None),
}


@pytest.mark.parametrize(("spec", "words"), CASES.values(), ids=CASES.keys())
def test_a_spec_reads_as_a_sentence(spec: dict[str, Any], words: str | None) -> None:
    assert spec_words(spec, "nightly") == words


def test_what_is_hashed_is_that_of_the_schedule() -> None:
    spec = {"cron_expressions": ["H H * * *"]}
    assert spec_words(spec, "one") != spec_words(spec, "another")
    assert spec_words(spec, "one") == spec_words(spec, "one")
