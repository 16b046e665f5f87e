"""How the question of an agent is answered."""

from __future__ import annotations

import pytest

from horarium.core.policy.approval import (
    MAX_REPLY_BYTES,
    agreed_hash,
    input_hash,
    may_show_reply,
    needs_reply,
    proposed_reply,
    reply_in,
)
from horarium.core.policy.queue import PolicyError

REFUSED: dict[str, tuple[object, str]] = {
    "nothing": (None, "must be an object with the key reply"),
    "a list": ([], "must be an object with the key reply"),
    "no reply": ({"rows": 5}, "must be an object with the key reply"),
    "more than a reply": ({"reply": "yes", "rows": 5}, "allowed: reply"),
    "a number": ({"reply": 5}, "must be a string"),
    "blank": ({"reply": " \n"}, "must not be blank"),
    "too long": ({"reply": "é" * (MAX_REPLY_BYTES // 2 + 1)}, "at most 100000 bytes"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_text_answers_no_agent(name: str) -> None:
    said, why = REFUSED[name]
    with pytest.raises(PolicyError, match=why):
        reply_in(said)


def test_a_text_of_all_the_bytes_there_are_is_an_answer() -> None:
    assert len(reply_in({"reply": "é" * (MAX_REPLY_BYTES // 2)})) == MAX_REPLY_BYTES // 2


def test_a_vote_is_for_inputs_and_reply_together() -> None:
    assert agreed_hash({"a": 1}, None) == input_hash({"a": 1})
    assert len({agreed_hash(inputs, reply) for inputs in ({}, {"a": 1}) for reply in (None, "yes", "no")}) == 6


def test_what_is_asked_decides_what_answers_it() -> None:
    assert (needs_reply(["agent_input"]), needs_reply(["agent_auth"])) == (True, False)
    assert (may_show_reply(["agent_input"]), may_show_reply(["agent_auth"])) == (True, False)


def test_a_reply_is_one_only_where_an_agent_asks() -> None:
    assert proposed_reply("Which?", {"reply": "this"}) == "this"
    assert [proposed_reply(None, {"reply": "this"}), proposed_reply("Which?", None), proposed_reply("", {})] == [
        None
    ] * 3
