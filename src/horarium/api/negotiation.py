"""What a client would rather have, by the weights of `Accept` or `Accept-Encoding` (RFC 9110, section 12.4)."""

from __future__ import annotations

from typing import Final

_MAX_NAMED: Final = 20


def weights_of(header: str) -> dict[str, float]:
    """Weights of the first names in the header, in lower case; an invalid weight counts as missing."""
    found: dict[str, float] = {}
    for each in header.lower().split(",")[:_MAX_NAMED]:
        name, *parameters = (part.strip() for part in each.split(";"))
        weight = next((part[2:].strip() for part in parameters if part.startswith("q=")), "1")
        found[name] = float(weight) if weight[:1] in ("0", "1") and weight.replace(".", "", 1).isdecimal() else 1
    return found


def takes_gzip(accepted: str) -> bool:
    """Tell whether gzip is accepted: a weight of zero refuses it; `*` concerns names that are not listed."""
    weights = weights_of(accepted)
    return weights.get("gzip", weights.get("*", 0)) > 0


def prefers_page(accepted: str) -> bool:
    """Tell whether a page is preferred to JSON: a client that lists neither is a program."""
    weights = weights_of(accepted)
    page = weights.get("text/html", 0)
    return page > 0 and page >= weights.get("application/json", 0)
