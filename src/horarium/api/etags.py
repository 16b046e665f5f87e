"""How versions travel: as an ETag with an answer, and back in `If-Match` with the next write."""

from __future__ import annotations

from typing import Annotated

from fastapi import Header

from horarium.errors import InvalidDefinition

IfMatch = Annotated[
    str | None,
    Header(
        alias="If-Match",
        description="ETag of the version to change. If it is not the current version, the request fails with 412.",
    ),
]


def etag(version: int) -> str:
    return f'"{version}"'


def version_of(if_match: str | None) -> int | None:
    """`*` fits any version that exists, which is what an operation asks for anyway."""
    if if_match is None or if_match.strip() == "*":
        return None
    text = if_match.strip().removeprefix("W/").strip('"')
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise InvalidDefinition({"If-Match": ["is not a version of this service"]})
    return int(text)
