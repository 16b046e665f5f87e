"""What the shell offers at a press of Tab: names of the server, words of ours, and nothing when nobody answers."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.served import Server, set_environment

from horarium.cli.main import main
from horarium.testing.service import TOKEN

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """What bash is told for a line whose last word, which may be empty, is being typed."""

    def ask(line: str) -> list[str]:
        capsys.readouterr()
        monkeypatch.setenv("_HORARIUM_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        try:
            with pytest.raises(SystemExit):
                main([])
        finally:
            monkeypatch.delenv("_HORARIUM_COMPLETE")
        out, err = capsys.readouterr()
        assert err == ""
        return sorted(out.split())

    return ask


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("horarium run list --state f", ["failed"]),
        ("horarium schedule create x --catchup-policy s", ["skip", "spread"]),
        ("horarium schedule create x --retry-on time", ["timeout"]),
        ("horarium schedule create x --tz Europe/Ist", ["Europe/Istanbul"]),
        ("horarium next @daily --tz Asia/Tok", ["Asia/Tokyo"]),
        ("horarium token create x --role vi", ["viewer"]),
        ("horarium approval list --status pen", ["pending"]),
        ("horarium events --kind schedule_sk", ["schedule_skipped"]),
        ("horarium --outp", ["--output"]),
    ],
)  # fmt: skip
def test_words_are_completed(complete: Complete, line: str, offered: list[str]) -> None:
    assert complete(line) == offered


def test_names_are_asked_of_the_server(server: Server, complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("horarium.platform.cli.options.DEADLINE_SECONDS", 60)
    for name in ("nightly", "nightly-report", "hourly"):
        server.told("schedule", "create", name, "--every", "PT1H", "--workflow-type", "w", "--queue", "q")
    server.told("calendar", "create", "company-days")
    server.service.client().put_secret("erp-token", "v")
    server.told("namespace", "create", "staging")
    run_id = server.told("schedule", "trigger", "hourly", "-o", "json").split('"run_id": "')[1][:26]
    assert complete("horarium schedule describe night") == ["nightly", "nightly-report"]
    assert complete(f"horarium run show {run_id[:6]}") == [run_id]
    assert complete("horarium schedule calendar attach nightly comp") == ["company-days"]
    assert complete("horarium secret delete e") == ["erp-token"]
    assert complete("horarium schedule list --namespace sta") == ["staging"]
    assert complete("horarium --namespace staging schedule describe night") == []
    set_environment(monkeypatch, token=None)
    assert complete(f"horarium --server {server.url} --token {TOKEN} schedule pause h") == ["hourly"]
    server.ask("context", "create", "prod", "--server", server.url, "--token", TOKEN)
    assert complete("horarium context use pr") == ["prod"]
    assert complete("horarium schedule pause --context prod h") == ["hourly"]


def test_a_server_that_does_not_answer_offers_nothing_and_is_not_waited_for(
    complete: Complete, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("horarium.platform.cli.options.DEADLINE_SECONDS", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        set_environment(monkeypatch, f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert complete("horarium schedule describe n") == []
    set_environment(monkeypatch, "nonsense")
    assert complete("horarium schedule describe n") == []
    set_environment(monkeypatch)
    (tmp_path / "config" / "horarium").mkdir(parents=True)
    (tmp_path / "config" / "horarium" / "contexts.json").write_text("{")
    assert complete("horarium schedule describe n") == []
    assert complete("horarium context use p") == []


def test_completion_can_be_installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("typer._completion_shared._get_shell_name", lambda: "bash")
    with pytest.raises(SystemExit) as ended:
        main(["--install-completion"])
    assert ended.value.code == 0
    [written] = (tmp_path / ".bash_completions").iterdir()
    assert "_HORARIUM_COMPLETE" in written.read_text()
    assert str(written) in (tmp_path / ".bashrc").read_text()
