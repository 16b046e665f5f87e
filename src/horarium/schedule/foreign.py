"""How checks of other packages are called: whatever they do, a field is refused or what is kept is JSON."""

from __future__ import annotations

import json
from collections.abc import Callable

from horarium.errors import InvalidSpec
from horarium.policy.names import PolicyError
from horarium.schedule.field import Check
from horarium.schedule.storable import is_storable

# An answer may carry many of these.
_MAX_TEXT = 300


def guarded(kind: str, check: Check | None) -> Check:
    """Without a check any JSON is kept as it is."""

    def call(field: str, value: object) -> object:
        try:
            kept = value if check is None else check(field, value)
        except InvalidSpec:
            raise
        except PolicyError as wrong:
            raise PolicyError(_text(wrong.field), _text(wrong.text)) from None
        except Exception as error:
            raise PolicyError(field, _text(f"the check of kind {kind} failed: {told(error)}")) from None
        if not is_storable(kept):
            what = type(kept).__name__
            raise PolicyError(field, _text(f"the check of kind {kind} failed: it returned a {what}, which is not JSON"))
        # Also of a mapping or a word of its own the plain value is kept.
        return json.loads(json.dumps(kept, default=dict))

    return call


def guarded_spelling(kind: str, spelled: Callable[[object], object] | None) -> Callable[[object], object] | None:
    if spelled is None:
        return None
    check = guarded(kind, lambda _field, value: spelled(value))
    return lambda value: check("", value)


def told(error: Exception) -> str:
    """Describe an error, also one whose text raises another."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _text(text: object) -> str:
    """Bounded, and of characters that any answer can carry."""
    cut = text[:_MAX_TEXT] if isinstance(text, str) else type(text).__name__
    return cut if cut.isprintable() else ascii(cut)[1:-1][:_MAX_TEXT]
