"""How much a request may say before its body."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.platform.http.middleware import MAX_HEADERS, ambiguous_length, too_much


@pytest.mark.parametrize(
    ("path", "query", "headers", "status"),
    [
        pytest.param("/x", b"", [(b"a", b"b")], None, id="little"),
        pytest.param("/" + "x" * 9_000, b"", [], 414, id="a long path"),
        pytest.param("/x", b"y" * 9_000, [], 414, id="a long query"),
        pytest.param("/x", b"", [(b"a", b"b")] * (MAX_HEADERS + 1), 431, id="many headers"),
        pytest.param("/x", b"", [(b"cookie", b"c" * 4_000)] * 9, 431, id="many cookies"),
        pytest.param("/x", b"", [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")], 400, id="two lengths"),
        pytest.param("/x", b"", [(b"content-length", b"5"), (b"content-length", b"6")], 400, id="different lengths"),
        pytest.param("/x", b"", [(b"content-length", b"5, 6")], 400, id="different lengths in one header"),
        pytest.param("/x", b"", [(b"content-length", b"5"), (b"content-length", b"5")], None, id="one length twice"),
        pytest.param("/x", b"", [(b"range", b"bytes=" + b"0-," * 12_000)], 431, id="many ranges"),
    ],
)
def test_a_head_is_bounded(path: str, query: bytes, headers: list[Any], status: int | None) -> None:
    found = too_much({"path": path, "raw_path": path.encode(), "query_string": query, "headers": headers})
    assert (None if found is None else found.status) == status


def test_a_request_of_the_first_version_has_no_coding() -> None:
    chunked = [(b"transfer-encoding", b"chunked")]
    assert ambiguous_length(chunked, "1.1") is None
    assert ambiguous_length(chunked, "1.0") is not None
