"""Settings: which layer wins, where a value came from, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import ValidationError

import horarium
from horarium.errors import InvalidDefinition
from horarium.platform.settings import Settings, as_up_takes_them, load_settings, origins, unknown_variables, variable

BARE = (
    "TICK_MS", "LOOKAHEAD_MS", "MAX_CATCHUP_PER_TICK", "DEFAULT_OVERLAP_POLICY", "DEFAULT_CATCHUP_POLICY",
    "DEFAULT_JITTER_MS",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(variable(name), raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("HORARIUM_CONFIG", raising=False)
    monkeypatch.chdir(tmp_path)


def test_the_defaults_are_those_that_the_documentation_names() -> None:
    settings = load_settings({})
    assert (settings.host, settings.port, settings.data_dir) == ("127.0.0.1", 8765, Path(".horarium"))
    assert (settings.tick_ms, settings.lookahead_ms, settings.max_catchup_per_tick) == (1_000, 60_000, 100)
    assert (settings.tick_batch, settings.lease_seconds, settings.launch_concurrency) == (500, 20, None)
    assert (settings.in_flight, settings.namespace_in_flight, settings.in_flight_per_target) == (500, 250, 32)
    assert (settings.pool_size, settings.statement_timeout_seconds) == (10, 30)
    assert settings.database_url == "sqlite:///.horarium/horarium.db"
    assert set(origins(settings).values()) == {"default"}


def test_a_flag_wins_over_the_environment_which_wins_over_the_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "horarium.toml").write_text('port = 1\nhost = "from-file"\ntick_ms = 100\n')
    monkeypatch.setenv("HORARIUM_PORT", "2")
    monkeypatch.setenv("HORARIUM_TICK_MS", "200")
    settings = load_settings({"port": 3, "app": None})
    assert (settings.port, settings.tick_ms, settings.host) == (3, 200, "from-file")
    found = origins(settings)
    assert (found["port"], found["tick_ms"], found["host"], found["app"]) == ("flag", "environment", "file", "default")


@pytest.mark.parametrize("name", BARE)
def test_a_bare_name_is_read_too(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    value = "allow" if "POLICY" in name else "77"
    monkeypatch.setenv(name, value)
    settings = load_settings({})
    assert str(getattr(settings, name.lower())) == value
    assert origins(settings)[name.lower()] == "environment"


def test_the_full_name_wins_over_the_bare_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICK_MS", "100")
    monkeypatch.setenv("HORARIUM_TICK_MS", "200")
    assert load_settings({}).tick_ms == 200


def test_other_names_are_not_read_bare(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "99")
    assert load_settings({}).port == 8765


def test_maps_are_json_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_LAUNCH_CONCURRENCY_BY_KIND", '{"http": 50}')
    settings = load_settings({})
    assert (settings.concurrency_of("http", 1), settings.concurrency_of("python", 32)) == (50, 32)


def test_commands_come_from_tables_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "other.toml"
    path.write_text('[commands.backup]\nargv = ["pg_dump", "-Fc"]\nallow_arguments = true\n')
    command = load_settings({}, file=path).commands["backup"]
    assert (command.argv, command.allow_arguments) == (("pg_dump", "-Fc"), True)


@pytest.mark.parametrize(
    ("flags", "path"),
    [
        ({"port": 70_000}, "port"),
        ({"tick_ms": 0}, "tick_ms"),
        ({"lease_seconds": 31}, "lease_seconds"),
        ({"log_format": "xml"}, "log_format"),
        ({"no_such_knob": 1}, "no_such_knob"),
        ({"commands": {"x": {"argv": []}}}, "commands.x.argv"),
        ({"trusted_proxies": ["10.0.0.1/8"]}, "trusted_proxies.0"),
        ({"trusted_proxies": ["proxy.internal"]}, "trusted_proxies.0"),
    ],
    ids=lambda each: str(each) if isinstance(each, str) else "",
)
def test_a_bad_value_is_refused_by_its_name(flags: dict[str, object], path: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        load_settings(flags)
    assert list(refused.value.errors) == [path]


def test_a_bad_value_in_the_environment_is_refused_by_the_name_of_its_knob(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_PORT", "eighty")
    monkeypatch.setenv("TICK_MS", "soon")
    with pytest.raises(InvalidDefinition) as refused:
        load_settings({})
    assert set(refused.value.errors) == {"port", "tick_ms"}


def test_a_map_that_is_no_json_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_COMMANDS", "{oops")
    with pytest.raises(InvalidDefinition):
        load_settings({})


@pytest.mark.parametrize("text", ["port = ", "port = 1\nport = 2"], ids=["half a line", "twice"])
def test_a_file_that_is_no_toml_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "horarium.toml").write_text(text)
    with pytest.raises(InvalidDefinition, match=r"horarium\.toml"):
        load_settings({})


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InvalidDefinition, match="does not exist"):
        load_settings({}, file=tmp_path / "none.toml")


def test_settings_made_by_hand_read_nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HORARIUM_PORT", "2")
    settings = Settings(host="::1")
    assert settings.port == 8765
    assert (origins(settings)["host"], origins(settings)["port"]) == ("flag", "default")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        Settings().port = 1


def test_secrets_do_not_show() -> None:
    assert "hunter2" not in repr(Settings(token="hunter2", webhook_secrets={"a": "hunter2"}))


def test_every_knob_has_a_description_that_is_a_sentence() -> None:
    for name, field in Settings.model_fields.items():
        assert field.description, name
        assert field.description.endswith("."), name


def test_every_knob_that_counts_something_names_its_unit() -> None:
    for name, field in Settings.model_fields.items():
        for unit in ("milliseconds", "seconds", "days", "hours", "bytes"):
            suffix = "_ms" if unit == "milliseconds" else f"_{unit}"
            if name.endswith(suffix):
                assert re.search(rf"\b{unit}\b", str(field.description).lower()), name


def test_what_up_opens_by_itself_is_told_apart_from_what_was_said() -> None:
    chosen = as_up_takes_them(load_settings({}))
    assert (chosen.allow_loopback_targets, origins(chosen)["allow_loopback_targets"]) == (True, "up")
    said = as_up_takes_them(load_settings({"allow_loopback_targets": False}))
    assert (said.allow_loopback_targets, origins(said)["allow_loopback_targets"]) == (False, "flag")
    proxied = as_up_takes_them(load_settings({"behind_proxy": True}))
    assert (proxied.allow_loopback_targets, origins(proxied)["allow_loopback_targets"]) == (False, "default")


def test_the_runs_of_a_worker_that_died_are_taken_over_within_half_a_minute() -> None:
    """At worst its lease was renewed just before, the janitor has just looked, and the next claim waits for a tick."""
    usual = Settings()
    assert usual.lease_seconds + usual.janitor_seconds + usual.tick_ms / 1_000 <= 30


@pytest.mark.parametrize("base", ["jobs", "/jobs?x", "/a//b", "/..", "/a/../b", "/\u00fc", "/" + "x" * 300])
def test_a_base_path_is_a_plain_path(base: str) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        load_settings({"base_path": base})
    assert list(refused.value.errors) == ["base_path"]


def test_a_slash_at_the_end_of_a_base_path_says_nothing() -> None:
    assert load_settings({"base_path": "/tools/jobs/"}).base_path == "/tools/jobs"
    assert load_settings({"base_path": "/"}).own_url == "http://127.0.0.1:8765"
    assert load_settings({"base_path": "/jobs"}).own_url == "http://127.0.0.1:8765/jobs"


def test_a_variable_that_nothing_reads_is_named_with_the_nearest_that_is() -> None:
    environment = {
        "HORARIUM_DATABSE": "postgresql://u:secret@h/d",
        "HORARIUM_QQQQ": "1",
        "HORARIUM_TICK_MS": "500",
        "HORARIUM_SERVER": "http://h",
        "HORARIUM_SERVICE_HOST": "10.0.0.1",
        "HORARIUM_PORT_8765_TCP_ADDR": "10.0.0.1",
        "HORARIUM_RUN_ID": "r",
        "TICK_MS": "1",
    }
    assert unknown_variables(environment) == [
        "HORARIUM_DATABSE is not a setting; did you mean HORARIUM_DATABASE?",
        "HORARIUM_QQQQ is not a setting",
    ]


def test_every_variable_that_the_program_reads_is_known() -> None:
    sources = (path.read_text() for path in Path(horarium.__file__).parent.rglob("*.py"))
    named = {name for text in sources for name in re.findall(r"\bHORARIUM_[A-Z_]*[A-Z]\b", text)}
    assert "HORARIUM_TOKEN" in named
    assert unknown_variables(dict.fromkeys(named - {"HORARIUM_PORT_8765_TCP"}, "")) == []
