"""What a service says about actions of the kind `echo`; run by `test_foreign_kinds.py` with and without the package.

Usage: foreign_main.py DATA_DIR. Prints one JSON object.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
from fastapi.testclient import TestClient

from horarium.platform.settings import Settings
from horarium.serve.service import Service, open_service

TOKEN = "foreign"
CRON = {"spec": {"cron_expressions": ["0 2 * * *"]}}


def said(answer: httpx.Response) -> dict[str, Any]:
    return {**answer.json(), "code": answer.status_code}


async def deliver(service: Service) -> None:
    await service.registry.start()
    await service.engine.dispatcher.step()
    await service.registry.close()


def ask(service: Service, http: TestClient) -> dict[str, Any]:
    def create(**document: Any) -> dict[str, Any]:
        return said(http.post("/api/schedules", json=CRON | document))

    found = {
        "created": create(schedule_id="echo", action={"kind": "echo", "text": "hello"}),
        "flat": create(schedule_id="flat", kind="Echo", text="hello"),
        "guessed": create(schedule_id="guessed", text="hello"),
        "wrong_type": create(schedule_id="wrong", action={"kind": "echo", "text": 5}),
        "missing": create(schedule_id="missing", action={"kind": "echo"}),
        "of_another_kind": create(schedule_id="other", action={"kind": "http", "url": "http://a", "text": "hello"}),
        "patched": said(http.patch("/api/schedules/echo", json={"note": "n"})),
        "described": said(http.get("/api/schedules/echo")),
    }
    schemas = http.get("/openapi.json").json()["components"]["schemas"]
    action = schemas["Action"]["properties"]
    http.post("/api/schedules/echo/trigger", json={})
    asyncio.run(deliver(service))
    [run, *_] = http.get("/api/schedules/echo/runs").json()["runs"]
    run = http.get(f"/api/runs/{run['run_id']}").json()
    if "echo" not in action["kind"]["enum"]:
        found |= edits(http)
    return found | {
        "shown": schemas["ShownAction"]["properties"],
        "kinds": action["kind"]["enum"],
        "text": action.get("text"),
        "run": {name: run.get(name) for name in ("state", "result", "error", "kind")},
        "delivery": [row.kind for row in service.registry.documented_delivery()],
    }


def edits(http: TestClient) -> dict[str, Any]:
    """What becomes of changes where nobody declares the kind; the last ones change the action."""
    path = "/api/schedules/echo"

    def described() -> dict[str, Any]:
        answer: dict[str, Any] = http.get(path).json()
        return answer

    found = {
        "edit_priority": said(http.patch(path, json={"priority": 3})),
        "edit_spec": said(http.put(path, json={"spec": {"cron_expressions": ["0 3 * * *"]}})),
        "edit_calendars": said(http.put(f"{path}/calendars", json={"calendars": []})),
        "edit_put_back": said(http.put(path, json=described())),
        "edit_patch_back": said(http.patch(path, json=described())),
        "edit_upsert": said(http.post("/schedules/upsert", json=described())),
        "edit_note": said(http.patch(path, json={"note": "other"})),
        "kept": described()["action"],
        "upsert_new": said(http.post("/schedules/upsert", json=described() | {"schedule_id": "new"})),
        "change": said(http.patch(path, json={"action": {"text": "bye"}})),
    }
    other = {"kind": "http", "url": "http://a", "text": None}
    return found | {"moved": said(http.patch("/api/schedules/flat", json={"action": other}))}


def main(data_dir: Path) -> None:
    settings = Settings(data_dir=data_dir, log_level="error", token=TOKEN)
    with (
        open_service(settings) as service,
        TestClient(service.api, headers={"Authorization": f"Bearer {service.secret}"}) as http,
    ):
        print(json.dumps(ask(service, http)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
