"""What an agent says of itself, as it was found last: kept beside its document, and written when something is new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy import Connection

from horarium.instant import Instant
from horarium.schedule.json_limits import Json
from horarium.store.database.json_text import kept_text, to_text
from horarium.store.tables import agents

MAX_ERROR = 1_000


class SeenCard(NamedTuple):
    """`card` None = it could not be had, `error` says why; `dialect` None = nobody has spoken with it."""

    card: Mapping[str, Json] | None
    etag: str | None = None
    error: str | None = None
    dialect: str | None = None


def keep(connection: Connection, namespace: str, agent_id: str, seen: SeenCard, now: Instant) -> None:
    """A card that cannot be had now leaves the one that was there before, with the reason beside it."""
    values: dict[str, Any] = {
        "card_at": now,
        "card_error": None if seen.error is None else kept_text(seen.error, MAX_ERROR),
    }
    if seen.card is not None:
        values |= {"card": to_text(seen.card), "card_etag": seen.etag}
    if seen.dialect is not None:
        values["dialect"] = seen.dialect
    if seen.card is not None or seen.dialect is not None:
        values["last_seen_at"] = now
    connection.execute(
        sa.update(agents).where(agents.c.namespace == namespace, agents.c.agent_id == agent_id).values(values)
    )
