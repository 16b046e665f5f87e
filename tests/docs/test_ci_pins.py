"""What CI and the images begin with is pinned by its content: a tag can be moved to other code."""

from __future__ import annotations

import re

import yaml
from docs.pages import ROOT

WORKFLOWS = ROOT / ".github" / "workflows"
DIGEST = r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}"
BUILT_HERE = {"horarium"}


def test_every_action_is_pinned_by_commit() -> None:
    used = [
        line.strip() for file in WORKFLOWS.glob("*.y*ml") for line in file.read_text().splitlines() if "uses:" in line
    ]
    assert used
    assert [each for each in used if not re.fullmatch(r"- uses: [\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []


def test_every_image_is_pinned_by_digest() -> None:
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", (ROOT / "Containerfile").read_text("utf-8"), re.MULTILINE)
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"].values()
    jobs = [each for file in WORKFLOWS.glob("*.y*ml") for each in yaml.safe_load(file.read_text())["jobs"].values()]
    assert not [job for job in jobs if "container" in job or "services" in job], "name these images here"
    images = {image for image, _ in stages} | {each["image"] for each in services}
    foreign = images - BUILT_HERE - {stage for _, stage in stages}
    assert len(foreign) >= 2
    assert [each for each in sorted(foreign) if not re.fullmatch(DIGEST, each)] == []
