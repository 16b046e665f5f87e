"""How a refusal names what somebody typed: the flag, and not the field of the API that it fills."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


@contextmanager
def by_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """`flags` are those that were typed, by the path of their field. What they did not say keeps its name."""
    from horarium.client.errors import ClientError

    try:
        yield
    except ClientError as error:
        told = error.body.get("errors")
        if not isinstance(told, Mapping) or not told:  # a refusal of one field may be a sentence that begins with it
            path, colon, text = error.message.partition(": ")
            told = {path: [text]} if colon and _flag(path, flags) != path else {}
        error.message = renamed(told, flags) or error.message
        raise


def renamed(errors: Mapping[str, Sequence[str]], flags: Mapping[str, str]) -> str:
    """One line for all of them, as the server would have put it."""
    texts = [
        f"{_flag(path, flags)}: {_in_words(text, flags)}"
        for path, said in errors.items()
        if isinstance(said, list)
        for text in said
    ]
    return "; ".join(texts)


def _flag(path: str, flags: Mapping[str, str]) -> str:
    """An item of a list, `spec.at.0`, was typed with the flag of the list; so were the two parts of an interval."""
    whole = re.sub(r"\.[0-9]+(\.(every|offset))?$", "", path)
    return flags.get(path) or flags.get(whole) or path


def _in_words(text: str, flags: Mapping[str, str]) -> str:
    """A field may be spoken of beside the one that is wrong: in backquotes, or by a name that is no plain word."""
    for path, flag in flags.items():
        text = text.replace(f"`{path}`", flag)
        if "_" in path:
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", flag, text)
    return text
