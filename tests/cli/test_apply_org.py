"""An organisation in files: agents in agents, and prompts that stand beside the bundle."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from cli.served import Server

from horarium.features.bundles.files import read_bundle
from horarium.features.bundles.organisation import seeded_id

ORG = """
bundle: org
agents:
  - id: lead
    schedules:
      - {name: Audit, cron_expr: 0 9 * * *, prompt_file: prompts/audit.md}
      - {name: Inline, cron_expr: 0 10 * * *, prompt: Here, prompt_file: nowhere.md}
    children:
      - id: writer
        schedules:
          - {name: Retro, cron_expr: 0 17 * * 5, timezone: Asia/Tokyo, prompt_file: ../retro.md, enabled: false}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "org"
    (root / "agents" / "prompts").mkdir(parents=True)
    (root / "agents" / "org.yaml").write_text(ORG)
    (root / "agents" / "prompts" / "audit.md").write_bytes(b"\xef\xbb\xbfLook\r\naround\n")
    (root / "retro.md").write_text("Write it down")
    return root


def test_prompts_are_read_from_beside_the_bundle_and_an_export_says_the_same(server: Server, folder: Path) -> None:
    rows = [json.loads(row) for row in server.told("apply", "-f", str(folder), "-o", "jsonl").splitlines()]
    assert [row["change"] for row in rows] == ["create"] * 5
    http = server.service.http()
    shown = [http.get(f"/api/schedules/{seeded_id(*key)}").json() for key in (("lead", "Audit"), ("lead", "Inline"))]
    assert [each["action"]["prompt"] for each in shown] == ["Look\naround\n", "Here"]
    again = server.ask("apply", "-f", str(folder), "--detailed-exitcode")
    assert (again.code, again.err.splitlines()[-1]) == (0, "0 of 5 changed")
    Path("flat.json").write_text(server.told("export", "--bundle", "org"))
    assert server.ask("apply", "-f", "flat.json", "--detailed-exitcode").code == 0
    told = json.loads(http.get(f"/api/schedules/{seeded_id('writer', 'Retro')}").text)
    assert (told["paused"], told["assignee_id"], told["action"]["prompt"]) == (True, "writer", "Write it down")


def refused(place: Path | str, name: str, folder: Path) -> str:
    schedule = {"name": "n", "cron_expr": "* * * * *", "prompt_file": name}
    (folder / "agents" / "org.yaml").write_text(json.dumps({"agents": [{"id": "a", "schedules": [schedule]}]}))
    with pytest.raises(typer.TyperException) as wrong:
        read_bundle([str(place)], None)
    return str(wrong.value.format_message())


def test_no_prompt_lies_outside_of_what_was_given(folder: Path) -> None:
    (folder.parent / "secret.txt").write_text("s")
    (folder / "link.md").symlink_to(folder.parent / "secret.txt")
    (folder / "binary.md").write_bytes(b"\xff")
    (folder / "large.md").write_bytes(b"x" * 1_000_001)
    alone = folder / "agents" / "org.yaml"
    for place, name, why in (
        (folder, "../../secret.txt", "outside of the directory of the bundle"),
        (folder, str(folder / "retro.md"), "outside of the directory of the bundle"),
        (folder, "../link.md", "outside of the directory of the bundle"),
        (alone, "../retro.md", "outside of the directory of the bundle"),
        (folder, "prompts", "is not a file"),
        (folder, "missing.md", "is not a file"),
        (folder, "a\x00b", "cannot read"),
        (folder, "../binary.md", "is not UTF-8"),
        (folder, "../large.md", "is larger than 1000000 bytes"),
    ):
        assert why in refused(place, name, folder), name
