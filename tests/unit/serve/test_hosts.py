"""Under which names a service is asked."""

from __future__ import annotations

from typing import Any

import pytest

from horarium.platform.settings import Settings
from horarium.serve.asgi import host_name, hosts_of, is_ours

LOCAL: dict[str, Any] = {"host": "127.0.0.1"}
PUBLIC: dict[str, Any] = {"host": "0.0.0.0", "public_url": "https://cron.example.org"}


@pytest.mark.parametrize(
    ("settings", "header", "ours"),
    [
        pytest.param(LOCAL, "127.0.0.1:8765", True, id="what we listen on"),
        pytest.param(LOCAL, "localhost:8765", True, id="localhost"),
        pytest.param(LOCAL, "LOCALHOST.", True, id="localhost in other letters"),
        pytest.param(LOCAL, "[::1]:8765", True, id="localhost, version 6"),
        pytest.param(LOCAL, "app.localhost", True, id="below localhost"),
        pytest.param(LOCAL, "evil.example", False, id="a name that was let point to us"),
        pytest.param(LOCAL, "localhost.evil.example", False, id="one that looks like ours"),
        pytest.param(LOCAL, "127.0.0.1.evil.example", False, id="one that looks like our address"),
        pytest.param(LOCAL, "192.0.2.1", False, id="another address"),
        pytest.param(LOCAL, "", False, id="no name"),
        pytest.param(LOCAL, "localhost@evil.example", False, id="no host"),
        pytest.param(LOCAL, "[::1", False, id="half an address"),
        pytest.param(LOCAL, "x" * 300, False, id="too long"),
        pytest.param({**LOCAL, "allowed_hosts": ("cron.example.org",)}, "Cron.Example.org", True, id="allowed"),
        pytest.param(
            {**LOCAL, "allowed_hosts": (".example.org",)}, "cron.example.org", True, id="below an allowed one"
        ),
        pytest.param(
            {**LOCAL, "allowed_hosts": ("*.example.org",)}, "notexample.org", False, id="beside an allowed one"
        ),
        pytest.param(
            {**LOCAL, "allowed_hosts": (".example.org",)},
            "cron.example.org.evil.example",
            False,
            id="an allowed one inside another",
        ),
        pytest.param({**LOCAL, "allowed_hosts": ("*",)}, "evil.example", True, id="any"),
        pytest.param(PUBLIC, "cron.example.org", True, id="what we are reached by"),
        pytest.param(PUBLIC, "evil.example", False, id="not ours, though we listen for all"),
        pytest.param(PUBLIC, "192.0.2.1:8765", True, id="an address, which nobody can register"),
        pytest.param(PUBLIC, "horarium:8765", True, id="a name without a dot, such as a container's"),
    ],
)
def test_a_name_is_ours_or_somebody_else_s(settings: dict[str, Any], header: str, ours: bool) -> None:
    assert is_ours(host_name(header), hosts_of(Settings(**settings))) is ours
