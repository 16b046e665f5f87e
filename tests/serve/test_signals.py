"""The signal provider, from the setting or the program to preview, explanation, decision and history."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from horarium import Horarium
from horarium.errors import InvalidDefinition
from horarium.testing import service

CONDITION = {"/signal_rpc_result/depth": {"lt": 5}}
HOURLY = {
    "schedule_id": "s",
    "cron_expr": "0 * * * *",
    "workflow_type": "w",
    "overlap_policy": "allow_all",
    "pre_dispatch_condition": CONDITION,
}


class Queue:
    """A number that an operator watches."""

    def __init__(self) -> None:
        self.depth: int | None = 1
        self.asked: list[tuple[str, str]] = []

    def __call__(self, namespace: str, schedule_id: str) -> dict[str, Any]:
        self.asked.append((namespace, schedule_id))
        if self.depth is None:
            raise ConnectionError("the queue is down")
        return {"depth": self.depth}


def test_the_signal_is_in_preview_explanation_and_decision() -> None:
    queue = Queue()
    with service(app=Horarium(signal_provider=queue)) as horarium, horarium.http() as http:
        made = http.post("/api/schedules", json=HOURLY)
        assert (made.status_code, made.json().get("warnings", [])) == (201, [])

        def coming() -> tuple[str, str | None]:
            [row] = http.get("/api/schedules/s/preview", params={"n": 1}).json()["rows"]
            told = http.get("/api/schedules/s/explain", params={"at": row["tick_at"]}).json()
            assert told["fires"] is (row["decision"] == "dispatch")
            tried = http.post("/api/conditions/test", json={"condition": CONDITION, "schedule_id": "s"}).json()
            assert tried["holds"] is told["fires"]
            asked: dict[str, Any] = {"schedule_id": "s", "n": 1}
            [drafted] = http.post("/api/schedules/draft", json={"note": "n"}, params=asked).json()["fires"]
            assert drafted["decision"] == row["decision"]
            window = {"from": row["tick_at"], "to": row["tick_at"].replace(":00Z", ":01Z"), "lanes": True}
            agenda = http.get("/api/agenda", params=window).json()
            assert [(each["decision"], each["reason"]) for each in agenda["rows"]] == [(row["decision"], row["reason"])]
            [counted] = agenda["lanes"][0]["buckets"]
            assert (counted["dispatched"], counted["skipped"]) == (int(told["fires"]), int(not told["fires"]))
            [listed] = http.get("/api/schedules").json()["schedules"]
            for seen in (listed, http.get("/api/schedules/s").json()):
                assert seen["next_run_at"] == (row["due"] if told["fires"] else None)
            return row["decision"], row["reason"]

        assert coming() == ("dispatch", None)
        new = http.post("/api/schedules/draft", json={**HOURLY, "schedule_id": "new"}, params={"n": 1}).json()
        signal_error = new["fires"][0]["detail"]["signal_error"]
        assert signal_error == "signals are not available until the schedule exists"
        horarium.advance(hours=1)
        assert len(horarium.runs()) == 1
        queue.depth = 9
        assert coming() == ("dispatch", None), "an answer is good for some seconds"
        horarium.advance(minutes=1)
        assert coming() == ("skip", "condition_failed")
        queue.depth = None
        horarium.advance(hours=1)
        [skipped] = [each for each in horarium.history("s") if each.event_type == "ScheduleTriggerSkipped"]
        assert skipped.payload["detail"]["signal_error"] == "ConnectionError: the queue is down"
        told = http.get("/api/schedules/s/explain", params={"at": skipped.payload["occurrence_time"]}).json()
        assert (told["source"], told["reason"]) == ("history", "condition_failed")
        assert set(queue.asked) == {("default", "s")}


def test_without_a_provider_a_condition_that_needs_one_is_written_with_a_warning() -> None:
    with service() as horarium, horarium.http() as http:
        [said] = http.post("/api/schedules", json=HOURLY).json()["warnings"]
        assert said.startswith("pre_dispatch_condition: '/signal_rpc_result/depth' never exists: no signal provider")
        assert http.patch("/api/schedules/s", json={"name": "n"}).json().get("warnings", []) == []
        null = {"/signal_rpc_result": {"eq": None}}
        assert http.put("/api/schedules/s/condition", json=null).json().get("warnings", []) == []
        horarium.advance(hours=1)
        assert len(horarium.runs()) == 1


def test_a_setting_names_the_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "our_signals.py").write_text("def depth(namespace, schedule_id):\n    return {'depth': 2}\nword = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with service(settings={"signal_provider": "our_signals:depth"}) as horarium:
        horarium.create(HOURLY)
        horarium.advance(hours=1)
        assert len(horarium.runs()) == 1


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("depth", "does not have the form module:attribute"),
        ("no_such_module_of_ours:depth", "Cannot import no_such_module_of_ours"),
        ("json:nothing", "is not a function"),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_at_the_start(name: str, why: str) -> None:
    with pytest.raises(InvalidDefinition, match=why) as refused, service(settings={"signal_provider": name}):
        pass
    assert "signal_provider" in str(refused.value)


def test_the_program_may_name_the_setting_too(tmp_path: Path) -> None:
    app = Horarium(data_dir=tmp_path, signal_provider="our_signals:depth", signal_timeout_seconds=2)
    assert (app.settings.signal_provider, app.signal_provider) == ("our_signals:depth", None)
