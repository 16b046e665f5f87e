"""A new key for an installation: everything opens with it, nothing with the old one, and no crash loses either."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from horarium.core.lifecycle.outcome import ReportTokens
from horarium.features.resources import Resources
from horarium.features.secrets import rows as secret_rows
from horarium.features.secrets import service as secret_service
from horarium.features.webhooks import service as webhook_service
from horarium.platform.caller import internal
from horarium.platform.clock import SystemClock
from horarium.platform.database import Database, open_database, processes
from horarium.platform.database.installation import CannotUnseal, KeyReplaced, Sealer
from horarium.platform.database.tables import audit, metadata
from horarium.platform.ids import new_id
from horarium.platform.settings import Settings
from horarium.platform.telemetry.telemetry import Telemetry
from horarium.serve import maintenance as rekeying
from horarium.serve.data_dir import WrongSecretKey, installation_key
from horarium.serve.maintenance import RekeyRefused, rekey

CALLER = internal("testing")
RUN = new_id()
SIGNS = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


class Crash(BaseException):
    """The process is gone: nothing that handles errors runs."""


@contextmanager
def started(settings: Settings) -> Iterator[Resources]:
    """A process that has come up as far as to its key."""
    database, clock = open_database(settings.database_url), SystemClock()
    try:
        key = installation_key(settings, database)
        tokens, sealer = ReportTokens(key.signing, None, key.previous), Sealer(key.signing, key.fingerprint)
        yield Resources(database, clock, settings, Telemetry(clock), tokens, sealer=sealer)
    finally:
        database.close()


@pytest.fixture
def settings(database_url: str, tmp_path: Path) -> Settings:
    """Of an installation with two secrets and a subscription."""
    made = Settings(database=database_url, data_dir=tmp_path / "data")
    made.data_dir.mkdir()
    with started(made) as process:
        for name in ("one", "two"):
            secret_service.put(process, CALLER, name, f"the value of {name}")
        webhook_service.create(
            process, CALLER, kinds=["run_finished"], url="https://a.example/", secret=SIGNS, name="told"
        )
    return made


def opened(resources: Resources) -> list[str]:
    """What all sealed rows hold."""
    assert resources.sealer is not None
    found = resources.database.read(lambda c: secret_rows.find_all(c, "default", ["one", "two"]))
    _, message = webhook_service.test_message(resources, CALLER, "told")
    return [*sorted(secret_rows.opened(resources.sealer, found).values()), message.secret]


ALL = ["the value of one", "the value of two", SIGNS]


def files(settings: Settings) -> dict[str, str]:
    return {path.name: path.read_text().strip() for path in settings.data_dir.glob("secret.key*")}


def test_everything_opens_with_the_new_key_and_nothing_with_the_old_one(settings: Settings) -> None:
    old = files(settings)["secret.key"]
    with started(settings) as process:
        sealed_before, token = process.sealer, process.tokens.make(RUN, 1)
    assert rekey(settings).resealed == secret_rows.Resealed(3, ())
    assert files(settings).keys() == {"secret.key", "secret.key.previous"}
    assert files(settings)["secret.key.previous"] == old != files(settings)["secret.key"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in settings.data_dir.glob("secret.key*")} == {0o600}
    with started(settings) as process:
        assert opened(process) == ALL
        assert "secret_key_replaced" in process.database.read(lambda c: set(c.scalars(sa.select(audit.c.act))))
        assert process.tokens.attempt_of(token, RUN) is None
        assert sealed_before is not None
        found = process.database.read(lambda c: secret_rows.find_all(c, "default", ["one"]))
        with pytest.raises(CannotUnseal):
            secret_rows.opened(sealed_before, found)
    with pytest.raises(WrongSecretKey), started(settings.model_copy(update={"secret_key": _secret(old)})):
        pass


def _secret(text: str) -> Any:
    return Settings(secret_key=text).secret_key


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_what_the_old_key_signed_is_recognised_where_the_operator_says_so(settings: Settings) -> None:
    with started(settings) as process:
        token = process.tokens.make(RUN, 1)
    rekey(settings)
    previous = _secret(files(settings)["secret.key.previous"])
    with started(settings.model_copy(update={"secret_key_previous": previous})) as process:
        tokens = process.tokens
        assert (tokens.attempt_of(token, RUN), tokens.attempt_of(tokens.make(RUN, 2), RUN)) == (1, 2)
        assert tokens.make(RUN, 1) != token
        assert opened(process) == ALL


def test_a_crash_in_the_middle_leaves_everything_as_it_was(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    old = files(settings)["secret.key"]
    write = secret_rows._write

    def crashing(connection: Any, sealed: secret_rows.SealedColumn, changes: Any) -> None:
        write(connection, sealed, changes)
        if sealed.column == "secret":
            raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(secret_rows, "_write", crashing)
        with pytest.raises(Crash):
            rekey(settings)
    assert files(settings)["secret.key"] == old
    with started(settings) as process:
        assert opened(process) == ALL
    following = files(settings)["secret.key.new"]
    rekey(settings)
    assert files(settings) == {"secret.key": following, "secret.key.previous": old}
    with started(settings) as process:
        assert opened(process) == ALL


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_crash_between_database_and_files_is_mended_by_the_next_start(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = files(settings)["secret.key"]

    def crash(*_: Any) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(rekeying, "put_in_place", crash)
        with pytest.raises(Crash):
            rekey(settings)
    following = files(settings)["secret.key.new"]
    assert files(settings)["secret.key"] == old != following
    for _ in range(2):
        with started(settings) as process:
            assert opened(process) == ALL
        assert files(settings) == {"secret.key": following, "secret.key.previous": old}


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_process_with_the_old_key_writes_nothing_that_nobody_could_open(settings: Settings) -> None:
    with started(settings) as process:
        rekey(settings)
        for write in (
            lambda: secret_service.put(process, CALLER, "three", "v"),
            lambda: webhook_service.update(process, CALLER, "told", {"secret": SIGNS}),
        ):
            with pytest.raises(KeyReplaced):
                write()
        webhook_service.update(process, CALLER, "told", {"url": "https://b.example/"})
    with started(settings) as process:
        assert opened(process) == ALL
        assert [each.name for each in secret_service.list_secrets(process, CALLER).secrets] == ["one", "two"]


@pytest.mark.parametrize("dialect", ["postgresql"])
def test_what_is_being_sealed_when_the_key_changes_is_sealed_anew(
    settings: Settings, open_another: Callable[[], Database]
) -> None:
    """The writer has looked at the key and not committed yet; without a lock its row would be lost for ever."""
    waits = "SELECT count(*) FROM pg_locks WHERE NOT granted"
    other, done = open_another(), []
    with started(settings) as process:
        sealer = process.sealer
        assert isinstance(sealer, Sealer)
        changing = threading.Thread(target=lambda: done.append(rekey(settings)))

        def slowly(connection: Any) -> None:
            secret_rows.put(connection, sealer, "default", "late", "the value of late", None, False, 1)
            changing.start()
            while changing.is_alive() and not other.read(lambda c: c.exec_driver_sql(waits).scalar_one()):
                time.sleep(0.01)

        process.database.write(slowly)
        changing.join(60)
    assert [each.resealed.count for each in done] == [4]
    with started(settings) as process:
        assert process.sealer is not None
        found = process.database.read(lambda c: secret_rows.find_all(c, "default", ["late"]))
        assert secret_rows.opened(process.sealer, found) == {"late": "the value of late"}


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_row_that_did_not_open_before_is_named_and_left_alone(settings: Settings) -> None:
    with started(settings) as process:
        process.database.write(lambda c: c.exec_driver_sql("UPDATE secrets SET sealed = 'x' WHERE name = 'two'"))
    done = rekey(settings).resealed
    assert (done.count, done.unreadable) == (2, (secret_rows.UnreadableSecret("secrets", "default", "two"),))


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_key_from_the_settings_needs_a_file_for_the_next_one(settings: Settings, tmp_path: Path) -> None:
    text = files(settings)["secret.key"]
    (settings.data_dir / "secret.key").unlink()
    configured = settings.model_copy(update={"secret_key": _secret(text)})
    with pytest.raises(RekeyRefused, match="--new-key-file"):
        rekey(configured)
    done = rekey(configured, tmp_path / "next")
    assert (done.new_key, done.old_key, files(settings)) == (tmp_path / "next", None, {})
    assert stat.S_IMODE(done.new_key.stat().st_mode) == 0o600
    following = settings.model_copy(update={"secret_key": _secret(done.new_key.read_text().strip())})
    with started(following) as process:
        assert opened(process) == ALL


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_what_cannot_begin_changes_nothing(settings: Settings, database: Database, tmp_path: Path) -> None:
    before = files(settings)
    bad = ((b"short", "one line"), (b"\xff" * 40, "not a text file"), (b"x" * 5_000, "one line"), (None, "current key"))
    for raw, why in bad:
        given = tmp_path / "given"
        given.write_bytes(before["secret.key"].encode() if raw is None else raw)
        with pytest.raises(RekeyRefused, match=why):
            rekey(settings, given)
    assert files(settings) == before
    (settings.data_dir / "secret.key.new").write_text("another rekey is under way, with this key\n")
    with pytest.raises(RekeyRefused, match="already contains a key that another rekey created"):
        rekey(settings, tmp_path / "other")
    (settings.data_dir / "secret.key.new").unlink()
    assert files(settings) == before
    clock = SystemClock()
    database.write(lambda c: processes.beat_lease(c, "process:host:1:x", "host:1:x", clock.now(), 5, {}))
    with pytest.raises(RekeyRefused, match="host:1:x uses this database"):
        rekey(settings)
    assert files(settings) == before


@pytest.mark.parametrize("dialect", ["sqlite"])
def test_a_database_without_a_key_has_none_to_replace(database_url: str, tmp_path: Path) -> None:
    with pytest.raises(RekeyRefused, match="no key yet"):
        rekey(Settings(database=database_url, data_dir=tmp_path))
    assert not list(tmp_path.glob("secret.key*"))


def test_no_sealed_column_is_forgotten() -> None:
    named = {(table.name, column.name) for table in metadata.sorted_tables for column in table.columns
             if column.name in ("sealed", "secret")}  # fmt: skip
    assert {(each.table.name, each.column) for each in secret_rows.SEALED} == named
