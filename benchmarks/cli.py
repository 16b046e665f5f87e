"""How long does a person wait for the command line? Beside `python -c pass`, a bare Typer program and one with httpx.

All parties take turns in the same run, so that what the machine does besides falls upon all of them. Each command of
ours has a peer that does the least that can be done with the same libraries: print a line, show its help, or ask the
same server the same question once. Figures are medians: time on the wall, and processor time of the whole process.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import ground
from process import Up, up

_SCHEDULES = 20
_TARGET = 1.5

_BARE = """
import typer
app = typer.Typer()
@app.command()
def hello(name: str, count: int = 1) -> None:
    "Says it."
    typer.echo(name * count)
app(prog_name="bare")
"""
_ASKING = """
import typer
app = typer.Typer()
@app.command()
def ask(url: str, token: str = "") -> None:
    "Asks it."
    import httpx
    with httpx.Client(headers={"Authorization": f"Bearer {token}"}) as client:
        typer.echo(len(client.get(url).json()["schedules"]))
app(prog_name="bare")
"""


@dataclass(slots=True)
class Party:
    """`peer` is the name of the party that it is held against."""

    name: str
    words: Sequence[str]
    peer: str | None = None
    wall: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=25, help="how often each party starts")
    rounds = parser.parse_args().rounds
    with (
        tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder,
        ground.database("sqlite") as opened,
        up(opened, folder) as server,
    ):
        _fill(server)
        parties, environment = _parties(server), _environment(folder)
        for number in range(rounds + 1):  # the first round compiles all modules, and warms the disk's cache
            for party in parties:
                _start(party, folder, environment, counts=number > 0)
    _report(parties)


def _parties(server: Up) -> list[Party]:
    ours = ["-m", "horarium"]
    where = ["--server", server.address, "--token", server.token]
    question = [f"{server.address}/api/schedules", "--token", server.token]
    return [
        Party("python -c pass", ["-c", "pass"]),
        Party("bare Typer", ["-c", _BARE, "hello"]),
        Party("bare Typer --help", ["-c", _BARE, "--help"]),
        Party("bare Typer + httpx, one GET", ["-c", _ASKING, *question]),
        Party("horarium --version", [*ours, "--version"], "bare Typer"),
        Party("horarium next", [*ours, "next", "0 9 * * 1-5"], "bare Typer"),
        Party("horarium --help", [*ours, "--help"], "bare Typer --help"),
        Party("horarium schedule list", [*ours, "schedule", "list", *where], "bare Typer + httpx, one GET"),
        Party(
            "horarium schedule list -o json",
            [*ours, "schedule", "list", "-o", "json", *where],
            "bare Typer + httpx, one GET",
        ),
        Party("horarium schedule pause", [*ours, "schedule", "pause", "s0", *where], "bare Typer + httpx, one GET"),
    ]


def _fill(server: Up) -> None:
    for number in range(_SCHEDULES):
        body = {
            "schedule_id": f"s{number}",
            "spec": {"cron_expressions": [f"{number} 2 * * *"]},
            "action": {"workflow_type": "report"},
        }
        headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{server.address}/api/schedules", json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request):
            pass


def _environment(folder: str) -> Mapping[str, str]:
    """Without our settings, and with compiled modules, as every installation has them after its first start."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HORARIUM_")}
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return {**kept, "PYTHONPYCACHEPREFIX": f"{folder}/compiled"}


def _start(party: Party, folder: str, environment: Mapping[str, str], *, counts: bool) -> None:
    started = time.perf_counter()
    child = subprocess.Popen(
        [sys.executable, *party.words], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    said, complaint = child.stdout.read(), child.stderr.read()  # type: ignore[union-attr]  # both are pipes
    _, status, used = os.wait4(child.pid, 0)
    took = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{party.name} ended with {child.returncode}: {(complaint or said).decode()}")
    if counts:
        party.wall.append(took)
        party.processor.append(used.ru_utime + used.ru_stime)


def _report(parties: Sequence[Party]) -> None:
    by_name: Mapping[str, Party] = {party.name: party for party in parties}
    print(f"medians of {len(parties[0].wall)} starts each; load {ground.load()}; target {_TARGET} × the peer")
    print(f"{'':34}{'wall ms':>9}{'cpu ms':>9}{'× peer, wall':>14}{'× peer, cpu':>13}  peer")
    for party in parties:
        wall, processor = statistics.median(party.wall), statistics.median(party.processor)
        line = f"{party.name:34}{wall * 1e3:9.0f}{processor * 1e3:9.0f}"
        if party.peer is not None:
            peer = by_name[party.peer]
            line += f"{wall / statistics.median(peer.wall):14.2f}"
            line += f"{processor / statistics.median(peer.processor):13.2f}  {party.peer}"
        print(line)


if __name__ == "__main__":
    main()
