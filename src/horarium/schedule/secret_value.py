"""The values of secrets and their pins: the destinations that a secret may be sent to.

A pin names scheme, host and port. `erp.example.com` stands for https on port 443; everything else is written as
`scheme://host:port`. Both spellings are kept in one canonical form, so that pins are compared as text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from ipaddress import ip_address
from typing import Final

from horarium.policy.names import PolicyError, shown

MAX_VALUE_BYTES = 65_536
MAX_HOSTS = 20
ANY = ("*",)
DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
# RFC 1035: a name has at most 253 characters, and a label 63.
_MAX_HOST = 253
_NAME = r"(\[[^\[\]]{1,80}\]|[^\[\]:/?#@\\]{1,254})"
_HOST_AND_PORT = re.compile(rf"{_NAME}:[0-9]{{1,5}}", re.ASCII)
_DESTINATION = re.compile(rf"(https?)://{_NAME}(?::([0-9]{{1,5}}))?", re.ASCII | re.IGNORECASE)
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)


def checked_value(value: object) -> str:
    """No problem repeats the value: problems are shown and logged."""
    if not isinstance(value, str):
        raise PolicyError("value", "must be a string")
    if not value:
        raise PolicyError("value", "is empty")
    if len(value) > MAX_VALUE_BYTES:
        raise PolicyError("value", f"is longer than {MAX_VALUE_BYTES} bytes")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise PolicyError("value", "contains an unpaired surrogate character") from None
    if size > MAX_VALUE_BYTES:
        raise PolicyError("value", f"is longer than {MAX_VALUE_BYTES} bytes")
    if "\x00" in value:
        raise PolicyError("value", "contains the character U+0000, which is not allowed in a header")
    return value


def checked_hosts(hosts: object) -> tuple[str, ...] | None:
    """Each once, as they are compared; None = the secret may go to any host, which is spelled `["*"]` as well."""
    if hosts is None or hosts in (list(ANY), ANY):
        return None
    if not isinstance(hosts, list | tuple) or not 0 < len(hosts) <= MAX_HOSTS:
        raise PolicyError("hosts", f"must be an array of 1 to {MAX_HOSTS} hosts, or * alone for any host")
    return tuple(dict.fromkeys(_checked_pin(f"hosts.{index}", host) for index, host in enumerate(hosts)))


def host_names(field: str, hosts: object) -> tuple[str, ...]:
    """Each once, as they are compared; there may be none, and none of them stands for others."""
    if not isinstance(hosts, list | tuple) or len(hosts) > MAX_HOSTS:
        raise PolicyError(field, f"must be an array of at most {MAX_HOSTS} host names")
    return tuple(dict.fromkeys(_checked_host(f"{field}.{index}", host) for index, host in enumerate(hosts)))


def pin(scheme: str, host: str, port: int) -> str:
    """Return the canonical pin of a destination: the bare host for https on port 443, else scheme, host and port."""
    plain = _plain(host)
    if (scheme, port) == ("https", DEFAULT_PORTS["https"]):
        return plain
    return f"{scheme}://{f'[{plain}]' if ':' in plain else plain}:{port}"


def may_go_to(hosts: Collection[str] | None, destination: str) -> bool:
    """Check whether a secret with these pins may be sent to `destination`, a pin. Empty: it has no host."""
    return hosts is None or destination in hosts


def not_allowed(name: str, hosts: Collection[str] | None, destination: str) -> str:
    """Say that a secret with these pins may not be sent to `destination`, and which pin is missing."""
    allowed = f"may be sent to {', '.join(hosts)} only" if hosts else "has no allowed host"
    if not destination:
        return f"the secret {name!r} {allowed}; this target has no host"
    return f"the secret {name!r} {allowed}, not to {destination}; set the secret again with {destination} in its hosts"


def _checked_pin(field: str, given: object) -> str:
    if not isinstance(given, str) or "://" not in given:
        if isinstance(given, str) and _HOST_AND_PORT.fullmatch(given):
            raise PolicyError(field, f"{shown(given)} has no scheme; write https://{given} or http://{given}")
        return _checked_host(field, given)
    found = _DESTINATION.fullmatch(given)
    scheme, host, digits = ("", "", None) if found is None else found.groups()
    port = DEFAULT_PORTS.get(scheme.lower(), 0) if digits is None else int(digits)
    if not 0 < port < 65_536 or not _is_host(_plain(host)):
        raise PolicyError(
            field, f"{shown(given)} is not a destination; write https://host:port or http://host:port without a path"
        )
    return pin(scheme.lower(), host, port)


def _checked_host(field: str, host: object) -> str:
    if not isinstance(host, str) or not 0 < len(host) <= _MAX_HOST + 2:
        raise PolicyError(field, f"{shown(host)} is not a host name")
    plain = _plain(host)
    if not _is_host(plain):
        raise PolicyError(field, f"{shown(host)} is not a host name; omit scheme, port, path and *")
    return plain


def _plain(host: str) -> str:
    """DNS knows no case, and a dot at the end says nothing; an address is compared as it is shortest."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ip_address(bare))
    except ValueError:
        return bare.lower().removesuffix(".")


def _is_host(plain: str) -> bool:
    try:
        ip_address(plain)
    except ValueError:
        return len(plain) <= _MAX_HOST and all(_LABEL.fullmatch(label) for label in plain.split("."))
    return True
