"""`horarium secret`: a value is read from a file, from stdin or from a prompt, and never printed."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from cli.served import Server

from horarium.cli.main import main
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets import service as secret_service
from horarium.platform.caller import internal
from horarium.platform.settings import Settings
from horarium.serve.service import open_service

VALUE = "open-sesame"


def kept(server: Server, name: str) -> str:
    resources = server.service.resources
    assert resources.sealer is not None
    return resources.database.read(lambda c: secret_rows.find_all(c, "default", [name]))[name].unseal(resources.sealer)


def pipe(monkeypatch: pytest.MonkeyPatch, raw: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))


def test_a_value_comes_from_a_file_or_from_stdin_and_is_never_printed(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "token.txt"
    file.write_text(VALUE + "\n")
    said = server.ask("secret", "set", "erp", "--value-file", str(file), "--host", "erp.example.com")
    assert said.err == "secret erp set (version 1); allowed hosts: erp.example.com\n"
    assert kept(server, "erp") == VALUE
    pipe(monkeypatch, b"two\nlines\r\n")
    again = server.ask("secret", "set", "erp", "-o", "json")
    assert json.loads(again.out)["version"] == 2
    assert kept(server, "erp") == "two\nlines"
    listed = [server.ask("secret", "list", "-o", output) for output in ("table", "json")]
    assert all("erp.example.com" in each.out for each in listed)
    assert not any(word in each.out + each.err for each in (said, again, *listed) for word in (VALUE, "two"))
    assert server.ask("secrets", "delete", "erp").err == "secret erp deleted\n"
    assert server.ask("secret", "delete", "erp").code == 5
    assert server.ask("secret", "list").err == "no secrets in namespace default\n"


def test_what_is_no_value_is_refused_before_anybody_is_asked(
    empty_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for raw, why in ((b"x" * 70_000, "longer than 65536 bytes"), (b"\xff\xfe", "not UTF-8")):
        pipe(monkeypatch, raw)
        answer = empty_server.ask("secret", "set", "erp")
        assert (answer.code, why in answer.err) == (2, True)
    missing = empty_server.ask("secret", "set", "erp", "--value-file", str(tmp_path / "none"))
    assert (missing.code, "--value-file: cannot read" in missing.err) == (2, True)
    pipe(monkeypatch, b"\n")
    assert empty_server.ask("secret", "set", "erp").err == "error: value: is empty\n"
    monkeypatch.setattr(sys, "stdin", None)  # as after `<&-`
    assert empty_server.ask("secret", "set", "erp").err == "error: value: is empty\n"
    pipe(monkeypatch, b"x")
    wrong = empty_server.ask("secret", "set", "erp", "--host", "https://a.example/x")
    assert (wrong.code, wrong.err.startswith("error: --host: ")) == (2, True)


def test_a_value_cannot_be_an_argument(empty_server: Server) -> None:
    """Arguments are seen by everybody on the machine, and by the history of a shell."""
    for arguments in ([VALUE], ["--value", VALUE]):
        assert empty_server.ask("secret", "set", "erp", *arguments).code == 2


def test_a_rekey_says_where_the_keys_are_and_shows_none(
    tmp_path: Path, sqlite_template: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "horarium.db").write_bytes(sqlite_template.read_bytes())
    rekey = ["secrets", "rekey", "--data-dir", str(tmp_path)]
    assert main(rekey) == 1
    assert "This database has no key yet, so there is none to replace" in capsys.readouterr().err
    with open_service(Settings(data_dir=tmp_path)) as service:
        secret_service.put(service.resources, internal("testing"), "erp", VALUE)
    assert main(rekey) == 0
    said = capsys.readouterr()
    keys = [path.read_text().strip() for path in tmp_path.glob("secret.key*")]
    assert said.out == f"re-encrypted: 1; the new key is in {tmp_path / 'secret.key'}\n"
    assert "secret.key.previous" in said.err
    assert not any(key in said.out + said.err for key in keys)
