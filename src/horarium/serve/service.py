"""The composition of a service from the settings: database, launchers, engine and API.

Nothing is global: two services can run in one process. The observer logs and counts what the engine has committed.
"""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from typing import Any, TextIO

from fastapi import FastAPI

from horarium.core.document.document import from_canonical
from horarium.core.document.reader import PROMPT
from horarium.core.document.states import RunState
from horarium.core.lifecycle.outcome import End, ReportTokens, RetryLater
from horarium.core.policy.limits import Quota, Quotas, RunLimits
from horarium.core.policy.limits import parse_amount as amount
from horarium.engine.capacity import Limits
from horarium.engine.claimer import DispatcherOptions
from horarium.engine.deliverer import Deliverer, DelivererOptions
from horarium.engine.engine import Engine, EngineOptions
from horarium.engine.janitor import JanitorResult
from horarium.engine.partitions import UpkeepResult
from horarium.engine.retention import RetentionOptions
from horarium.engine.ticker import Tick, TickerOptions
from horarium.features.bundles.registrations import Registered, namespaces_of_app, register
from horarium.features.bundles.values import fingerprint
from horarium.features.resources import Damages, Resources
from horarium.features.runs.definition_rows import Definitions
from horarium.features.runs.transition_rows import SettledRun, fields_of_run
from horarium.features.runs.work_rows import RunWork
from horarium.features.tenants import rows as tenant_rows
from horarium.features.tenants.rows import QuotaBook
from horarium.instant import SECOND, Instant
from horarium.launchers.a2a.client import A2AClient
from horarium.launchers.a2a.connections import Cards
from horarium.launchers.a2a.launcher import A2ALauncher
from horarium.launchers.registry import Registry
from horarium.launchers.signals import Signals
from horarium.launchers.ssrf import AddressGuard
from horarium.launchers.webhook import WebhookSender
from horarium.platform.caller import internal
from horarium.platform.clock import Clock, SystemClock
from horarium.platform.database import Database, open_database
from horarium.platform.database.errors import UniqueConflict
from horarium.platform.database.installation import Sealer
from horarium.platform.database.processes import About
from horarium.platform.database.schema import DEFAULT_NAMESPACE, Fit, check_schema, migrate, newest_revision
from horarium.platform.database.wrapper import SharedClock
from horarium.platform.errors import OperationError, QuotaExceeded
from horarium.platform.ids import id_text, new_id
from horarium.platform.settings import Settings, origins, unknown_variables
from horarium.platform.telemetry.telemetry import Telemetry, make_logger
from horarium.serve.api import ApiOptions, make_api
from horarium.serve.data_dir import AdminTokenFile, InstallationKey, installation_key, make_data_dir
from horarium.serve.launchers import Application, Bare, address_policy, load_application, load_provider, make_registry
from horarium.serve.preparers import preparers_with

_GOOD = frozenset({RunState.SUCCEEDED, RunState.CANCELLED, RunState.SKIPPED})
_SHOWN_ERROR = 200


class TelemetryObserver:
    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._log = telemetry.log.bind()  # once: a logger that is not bound binds itself anew for every line

    def ticked(self, tick: Tick, now: Instant) -> None:
        self._telemetry.tick(tick, now)

    def settled(self, runs: Sequence[SettledRun], now: Instant) -> None:
        for run, change, schedule_id in runs:
            self._telemetry.launched(fired_at=run.created_at, started_at=run.started_at or now)
            if isinstance(change, End):
                self._telemetry.ended(change.state)
                self._tell_end(run, change, schedule_id, now)
            elif isinstance(change, RetryLater):
                self._log.info(
                    "run_retry_scheduled",
                    **fields_of_run(run.run_id, run.namespace, schedule_id),
                    in_seconds=round((change.ready_at - now) / SECOND, 1),
                    error=_in_short(change.error),
                )

    def tidied(self, tidied: JanitorResult, now: Instant) -> None:
        if tidied.lost_leases:
            self._telemetry.lease_expired(tidied.lost_leases)
        for state in tidied.ended:
            self._telemetry.ended(state)

    def upkept(self, upkept: UpkeepResult, now: Instant) -> None:
        self._telemetry.partitions_changed(made=upkept.made, dropped=upkept.dropped)

    def _tell_end(self, run: RunWork, end: End, schedule_id: str | None, now: Instant) -> None:
        tell = self._log.debug if end.state in _GOOD else self._log.warning
        took = round((now - (run.started_at or now)) / SECOND, 3)
        about = fields_of_run(run.run_id, run.namespace, schedule_id)
        tell(f"run_{end.state.value}", **about, took_seconds=took, error=_in_short(end.error))


def _in_short(error: str | None) -> str | None:
    """Shorten an error; of a traceback the last line has the cause."""
    return None if not error else error.strip().splitlines()[-1][:_SHOWN_ERROR]


_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class Service:
    """Every part of a service, by name."""

    settings: Settings
    clock: SharedClock
    application: Application
    database: Database
    telemetry: Telemetry
    resources: Resources
    registry: Registry
    engine: Engine
    api: FastAPI
    secret: str = field(repr=False)  # opens the API to code in this process, and to nobody else


@contextmanager
def open_service(
    settings: Settings,
    *,
    clock: Clock | None = None,
    application: Application | None = None,
    registry: Registry | None = None,
    migrates: bool = True,
    log_to: TextIO | None = None,
    key: bytes | None = None,
    durable: bool = True,
) -> Iterator[Service]:
    """Closed again when the block is left. Without `migrates` the tables must be there, and nothing is made.

    `key` signs what this service alone will read; without it the installation's own does. What is not `durable`
    need not outlive this machine.
    """
    if migrates:
        make_data_dir(settings)
    database = open_database(
        settings.database_url,
        pool_size=settings.pool_size,
        statement_timeout_seconds=settings.statement_timeout_seconds,
        durable=durable,
    )
    try:
        clock = clock or SystemClock()
        if migrates:
            migrate(database, clock)
            _make_namespace(database, settings.default_namespace, clock)
        tables = check_schema(database)
        own = installation_key(settings, database) if key is None else InstallationKey(key)
        service = _compose(settings, clock, database, _application(settings, application), registry, log_to, own)
        for sentence in unknown_variables(os.environ):
            service.telemetry.log.warning("environment_variable_unknown", problem=sentence)
        if tables.fit is not Fit.EXACT:
            service.telemetry.log.warning("schema_version_mismatch", found=tables.sentence)
        try:
            with service.application.inside(service):
                yield service
        finally:
            service.api.state.refusals.close()
            service.engine.close()
            if service.resources.signals is not None:
                service.resources.signals.close()
    finally:
        database.close()


def _make_namespace(database: Database, name: str, clock: Clock) -> None:
    """The one that requests without a namespace speak for; several processes may start at once."""
    if database.read(lambda connection: tenant_rows.find_namespace(connection, name)) is None:
        with suppress(UniqueConflict):
            database.write(lambda connection: tenant_rows.insert_namespace(connection, name, "", now=clock.now()))


def _application(settings: Settings, given: Application | None) -> Application:
    if given is not None:
        return given
    return Bare() if settings.app is None else load_application(settings.app)


def _compose(
    settings: Settings,
    clock: Clock,
    database: Database,
    application: Application,
    registry: Registry | None,
    log_to: TextIO | None,
    key: InstallationKey,
) -> Service:
    logger = make_logger(level=settings.log_level, format=settings.log_format, stream=log_to, clock=clock)
    telemetry = Telemetry(clock, logger=logger, decisions_per_second=settings.log_decisions_per_second)
    database.watch_writes(telemetry.metrics.write_seconds.observe)
    shared = SharedClock(clock, database)
    tokens = ReportTokens(key.signing, settings.own_url, key.previous)
    registry = registry or _registry(settings, shared, application, telemetry)
    signals, sealer = _signals(settings, application), Sealer(key.signing, key.fingerprint)
    guard = AddressGuard(address_policy(settings))
    damages = Damages()
    sender = WebhookSender(shared, guard, timeout_seconds=settings.subscription_timeout_seconds)
    quotas = QuotaBook(default_quotas(settings))
    resources = Resources(
        database,
        shared,
        settings,
        telemetry,
        tokens,
        sealer=sealer,
        sender=sender,
        damages=damages,
        cards=_cards(registry, shared, guard),
        registry=registry,
        signals=signals,
        admin_file=AdminTokenFile(settings) if settings.token is None else None,
        quotas=quotas,
        guard=AddressGuard(address_policy(settings)),  # its own: slow names of a write hold up no webhook
        definitions=Definitions(from_canonical, run_caps(settings)),
    )
    pauses = DelivererOptions(pauses=settings.subscription_retry_seconds)
    engine = Engine(
        database,
        shared,
        registry,
        owner=_owner(),
        about=About(socket.gethostname(), os.getpid(), version=version("horarium"), schema=newest_revision()),
        observer=TelemetryObserver(telemetry),
        preparers=preparers_with(sealer),
        options=engine_options(settings, registry),
        log=telemetry.log,
        tokens=tokens,
        signals=signals,
        sealer=sealer,
        quotas=quotas,
        deliverer=Deliverer(database, shared, sender, sealer, pauses, telemetry.log, partial(damages.tell, telemetry)),
    )
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    return Service(
        settings,
        shared,
        application,
        database,
        telemetry,
        resources,
        registry,
        engine,
        make_api(ApiOptions(resources, own_secret=secret)),
        secret,
    )


def _cards(registry: Registry, clock: Clock, guard: AddressGuard) -> Cards:
    """Those that the launcher of prompts has: after a check, it sends by what the check has found."""
    launcher = registry.get(PROMPT.name) if PROMPT.name in registry else None
    return launcher.cards if isinstance(launcher, A2ALauncher) else Cards(A2AClient(clock, guard), clock)


def _registry(settings: Settings, clock: Clock, application: Application, telemetry: Telemetry) -> Registry:
    registry, problems = make_registry(settings, clock, application.tasks)
    for problem in problems:
        telemetry.log.warning("launcher_load_failed", problem=problem)
    return registry


def _signals(settings: Settings, application: Application) -> Signals | None:
    provider = application.signal_provider
    if provider is None and settings.signal_provider is not None:
        provider = load_provider(settings.signal_provider)
    if provider is None:
        return None
    return Signals(
        provider, timeout_seconds=settings.signal_timeout_seconds, cache_seconds=settings.signal_cache_seconds
    )


def default_quotas(settings: Settings) -> Quotas:
    """The settings have a knob for each, of the same name."""
    return Quotas(**{quota.value: getattr(settings, f"quota_{quota.value}") for quota in Quota})


def run_caps(settings: Settings) -> RunLimits | None:
    """Limits for every run, whatever its definition says; None = there are none."""
    given = RunLimits(
        settings.run_runtime_seconds_cap,
        None if settings.run_cost_cap is None else amount(settings.run_cost_cap, "run_cost_cap"),
        settings.run_tokens_cap,
        settings.run_tool_calls_cap,
    )
    return None if given == RunLimits() else given


def engine_options(settings: Settings, registry: Registry) -> EngineOptions:
    return EngineOptions(
        ticker=TickerOptions(settings.tick_batch, settings.max_catchup_per_tick),
        dispatcher=DispatcherOptions(
            limits=Limits(
                settings.in_flight,
                settings.namespace_in_flight,
                settings.in_flight_per_target,
                _places(settings, registry),
                registry.places_at_target(),
            ),
            lease_seconds=settings.lease_seconds,
            run_log_bytes=settings.run_log_bytes,
            caps=run_caps(settings),
        ),
        longest_sleep_seconds=settings.tick_ms / 1_000,
        janitor_seconds=settings.janitor_seconds,
        stop_grace_seconds=settings.shutdown_seconds,
        retention=RetentionOptions(
            settings.keep_history_days,
            settings.keep_runs_days,
            settings.idempotency_hours,
            settings.keep_audit_days,
            runs_by_default=origins(settings)["keep_runs_days"] == "default",
        ),
        archive_after_days=settings.archive_runs_days,
        failing_after=settings.failing_after,
    )


def _places(settings: Settings, registry: Registry) -> dict[str, int]:
    """Kinds that have a limit of their own: those that the operator limits, and those that work in this process."""
    usual = {kind: registry.get(kind).concurrency for kind in registry}
    places = {kind: settings.concurrency_of(kind, most) for kind, most in usual.items() if most is not None}
    return {**places, **settings.launch_concurrency_by_kind}


def put_templates(service: Service) -> None:
    """The schedules and workflows that the application declares; what has not changed is left alone, as is a pause.

    What a release of a named application declares no more is paused by the first process of that release.
    """
    application = service.application
    app, release = getattr(application, "name", None), getattr(application, "release", None)
    by_namespace: dict[str, dict[str, Mapping[str, Any]]] = {}
    for document in application.templates:
        namespace = document.get("namespace", DEFAULT_NAMESPACE)
        by_namespace.setdefault(namespace, {})[document["schedule_id"]] = document
    workflows: dict[str, dict[str, Mapping[str, Any]]] = {}
    for (namespace, workflow_id), document in getattr(application, "workflows", {}).items():
        workflows.setdefault(namespace, {})[workflow_id] = document
    known = [] if app is None else service.database.read(lambda connection: namespaces_of_app(connection, app))
    for namespace in dict.fromkeys([*by_namespace, *workflows, *known]):
        caller, templates = internal("application", namespace), by_namespace.get(namespace, {})
        own = workflows.get(namespace, {})
        known_as = release or fingerprint([*templates.values(), *({"workflow": each} for each in own.items())])
        try:
            _tell(service, namespace, register(service.resources, caller, app, known_as, templates, own))
        except OperationError as refused:
            if refused.reason != QuotaExceeded.reason:
                raise
            # A tenant that has used up what it may have must not keep the process from starting for the others.
            service.telemetry.log.error("declaration_rejected", namespace=namespace, why=refused.message)


def _tell(service: Service, namespace: str, done: Registered) -> None:
    log = service.telemetry.log.bind(namespace=namespace)
    for name in done.kept:
        log.warning("declaration_rejected", schedule_id=name, why="A schedule with this ID was created manually")
    for name in done.foreign:
        log.warning("declaration_rejected", schedule_id=name, why="A schedule with this ID belongs to another bundle")
    for name in done.foreign_workflows:
        log.warning("declaration_rejected", workflow=name, why="A workflow with this ID has another owner")
    for name in done.paused:
        log.warning("schedule_paused", schedule_id=name, why="The application no longer declares it")
    for name in done.resumed:
        log.info("schedule_resumed", schedule_id=name, why="The application declares it again")


def _owner() -> str:
    """A name that no other process has, and that tells a person where to look."""
    return f"{socket.gethostname()}:{os.getpid()}:{id_text(new_id())[-6:]}"
