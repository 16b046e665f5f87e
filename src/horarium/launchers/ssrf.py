"""Addresses that a target may have: public ones, and those that the operator allows.

Tenants write schedules, and the service fetches their URLs from inside the operator's network. Without this guard, a
URL could reach the metadata service of the cloud, the database port or an internal admin page. The *address* is
checked, never the name: `127.1`, `0x7f000001`, `localtest.me` and a name whose answer changes between two look-ups
all resolve to an address, and exactly that address is dialled (`exchange.py`).

The special ranges are those of the IANA special-purpose address registries (RFC 6890 and its updates).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TypeAlias

from horarium.launchers.resolver import SystemResolver

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolver: TypeAlias = Callable[[str, int, str], Awaitable[Sequence[str]]]
"""Of host, port and group, the namespace that asks."""

# RFC 1035 section 2.3.4.
MAX_HOST_NAME = 253
MAX_ADDRESSES = 16
# Targets are few and called often; taking an address apart and finding its range is most of a judgement's price.
_REMEMBERED = 4_096


class Range(StrEnum):
    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    LINK_LOCAL = "link-local"
    METADATA = "cloud metadata"
    SPECIAL = "reserved"


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


# Metadata services outside link-local, from the manuals of the clouds and the data sources of cloud-init. Those in
# unique-local and shared address space hide in what `allow_private` opens; Azure's is public.
_METADATA = _networks(
    "fd00:ec2::/32",  # AWS: instance metadata, credentials of pods, names and time
    "fd20:ce::254/128",  # Google
    "fd00:c1::a9fe:a9fe/128",  # Oracle
    "fd00:42::42/128",  # Scaleway
    "fd00:a9fe:a9fe::1/128",  # Akamai
    "fd00:100::100:200/128",  # Alibaba
    "100.100.100.200/32",  # Alibaba
    "168.63.129.16/32",  # Azure
    "192.0.0.192/32",  # Oracle, classic
)
_LOOPBACK = _networks("127.0.0.0/8", "::1/128")
_PRIVATE = _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
_LINK_LOCAL = _networks("169.254.0.0/16", "fe80::/10")
_SPECIAL_4 = _networks(
    "0.0.0.0/8",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
# Only 2000::/3 is handed out for the public Internet (RFC 4291). Inside it: protocol assignments with
# Teredo, documentation, and 6to4, whose relays can be made to reach any IPv4 address.
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_SPECIAL_6 = _networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


@lru_cache(maxsize=_REMEMBERED)
def _address(text: str) -> Address:
    return ipaddress.ip_address(text)


def plain(address: Address) -> Address:
    """IPv4-mapped and NAT64 addresses are another way to write the IPv4 address inside them."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


@lru_cache(maxsize=_REMEMBERED)
def range_of(address: Address) -> Range:
    address = plain(address)
    for networks, name in (
        (_METADATA, Range.METADATA),
        (_LOOPBACK, Range.LOOPBACK),
        (_LINK_LOCAL, Range.LINK_LOCAL),
        (_PRIVATE, Range.PRIVATE),
        (_SPECIAL_4 + _SPECIAL_6, Range.SPECIAL),
    ):
        if any(address in network for network in networks):
            return name
    return Range.SPECIAL if address.version == 6 and address not in _GLOBAL_6 else Range.PUBLIC


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Networks that are open in addition to the public Internet; `allowed` are open whatever their range."""

    allow_loopback: bool = False
    allow_private: bool = False
    allowed: tuple[Network, ...] = ()

    def permits(self, address: Address) -> bool:
        if any(plain(address) in network or address in network for network in self.allowed):
            return True
        where = range_of(address)
        return (
            where is Range.PUBLIC
            or (where is Range.LOOPBACK and self.allow_loopback)
            or (where is Range.PRIVATE and self.allow_private)
        )


@dataclass(frozen=True, slots=True)
class Permitted:
    """Addresses that were checked, in the order of preference; only these may be dialled."""

    addresses: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddressForbidden:
    error: str


@dataclass(frozen=True, slots=True)
class Unresolved:
    error: str


Verdict: TypeAlias = Permitted | AddressForbidden | Unresolved


class AddressGuard:
    """Judges a host by all its addresses; one bad address is enough, since the mix is what an attack looks like."""

    def __init__(self, policy: AddressPolicy | None = None, resolver: Resolver | None = None) -> None:
        self._policy = policy or AddressPolicy()
        self._resolver = resolver or SystemResolver()

    def close(self) -> None:
        if isinstance(self._resolver, SystemResolver):
            self._resolver.close()

    async def judge(self, host: str, port: int, group: str = "") -> Verdict:
        if not host or len(host) > MAX_HOST_NAME:
            return AddressForbidden("the URL has no host, or the host name is too long")
        try:
            texts = await self._resolver(host, port, group)
            addresses = [_address(text) for text in dict.fromkeys(texts)]
        except (OSError, UnicodeError) as wrong:
            return Unresolved(f"{host} cannot be resolved: {wrong}")
        except ValueError as wrong:
            return AddressForbidden(f"{host} resolves to an invalid address: {wrong}")
        if not addresses:
            return Unresolved(f"{host} has no address")
        for address in addresses:
            if not self._policy.permits(address):
                return AddressForbidden(
                    f"{host} is at {address}, a {range_of(address)} address; the operator has not allowed it"
                )
        return Permitted(tuple(str(address) for address in addresses[:MAX_ADDRESSES]))
