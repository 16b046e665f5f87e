"""Declaration of a kind of action: the public path of `horarium.core.document.reader`."""

from horarium.core.document.reader import Kind

__all__ = [
    "Kind",
]
