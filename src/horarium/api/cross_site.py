"""Whether a page of another site made a browser ask: what a browser sends by itself must not work for others.

A cookie and a client certificate go along with every request, whoever has written the page. Modern browsers say where a
request comes from (`Sec-Fetch-Site`), which no script can write; over plain HTTP they leave it out, and tell the
`Origin` of whatever is no plain GET.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from horarium.operations.errors import OperationError

SOURCE_HEADER: Final = "x-horarium-source"
UI: Final = "ui"
_SAFE: Final = frozenset({"GET", "HEAD"})
_OWN_PAGE: Final = "same-origin"
# A typed address or a bookmark: no page asked.
_NO_PAGE: Final = "none"
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class CrossSite(OperationError):
    reason = "cross_site"
    status = 403

    def __init__(self) -> None:
        super().__init__(
            "A browser session works only from pages of this service. Send `Authorization: Bearer …` instead."
        )


@dataclass(frozen=True, slots=True)
class Sender:
    """Source of a request as its headers state it. `own` are the origins under which the service is called."""

    method: str
    site: str | None = None
    origin: str | None = None
    source: str | None = None
    own: Collection[str] = ()


def is_foreign(sender: Sender) -> bool:
    """Tell whether it comes from a page of another site, as far as it states one; a program states none."""
    if sender.site is not None:
        return sender.site not in (_OWN_PAGE, _NO_PAGE)
    return sender.origin is not None and sender.origin not in sender.own


def is_our_page(sender: Sender) -> bool:
    """Tell whether a cookie counts: to read, unless another site's page sends it; to change, if this site's page does.

    No form and no link can send the header that names the source, and no script of another origin without permission.
    """
    if is_foreign(sender):
        return False
    if sender.method in _SAFE:
        return True
    shown = sender.site == _OWN_PAGE if sender.site is not None else sender.origin is not None
    return shown and sender.source == UI


def origin_of(scheme: str, host: str) -> str:
    """As browsers spell it: in lower case, without the usual port."""
    return f"{scheme}://{host.lower().removesuffix(_DEFAULT_PORTS.get(scheme, ''))}"
