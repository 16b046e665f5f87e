"""How long a bundle takes: five hundred schedules in one request, beside as many requests that create one each.

A real server (`horarium server`) is asked over loopback by one connection that is kept open, with the published
client. Both ways take turns, each time in a namespace of its own, and the ratio of each turn is what counts: both
suffer alike from whatever else the machine does.

    python benchmarks/apply.py [--schedules 500] [--rounds 3] [--dialect postgresql --dialect sqlite]
"""

from __future__ import annotations

import argparse
import socket
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ground import DIALECTS, console, database
from process import talking
from rich.table import Table

from horarium.client.client import Client

TOKEN = "bench"
# More than anybody can ask in one turn: the limit is not what is measured.
_NO_LIMIT = f'rate_limit_per_second = 1000000\nrate_limit_burst = 1000000\ntoken = "{TOKEN}"\n'


def main() -> None:
    arguments = _arguments()
    for dialect in arguments.dialect or DIALECTS:
        with database(dialect) as opened, tempfile.TemporaryDirectory(prefix="horarium-bench-") as folder:
            (Path(folder) / "horarium.toml").write_text(_NO_LIMIT)
            port = _free_port()
            words = ["-m", "horarium", "server", "--database", opened.url, "--data-dir", folder, "--port", str(port)]
            with talking(words, folder):
                console.print(_measured(dialect, f"http://127.0.0.1:{port}", arguments))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dialect", action="append", choices=DIALECTS)
    return parser.parse_args()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port


def _documents(count: int) -> list[dict[str, Any]]:
    return [
        {
            "schedule_id": f"report-{number}",
            "spec": {"cron_expressions": [f"{number % 60} 2 * * 1-5"], "timezone": "Europe/Istanbul"},
            "action": {"workflow_type": "report", "task_queue": "reports", "input": [{"customer": number}]},
            "labels": {"team": "billing"},
        }
        for number in range(count)
    ]


def _measured(dialect: str, url: str, arguments: argparse.Namespace) -> Table:
    documents = _documents(arguments.schedules)
    table = Table("turn", "creates, s", "apply, s", "apply again, s", "apply / creates", title=f"{dialect}")
    ratios = []
    for turn in range(1, arguments.rounds + 1):
        created = _seconds(url, f"created-{turn}", lambda client: _create(client, documents))
        applied = _seconds(url, f"applied-{turn}", lambda client: client.apply({"schedules": documents}))
        again = _seconds(url, f"applied-{turn}", lambda client: client.apply({"schedules": documents}))
        ratios.append(applied / created)
        table.add_row(str(turn), f"{created:.2f}", f"{applied:.2f}", f"{again:.2f}", f"{ratios[-1]:.2f}")
    table.add_row("median", "", "", "", f"{statistics.median(ratios):.2f}")
    return table


def _create(client: Client, documents: list[dict[str, Any]]) -> None:
    for document in documents:
        client.create_schedule(document)


def _seconds(url: str, namespace: str, work: Callable[[Client], object]) -> float:
    with Client(url, token=TOKEN) as admin:
        if namespace not in {each.namespace for each in admin.list_namespaces()}:
            admin.create_namespace(namespace)
    with Client(url, token=TOKEN, namespace=namespace, timeout=120) as client:
        client.list_schedules()  # the connection is open before the clock runs
        began = time.perf_counter()
        work(client)
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
