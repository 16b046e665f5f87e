"""Which exception an answer becomes."""

from __future__ import annotations

import inspect
from typing import Any

import httpx
import pytest

from horarium.platform import errors as refusals
from horarium.platform.client import errors
from horarium.platform.client.errors import ClientError, error_of, retry_after
from horarium.platform.errors import OperationError

REFUSALS = [kind for _, kind in inspect.getmembers(refusals, inspect.isclass) if issubclass(kind, OperationError)]


def answer(status: int, body: Any = None, **headers: str) -> httpx.Response:
    return httpx.Response(status, json=body, headers=headers)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda kind: kind.__name__)
def test_every_refusal_of_the_server_has_its_exception(refusal: type[OperationError]) -> None:
    error = error_of(answer(refusal.status, {"reason": refusal.reason, "message": "no"}))
    # A bundle is refused for the reason and with the status of one of its documents.
    assert type(error).reason == refusal.reason or refusal is refusals.BundleRefused
    assert (error.status, error.reason, error.message) == (refusal.status, refusal.reason, "no")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (301, errors.UnexpectedAnswer),
        (400, ClientError),
        (401, errors.Unauthorized),
        (403, errors.Forbidden),
        (404, errors.NotFound),
        (409, errors.Conflict),
        (412, errors.PreconditionFailed),
        (413, ClientError),
        (422, errors.ValidationFailed),
        (429, errors.RateLimited),
        (500, errors.ServerError),
        (502, errors.ServerUnavailable),
        (503, errors.ServerUnavailable),
        (504, errors.ServerUnavailable),
        (599, errors.ServerError),
    ],
)
@pytest.mark.parametrize("body", [None, [], "text", {"reason": 7, "message": []}], ids=["null", "list", "text", "odd"])
def test_a_status_alone_is_enough(status: int, kind: type[ClientError], body: Any) -> None:
    error = error_of(answer(status, body))
    assert type(error) is kind
    assert error.reason == kind.reason
    assert str(status) in error.message


@pytest.mark.parametrize("content", [b"", b"<html>", b"\xff", b"[" * 100_000], ids=["empty", "page", "bytes", "deep"])
def test_a_body_that_is_no_problem_document_is_no_problem(content: bytes) -> None:
    error = error_of(httpx.Response(502, content=content))
    assert isinstance(error, errors.ServerUnavailable)
    assert error.body == {}


def test_an_unknown_reason_is_told_as_it_came() -> None:
    error = error_of(answer(404, {"reason": "unicorn_not_found", "message": "no unicorn"}))
    assert type(error) is errors.NotFound
    assert error.reason == "unicorn_not_found"
    assert errors.NotFound.reason == "not_found"


def test_a_validation_error_leaves_out_what_it_cannot_read() -> None:
    error = error_of(answer(422, {"errors": {"a": ["x", 1], "b": "text"}}))
    assert isinstance(error, errors.ValidationFailed)
    assert error.errors == {"a": ["x", "1"]}
    assert errors.ValidationFailed("no").errors == {}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"retry-after": "Sun, 15 Nov 2026 05:00:10 GMT", "date": "Sun, 15 Nov 2026 05:00:00 GMT"}, 10.0),
        ({"retry-after": "Sun, 15 Nov 2026 04:00:00 GMT", "date": "Sun, 15 Nov 2026 05:00:00 GMT"}, 0.0),
        ({"retry-after": "Sun, 15 Nov 2026 05:00:10 GMT"}, None),
    ],
    ids=["seconds", "at-once", "nothing", "negative", "word", "huge", "date", "past", "no-clock"],
)
def test_how_long_the_server_wants_us_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(httpx.Headers(headers)) == seconds
