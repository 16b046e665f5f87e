"""Texts use the words of `banned_words.py`, and their first words name a thing or an act."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs import banned_words
from docs.banned_words import ROOT, Text
from typer.main import get_command

from horarium.cli.main import app
from horarium.platform.settings import Settings

# Docstrings that begin with a question word or "Of". The number may only fall.
MOST_QUESTIONS_IN_DOCSTRINGS = 98


@pytest.mark.parametrize(
    "texts",
    [banned_words.strings_of_python, banned_words.texts_of_the_browser, banned_words.paragraphs],
    ids=["source", "browser", "pages"],
)
def test_no_text_has_a_banned_word(texts: Callable[[], Iterator[Text]]) -> None:
    found = list(banned_words.findings(texts()))
    assert not found, "\n".join(map(str, found))


@pytest.mark.parametrize(
    ("text", "banned"),
    [
        ("Whoever asks is told.", True),
        ("Runs that wait for a yes", True),
        ("It is meant, also for many.", True),
        ("The gateway hands out the work.", True),
        ("The worker renews its lease every 10 seconds.", False),
        ("This token is meant for workers.", False),
        ("A handout of 20 pages.", False),
    ],
)
def test_a_banned_word_is_found(text: str, banned: bool) -> None:
    assert bool(list(banned_words.findings(iter([Text("page", 1, text)])))) is banned


def test_a_wrapped_phrase_and_a_single_word_are_found(tmp_path: Path) -> None:
    (tmp_path / "src/horarium").mkdir(parents=True)
    (tmp_path / "src/horarium/a.py").write_text('x = f"{y} Nobody"\nz = "Nobody"\nstate = "nobody"\n', "utf-8")
    found = [each.line for each in banned_words.findings(banned_words.strings_of_python(tmp_path))]
    assert sorted(found) == [1, 2]
    (tmp_path / "docs").mkdir()
    for page in banned_words.PAGES[:-1]:
        (tmp_path / page).write_text("", "utf-8")
    (tmp_path / "docs/a.md").write_text("The run waits for a\nyes.\n\nA second\n\nyes.\n", "utf-8")
    assert len(list(banned_words.findings(banned_words.paragraphs(tmp_path)))) == 1


def test_headings_help_and_settings_begin_with_a_noun_or_a_verb() -> None:
    texts = [*banned_words.headings(), *_help(), *_settings()]
    found = [text for text in texts if banned_words.begins_as_a_question(text.text)]
    assert len(texts) > 1000
    assert not found, "\n".join(map(str, found))


def test_fewer_docstrings_begin_with_a_question() -> None:
    found = [text for text in banned_words.docstrings() if banned_words.has_no_subject(text.text)]
    assert len(found) <= MOST_QUESTIONS_IN_DOCSTRINGS, "\n".join(map(str, found[-20:]))


def test_the_changelog_and_the_readme_stay_short() -> None:
    assert len(Path(ROOT / "README.md").read_text("utf-8").splitlines()) <= 200
    changelog = Path(ROOT / "CHANGELOG.md").read_text("utf-8")
    assert len(changelog.splitlines()) <= 120
    assert len(changelog[changelog.index("## [0.1.0]") :].splitlines()) <= 80


@pytest.mark.parametrize(
    ("message", "refused"),
    [
        (
            f"Reject negative timeouts\n\n{'A long reason. ' * 9}",
            False,
        ),
        (f"{'x' * 72}\n", False),
        (f"{'x' * 73}\n", True),
    ],
)
def test_the_hook_refuses_a_long_subject(message: str, refused: bool) -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0]["hooks"]
    [hook] = [each for each in hooks if each.get("stages") == ["commit-msg"]]
    assert hook["language"] == "pygrep"
    assert "--multiline" in hook["args"]
    assert bool(re.search(hook["entry"], message, re.MULTILINE | re.DOTALL)) is refused


def _settings() -> list[Text]:
    return [Text(name, 0, field.description or "") for name, field in Settings.model_fields.items()]


def _help() -> list[Text]:
    """The first sentence of each command and option. Typer brings a click of its own, so no class can be asked for."""
    pending: list[tuple[str, Any]] = [("horarium", get_command(app))]
    found: list[Text] = []
    while pending:
        name, command = pending.pop()
        found.append(Text(name, 0, command.help or ""))
        found += [Text(f"{name} {each.opts[0]}", 0, getattr(each, "help", None) or "") for each in command.params]
        pending += [(f"{name} {child}", each) for child, each in getattr(command, "commands", {}).items()]
    return found
