"""Celery apps whose entries of beat are imported: the real classes, described in this process."""

from __future__ import annotations

from typing import Any

from celery import Celery

from horarium.compat.celery_beat.app_description import app_document
from horarium.compat.celery_beat.entries import CeleryApp, read_description
from horarium.compat.celery_beat.translation import Translation, TranslationOptions, translate
from horarium.instant import DAY, SECOND, Instant, from_rfc3339

NOW = from_rfc3339("2026-01-01T00:00:00Z")


def make_app(entries: dict[str, Any], **conf: Any) -> Celery:
    app = Celery("proj", set_as_current=False, broker="memory://")
    app.conf.update(conf)
    app.conf.beat_schedule = {name: {"task": "send", **entry} for name, entry in entries.items()}
    return app


def describe(
    entries: dict[str, Any], *, now: Instant = NOW, days: int = 366, steps: int = 400, **conf: Any
) -> dict[str, Any]:
    wanted = {"django": False, "now": now // SECOND, "until": (now + days * DAY) // SECOND, "steps": steps}
    return app_document(make_app(entries, **conf), wanted)


def described(entries: dict[str, Any], **conf: Any) -> CeleryApp:
    return read_description(describe(entries, **conf))


def translated(schedule: Any, wishes: TranslationOptions | None = None, **conf: Any) -> Translation:
    """Of one entry, which is called `one`; `entry` holds what else it says."""
    entry = conf.pop("entry", {})
    (only,) = translate(described({"one": {"schedule": schedule, **entry}}, **conf), wishes or TranslationOptions())
    return only
