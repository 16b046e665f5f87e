"""Prints the OpenAPI document of this tree: what the types of the browser app are made from."""

from __future__ import annotations

import json

from horarium.testing import service

if __name__ == "__main__":
    with service() as running:
        print(json.dumps(running.http(token=None).get("/openapi.json").json(), indent=1, sort_keys=True))
