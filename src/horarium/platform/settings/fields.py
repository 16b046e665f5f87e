"""All settings with their units and defaults: one frozen `Settings`, which by itself reads nothing from outside."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, Field, PrivateAttr, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from horarium.audience import NAMESPACE, Audience, parse_audience
from horarium.platform.settings.values import (
    BasePath,
    CeleryConnection,
    CertificateHolder,
    Command,
    Namespaces,
    NetworkText,
    WebhookSecret,
)

PREFIX = "HORARIUM_"
DATABASE_FILE = "horarium.db"
_MOST = 10**15
_PROXY_DRAIN_SECONDS = 5

Origin: TypeAlias = Literal["flag", "environment", "file", "default", "up"]
"""`up` has chosen it by itself: the address on which it listens is reached from one machine only."""


def _bare(name: str) -> AliasChoices:
    """The name alone is read too: that is how these knobs are spelled in other schedulers."""
    return AliasChoices(f"{PREFIX}{name}", name)


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True, extra="forbid",
                                      validate_by_name=True, validate_by_alias=True)  # fmt: skip

    # ── Storage and address ──────────────────────────────────────────────────────────────────────────
    data_dir: Path = Field(Path(".horarium"), description="Directory of the SQLite database and the admin token.")
    database: str | None = Field(
        None, description="Database URL: postgresql://… or sqlite:///file. Unset: horarium.db in the data directory."
    )
    default_namespace: str = Field(
        "default", pattern=NAMESPACE,
        description="Namespace of requests that name none and use a token for all namespaces. Created at first "
        "start.",
    )  # fmt: skip
    pool_size: int = Field(
        10, ge=1, le=500,
        description="Maximum database connections of a process. PostgreSQL uses two more (wake-ups, heartbeat), "
        "SQLite one more (writer).",
    )  # fmt: skip
    statement_timeout_seconds: float | None = Field(
        30,
        ge=0,
        description="Maximum seconds per statement on PostgreSQL; 0 = unlimited. Does not apply to migrations.",
    )
    host: str = Field("127.0.0.1", description="Address on which the API listens.")
    port: int = Field(8765, ge=0, le=65535, description="Port on which the API listens; 0 = any free port.")
    app: str | None = Field(None, description="Application to load, as module:attribute.")

    # ── Scheduler ────────────────────────────────────────────────────────────────────────────────────
    tick_ms: int = Field(
        1_000, ge=10, le=60_000, validation_alias=_bare("TICK_MS"),
        description="Maximum milliseconds between two checks for due schedules.",
    )  # fmt: skip
    lookahead_ms: int = Field(
        60_000, ge=0, le=86_400_000, validation_alias=_bare("LOOKAHEAD_MS"),
        description="Milliseconds. Accepted for compatibility and ignored: the scheduler sleeps until the next "
        "due time.",
    )  # fmt: skip
    tick_batch: int = Field(500, ge=1, le=10_000, description="Maximum schedules decided in one transaction.")
    max_catchup_per_tick: int = Field(
        100, ge=1, le=10_000, validation_alias=_bare("MAX_CATCHUP_PER_TICK"),
        description="Maximum decisions about one schedule in one transaction. Further decisions follow in the "
        "next transaction.",
    )  # fmt: skip

    # ── Defaults of schedules ────────────────────────────────────────────────────────────────────────
    default_overlap_policy: str = Field(
        "skip",
        validation_alias=_bare("DEFAULT_OVERLAP_POLICY"),
        description="Overlap policy of schedules that set none.",
    )
    default_catchup_policy: str = Field(
        "fire_once",
        validation_alias=_bare("DEFAULT_CATCHUP_POLICY"),
        description="Catch-up policy of schedules that set none.",
    )
    default_jitter_ms: int = Field(
        0, ge=0, le=86_400_000, validation_alias=_bare("DEFAULT_JITTER_MS"),
        description="Maximum random delay of each occurrence, in milliseconds, for schedules that set none.",
    )  # fmt: skip
    default_max_catchup: int = Field(
        100, ge=0, description="Maximum missed occurrences that fire_all and spread run later."
    )
    misfire_grace_seconds: int = Field(
        60, ge=0, description="Seconds that an occurrence may be late before it counts as missed."
    )

    # ── Dispatch ─────────────────────────────────────────────────────────────────────────────────────
    lease_seconds: int = Field(20, ge=2, le=30, description="Seconds that a worker keeps a run without a heartbeat.")
    in_flight: int = Field(500, ge=1, le=100_000, description="Maximum concurrent launches of one process.")
    in_flight_per_namespace: int | None = Field(
        None,
        ge=1,
        le=100_000,
        description="Maximum concurrent launches of one namespace in one process. Unset: half of in_flight.",
    )
    in_flight_per_target: int = Field(
        32,
        ge=1,
        le=100_000,
        description="Maximum concurrent launches to one target in one process. A target is an origin (scheme, "
        "host, port), an agent or a queue.",
    )
    launch_concurrency: int | None = Field(
        None, ge=1, le=10_000,
        description="Maximum concurrent launches of each kind that runs in this process. Unset: 32 python, 10 "
        "command, 10 prompt.",
    )  # fmt: skip
    launch_concurrency_by_kind: Mapping[str, int] = Field(
        default_factory=dict,
        description='Maximum concurrent launches by kind, such as {"http": 50}. Overrides launch_concurrency.',
    )
    run_log_bytes: int = Field(
        65_536, ge=0, le=1_048_576,
        description="Bytes of output and logs kept for each run, counted from the end; 0 = keep none.",
    )  # fmt: skip
    shutdown_seconds: float = Field(
        20,
        ge=0,
        description="Seconds that a stopping process waits for launches and open requests to end.",
    )
    drain_seconds: float | None = Field(
        None, ge=0, le=3_600,
        description="Seconds during which a stopping server reports itself as not ready but still accepts "
        "requests. Unset: 5 with behind_proxy, else 0.",
    )  # fmt: skip
    allow_loopback_targets: bool = Field(
        False,
        description="Let schedules call this machine. `up` on a loopback address allows it unless this setting is set.",
    )
    check_addresses: bool = Field(
        True,
        description="Warn about private and unknown host names when a definition is saved. When off, only numeric"
        " addresses are checked.",
    )
    allow_private_targets: bool = Field(False, description="Let schedules call private networks.")
    commands: Mapping[str, Command] = Field(
        default_factory=dict,
        description="Programs that schedules may run, by name. Each is available to the default namespace unless "
        "it lists others.",
    )
    webhook_secrets: Mapping[str, SecretStr | WebhookSecret] = Field(
        default_factory=dict,
        description="Standard Webhooks secrets (whsec_…) by name. Separate several secrets with spaces. Use "
        "{secret, namespaces} for namespaces other than the default one.",
    )
    celery_connections: Mapping[str, CeleryConnection] = Field(
        default_factory=dict,
        description="Brokers to which celery actions publish, by name: {broker, result, namespaces}. An action "
        "without a connection uses `default`.",
    )
    kind_namespaces: Mapping[str, Namespaces] = Field(
        default_factory=dict,
        description='Namespaces that may use a kind of action, by kind, such as {"echo": ["*"]}. Unset: kinds of '
        "other packages only the default namespace, built-in kinds all.",
    )

    # ── Signals of conditions ────────────────────────────────────────────────────────────────────────
    signal_provider: str | None = Field(
        None,
        description="Function that returns signal_rpc_result for a namespace and a schedule id, as module:function.",
    )
    signal_timeout_seconds: float = Field(
        5,
        gt=0,
        le=60,
        description="Seconds that a decision waits for the signal. After that, the decision is made without it.",
    )
    signal_cache_seconds: float = Field(10, ge=0, le=86_400, description="Seconds that a signal is cached.")
    # ── Webhooks ─────────────────────────────────────────────────────────────────────────────────────
    subscription_retry_seconds: tuple[Annotated[float, Field(ge=0, le=86_400)], ...] = Field(
        (5, 30, 120, 600, 1_800, 3_600), max_length=20,
        description="Seconds to wait after each failed delivery. When the list ends, the delivery becomes a dead "
        "letter.",
    )  # fmt: skip
    subscription_timeout_seconds: float = Field(
        10, gt=0, le=30, description="Seconds within which a receiver must respond."
    )
    subscriptions_per_namespace: int = Field(50, ge=0, le=10_000, description="Maximum subscriptions of a namespace.")

    # ── Secrets ──────────────────────────────────────────────────────────────────────────────────────
    secrets_per_namespace: int = Field(1_000, ge=0, le=100_000, description="Maximum secrets of a namespace.")

    # ── Default namespace quotas ─────────────────────────────────────────────────────────────────────
    quota_schedules: int = Field(
        250_000, ge=0, le=_MOST, description="Maximum schedules of a namespace, without deleted ones."
    )
    quota_runs_per_minute: int = Field(
        200_000, ge=0, le=_MOST, description="Maximum runs created in a namespace per calendar minute."
    )
    quota_open_runs: int = Field(200_000, ge=0, le=_MOST, description="Maximum unfinished runs of a namespace.")
    quota_bytes_stored: int = Field(
        50_000_000_000, ge=0, le=_MOST,
        description="Maximum estimated bytes of definitions, inputs, results and history of a namespace.",
    )  # fmt: skip
    quota_shortest_gap_seconds: int = Field(
        1, ge=1, le=_MOST, description="Minimum seconds between two occurrences of a schedule."
    )

    # ── Limits of each run ───────────────────────────────────────────────────────────────────────────
    run_runtime_seconds_cap: int | None = Field(
        None,
        ge=1,
        le=_MOST,
        description="Maximum seconds of a run, including all attempts and steps. Unset: unlimited.",
    )
    run_cost_cap: float | None = Field(
        None, ge=0, le=10**12, description="Maximum cost of a run and its steps, in credits. Unset: unlimited."
    )
    run_tokens_cap: int | None = Field(
        None, ge=0, le=_MOST, description="Maximum tokens that a run and its steps use. Unset: unlimited."
    )
    run_tool_calls_cap: int | None = Field(
        None, ge=0, le=_MOST, description="Maximum tool calls of a run and its steps. Unset: unlimited."
    )

    # ── Retention and cleanup ────────────────────────────────────────────────────────────────────────
    janitor_seconds: float = Field(5, gt=0, description="Seconds between two checks for expired leases and deadlines.")
    keep_history_days: int | None = Field(
        None,
        ge=1,
        description="Days to keep history. Unset: forever. PostgreSQL drops whole weeks, up to eight days later.",
    )
    keep_audit_days: int | None = Field(
        None,
        ge=1,
        description="Days to keep the audit log. Unset: forever. A checkpoint replaces deleted entries, so the "
        "hash chain stays verifiable.",
    )
    keep_runs_days: int | None = Field(
        90,
        ge=0,
        description="Days to keep finished runs and their events; 0 = forever. PostgreSQL drops whole weeks of "
        "the archive, some days later.",
    )
    archive_runs_days: int = Field(
        7,
        ge=0,
        description="Days after which PostgreSQL moves finished runs to the archive; 0 = never. Archived runs "
        "remain visible.",
    )
    idempotency_hours: int = Field(24, ge=1, description="Hours to keep the response to an Idempotency-Key.")

    # ── HTTP and authentication ──────────────────────────────────────────────────────────────────────
    public_url: str | None = Field(
        None, description="URL at which targets reach this service for reports. Unset: the address on which it listens."
    )
    base_path: BasePath = Field(
        "",
        description="URL path prefix of the service, such as /horarium. It works whether or not the proxy strips "
        "the prefix.",
    )
    session_hours: float = Field(12, gt=0, le=8_760, description="Hours until a browser session expires.")
    behind_proxy: bool = Field(
        False, description="The process receives requests through a reverse proxy that terminates TLS."
    )
    trusted_proxies: tuple[NetworkText, ...] = Field(
        ("127.0.0.1", "::1"), max_length=100,
        description="Addresses and networks of proxies whose X-Forwarded-For header is trusted. Requires "
        "behind_proxy.",
    )  # fmt: skip
    tls_cert: Path | None = Field(None, description="Server certificate (PEM). Reloaded when the file changes.")
    tls_key: Path | None = Field(
        None, description="Private key (PEM) of the certificate. Unset: it is in the certificate file."
    )
    tls_key_password: SecretStr | None = Field(None, description="Password of the private key, if it is encrypted.")
    tls_client_ca: Path | None = Field(
        None,
        description="CA certificates (PEM) for client certificates. When set, callers must present a client "
        "certificate.",
    )
    tls_client_optional: bool = Field(False, description="Accept callers without a client certificate.")
    tls_principals: Mapping[str, CertificateHolder] = Field(
        default_factory=dict, max_length=10_000,
        description="Principal, role and namespace for each name in a client certificate.",
    )  # fmt: skip
    secret_key: SecretStr | None = Field(
        None,
        description="Key that signs report tokens and sessions and encrypts secrets, the same for all processes. "
        "Unset: a key file is created.",
    )
    secret_key_previous: SecretStr | None = Field(
        None, description="Key before the last `rekey`. Still accepted for verification, never used for signing."
    )
    token: SecretStr | None = Field(None, description="Admin token. Unset: created at first start.")
    jwt_secret: SecretStr | None = Field(
        None, description="Shared secret of HMAC-signed JWTs (HS256, HS384, HS512); at least 32 bytes."
    )
    jwks_file: Path | None = Field(None, description="JWK set that verifies JWTs. Reloaded when the file changes.")
    jwt_key_file: Path | None = Field(None, description="Public key (PEM) that verifies JWTs (RS, PS, ES, EdDSA).")
    jwks_url: str | None = Field(
        None, description="https:// URL of the JWK set that verifies JWTs. Fetched again every ten minutes."
    )
    jwks_ca_file: Path | None = Field(
        None, description="CA certificates (PEM) for jwks_url. Unset: the system's CA certificates."
    )
    jwt_audience: str | None = Field(
        None, min_length=1, description="Required audience of a JWT. Must be set where JWTs are accepted."
    )
    jwt_issuer: str | None = Field(None, min_length=1, description="Required issuer of a JWT. Unset: any.")
    jwt_max_lifetime_seconds: int = Field(
        86_400, ge=60, le=315_360_000, description="Maximum lifetime of a JWT in seconds, from iat to exp."
    )
    jwt_everywhere: bool = Field(False, description="Let a JWT grant the admin role in all namespaces.")
    allowed_hosts: tuple[str, ...] = Field(
        (), max_length=100,
        description="Additional names accepted in the Host header. .example.com = all subdomains, * = any.",
    )  # fmt: skip
    body_limit_bytes: int = Field(2_097_152, ge=1_024, description="Maximum bytes of a request body.")
    rate_limit_per_second: float = Field(200, gt=0, description="Average requests per second of a token.")
    rate_limit_burst: int = Field(1_000, ge=1, description="Maximum burst of requests of a token.")
    requests_per_token: int | None = Field(
        None, ge=1, le=1_000,
        description="Maximum concurrent requests of a token in one process; further requests wait. Unset: half of"
        " pool_size.",
    )  # fmt: skip
    failed_logins_per_minute: int = Field(
        10, ge=1, le=1_000_000,
        description="Failed logins per minute per client address; beyond that 429. Valid tokens are not affected.",
    )  # fmt: skip
    streams_per_token: int = Field(
        20, ge=1, le=100_000, description="Maximum open event streams of a token in one process."
    )
    max_streams: int = Field(
        500,
        ge=2,
        le=100_000,
        description="Maximum open event streams of a process. One namespace may use half of them.",
    )
    header_timeout_seconds: float = Field(
        10, gt=0, le=600, description="Seconds within which a client must send the request headers."
    )
    body_timeout_seconds: float = Field(
        30,
        gt=0,
        le=3_600,
        description="Seconds within which a client must send a request body, or read the next part of a response.",
    )
    max_connections: int = Field(
        1_000, ge=1, le=100_000,
        description="Maximum HTTP connections of a process, and never more than half of its open-file limit. A "
        "few more are reserved for probes.",
    )  # fmt: skip
    connections_per_address: int | None = Field(
        None, ge=1, le=100_000,
        description="Maximum HTTP connections of one client address (IPv6: a /64), except trusted proxies. Unset:"
        " half of max_connections.",
    )  # fmt: skip

    # ── Observability ────────────────────────────────────────────────────────────────────────────────
    metrics_host: str = Field(
        "127.0.0.1", description="Address on which a worker serves /metrics, /livez and /readyz over plain HTTP."
    )
    metrics_port: int = Field(
        9465, ge=0, le=65535,
        description="Port on which a worker serves /metrics, /livez and /readyz; 0 = off. `up` and `server` serve"
        " them with the API.",
    )  # fmt: skip
    metrics_open: bool = Field(
        False,
        description="Serve /metrics without a token. Otherwise it needs a token of the default namespace. A "
        "worker on loopback needs none.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Minimum severity of log lines."
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="Format of log lines: console (for reading) or json."
    )
    log_decisions_per_second: int = Field(
        50,
        ge=0,
        description="Maximum log lines about decisions per second. Beyond that, one line per second sums them up.",
    )
    ready_tick_age_seconds: float = Field(
        15, gt=0, description="Seconds since the last completed tick after which a scheduling process is not ready."
    )
    failing_after: int = Field(
        3, ge=1, le=1_000_000,
        description="Consecutive unsuccessful runs that make the health of a schedule `failing`. A schedule's own "
        "failing_after wins.",
    )  # fmt: skip
    ready_undecided_seconds: float = Field(
        30, gt=0,
        description="Seconds that an occurrence may be overdue before a scheduling process is not ready.",
    )  # fmt: skip

    _origins: Mapping[str, Origin] = PrivateAttr(default_factory=dict)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)

    @property
    def database_url(self) -> str:
        return self.database or f"sqlite:///{self.data_dir / DATABASE_FILE}"

    @property
    def namespace_in_flight(self) -> int:
        return self.in_flight_per_namespace or max(1, self.in_flight // 2)

    @property
    def drain(self) -> float:
        """Nobody but a proxy goes elsewhere when it is told."""
        usual = _PROXY_DRAIN_SECONDS if self.behind_proxy else 0
        return usual if self.drain_seconds is None else self.drain_seconds

    @property
    def address_connections(self) -> int:
        return self.connections_per_address or max(1, self.max_connections // 2)

    @property
    def own_url(self) -> str:
        """Where targets reach this service, as far as the settings tell."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "http" if self.tls_cert is None else "https"
        return self.public_url or f"{scheme}://{host}:{self.port}{self.base_path}"

    def audience(self, namespaces: Namespaces | None) -> Audience:
        """Read a configured audience: the default namespace where nothing is set."""
        return parse_audience((self.default_namespace,) if namespaces is None else namespaces)

    def concurrency_of(self, kind: str, usual: int) -> int:
        """Places of a kind that works in this process; `usual` is what its launcher says."""
        return self.launch_concurrency_by_kind.get(kind, self.launch_concurrency or usual)
