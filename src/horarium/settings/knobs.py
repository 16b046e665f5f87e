"""Every knob with its unit and its default: one frozen `Settings`, which reads nothing from outside by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AliasChoices, Field, PrivateAttr, SecretStr
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from horarium.audience import NAMESPACE, Audience, parse_audience
from horarium.settings.parts import (
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

    # ── where ────────────────────────────────────────────────────────────────────────────────────────
    data_dir: Path = Field(Path(".horarium"), description="Directory of the SQLite database and the admin token.")
    database: str | None = Field(
        None, description="postgresql://… or sqlite:///file; without it, horarium.db in the data directory."
    )
    default_namespace: str = Field(
        "default", pattern=NAMESPACE,
        description="The namespace of requests that name none, with a token good in all; made at the first start.",
    )  # fmt: skip
    pool_size: int = Field(
        10, ge=1, le=500,
        description="Maximum database connections of a process; two more on PostgreSQL (wake-ups, heartbeat), one on"
        " SQLite (writer).",
    )  # fmt: skip
    statement_timeout_seconds: float | None = Field(
        30,
        ge=0,
        description="Seconds that a statement on PostgreSQL may take; 0 = any. Migrations take what they need.",
    )
    host: str = Field("127.0.0.1", description="Address on which the API listens.")
    port: int = Field(8765, ge=0, le=65535, description="Port on which the API listens; 0 = any free one.")
    app: str | None = Field(None, description="module:attribute of a Horarium application to load.")

    # ── keeping time ─────────────────────────────────────────────────────────────────────────────────
    tick_ms: int = Field(
        1_000, ge=10, le=60_000, validation_alias=_bare("TICK_MS"),
        description="Milliseconds; the longest sleep between two looks at what is due.",
    )  # fmt: skip
    lookahead_ms: int = Field(
        60_000, ge=0, le=86_400_000, validation_alias=_bare("LOOKAHEAD_MS"),
        description="Milliseconds. Read for compatibility only: the ticker sleeps until the next due time by itself.",
    )  # fmt: skip
    tick_batch: int = Field(500, ge=1, le=10_000, description="Schedules decided in one transaction, at most.")
    max_catchup_per_tick: int = Field(
        100, ge=1, le=10_000, validation_alias=_bare("MAX_CATCHUP_PER_TICK"),
        description="Decisions about one schedule in one transaction, at most; the rest follows in the next.",
    )  # fmt: skip

    # ── what stands where a definition says nothing ──────────────────────────────────────────────────
    default_overlap_policy: str = Field(
        "skip", validation_alias=_bare("DEFAULT_OVERLAP_POLICY"), description="Overlap policy of new schedules."
    )
    default_catchup_policy: str = Field(
        "fire_once", validation_alias=_bare("DEFAULT_CATCHUP_POLICY"), description="Catch-up policy of new schedules."
    )
    default_jitter_ms: int = Field(
        0, ge=0, le=86_400_000, validation_alias=_bare("DEFAULT_JITTER_MS"),
        description="Milliseconds; the longest delay added to an occurrence of a new schedule.",
    )  # fmt: skip
    default_max_catchup: int = Field(100, ge=0, description="Missed occurrences that fire_all and spread make up for.")
    misfire_grace_seconds: int = Field(
        60, ge=0, description="Seconds that an occurrence may be late without being missed."
    )

    # ── handing out ──────────────────────────────────────────────────────────────────────────────────
    lease_seconds: int = Field(
        20, ge=2, le=30, description="Seconds that a run stays with a worker without a sign of life."
    )
    in_flight: int = Field(500, ge=1, le=100_000, description="Launches under way at once in one process, at most.")
    in_flight_per_namespace: int | None = Field(
        None, ge=1, le=100_000, description="The same for one namespace; none = half of those of the process."
    )
    in_flight_per_target: int = Field(
        32, ge=1, le=100_000, description="The same for one target: scheme, host and port, an agent, a queue."
    )
    launch_concurrency: int | None = Field(
        None, ge=1, le=10_000,
        description="Launches of one kind that works in this process; none = 32 python, 10 command, 10 prompt.",
    )  # fmt: skip
    launch_concurrency_by_kind: Mapping[str, int] = Field(
        default_factory=dict, description='The same for single kinds, whatever they are, such as {"http": 50}.'
    )
    run_log_bytes: int = Field(
        65_536, ge=0, le=1_048_576,
        description="Bytes of what one run prints and logs that are kept, the last ones; 0 = nothing is kept.",
    )  # fmt: skip
    shutdown_seconds: float = Field(
        20,
        ge=0,
        description="Seconds that a stopping process waits for launches, and for answers that it owes, to end.",
    )
    drain_seconds: float | None = Field(
        None, ge=0, le=3_600,
        description="Seconds that a server which was told to stop says so in its probes before it closes its door; "
        "none = 5 with behind_proxy, else 0.",
    )  # fmt: skip
    allow_loopback_targets: bool = Field(
        False,
        description="Whether a schedule may call this machine itself; `up` on a loopback address opens it unless told.",
    )
    check_addresses: bool = Field(
        True,
        description="Whether writes warn of private and unknown host names; off = only numeric addresses are judged.",
    )
    allow_private_targets: bool = Field(False, description="Whether a schedule may call private networks.")
    commands: Mapping[str, Command] = Field(
        default_factory=dict,
        description="Programs that schedules may run, by name; each is for the default namespace unless it says more.",
    )
    webhook_secrets: Mapping[str, SecretStr | WebhookSecret] = Field(
        default_factory=dict,
        description="Standard Webhooks secrets (whsec_…) by name; several are split by blanks. "
        "{secret, namespaces} says for whom one is; else it is for the default namespace.",
    )
    celery_connections: Mapping[str, CeleryConnection] = Field(
        default_factory=dict,
        description="Brokers to which celery actions are published, by name: {broker, result, namespaces}. "
        "An action that names none uses `default`.",
    )
    kind_namespaces: Mapping[str, Namespaces] = Field(
        default_factory=dict,
        description='Namespaces that may use a kind of action, by kind, such as {"echo": ["*"]}. Those of other '
        "packages are else for the default namespace, the others for all.",
    )

    # ── what conditions may ask ──────────────────────────────────────────────────────────────────────
    signal_provider: str | None = Field(
        None, description="module:function that says what signal_rpc_result is for a namespace and a schedule id."
    )
    signal_timeout_seconds: float = Field(
        5, gt=0, le=60, description="Seconds that a schedule waits for its signal; then it is decided without."
    )
    signal_cache_seconds: float = Field(
        10, ge=0, le=86_400, description="Seconds that a signal is good for, from when it was asked for."
    )
    # ── telling ──────────────────────────────────────────────────────────────────────────────────────
    subscription_retry_seconds: tuple[Annotated[float, Field(ge=0, le=86_400)], ...] = Field(
        (5, 30, 120, 600, 1_800, 3_600), max_length=20,
        description="Seconds to pause after each failed delivery to a subscription; then it is a dead letter.",
    )  # fmt: skip
    subscription_timeout_seconds: float = Field(
        10, gt=0, le=30, description="Seconds in which the receiver of a subscription must answer."
    )
    subscriptions_per_namespace: int = Field(50, ge=0, le=10_000, description="Subscriptions of a namespace, at most.")

    # ── keeping secrets ──────────────────────────────────────────────────────────────────────────────
    secrets_per_namespace: int = Field(1_000, ge=0, le=100_000, description="Secrets of a namespace, at most.")

    # ── what one namespace may have, unless it has limits of its own ─────────────────────────────────
    quota_schedules: int = Field(250_000, ge=0, le=_MOST, description="Live schedules of a namespace, at most.")
    quota_runs_per_minute: int = Field(
        200_000, ge=0, le=_MOST, description="Runs of a namespace that are born in one minute of the clock, at most."
    )
    quota_open_runs: int = Field(
        200_000, ge=0, le=_MOST, description="Runs of a namespace that have not ended, at most."
    )
    quota_bytes_stored: int = Field(
        50_000_000_000, ge=0, le=_MOST,
        description="Bytes of definitions, inputs, results and history of a namespace, at most; an estimate.",
    )  # fmt: skip
    quota_shortest_gap_seconds: int = Field(
        1, ge=1, le=_MOST, description="Seconds between two occurrences of one schedule, at least."
    )

    # ── what one run may use, whatever its definition says ───────────────────────────────────────────
    run_runtime_seconds_cap: int | None = Field(
        None, ge=1, le=_MOST, description="Seconds that a run may take with all its attempts and steps; none = any."
    )
    run_cost_cap: float | None = Field(
        None, ge=0, le=10**12, description="Credits that a run may cost, its steps together; none = any."
    )
    run_tokens_cap: int | None = Field(
        None, ge=0, le=_MOST, description="Tokens that a run may use, its steps together; none = any."
    )
    run_tool_calls_cap: int | None = Field(
        None, ge=0, le=_MOST, description="Tool calls that a run may make, its steps together; none = any."
    )

    # ── tidying up ───────────────────────────────────────────────────────────────────────────────────
    janitor_seconds: float = Field(5, gt=0, description="Seconds between two looks for lost leases and deadlines.")
    keep_history_days: int | None = Field(
        None,
        ge=1,
        description="Days that history is kept; none = for ever. PostgreSQL drops whole weeks, up to eight days later.",
    )
    keep_audit_days: int | None = Field(
        None,
        ge=1,
        description="Days that the audit is kept; none = for ever. A checkpoint takes the place of the rest.",
    )
    keep_runs_days: int | None = Field(
        90,
        ge=0,
        description="Days that finished runs are kept with their events; 0 = for ever. PostgreSQL drops the archive "
        "by whole weeks, some days later.",
    )
    archive_runs_days: int = Field(
        7,
        ge=0,
        description="Days after which ended runs move to the archive of PostgreSQL, still shown as before; 0 = never.",
    )
    idempotency_hours: int = Field(24, ge=1, description="Hours that the answer to an Idempotency-Key is remembered.")

    # ── the doors ────────────────────────────────────────────────────────────────────────────────────
    public_url: str | None = Field(
        None, description="Where targets reach this service to report; none = the address on which it listens."
    )
    base_path: BasePath = Field(
        "", description="Path under which the service is seen, such as /horarium, whether or not a proxy takes it away."
    )
    session_hours: float = Field(
        12, gt=0, le=8_760, description="Hours after which somebody in a browser has to sign in again."
    )
    behind_proxy: bool = Field(
        False, description="Whether a reverse proxy, which ends TLS, brings the requests of others to this process."
    )
    trusted_proxies: tuple[NetworkText, ...] = Field(
        ("127.0.0.1", "::1"), max_length=100,
        description="Addresses and networks of the proxies whose X-Forwarded-For is believed, with behind_proxy.",
    )  # fmt: skip
    tls_cert: Path | None = Field(None, description="Certificate (PEM) of this server; read again when it changes.")
    tls_key: Path | None = Field(None, description="Its private key (PEM), unless that stands in the same file.")
    tls_key_password: SecretStr | None = Field(None, description="What opens the private key, if it is locked.")
    tls_client_ca: Path | None = Field(
        None, description="Certificates (PEM) of the authority whose client certificates are asked for and needed."
    )
    tls_client_optional: bool = Field(False, description="Whether callers may come without a certificate all the same.")
    tls_principals: Mapping[str, CertificateHolder] = Field(
        default_factory=dict, max_length=10_000,
        description="Who is known by the name in a client certificate: principal, role and namespace.",
    )  # fmt: skip
    secret_key: SecretStr | None = Field(
        None,
        description="Key of what this installation signs and seals, one for all its processes; none = a file is made.",
    )
    secret_key_previous: SecretStr | None = Field(
        None, description="The key before the last rekey: what it signed is recognised, and nothing is made with it."
    )
    token: SecretStr | None = Field(None, description="The admin token; without it one is made at the first start.")
    jwt_secret: SecretStr | None = Field(None, description="Shared secret of signed JWTs (HS); 32 bytes or more.")
    jwks_file: Path | None = Field(None, description="JWK set of signed JWTs; it is read again when it changes.")
    jwt_key_file: Path | None = Field(None, description="Public key (PEM) of signed JWTs (RS, PS, ES, EdDSA).")
    jwks_url: str | None = Field(
        None, description="https:// address of the JWK set of signed JWTs; it is asked again every ten minutes."
    )
    jwks_ca_file: Path | None = Field(
        None, description="Certificates (PEM) that vouch for the server of jwks_url; none = the usual ones."
    )
    jwt_audience: str | None = Field(
        None, min_length=1, description="What a JWT must name as its audience; needed where JWTs are taken."
    )
    jwt_issuer: str | None = Field(None, min_length=1, description="What a JWT must name as its issuer; none = any.")
    jwt_max_lifetime_seconds: int = Field(
        86_400, ge=60, le=315_360_000, description="Seconds that a JWT may be good for, from its iat to its exp."
    )
    jwt_everywhere: bool = Field(
        False, description="Whether a JWT may make its bearer an admin of the whole installation."
    )
    allowed_hosts: tuple[str, ...] = Field(
        (), max_length=100,
        description="Names in the Host header beside those of host and public_url; .example.com = all below, * = any.",
    )  # fmt: skip
    body_limit_bytes: int = Field(2_097_152, ge=1_024, description="Bytes of a request body, at most.")
    rate_limit_per_second: float = Field(200, gt=0, description="Requests a second for each token, on average.")
    rate_limit_burst: int = Field(1_000, ge=1, description="Requests of one token at once, at most.")
    requests_per_token: int | None = Field(
        None, ge=1, le=1_000,
        description="Requests of one token at work at once in one process, others wait; none = half of pool_size.",
    )  # fmt: skip
    failed_logins_per_minute: int = Field(
        10, ge=1, le=1_000_000,
        description="Tokens that are no good a minute for each client address; more of them are 429, good ones pass.",
    )  # fmt: skip
    streams_per_token: int = Field(20, ge=1, le=100_000, description="Open streams of one token in one process.")
    max_streams: int = Field(
        500, ge=2, le=100_000, description="Open streams of one process; one namespace may have half of them."
    )
    header_timeout_seconds: float = Field(
        10, gt=0, le=600, description="Seconds in which the headers of a request must have come."
    )
    body_timeout_seconds: float = Field(
        30, gt=0, le=3_600, description="Seconds in which a body must have come, and in which a reader must go on."
    )
    max_connections: int = Field(
        1_000, ge=1, le=100_000,
        description="HTTP connections of one process, at most; never more than half of the files it may open. "
        "A few beyond them may ask for probes.",
    )  # fmt: skip
    connections_per_address: int | None = Field(
        None, ge=1, le=100_000,
        description="The same for one client address (IPv6: a /64), trusted proxies excepted; none = half of them.",
    )  # fmt: skip

    # ── eyes ─────────────────────────────────────────────────────────────────────────────────────────
    metrics_host: str = Field(
        "127.0.0.1", description="Address on which a worker serves /metrics, /livez and /readyz over plain HTTP."
    )
    metrics_port: int = Field(
        9465, ge=0, le=65535,
        description="Port on which a worker serves them; 0 = none. up and server serve them with the API.",
    )  # fmt: skip
    metrics_open: bool = Field(
        False,
        description="Whether /metrics is shown without a token; else it needs one of the default namespace. A worker "
        "needs none on loopback.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="The least that is logged.")
    log_format: Literal["console", "json"] = Field("console", description="console for people, json for programs.")
    log_decisions_per_second: int = Field(
        50, ge=0, description="Lines about decisions a second; above it one line a second sums them up."
    )
    ready_tick_age_seconds: float = Field(
        15, gt=0, description="Seconds; a process that decides is not ready when the last completed tick is older."
    )
    failing_after: int = Field(
        3, ge=1, le=1_000_000,
        description="Unsuccessful runs in a row that make the health of a schedule failing; its field failing_after "
        "comes before it.",
    )  # fmt: skip
    ready_undecided_seconds: float = Field(
        30, gt=0,
        description="Seconds; a process that decides is not ready when an occurrence has been due for longer.",
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
        """Of what an operator has configured: the default namespace where nothing is said."""
        return parse_audience((self.default_namespace,) if namespaces is None else namespaces)

    def concurrency_of(self, kind: str, usual: int) -> int:
        """Places of a kind that works in this process; `usual` is what its launcher says."""
        return self.launch_concurrency_by_kind.get(kind, self.launch_concurrency or usual)
