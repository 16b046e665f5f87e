"""Contexts, and flags before the noun: where a command goes when nothing, or too much, is said."""

from __future__ import annotations

import io
import json
import stat
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli.served import Server, set_environment

from horarium.cli.main import main, moved
from horarium.errors import InvalidDefinition
from horarium.platform.cli.contexts import (
    Contexts,
    NamedConnection,
    Target,
    applied,
    contexts_file,
    in_use,
    is_elsewhere,
    load_contexts,
    save_contexts,
)
from horarium.testing.service import TOKEN

PROD = NamedConnection("http://prod", "team", token="kept")
KNOWN = Contexts({"prod": PROD, "bare": NamedConnection("http://bare")}, "prod")


# ── precedence ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "flag", "environ", "found"),
    [
        (Target(), None, {}, Target("http://prod", "kept", "team")),
        (Target(), "bare", {}, Target("http://bare")),
        (Target(), None, {"HORARIUM_CONTEXT": "bare"}, Target("http://bare")),
        (Target(), "prod", {"HORARIUM_CONTEXT": "bare"}, Target("http://prod", "kept", "team")),
        (Target(), "local", {}, Target()),
        (Target(), None, {"HORARIUM_CONTEXT": "local"}, Target()),
        (Target(token="t", namespace="n"), None, {}, Target("http://prod", "t", "n")),
        # None leaves the variable to speak, which goes before a context that no flag named.
        (Target(), None, {"HORARIUM_TOKEN": "x", "HORARIUM_NAMESPACE": "y"}, Target("http://prod")),
        (Target(), "prod", {"HORARIUM_TOKEN": "x", "HORARIUM_NAMESPACE": "y"}, Target("http://prod", "kept", "team")),
        # The token of a context is never sent to another address; to its own by any name.
        (Target("http://else", "t"), None, {}, Target("http://else", "t")),
        (Target("http://else"), None, {"HORARIUM_TOKEN": "x"}, Target("http://else")),
        (Target("http://else"), None, {"HORARIUM_CONTEXT": "bare"}, Target("http://else")),
        (Target("http://prod:80/"), None, {}, Target("http://prod", "kept", "team")),
    ],
)
def test_flags_go_before_the_environment_and_that_before_the_context(
    said: Target, flag: str | None, environ: Mapping[str, str], found: Target
) -> None:
    name = in_use(flag, environ, KNOWN)
    assert applied(said, name, by_flag=flag is not None, contexts=KNOWN, environ=environ) == found


@pytest.mark.parametrize(
    "context",
    [
        PROD,
        NamedConnection("http://prod", token_env="PROD_TOKEN"),
        NamedConnection("http://prod", token_file="/no/such"),
    ],
    ids=["kept", "variable", "file"],
)
def test_another_server_does_not_get_the_token_of_a_context(context: NamedConnection) -> None:
    with pytest.raises(InvalidDefinition, match="the token of context prod is only sent to http://prod"):
        applied(Target("http://else"), "prod", by_flag=False, contexts=Contexts({"prod": context}, "prod"), environ={})


@pytest.mark.parametrize(
    ("said", "data_dir", "environ", "elsewhere"),
    [
        (Target(), None, {}, False),
        (Target("u"), None, {}, True),
        (Target(), Path("d"), {}, True),
        (Target(), None, {"HORARIUM_SERVER": "u"}, True),
        (Target(), None, {"HORARIUM_DATA_DIR": "d"}, True),
        (Target(token="t"), None, {"HORARIUM_TOKEN": "t"}, False),
    ],
)
def test_whether_a_flag_or_the_environment_says_which_server(
    said: Target, data_dir: Path | None, environ: Mapping[str, str], elsewhere: bool
) -> None:
    assert is_elsewhere(said, data_dir, environ) is elsewhere


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"HOME": "/h"}, "/h/.config/horarium/contexts.json"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "/x"}, "/x/horarium/contexts.json"),
        ({"HOME": "/h", "XDG_CONFIG_HOME": "relative"}, "/h/.config/horarium/contexts.json"),
    ],
)
def test_the_file_is_where_the_base_directories_say(environ: Mapping[str, str], path: str) -> None:
    assert str(contexts_file(environ)) == path


def test_the_file_is_for_the_user_alone_and_comes_back_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / "a" / "contexts.json"
    save_contexts(file, KNOWN)
    assert load_contexts(file) == KNOWN
    assert (stat.S_IMODE(file.stat().st_mode), stat.S_IMODE(file.parent.stat().st_mode)) == (0o600, 0o700)
    assert [each.name for each in file.parent.iterdir()] == ["contexts.json"]
    assert load_contexts(tmp_path / "missing") == Contexts()


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", "{}", '{"contexts": {"a": 1}}', '{"contexts": {"a": {}}}', '{"contexts": {"a": {"server": 1}}}',
     '{"contexts": {"../a": {"server": "x"}}}', '{"contexts": {"a": {"server": "x", "more": "y"}}}', "[" * 100_000,
     '{"contexts": {"a": {"server": "x", "token": "t", "token_env": "V"}}}', "\xff"],
    ids=lambda text: ascii(text[:40]),
)  # fmt: skip
def test_a_file_that_is_damaged_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "contexts.json"
    file.write_text(text, "latin-1")
    with pytest.raises(InvalidDefinition) as refused:
        load_contexts(file)
    assert len(refused.value.message) < 600


# ── through the door ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def by_context(server: Server, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The server, which nothing in the environment names."""
    set_environment(monkeypatch, token=None)
    return server


def test_a_context_says_where_commands_go(by_context: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server = by_context
    server.told("context", "create", "prod", "--server", server.url, "--token", TOKEN)
    assert server.ask("schedule", "list").code == 3
    assert server.ask("context", "use", "prod").err == "current context: prod\n"
    assert server.ask("schedule", "list").code == 0
    listed = server.told("context", "list")
    assert (TOKEN in listed, [line.split()[:2] for line in listed.splitlines()[1:]]) == (
        False, [["local", "-"], ["prod", "*"]],
    )  # fmt: skip
    assert json.loads(server.told("context", "show", "-o", "json"))["token"] == "stored"
    rows = {row["name"]: row for row in json.loads(server.told("config", "-o", "json"))}
    assert (rows["context"]["value"], rows["context"]["origin"]) == ("prod", "file")
    assert server.ask("schedule", "list", "--context", "local").code == 3
    monkeypatch.setenv("HORARIUM_CONTEXT", "local")
    assert server.ask("schedule", "list").code == 3
    monkeypatch.delenv("HORARIUM_CONTEXT")
    assert server.ask("context", "delete", "prod").code == 0
    assert server.ask("schedule", "list").code == 3


def test_a_token_may_stay_in_a_variable_or_a_file(by_context: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server = by_context
    server.told("context", "create", "env", "--server", server.url, "--token-env", "OTHER_TOKEN")
    answer = server.ask("schedule", "list", "--context", "env")
    assert (answer.code, answer.err) == (2, "error: context env: the variable OTHER_TOKEN with its token is not set\n")
    monkeypatch.setenv("OTHER_TOKEN", TOKEN)
    assert server.ask("schedule", "list", "--context", "env").code == 0
    Path("secret").write_text(f"{TOKEN}\n")
    server.told("context", "create", "file", "--server", server.url, "--token-file", "secret")
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    assert server.ask("--context", "file", "schedule", "list").code == 0
    monkeypatch.chdir("..")
    Path("secret").unlink()
    assert server.ask("schedule", "list", "--context", "file").code == 2
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n"))
    server.told("context", "create", "kept", "--server", server.url, "--token", "-")
    assert server.ask("schedule", "list", "--context", "kept").code == 0
    assert TOKEN not in server.told("context", "list", "-o", "json")


@pytest.mark.parametrize(
    "arguments",
    [
        ["context", "use", "nobody"],
        ["context", "delete", "nobody"],
        ["context", "delete", "local"],
        ["context", "show", "nobody"],
        ["context", "create", "local", "--server", "http://x"],
        ["context", "create", "../x", "--server", "http://x"],
        ["context", "create", "x", "--server", "nonsense"],
        ["context", "create", "x", "--server", "http://x", "--token", "a\nb"],
        ["context", "create", "x", "--server", "http://x", "--token", "a", "--token-env", "B"],
        ["schedule", "list", "--context", "nobody"],
        ["schedule", "list", "--context", "x", "--server", "http://x"],
    ],
    ids=lambda words: ascii(" ".join(words[:5])),
)
def test_a_context_that_cannot_be_is_one_line(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    set_environment(monkeypatch)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), err[:7]) == ("", 1, "error: ")
    assert not (tmp_path / "config").exists()


# ── flags before the noun ────────────────────────────────────────────────────────────────────────────


ROOT: Any = SimpleNamespace(
    commands={
        "group": SimpleNamespace(commands={"verb": SimpleNamespace(params=[SimpleNamespace(opts=["--output", "-o"])])}),
        "plain": SimpleNamespace(params=[SimpleNamespace(opts=["--server"])]),
    }
)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("-o json group verb x", "group verb --output json x"),
        ("-ojson group verb", "group verb --output json"),
        ("-o=json group verb", "group verb --output json"),
        ("--output=json group verb -o yaml", "group verb --output json -o yaml"),
        ("-o yaml -o json group verb", "group verb --output json"),
        ("--server u plain -- --server", "plain --server u -- --server"),
        ("-o json group", "-o json group"),
        ("-o json group --help", "-o json group --help"),
        ("-o json --help", "-o json --help"),
        ("-o json nonsense", "-o json nonsense"),
        ("--server", "--server"),
        ("--version -o json", "--version -o json"),
        ("group verb -o json", "group verb -o json"),
    ],
)
def test_flags_before_the_noun_are_moved_behind_the_verb(typed: str, meant: str) -> None:
    assert moved(typed.split(), ROOT) == meant.split()


def test_where_the_server_is_may_be_said_first(empty_server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(monkeypatch, token=None)
    first = ("--server", empty_server.url, "--token", TOKEN, "-o", "json")
    assert json.loads(empty_server.told(*first, "schedule", "list"))["schedules"] == []


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--server", "http://x", "next", "@hourly"], "error: --server: `horarium next` has no such option\n"),
        (["--server"], "error: Option '--server' requires an argument.\n"),
        (["-o", "json", "nonsense"], "error: No such command 'nonsense'.\n"),
    ],
    ids=["a command without it", "no value", "no command"],
)
def test_flags_that_lead_nowhere_are_refused(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert capsys.readouterr().err == told


def test_a_calendar_can_be_made_where_schedules_attach_them(server: Server) -> None:
    assert server.told("schedule", "calendar", "create", "days", "--date", "2026-12-24") == "days: created\n"
    assert "days" in server.told("calendar", "list")
