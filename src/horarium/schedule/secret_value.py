"""What a secret may be: its text, and the hosts that it may be sent to."""

from __future__ import annotations

import re
from collections.abc import Collection
from ipaddress import ip_address

from horarium.policy.names import PolicyError, shown

MAX_VALUE_BYTES = 65_536
MAX_HOSTS = 20
ANY = ("*",)
# RFC 1035: a name has at most 253 characters, and a label 63.
_MAX_HOST = 253
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)


def checked_value(value: object) -> str:
    """No problem repeats the value: problems are shown and logged."""
    if not isinstance(value, str):
        raise PolicyError("value", "must be a text")
    if not value:
        raise PolicyError("value", "is empty")
    if len(value) > MAX_VALUE_BYTES:
        raise PolicyError("value", f"is longer than {MAX_VALUE_BYTES} bytes")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise PolicyError("value", "holds half a surrogate pair, which is no character") from None
    if size > MAX_VALUE_BYTES:
        raise PolicyError("value", f"is longer than {MAX_VALUE_BYTES} bytes")
    if "\x00" in value:
        raise PolicyError("value", "holds the character U+0000, which no header can carry")
    return value


def checked_hosts(hosts: object) -> tuple[str, ...] | None:
    """Each once, as they are compared; None = the secret may go to any host, which is spelled `["*"]` as well."""
    if hosts is None or hosts in (list(ANY), ANY):
        return None
    if not isinstance(hosts, list | tuple) or not 0 < len(hosts) <= MAX_HOSTS:
        raise PolicyError("hosts", f"must be a list of 1 to {MAX_HOSTS} host names, or * alone for any host")
    return _each_host("hosts", hosts)


def host_names(field: str, hosts: object) -> tuple[str, ...]:
    """Each once, as they are compared; there may be none, and none of them stands for others."""
    if not isinstance(hosts, list | tuple) or len(hosts) > MAX_HOSTS:
        raise PolicyError(field, f"must be a list of at most {MAX_HOSTS} host names")
    return _each_host(field, hosts)


def may_go_to(hosts: Collection[str] | None, host: str) -> bool:
    """Whether a secret may be sent to `host`, as it stands in an address, with brackets or without."""
    return hosts is None or _plain(host) in hosts


def not_allowed(name: str, hosts: Collection[str] | None, host: str) -> str:
    """What is said of a secret that may not be sent to `host`."""
    where = host or "a target that has no host"
    if not hosts:
        return f"the secret {name!r} may be sent nowhere, and so not to {where}"
    return f"the secret {name!r} may be sent to {', '.join(hosts)} only, not to {where}"


def _each_host(field: str, hosts: Collection[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_checked_host(f"{field}.{index}", host) for index, host in enumerate(hosts)))


def _checked_host(field: str, host: object) -> str:
    if not isinstance(host, str) or not 0 < len(host) <= _MAX_HOST + 2:
        raise PolicyError(field, f"{shown(host)} is not a host name")
    plain = _plain(host)
    if not _is_host(plain):
        raise PolicyError(field, f"{shown(host)} is not a host name: give it without scheme, port, path or *")
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
