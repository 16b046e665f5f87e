"""What is said of the packages inside the app: their names, versions and licences, as those licences ask."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_NOTICE = re.compile(r"(licen[cs]e|notice|copying)", re.IGNORECASE)
_RULE = "─" * 80


class NoLicence(Exception):
    """A package would be shipped of which nobody knows whether it may be."""


@dataclass(frozen=True, order=True)
class Package:
    name: str
    version: str
    licence: str
    texts: tuple[str, ...]


def shipped(lock: Mapping[str, Any]) -> list[str]:
    """The folders of the packages that are not for development alone, as the lock file names them."""
    packages: Mapping[str, Mapping[str, Any]] = lock["packages"]
    aside = ("dev", "devOptional", "optional")
    return sorted(folder for folder, each in packages.items() if folder and not any(each.get(word) for word in aside))


def read(home: Path, folder: str) -> Package:
    """A package with the texts of its licence; a package without any is no package that we can ship."""
    described = json.loads((home / folder / "package.json").read_text("utf-8"))
    files = sorted(each for each in (home / folder).iterdir() if each.is_file() and _NOTICE.match(each.name))
    package = Package(
        described["name"],
        described["version"],
        str(described.get("license", "")),
        tuple(each.read_text("utf-8").strip() for each in files),
    )
    if not package.licence and not package.texts:
        raise NoLicence(f"{package.name} {package.version} says nothing about its licence, so it cannot be shipped")
    return package


def notices(packages: list[Package]) -> str:
    head = "Horarium's browser interface contains these packages, under the licences that follow.\n"
    parts = [_one(each) for each in sorted(packages)]
    return "\n".join([head, *parts])


def _one(package: Package) -> str:
    title = f"{_RULE}\n{package.name} {package.version} ({package.licence or 'see below'})\n{_RULE}\n"
    return "\n".join([title, *(f"{text}\n" for text in package.texts)])


def write_notices(home: Path, target: Path) -> None:
    lock = json.loads((home / "package-lock.json").read_text("utf-8"))
    target.write_text(notices([read(home, folder) for folder in shipped(lock)]), "utf-8")
