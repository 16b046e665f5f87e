"""Read and write YAML with the values of JSON.

YAML 1.1 reads `12:30` as 750, `no` as false and a time as an object. Here a scalar is a number, a boolean or null
only where JSON has it, and text otherwise. Keys that are not text, duplicate keys and tags are refused. Anchors (&),
aliases (*) and merges (<<) are supported; the expanded size is limited.
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


# Nodes and characters; twice the default limit of a request.
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
                raise yaml.MarkedYAMLError(None, None, f"the key {name!r} is not text; quote it", key.start_mark)
            if name in seen:
                raise yaml.MarkedYAMLError(None, None, f"duplicate key {name[:64]!r}", key.start_mark)
            seen.add(name)
        return super().construct_mapping(node, deep=deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Do nothing: `_merge` merges, and treats a quoted `<<` as a key."""


def _measure(node: yaml.Node, known: dict[int, int | None]) -> int:
    """Return the size of a node with all aliases expanded; each node is visited once."""
    size = known.get(id(node), 0)
    if size is None:
        raise yaml.MarkedYAMLError(None, None, "an alias (*) refers to itself", node.start_mark)
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
        raise yaml.MarkedYAMLError(None, None, "aliases (*) expand to too much data", node.start_mark)
    known[id(node)] = size
    return size


def _merge(node: yaml.MappingNode) -> None:
    """Merge the pairs of `<<`; own keys take precedence, then the first merge."""
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


_Loader.yaml_implicit_resolvers = {}  # remove those of YAML 1.1
for _tag, _pattern in _WORDS.items():
    whole = re.compile(rf"(?:{_pattern.pattern})\Z", _pattern.flags)
    _Loader.add_implicit_resolver(_tag, whole, None)


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    """Join surrogate pairs, which JSON escapes have for characters beyond the BMP."""
    try:
        return str(loader.construct_scalar(node)).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise yaml.MarkedYAMLError(None, None, "a string contains an unpaired surrogate", node.start_mark) from None


def _refuse_tag(loader: _Loader, node: yaml.Node) -> Any:
    raise yaml.MarkedYAMLError(None, None, f"the tag {node.tag[:64]!r} is not supported", node.start_mark)


_Loader.yaml_constructors = {
    tag: yaml.SafeLoader.yaml_constructors[tag]
    for tag in (*_WORDS, *(f"tag:yaml.org,2002:{kind}" for kind in ("str", "seq", "map")))
}
_Loader.add_constructor("tag:yaml.org,2002:str", _text)
_Loader.add_constructor(None, _refuse_tag)


class _Dumper(yaml.SafeDumper):
    pass


# Other readers take these as booleans or null.
_NO_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
# Without digits, so that quoting does not depend on the first digit of an ID.
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_-]*")


def _write_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    """Quote text that a reader of any YAML version could read as another type."""
    plain = _PLAIN.fullmatch(text) is not None and text.lower() not in _NO_TEXT
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if plain else '"')


_Dumper.add_representer(str, _write_text)


def dump_yaml(data: Any) -> str:
    text: str = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))
    return text


def parse_yaml(raw: str | bytes) -> Any:
    """Parse YAML; raise ValueError with the line."""
    try:
        return yaml.load(raw, Loader=_Loader)
    except yaml.MarkedYAMLError as wrong:
        said = " ".join(part for part in (wrong.context, wrong.problem) if part)
        mark = wrong.problem_mark or wrong.context_mark
        raise ValueError(f"{said} (line {mark.line + 1})" if mark is not None else said) from None
    except yaml.YAMLError as wrong:
        raise ValueError(" ".join(str(wrong).split())[:200]) from None
