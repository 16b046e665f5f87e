"""Where each field stands: the canonical places of a document, read off the declarations once.

A place is the path of a field in the canonical document: `spec.timezone`, `action.url`, `overlap_policy`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from types import MappingProxyType
from typing import Any, Final, get_args

from horarium.schedule.definition import Action, Definition, SpecText
from horarium.schedule.field import Field, Part, plain
from horarium.schedule.fields import DocumentFields


@dataclass(frozen=True, slots=True)
class Place:
    """`owner` is the object of the document it stands in, `part` what it makes together with its neighbours."""

    path: str
    name: str
    owner: str
    field: Field
    part: Part | None
    attribute: str
    default: object

    def written(self, value: Any) -> object:
        """The value as the canonical document has it."""
        return plain(value) if self.field.written is None else self.field.written(value)

    def schema(self) -> dict[str, Any]:
        """JSON Schema; its `default` is what a field that is left out means."""
        says_nothing = self.field.from_request or self.default is None or self.default in ((), {}, frozenset())
        default = {} if says_nothing else {"default": self.written(self.default)}
        return {**default, **self.field.schema, "description": self.field.says}


def _attributes() -> dict[str, Any]:
    """Attributes of an empty definition."""
    found = {}
    for each in fields(Definition):
        found[each.name] = each.default if each.default is not MISSING else None
        if each.default_factory is not MISSING:
            found[each.name] = each.default_factory()
    return found | {"spec": SpecText(), "action": Action(None)}  # type: ignore[arg-type]  # no kind is the usual one


DEFAULTS: Final = _attributes()


def _place(owner: str, name: str, field: Field, part: Part | None) -> Place:
    attribute = field.attribute or name
    holder = DEFAULTS if part is None else DEFAULTS[part.attribute]
    default = holder.get(attribute) if isinstance(holder, dict) else getattr(holder, attribute, None)
    return Place(f"{owner}.{name}" if owner else name, name, owner, field, part, attribute, default)


def _places() -> Iterator[Place]:
    for name, hint in DocumentFields.__annotations__.items():
        declared = hint.__metadata__[0]
        if isinstance(declared, Field):
            yield _place("", name, declared, declared.part)
        else:
            for inner, inner_hint in get_args(hint.__origin__)[0].__annotations__.items():
                if hasattr(inner_hint, "__metadata__"):
                    yield _place(name, inner, inner_hint.__metadata__[0], declared)


PLACES: Final[Mapping[str, Place]] = MappingProxyType({place.path: place for place in _places()})
PARTS: Final[Mapping[str, Part]] = MappingProxyType(
    {
        name: hint.__metadata__[0]
        for name, hint in DocumentFields.__annotations__.items()
        if isinstance(hint.__metadata__[0], Part)
    }
)
"""The objects of the canonical document."""
PAUSED: Final = "paused"
NAMES: Final = tuple(name for name in DocumentFields.__annotations__ if name != PAUSED)
"""The top-level names of the canonical document, in the order in which they are written."""
COMMON: Final = frozenset(each.name for each in fields(Action)) - {"target"}
"""The fields that an action of any kind may have."""
