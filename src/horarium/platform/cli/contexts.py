"""Contexts: named server connections.

The file `horarium/contexts.json` in the configuration directory of the user (`XDG_CONFIG_HOME`, else `~/.config`) is
readable only by the user. It has a token, or the name of a variable or file with the token.

The current context applies where neither a flag nor the environment sets the server, and takes precedence over the
data directory of a local `up`. `--token` and `--namespace`, or their variables, replace its values. The token of a
context is sent only to the server of the context.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from horarium.errors import InvalidDefinition
from horarium.platform.client.trust import USUAL, Trust, same_server, trust_of

VARIABLE = "HORARIUM_CONTEXT"
LOCAL = "local"
"""The name for no context: the data directory of a local `up`."""
_MAX_FILE = 1_048_576
_MAX_CONTEXTS = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}", re.ASCII)
# The variables that set the server, so that no context applies.
SERVER_VARIABLES = ("HORARIUM_SERVER", "HORARIUM_URL", "HORARIUM_DATA_DIR")


@dataclass(frozen=True, slots=True)
class NamedConnection:
    """A server connection; at most one of the three token fields is set. Its repr hides the token."""

    server: str
    namespace: str | None = None
    token: str | None = field(default=None, repr=False)
    token_env: str | None = None
    token_file: str | None = None
    ca_file: str | None = None
    client_cert: str | None = None
    client_key: str | None = None

    def __post_init__(self) -> None:
        if sum(each is not None for each in (self.token, self.token_env, self.token_file)) > 1:
            raise InvalidDefinition({"token": ["set only one of token, token_env and token_file"]})

    @property
    def has_token(self) -> bool:
        return any(each is not None for each in (self.token, self.token_env, self.token_file))

    @property
    def token_from(self) -> str:
        """The source of the token, as text."""
        if self.token is not None:
            return "stored"
        if self.token_env is not None:
            return f"variable {self.token_env}"
        return "none" if self.token_file is None else f"file {self.token_file}"

    @property
    def trust(self) -> Trust:
        return Trust(self.ca_file, self.client_cert, self.client_key)

    def document(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Contexts:
    """`current` None = the data directory of a local `up`."""

    known: Mapping[str, NamedConnection] = field(default_factory=dict)
    current: str | None = None

    def named(self, name: str) -> NamedConnection | None:
        """Return a context, None for `local`; raise InvalidDefinition for an unknown name."""
        if name == LOCAL:
            return None
        if name not in self.known:
            listed = ", ".join(sorted(self.known)[:20]) or "none"
            raise InvalidDefinition({"context": [f"unknown context {name[:64]!r}; known: {listed}"]})
        return self.known[name]

    def with_context(self, name: str, context: NamedConnection) -> Contexts:
        if len(self.known) >= _MAX_CONTEXTS and name not in self.known:
            raise InvalidDefinition({"context": [f"at most {_MAX_CONTEXTS} contexts are allowed"]})
        return replace(self, known={**self.known, checked_name(name): context})

    def without(self, name: str) -> Contexts:
        self.named(name)
        left = {each: context for each, context in self.known.items() if each != name}
        return Contexts(left, None if self.current == name else self.current)

    def using(self, name: str) -> Contexts:
        return replace(self, current=None if self.named(name) is None else name)


@dataclass(frozen=True, slots=True)
class Target:
    """The connection of a command as given by flags."""

    server: str | None = None
    token: str | None = None
    namespace: str | None = None
    trust: Trust = USUAL


def checked_name(name: str) -> str:
    if _NAME.fullmatch(name) is None or name == LOCAL:
        raise InvalidDefinition(
            {"context": [f"{name[:64]!r} must be 1 to 64 characters of A-Z a-z 0-9 . _ @ -, and not {LOCAL}"]}
        )
    return name


def in_use(named: str | None, environ: Mapping[str, str], contexts: Contexts) -> str | None:
    """Return the context of the flag, of the variable, or the current one."""
    name = named or environ.get(VARIABLE) or contexts.current
    return None if name == LOCAL else name


def applied(said: Target, name: str | None, *, by_flag: bool, contexts: Contexts, environ: Mapping[str, str]) -> Target:
    """Merge the flags with a context; a context named by a flag takes precedence over the environment.

    Raise InvalidDefinition if the token of the context would go to another server.
    """
    context = None if name is None else contexts.named(name)
    if context is None:
        return said
    if said.server is not None and not same_server(said.server, context.server):
        if context.has_token and said.token is None and not environ.get("HORARIUM_TOKEN"):
            why = f"the token of context {name} is only sent to {context.server}, not to {said.server}"
            raise InvalidDefinition({"--server": [f"{why}; set --token"]})
        return said
    token, namespace = said.token, said.namespace
    if token is None and (by_flag or not environ.get("HORARIUM_TOKEN")):
        token = token_of(name or "", context, environ)
    if namespace is None and (by_flag or not environ.get("HORARIUM_NAMESPACE")):
        namespace = context.namespace
    trust = said.trust if by_flag else said.trust.over(trust_of(environ))
    return Target(context.server, token, namespace, trust.over(context.trust))


def is_elsewhere(said: Target, data_dir: Path | None, environ: Mapping[str, str]) -> bool:
    """Return whether a flag or the environment sets the server."""
    return said.server is not None or data_dir is not None or any(environ.get(each) for each in SERVER_VARIABLES)


def token_of(name: str, context: NamedConnection, environ: Mapping[str, str]) -> str | None:
    if context.token_env is not None:
        found = environ.get(context.token_env)
        if not found:
            raise InvalidDefinition(
                {f"context {name}": [f"the variable {context.token_env} with its token is not set"]}
            )
        return found
    if context.token_file is not None:
        try:
            with Path(context.token_file).expanduser().open(encoding="utf-8") as file:
                return file.read(_MAX_FILE).strip() or None
        except (OSError, UnicodeError, ValueError, RuntimeError) as wrong:
            why = getattr(wrong, "strerror", None) or wrong
            raise InvalidDefinition({f"context {name}": [f"cannot read {context.token_file!r}: {why}"]}) from None
    return context.token


# ── the file ──────────────────────────────────────────────────────────────────────────────────────────


def contexts_file(environ: Mapping[str, str]) -> Path:
    """Return the path of the file; a relative `XDG_CONFIG_HOME` is ignored, as its specification requires."""
    said = environ.get("XDG_CONFIG_HOME") or ""
    base = Path(said) if said.startswith("/") else Path(environ.get("HOME") or "~").expanduser() / ".config"
    return base / "horarium" / "contexts.json"


def load_contexts(file: Path) -> Contexts:
    """Read the contexts; none if the file does not exist."""
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_MAX_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        return Contexts()
    except (OSError, UnicodeError) as wrong:
        raise _unreadable(file, str(getattr(wrong, "strerror", None) or wrong)) from None
    try:
        return _parsed(json.loads(text) if len(text) <= _MAX_FILE else None)
    except (ValueError, RecursionError, TypeError, AttributeError) as wrong:
        raise _unreadable(file, str(wrong)[:200]) from None


def save_contexts(file: Path, contexts: Contexts) -> None:
    """Write the file atomically, readable only by the user."""
    import tempfile  # only needed to write

    written = {
        "current": contexts.current,
        "contexts": {name: context.document() for name, context in sorted(contexts.known.items())},
    }
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".contexts-")  # made with mode 600
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as opened:
                json.dump(written, opened, indent=2)
                opened.write("\n")
            Path(temporary).replace(file)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as wrong:
        raise InvalidDefinition({"context": [f"cannot write {str(file)!r}: {wrong.strerror or wrong}"]}) from None


def _parsed(document: Any) -> Contexts:
    if not isinstance(document, dict) or not isinstance(document.get("contexts"), dict):
        raise ValueError("it has no object contexts")
    known = {name: _context(name, said) for name, said in document["contexts"].items()}
    current = document.get("current")
    return Contexts(known, current if isinstance(current, str) and current in known else None)


def _context(name: str, said: Any) -> NamedConnection:
    if _NAME.fullmatch(name) is None or not isinstance(said, dict):
        raise ValueError(f"{name[:64]!r} is not a context")
    if not all(isinstance(value, str) for value in said.values()):
        raise ValueError(f"{name!r} has a value that is not text")
    return NamedConnection(**said)


def _unreadable(file: Path, why: str) -> InvalidDefinition:
    return InvalidDefinition({"contexts": [f"{str(file)!r} is unreadable: {why}; fix or delete it"]})
