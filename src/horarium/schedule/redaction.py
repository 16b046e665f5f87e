"""How values that were sent are kept out of what comes back: each that is found in a text is masked.

A target may echo what it was sent, in an error or in a result, and both are stored and shown. What is masked is the
value itself, its spelling inside a JSON text, what follows a scheme such as `Bearer`, and the values of cookies. Half a
value at the cut end of a text is masked as well. Short values are left: they would be found everywhere.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from horarium.schedule.json_limits import Json

MASK: Final = "***"
LEAST: Final = 8
"""Characters; what is shorter is not masked."""

_ELLIPSIS = "…"
# No text that was cut is shorter.
_CUT = 256
# Of one value: `Bearer x` has two, and a cookie a few. A secret of a thousand words is looked for as a whole.
_MOST_PARTS = 8


class Redactor:
    """Of some values; `Redactor(())` changes nothing."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {each for value in values for each in _spellings(value) if len(each) >= LEAST}
        # The longest first: a value that is part of another must not leave the rest of it.
        self._values = sorted(found, key=len, reverse=True)

    def text(self, text: str) -> str:
        if len(text) < LEAST:
            return text
        for value in self._values:
            if value in text:
                text = text.replace(value, MASK)
        return self._without_a_half(text) if len(text) >= _CUT else text

    def json(self, value: Json) -> Json:
        """Keys too."""
        if not self._values:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(key) if isinstance(key, str) else key: self.json(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.json(item) for item in value]
        return value

    def _without_a_half(self, text: str) -> str:
        body = text.removesuffix(_ELLIPSIS)
        for value in self._values:
            start = body.find(value[:LEAST], max(0, len(body) - len(value) + 1))
            while start >= 0:
                if value.startswith(body[start:]):
                    return body[:start] + MASK + text[len(body) :]
                start = body.find(value[:LEAST], start + 1)
        return text


def _spellings(value: str) -> Iterator[str]:
    """The value, and the parts by which a target may know it: `Bearer x` is `x` to it."""
    words = re.split(r"[;\s]+", value, maxsplit=_MOST_PARTS)
    parts = {value}
    if len(words) <= _MOST_PARTS:
        parts |= {*words, *(each.partition("=")[2] for each in words)}
    for part in parts:
        yield part
        for ascii_only in (True, False):
            yield json.dumps(part, ensure_ascii=ascii_only)[1:-1]
