"""Where an agent may say that there is news of a run: our address, and a token that lets it do nothing else."""

from __future__ import annotations

import ipaddress

from horarium.core.document.definition import host_in
from horarium.core.lifecycle.outcome import push_token, push_url
from horarium.launchers.a2a.dialect import Push
from horarium.launchers.launcher import LaunchRequest


def push_for(request: LaunchRequest) -> Push | None:
    """None where the agent could not reach us: this service has not been told its address, or it is this machine's own.

    Nobody is asked to call an address on the machine that it is on itself: some agents refuse the whole message then.
    """
    if request.report_url is None or request.report_token is None or request.agent is None:
        return None
    if _is_here(request.report_url) and not _is_here(request.agent.url):
        return None
    return Push(push_url(request.report_url), push_token(request.report_token))


def _is_here(url: str | None) -> bool:
    host = None if url is None else host_in(url)
    if host is None or host == "localhost":
        return host is not None
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # 0.0.0.0, on which a service listens everywhere, leads nowhere from outside.
    return address.is_loopback or address.is_unspecified
