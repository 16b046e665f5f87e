"""Errors that name the flags of a command instead of the API fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager


@contextmanager
def by_flags(flags: Mapping[str, str]) -> Iterator[None]:
    """Rename fields in client errors; `flags` is by the path of the field."""
    from horarium.client.errors import ClientError

    try:
        yield
    except ClientError as error:
        told = error.body.get("errors")
        if not isinstance(told, Mapping) or not told:  # the error of a single field may begin with its path
            path, colon, text = error.message.partition(": ")
            told = {path: [text]} if colon and _flag(path, flags) != path else {}
        error.message = renamed(told, flags) or error.message
        raise


def renamed(errors: Mapping[str, Sequence[str]], flags: Mapping[str, str]) -> str:
    """Return all errors in one line."""
    texts = [
        f"{_flag(path, flags)}: {_in_words(text, flags)}"
        for path, said in errors.items()
        if isinstance(said, list)
        for text in said
    ]
    return "; ".join(texts)


def _flag(path: str, flags: Mapping[str, str]) -> str:
    """Return the flag of a field; items such as `spec.at.0` belong to the flag of the list."""
    whole = re.sub(r"\.[0-9]+(\.(every|offset))?$", "", path)
    return flags.get(path) or flags.get(whole) or path


def _in_words(text: str, flags: Mapping[str, str]) -> str:
    """Rename fields that an error mentions, in backquotes or with an underscore in the name."""
    for path, flag in flags.items():
        text = text.replace(f"`{path}`", flag)
        if "_" in path:
            text = re.sub(rf"(?<![\w.-]){re.escape(path)}(?![\w.-])", flag, text)
    return text
