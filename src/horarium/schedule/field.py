"""Fields of a kind of action: the public path of `horarium.core.document.field`."""

from horarium.core.document.field import (
    Field,
    array_field,
    flag_field,
    map_field,
    text_field,
    timeout_field,
    whole_field,
    word_field,
)

__all__ = [
    "Field",
    "array_field",
    "flag_field",
    "map_field",
    "text_field",
    "timeout_field",
    "whole_field",
    "word_field",
]
