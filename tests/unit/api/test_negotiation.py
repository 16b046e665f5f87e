"""Weights are read as RFC 9110 has them, and whatever else stands in a header harms nobody."""

from __future__ import annotations

import pytest

from horarium.platform.http.responses import prefers_page, takes_gzip, weights_of


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("gzip, br;q=0.5", {"gzip": 1, "br": 0.5}),
        ("GZIP ; Q=0.000", {"gzip": 0}),
        ("text/html;level=1;q=0", {"text/html": 0}),
        ("gzip;q=", {"gzip": 1}),
        ("gzip;q=nan", {"gzip": 1}),
        ("gzip;q=-1", {"gzip": 1}),
        ("gzip;q=0.", {"gzip": 0}),
        ("gzip;q=\u00b2", {"gzip": 1}),
    ],
)
def test_weights(header: str, found: dict[str, float]) -> None:
    assert weights_of(header) == found


def test_many_are_cut() -> None:
    assert len(weights_of(",".join(f"x{n}" for n in range(1_000)))) == 20


@pytest.mark.parametrize(
    ("accepted", "takes"),
    [("", False), ("gzip", True), ("*", True), ("br", False), ("*, gzip;q=0", False), ("*;q=0, gzip", True)],
)
def test_gzip(accepted: str, takes: bool) -> None:
    assert takes_gzip(accepted) is takes


@pytest.mark.parametrize(
    ("accepted", "page"),
    [
        ("", False),
        ("*/*", False),
        ("text/html,application/xhtml+xml,*/*;q=0.8", True),
        ("application/json, text/html;q=0.1", False),
        ("text/html;q=0", False),
    ],
)
def test_pages(accepted: str, page: bool) -> None:
    assert prefers_page(accepted) is page
