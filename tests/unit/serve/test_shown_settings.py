"""What is left of an address when its password is taken out."""

from __future__ import annotations

import pytest

from horarium.platform.settings.shown import HIDDEN, without_password


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("postgresql://ada:pw@db:5432/h", f"postgresql://ada:{HIDDEN}@db:5432/h"),
        ("postgresql://ada:p@w@db/h", f"postgresql://ada:{HIDDEN}@db/h"),
        ("postgresql://ada:p/w?x#y@db/h", f"postgresql://ada:{HIDDEN}@db/h"),
        ("postgresql://:pw@db/h", f"postgresql://:{HIDDEN}@db/h"),
        ("postgresql://ada@db/h", "postgresql://ada@db/h"),
        ("postgresql://db:5432/h", "postgresql://db:5432/h"),
        ("postgresql:///h?user=ada&password=pw", f"postgresql:///h?user=ada&password={HIDDEN}"),
        ("postgresql://db/h?PASSWORD=pw&sslmode=require", f"postgresql://db/h?PASSWORD={HIDDEN}&sslmode=require"),
        ("sqlite:///a:b@c.db", "sqlite:///a:b@c.db"),
        ("127.0.0.1", "127.0.0.1"),
        ("", ""),
    ],
)
def test_a_password_is_taken_out_and_nothing_else(given: str, shown: str) -> None:
    assert without_password(given) == shown
