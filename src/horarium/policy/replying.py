"""How the question of an agent is answered: by a text that is agreed to together with the inputs of the run.

An agent that has begun may stop to ask. `agent_input` asks for an answer, which only a text is; `agent_auth` asks for
leave to go on, which a plain yes gives. The inputs stay as they are. Whoever agrees, agrees to inputs and text: to
another text it is another vote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from horarium.policy.approval import AGENT_AUTH, AGENT_INPUT, input_hash
from horarium.policy.names import PolicyError, shown

REPLY: Final = "reply"
"""The one member of `modifications` that answers an agent."""
MAX_REPLY_BYTES: Final = 100_000
MAX_QUESTION: Final = 16_000
"""Characters of an agent's question that are kept."""
TOLD_QUESTION: Final = 500
"""Characters of it that events and the feed tell."""


def reply_in(modifications: object) -> str:
    """Raises PolicyError for what answers no agent."""
    if not isinstance(modifications, dict) or REPLY not in modifications:
        raise PolicyError("modifications", "must be an object with the key reply, the answer to the agent")
    others = sorted(str(name) for name in modifications if name != REPLY)
    if others:
        raise PolicyError("modifications", f"unknown key {shown(others[0])}; allowed: reply")
    reply = modifications[REPLY]
    if not isinstance(reply, str):
        raise PolicyError(f"modifications.{REPLY}", f"must be a string, not {shown(reply)}")
    if not reply.strip():
        raise PolicyError(f"modifications.{REPLY}", "must not be blank")
    if len(reply.encode("utf-8", "replace")) > MAX_REPLY_BYTES:
        raise PolicyError(f"modifications.{REPLY}", f"must have at most {MAX_REPLY_BYTES} bytes")
    return reply


def needs_reply(gates: Collection[str]) -> bool:
    """Tell whether an approval needs a reply."""
    return AGENT_INPUT in gates


def may_show_reply(gates: Collection[str]) -> bool:
    """Tell whether the reply may be shown; one that authenticates an agent may be a password."""
    return AGENT_AUTH not in gates


def agreed_hash(inputs: object, reply: str | None, texts: Mapping[str, object] | None = None) -> str:
    """Hash what a vote approves: the inputs, a reply, and the texts that a template was rendered to."""
    more: dict[str, object] = {} if reply is None else {REPLY: reply}
    if texts is not None:
        more["texts"] = texts
    return input_hash({"inputs": inputs, **more} if more else inputs)


def proposed_reply(question: str | None, modifications: object) -> str | None:
    """The text that somebody has proposed to answer an agent's question with; `question` None = no agent asks."""
    if question is None or not isinstance(modifications, dict):
        return None
    reply = modifications.get(REPLY)
    return reply if isinstance(reply, str) else None
