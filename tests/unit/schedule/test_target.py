"""Actions that burden the same machine, agent or queue have the same target; every action has one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from horarium.core.document.assignee import Assignee, AssigneeType
from horarium.core.document.definition import MAX_TARGET_LENGTH, Action, agent_in, connection_in, of_worker
from horarium.core.document.reader import SHIPPED

target_of = SHIPPED.target_of

LABEL = "a" * 60


def action(kind: str, **fields: Any) -> Action:
    return Action(kind, **fields)


def http(url: object) -> Action:
    return action("http", target={"url": url})


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://api.example.com", "http:https://api.example.com:443"),
        ("https://api.example.com:443/v1?x=1#y", "http:https://api.example.com:443"),
        ("http://api.example.com/other", "http:http://api.example.com:80"),
        ("HTTPS://API.Example.COM/", "http:https://api.example.com:443"),
        ("https://api.example.com./", "http:https://api.example.com:443"),
        ("https://api.example.com:8443/", "http:https://api.example.com:8443"),
        ("https://user:word@api.example.com/", "http:https://api.example.com:443"),
        ("https://api.example.com:/", "http:https://api.example.com:443"),
        ("http://127.0.0.1:9000/", "http:http://127.0.0.1:9000"),
        ("http://[::1]:9000/", "http:http://[::1]:9000"),
        ("http://[0:0:0:0:0:0:0:1]/", "http:http://[::1]:80"),
        ("http://[2001:DB8::A]/", "http:http://[2001:db8::a]:80"),
        ("http://[fe80::1%25eth0]/", "http:http://[fe80::1%25eth0]:80"),
        # RFC 3492 section 7.1 and the IANA test domains: the ASCII form is what is looked up.
        ("https://bücher.example/", "http:https://xn--bcher-kva.example:443"),
        ("https://BÜCHER.example/", "http:https://xn--bcher-kva.example:443"),
        ("https://xn--bcher-kva.example/", "http:https://xn--bcher-kva.example:443"),
    ],
)
def test_a_call_counts_against_scheme_host_and_port(url: str, expected: str) -> None:
    assert target_of(http(url)) == expected


@pytest.mark.parametrize(
    "url",
    [
        None,
        7,
        "",
        "api.example.com",
        "ftp://api.example.com/",
        "https://",
        "https:///path",
        "https://./",
        "https://a:99999/",
        "https://a:0/",
        "https://a:b/",
        "https://[::1/",
        "https://[::zz]/",
        "https://a b/",
        f"https://{'.'.join([LABEL] * 5)}/",
        f"https://{'ü' * 80}.example/",
        "https://\x7f/",
        "https://\ud800.example/",
        {"$secret": "where"},
    ],
)
def test_an_address_that_cannot_be_dialled_has_the_bare_kind(url: object) -> None:
    assert target_of(http(url)) == "http:"


@pytest.mark.parametrize(
    ("given_action", "expected"),
    [
        (action("python", target={"task": "tidy"}), "python:"),
        (action("command", target={"command": "backup"}), "command:"),
        (action("pull", target={"workflow_type": "w"}, queue="slow"), "pull:slow"),
        (action("pull", target={"workflow_type": "w"}), "pull:default"),
        (action("celery", target={"task": "t"}), "celery:default/"),
        (action("celery", target={"task": "t"}, connection="eu", queue="mail"), "celery:eu/mail"),
        (action("workflow", target={"workflow_id": "brief", "version": 2}), "workflow:brief"),
        (action("workflow", target={"workflow_type": "Brief"}), "workflow:Brief"),
        (action("workflow"), "workflow:"),
        (action("prompt", target={"prompt": "Say"}), "prompt:"),
        (action("pull", queue="a\x00b"), "pull:"),
        (action("pull", queue=7), "pull:"),
    ],
)
def test_every_other_kind_names_what_it_burdens(given_action: Action, expected: str) -> None:
    assert target_of(given_action) == expected


@pytest.mark.parametrize("kind", AssigneeType)
def test_a_prompt_counts_against_whom_it_is_given_to(kind: AssigneeType) -> None:
    assert target_of(action("prompt"), Assignee(kind, "writer")) == f"prompt:{kind}/writer"


def test_an_assignee_does_not_change_where_a_call_goes() -> None:
    writer = Assignee(AssigneeType.AGENT, "writer")
    assert target_of(http("https://api.example.com"), writer) == target_of(http("https://api.example.com"))


def test_long_names_are_cut_and_stay_apart() -> None:
    one, other = (target_of(action("celery", connection="c" * 256, queue="q" * 200 + end)) for end in "ab")
    assert len(one) == len(other) == MAX_TARGET_LENGTH
    assert one != other


@given(st.text(max_size=400), st.sampled_from(["", "http://", "https://"]))
def test_no_text_breaks_it(text: str, scheme: str) -> None:
    for odd in (http(scheme + text), action("pull", queue=text), action("workflow", target={"workflow_id": text})):
        target = target_of(odd)
        assert target.startswith(f"{odd.kind}:")
        assert len(target) <= MAX_TARGET_LENGTH
        assert target.isprintable()


@given(st.from_regex(r"[A-Za-z0-9]([A-Za-z0-9-]{0,20}[A-Za-z0-9])?(\.[A-Za-z]{2,10}){1,3}", fullmatch=True))
def test_the_spelling_of_a_host_does_not_matter(host: str) -> None:
    assert target_of(http(f"https://{host}/")) == target_of(http(f"https://{host.upper()}.:443/else"))


# ── whom a prompt goes to ────────────────────────────────────────────────────────────────────────────

AGENT, TEAM = Assignee(AssigneeType.AGENT, "writer"), Assignee(AssigneeType.TEAM, "desk")


@pytest.mark.parametrize(
    ("target", "assignee", "member", "settled", "agent_id"),
    [
        ("prompt:agent/writer", AGENT, None, "prompt:agent/writer", "writer"),
        ("prompt:team/desk", TEAM, "editor", "prompt:agent/editor", "editor"),
        ("prompt:team/desk", TEAM, None, "prompt:team/desk", None),  # nobody of it is known
        ("prompt:", AGENT, None, "prompt:agent/writer", "writer"),  # an assignment has named somebody
        ("prompt:", None, None, "prompt:", None),
        ("http:http://a:80", TEAM, "editor", "http:http://a:80", None),
        ("workflow:prompt:agent/x", AGENT, None, "workflow:prompt:agent/x", None),
    ],
)
def test_a_prompt_goes_to_one_agent(
    target: str, assignee: Assignee | None, member: str | None, settled: str, agent_id: str | None
) -> None:
    assert of_worker(target, assignee, member) == settled
    assert agent_in(settled) == agent_id


@pytest.mark.parametrize(
    ("target", "connection"),
    [("celery:eu/mail", "eu"), ("celery:default/", "default"), ("celery:an-agent", None), ("http:http://h:80", None)],
)
def test_the_connection_of_a_target_is_that_of_a_broker_and_never_an_agents_id(
    target: str, connection: str | None
) -> None:
    assert connection_in(target) == connection
