"""Collect the texts that users read and find words and patterns that the project does not use.

    python tests/docs/banned_words.py [FOLDER…]     print each finding, with its file and line

`FOLDER` limits the search to paths that begin with it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

# Each pattern with what to write instead.
BANNED: Mapping[str, str] = {
    r"whoever|whomever|whosoever|nobody|somebody|anybody|everybody": "name the user, caller, worker or process",
    r"(a|the|their|its|his|one|no|each|every|first|second|another|whose) yes": "approve, approval, reject",
    r"say(s|ing)? (yes|no)|said (yes|no)|yes so far": "approve, approval, reject",
    r"go(es|ing)? on|went on|gone on": "continue, proceed, resume",
    r"(comes?|came|becomes?|became) of": "outcome, result",
    r"(made|make|makes|making) up for": "catch up, run later",
    r"(is|are|be|was|were|been|being|gets?|got) told|told (to|by|of|about)": "receive, notify",
    r"born": "created",
    r"(hand|hands|handed|handing) (it |them |work |runs )?(out|over|back)": "dispatch, return",
    r"(its|their|whose|the|our|own|this|in|many|several|other) (house|rooms?|doors?|desk|eyes)": "service, package",
    r"at the desk|the door": "service, package",
    r"it is meant|is meant\b(?! (for|to))|i mean it|are meant\b(?! (for|to))": "confirm",
    r"mend(s|ed|ing)?": "fix, repair, correct",
    r"beforehand": "in advance, or the name of the thing",
    r"(is|are|was|were|be|been) heard (of|from)|(hears?|heard) (of|from)": "respond, report",
    r"for good": "permanently",
    r"of (its|their|his|your|our|her) own(?=\W*$|[^\w\s]| (in|for|on|with|and|or|that|to|by|at|which)\b)": "separate",
    r"beside": "next to, in addition to",
    r"by the clock": "scheduled",
    r"turned? away|turns away": "reject, deny",
    r"lies down|dies young|lives on|is no more|are no more": "plain verbs",
    r"speaks? for": "act as, represent",
    r"no good": "invalid",
    r"nor (does|do|is|are|was|were|has|have|can|could|will|would|may|might)": "write a second sentence",
    r"so (does|do|is|are|was|were|has|have|can|will) (a|an|the|its|their)": "write a second sentence",
    r"knows? nothing of|knows? (nothing|only)|said nothing": "plain verbs",
    r"what (it|they|he|she|you) (obeys?|holds?|said|was given|were given)|what comes": "name the thing",
    r"(put|make|keep|take|leave|start) (it|them|these) (again|there)": "verb and object",
    r"take(s|n)? turns|takes? the place": "rotate, replace",
    r"(a|the) stranger": "a third party, an unknown user",
    r"aught|naught|hither|thither|whence|thence|wherein|therein|thereof|hereby": "plain words",
    r"let (it|them|him) (go|be|in|through)": "release, allow",
    r"(walk|walks|walked|walking) (through|over|the)": "iterate, read",
    r"asked for it|asks? for it": "requested by",
    r"anew|afresh|once more": "again",
    r"vouch(es|ed)? for": "verify, trust",
    r"when could it happen|missed lately|on its way|only troubled|find lanes|the fullest of each": "words.md",
    r"make the first one|make it (there|so)": "verb and object",
    r"as it was made|list from there|why then": "verb and object",
    r"how long they took|how late they started|late by|runs? of it": "a noun",
    r"made here|clock leaps|leaps over|shows twice": "a noun",
    r"single moments|a line for people|call an address|must agree|tries after|between tries": "the term of the field",
    r"the service would take|lines alike|on top of theirs": "a short label",
    r"begin again|may be left out|what it would do": "a short label",
    r"just say|the whole question|agree(d)? (to )?beforehand": "a short label",
    r"keeps its own time|never asked|does it answer": "a short label",
    r"our mistake|in (its|their) hands|knows tables|fires too early|not over yet|runs born": "a short label",
    r"how much money|as long as it takes|not without it": "a noun phrase",
    r"is taken first|all that last|the answer is no": "a noun phrase",
    r"question was wrong|(who|that) is known here|look before you|keeps its house|who you are to": "plain verbs",
    r"clock on the wall|what it is worth|for its part|by itself alone|to the full": "plain words",
}  # fmt: skip
_PATTERN = re.compile("|".join(rf"(?P<p{i}>\b(?:{words})\b)" for i, words in enumerate(BANNED)), re.IGNORECASE)
_ADVICE = list(BANNED.values())
# Most texts have no banned word, and without named groups the search takes a seventh of the time.
_ANY = re.compile(rf"\b(?:{'|'.join(BANNED)})\b", re.IGNORECASE)

# A line of help, a setting or a heading names a thing or an act.
_QUESTION = re.compile(r"(What|Which|Who|Whom|Whose|Whether|Of|How(?!-to| to))\b")
# Headings such as "When to use it" are usual; docstrings need a subject.
_NO_SUBJECT = re.compile(r"(When|Where|Why|Whoever|For whom)\b")


class Finding(NamedTuple):
    path: str
    line: int
    words: str
    advice: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words!r} ({self.advice}): {self.text[:160]}"


class Text(NamedTuple):
    path: str
    line: int
    text: str


def findings(texts: Iterator[Text]) -> Iterator[Finding]:
    for path, line, text in texts:
        flat = " ".join(text.split())
        if _ANY.search(flat) is None:
            continue
        for match in _PATTERN.finditer(flat):
            advice = _ADVICE[int(str(match.lastgroup)[1:])]
            yield Finding(path, line, match.group(), advice, flat[max(0, match.start() - 60) :])


# ── where the texts are ──────────────────────────────────────────────────────────────────────────────


def strings_of_python(root: Path = ROOT) -> Iterator[Text]:
    """Each string in the source that is no docstring: help, problems, settings, warnings, log lines."""
    for text in _of_python(root)[0]:
        if not _NAME.fullmatch(text.text) and not _SQL.match(text.text):
            yield text


@cache
def _of_python(root: Path) -> tuple[list[Text], list[Text]]:
    """Read the strings of the source, and its docstrings."""
    strings: list[Text] = []
    docstrings: list[Text] = []
    for path in sorted((root / "src/horarium").rglob("*.py")):
        name = str(path.relative_to(root))
        nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        documented = {id(doc): doc for node in nodes if (doc := _docstring(node)) is not None}
        docstrings += [Text(name, doc.lineno, str(doc.value).strip()) for doc in documented.values()]
        strings += [
            Text(name, node.lineno, node.value)
            for node in nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented
        ]
    return strings, docstrings


# A machine word, or no text at all. A part of an f-string, such as " nobody", is text.
_NAME = re.compile(r"[a-z0-9_.:/*%-]*|[^a-zA-Z]*")
_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE) ")


def docstrings(root: Path = ROOT) -> Iterator[Text]:
    yield from _of_python(root)[1]


def _docstring(node: ast.AST) -> ast.Constant | None:
    body = getattr(node, "body", None)
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and body:
        first = body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            return first.value
    return None


_COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)


def texts_of_the_browser(root: Path = ROOT) -> Iterator[Text]:
    """The source without its comments: phrases of several words occur only in what is shown."""
    for path in sorted((root / "ui/src").rglob("*.ts*")):
        if path.name in ("schema.d.ts", "schema.ts"):
            continue
        source = _COMMENT.sub(lambda match: "\n" * match.group().count("\n"), path.read_text("utf-8"))
        for number, line in enumerate(source.splitlines(), 1):
            yield Text(str(path.relative_to(root)), number, line)


PAGES = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "docs")


def pages(root: Path = ROOT) -> Iterator[Text]:
    for place in PAGES:
        found = sorted((root / place).rglob("*.md")) if (root / place).is_dir() else [root / place]
        for path in found:
            lines = path.read_text("utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                yield Text(str(path.relative_to(root)), number, line)


def paragraphs(root: Path = ROOT) -> Iterator[Text]:
    """The pages again, in paragraphs: a phrase may be wrapped."""
    last: Text | None = None
    for text in pages(root):
        if last is not None and text.path == last.path and text.text.strip() and last.text.strip():
            last = last._replace(text=f"{last.text}\n{text.text.strip().removeprefix('> ')}")
        else:
            if last is not None:
                yield last
            last = text
    if last is not None:
        yield last


def headings(root: Path = ROOT) -> Iterator[Text]:
    for text in pages(root):
        if text.text.startswith("#"):
            yield text._replace(text=text.text.lstrip("# "))


def begins_as_a_question(text: str) -> bool:
    return _QUESTION.match(text) is not None


def has_no_subject(docstring: str) -> bool:
    """Tell whether a docstring begins as a question or a clause, instead of with a noun or a verb."""
    return begins_as_a_question(docstring) or _NO_SUBJECT.match(docstring) is not None


def everything(root: Path = ROOT) -> Iterator[Text]:
    yield from strings_of_python(root)
    yield from texts_of_the_browser(root)
    yield from paragraphs(root)


def main(arguments: Sequence[str]) -> int:
    root = ROOT
    if arguments and (Path(arguments[0]) / "src/horarium").is_dir():
        root, arguments = Path(arguments[0]).resolve(), arguments[1:]
    found = [each for each in findings(everything(root)) if not arguments or each.path.startswith(tuple(arguments))]
    for each in found:
        print(each)
    print(f"{len(found)} findings")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
