"""Reads and writes YAML as JSON written by hand: the same values, with comments and without brackets.

YAML of old turns `12:30` into 750, `no` into false and a time into an object of the language. Here a word is a
number, a truth or nothing only where JSON says so, and text everywhere else. What JSON has no word for is refused:
names that are not text or come twice, marks of types, and references, by which a few lines can mean a billion.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

_WORDS = {
    "tag:yaml.org,2002:null": re.compile(r"null|~|"),
    "tag:yaml.org,2002:bool": re.compile(r"true|false"),
    "tag:yaml.org,2002:int": re.compile(r"-?(0|[1-9][0-9]*)", re.ASCII),
    "tag:yaml.org,2002:float": re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?", re.ASCII),
}


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(None, None, "a reference (*) is not read", self.get_mark())
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = self.construct_object(key, deep=True)
            if not isinstance(name, str):
                raise yaml.MarkedYAMLError(None, None, f"the name {name!r} is no text; quote it", key.start_mark)
            if name in seen:
                raise yaml.MarkedYAMLError(None, None, f"{name[:64]!r} is given twice", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """`<<` is a name like others: what it would bring in are references."""


_Loader.yaml_implicit_resolvers = {}  # those of old
for _tag, _pattern in _WORDS.items():
    whole = re.compile(rf"(?:{_pattern.pattern})\Z", _pattern.flags)
    _Loader.add_implicit_resolver(_tag, whole, None)


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    """JSON writes letters beyond the first 65,536 as two escapes, which mean one."""
    try:
        return str(loader.construct_scalar(node)).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise yaml.MarkedYAMLError(None, None, "a text holds half of a letter", node.start_mark) from None


def _refuse_tag(loader: _Loader, node: yaml.Node) -> Any:
    raise yaml.MarkedYAMLError(None, None, f"the mark {node.tag[:64]!r} is not read", node.start_mark)


_Loader.yaml_constructors = {
    tag: yaml.SafeLoader.yaml_constructors[tag]
    for tag in (*_WORDS, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")))
}
_Loader.add_constructor("tag:yaml.org,2002:str", _text)
_Loader.add_constructor(None, _refuse_tag)


class _Dumper(yaml.SafeDumper):
    pass


# Other readers take these for a truth, a number or nothing.
_NO_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# Without digits: whether an id is quoted must not depend on the digit that it begins with.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_-]*")


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """In quotes wherever a reader of any version could take it for something else than text."""
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _NO_TEXT
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _write_text)


def dump_yaml(data: Any) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text


def parse_yaml(raw: str | bytes) -> Any:
    """Raises ValueError with the place, in one line."""
    try:
        return yaml.load(raw, Loader=_Loader)
    except yaml.MarkedYAMLError as wrong:
        said = " ".join(part for part in (wrong.context, wrong.problem) if part)
        mark = wrong.problem_mark or wrong.context_mark
        raise ValueError(f"{said} (line {mark.line + 1})" if mark is not None else said) from None
    except yaml.YAMLError as wrong:
        raise ValueError(" ".join(str(wrong).split())[:200]) from None
