"""Whether the service lives, is ready, and what it counts."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from horarium.api.answers import Answer
from horarium.api.requests import DeskOf, caller_of

router = APIRouter(tags=["health"])


@router.get("/livez")
def live() -> Answer:
    return Answer({"status": "ok"})


@router.get("/healthz")
def health() -> Answer:
    return Answer({"status": "ok"})
