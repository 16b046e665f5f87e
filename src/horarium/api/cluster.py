"""What clients ask before they do anything: which contract this server speaks."""

from __future__ import annotations

from importlib.metadata import version

from fastapi import APIRouter

from horarium.api.answers import Answer
from horarium.api.middleware import CONTROL_PLANE_VERSION
from horarium.api.requests import IdentityOf
from horarium.recurrence.zone import tzdata_version

router = APIRouter(prefix="/api", tags=["cluster"])

_REQUEST_CONTRACT = {
    "schema": "durable-workflow.v2.control-plane-request.contract",
    "version": 1,
    "operations": {},
}


@router.get("/cluster/info")
def cluster_info(_known: IdentityOf) -> Answer:
    """The command line of Durable Workflow refuses to start without `control_plane`.

    The namespace is not looked at: a client that discovers first would not learn that it was the namespace.
    """
    return Answer(
        {
            "server": "horarium",
            "version": version("horarium"),
            "tzdata": tzdata_version(),
            "control_plane": {"version": CONTROL_PLANE_VERSION, "request_contract": _REQUEST_CONTRACT},
        }
    )
