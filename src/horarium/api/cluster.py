"""What clients ask before they do anything: which contract this server speaks."""

from __future__ import annotations

from importlib.metadata import version

from horarium.api.answers import Reply
from horarium.api.middleware import CONTROL_PLANE_VERSION
from horarium.api.requests import IdentityOf
from horarium.api.routing import LOOK, Routes
from horarium.recurrence.zone import tzdata_version
from horarium.wire.service import ClusterInfo, ControlPlane

routes = Routes("/api", tag="cluster")

_REQUEST_CONTRACT = {
    "schema": "durable-workflow.v2.control-plane-request.contract",
    "version": 1,
    "operations": {},
}


@routes(
    "GET",
    "/cluster/info",
    needs=LOOK,
    summary="Tell which server this is",
    answer=ClusterInfo,
    example=ClusterInfo(
        server="horarium",
        version="0.1.0",
        tzdata="2026.1",
        control_plane=ControlPlane(version=CONTROL_PLANE_VERSION, request_contract=_REQUEST_CONTRACT),
    ),
)
def cluster_info(_identity: IdentityOf) -> Reply:
    """The command line of Durable Workflow refuses to start without `control_plane`.

    The namespace is not looked at: a client that discovers first would not learn that it was the namespace.
    """
    return Reply(
        ClusterInfo(
            server="horarium",
            version=version("horarium"),
            tzdata=tzdata_version(),
            control_plane=ControlPlane(version=CONTROL_PLANE_VERSION, request_contract=_REQUEST_CONTRACT),
        )
    )
