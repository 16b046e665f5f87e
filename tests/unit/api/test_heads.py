"""How much a request may say before its body."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.api.heads import MAX_HEADERS, too_much


@pytest.mark.parametrize(
    ("path", "query", "headers", "status"),
    [
        pytest.param("/x", b"", [(b"a", b"b")], None, id="little"),
        pytest.param("/" + "x" * 9_000, b"", [], 414, id="a long path"),
        pytest.param("/x", b"y" * 9_000, [], 414, id="a long query"),
        pytest.param("/x", b"", [(b"a", b"b")] * (MAX_HEADERS + 1), 431, id="many headers"),
        pytest.param("/x", b"", [(b"cookie", b"c" * 4_000)] * 9, 431, id="many cookies"),
        pytest.param("/x", b"", [(b"range", b"bytes=" + b"0-," * 12_000)], 431, id="many ranges"),
    ],
)
def test_a_head_is_bounded(path: str, query: bytes, headers: list[Any], status: int | None) -> None:
    found = too_much({"path": path, "raw_path": path.encode(), "query_string": query, "headers": headers})
    assert (None if found is None else found.status) == status
