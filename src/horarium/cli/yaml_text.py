"""Reads and writes YAML as JSON written by hand: the same values, with comments and without brackets.

YAML of old turns `12:30` into 750, `no` into false and a time into an object of the language. Here a word is a
number, a truth or nothing only where JSON says so, and text everywhere else. What JSON has no word for is refused:
names that are not text or come twice, and marks of types. An anchor (&) may be repeated (*) and merged (<<), as far
as what is then meant is bounded: by a few lines one could mean a billion.
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


# Nodes and characters; twice what a server takes as one request, unless it was told to take more.
_MOST = 4_000_000


class _Loader(yaml.SafeLoader):
    def get_single_node(self) -> yaml.Node | None:
        node = super().get_single_node()
        if node is not None and self.anchors_used:
            _measure(node, {})
        return node

    anchors_used = False

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.anchors_used = self.anchors_used or self.check_event(yaml.AliasEvent)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _merge(node)
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
        """Done by `_merge`, which takes a quoted `<<` for a name like others."""


def _measure(node: yaml.Node, known: dict[int, int | None]) -> int:
    """How much it means when every repetition is written out; each node is looked at once."""
    size = known.get(id(node), 0)
    if size is None:
        raise yaml.MarkedYAMLError(None, None, "an anchor repeats itself (*) without an end", node.start_mark)
    if size:
        return size
    known[id(node)] = None
    inside: list[yaml.Node] = []
    if isinstance(node, yaml.SequenceNode):
        inside = node.value
    elif isinstance(node, yaml.MappingNode):
        inside = [each for pair in node.value for each in pair]
    size = 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else sum(_measure(each, known) for each in inside))
    if size > _MOST:
        raise yaml.MarkedYAMLError(None, None, "its repetitions (*) mean too much", node.start_mark)
    known[id(node)] = size
    return size


def _merge(node: yaml.MappingNode) -> None:
    """The pairs that `<<` brings in, the first of several before the others; what the object says itself wins."""
    own = [pair for pair in node.value if not _is_merge(pair[0])]
    merges = [pair for pair in node.value if _is_merge(pair[0])]
    taken = {key.value for key, _ in own if isinstance(key, yaml.ScalarNode)}
    brought = []
    for key, value in merges:
        for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if not isinstance(source, yaml.MappingNode):
                raise yaml.MarkedYAMLError(None, None, "only objects can be merged (<<)", key.start_mark)
            _merge(source)
            new = [pair for pair in source.value if not isinstance(pair[0].value, str) or pair[0].value not in taken]
            taken |= {name.value for name, _ in new if isinstance(name.value, str)}
            brought += new
    node.value = [*brought, *own]


def _is_merge(key: yaml.Node) -> bool:
    return isinstance(key, yaml.ScalarNode) and key.value == "<<" and key.style is None


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
