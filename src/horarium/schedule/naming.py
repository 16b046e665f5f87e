"""How an id is spelled: ASCII letters, digits and `. _ : @ -`, a letter or digit first, at most 128.

Ids travel in URLs, log lines and instance ids, so they hold no blank, no slash and no quote.
"""

from __future__ import annotations

import re

from horarium.policy.names import PolicyError, shown

MAX_ID = 128
_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:@-]{{0,{MAX_ID - 1}}}", re.ASCII)


def checked_id(field: str, value: object) -> str:
    if value is None:
        raise PolicyError(field, "is required")
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise PolicyError(
            field,
            f"{shown(value)} is not a valid ID: use 1 to {MAX_ID} of A-Z a-z 0-9 . _ : @ -, a letter or digit first",
        )
    return value
