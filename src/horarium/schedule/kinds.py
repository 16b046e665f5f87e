"""Declaration of a kind of action: the public path of `horarium.core.document.kinds`."""

from horarium.core.document.kinds import (
    Kind,
)

__all__ = [
    "Kind",
]
