"""The commands of `horarium audit`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from horarium.cli.service import DatabaseUrl, failing_with_1, settings_of
from horarium.platform.cli.lists import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.platform.cli.options import with_options
from horarium.platform.cli.remote import ExitCode, Remote, remote_options, with_remote
from horarium.platform.cli.streams import Format, Json, printable, refuse, show, talk
from horarium.platform.cli.times import TIME, Times, time_options

if TYPE_CHECKING:
    from horarium.core.audit_entries import ChainLink
    from horarium.features.audit.model import AuditEntry
    from horarium.features.audit.service import ChainCheck


app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Read and verify the audit log.",
    epilog="Example: horarium audit list --act issue_token",
)

_PAGE = 200

Of = Annotated[
    str | None,
    typer.Option(
        "--of",
        metavar="NAMESPACE",
        show_default="that of the request",
        help="Namespace to read, also a deleted one; requires an admin.",
    ),
]


@app.command("list")
@with_options(times=time_options, remote=remote_options)
def list_command(
    remote: Remote,
    times: Times,
    of: Of = None,
    act: Annotated[
        str | None,
        typer.Option(
            "--act", metavar="ACT", show_default="any", help="Filter by action, such as issue_token or login_failed."
        ),
    ] = None,
    principal: Annotated[
        str | None, typer.Option("--principal", metavar="WHO", show_default="any", help="Filter by principal.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar=TIME, show_default="the first entry", help="Start time, inclusive.")
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar=TIME, show_default="now", help="End time, exclusive.")
    ] = None,
    oldest: Annotated[bool, typer.Option("--oldest", help="List oldest entries first.")] = False,
    limit: Limit = 50,
    everything: All = False,
    page_token: PageToken = None,
) -> None:
    """List administrative actions and denied requests, newest first.

    Example: horarium audit list --act login_failed --since 7d
    """
    from horarium.features.cluster.calls import ServiceCalls

    call = ServiceCalls.list_audit(
        namespace=of,
        act=act,
        principal=principal,
        since=times.past("--since", since),
        until=times.past("--until", until),
        order="oldest" if oldest else None,
        next_page_token=page_token,
    )
    show_listing(
        Listing(remote, call, Paging("entries"), None if everything else limit),
        ("Seq", "Recorded At", "Action", "Principal", "Address", "Source", "Details"),
        _row,
        empty="no audit entries in namespace {namespace}",
        hint="more entries: --all, or --page-token {cursor}",
    )


@app.command("verify")
@with_remote
def verify_command(
    remote: Remote,
    of: Of = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="SEQ:HASH",
            show_default=False,
            help="Head of an earlier verification, to detect removed entries.",
        ),
    ] = None,
    database: DatabaseUrl = None,
) -> None:
    """Verify the hash chain of the audit log.

    Reads the log from the server; with --database, directly from the database, for all namespaces unless --namespace
    or --of is given. Store the printed head outside of the installation: a later verification with --head also detects
    that entries were removed from the end.

    Exit code 0: the chain is intact; 1: an entry is broken.

    Example: horarium audit verify --database sqlite:///.horarium/horarium.db
    """
    from horarium.core.audit_entries import parse_link
    from horarium.errors import InvalidDefinition

    chosen = of or (remote.client.namespace if database is not None else None)
    try:
        kept = None if head is None else parse_link(head)
        if kept is not None and database is not None and chosen is None:
            refuse("--head applies to the log of one namespace; add --namespace")
        found = [_ask(remote, of, kept)] if database is None else _look(database, chosen, kept)
    except InvalidDefinition as wrong:
        refuse(f"--{wrong.message}")
    _show(found, remote.output)
    if any(chain.broken for chain in found):
        raise typer.Exit(ExitCode.NO)


def _look(database: str, namespace: str | None, kept: ChainLink | None) -> list[ChainCheck]:
    from horarium.features.audit.service import check
    from horarium.platform.database import open_database
    from horarium.platform.database.schema import check_schema

    with failing_with_1():
        opened = open_database(settings_of(database=database).database_url)
        try:
            check_schema(opened)
            return list(check(opened, namespace=namespace, kept=kept))
        finally:
            opened.close()


def _ask(remote: Remote, of: str | None, kept: ChainLink | None) -> ChainCheck:
    """Check the log page by page; the head is that of the last page."""
    from horarium.core.audit_entries import BEGINNING, BrokenLink, check_chain, check_end
    from horarium.features.audit.model import read_entry
    from horarium.features.audit.service import ChainCheck, refuse_forgotten
    from horarium.features.cluster.calls import ServiceCalls

    call = ServiceCalls.list_audit(namespace=of, order="oldest", page_size=_PAGE)
    page = remote.send(call)
    begin = _link(page.raw.get("begin")) or BEGINNING
    refuse_forgotten(kept, begin)
    last, count, name = begin, 0, str(page.raw.get("namespace"))
    while True:
        for step in check_chain(map(read_entry, page), last, kept):
            if isinstance(step, BrokenLink):
                return ChainCheck(name, count, last, step, begin)
            last, count = step, count + 1
        following = call.after(page)
        if following is None:
            break
        call, page = following, remote.send(following)
    end: ChainLink | None = _link(page.raw.get("head"))
    return ChainCheck(name, count, last, check_end(last, begin, end, kept), begin)


def _link(shown: object) -> ChainLink | None:
    from horarium.core.audit_entries import parse_link

    return parse_link(f"{shown.get('sequence')}:{shown.get('hash')}") if isinstance(shown, dict) else None


def _show(found: Iterable[ChainCheck], output: Format) -> None:
    if output is Format.TABLE:
        for chain in found:
            typer.echo(printable(_sentence(chain)))
            talk(printable(f"head of {chain.namespace}: {chain.head}"))
        return
    rows: list[Json] = [
        {
            "namespace": chain.namespace,
            "entries": chain.entries,
            "begin": str(chain.begin),
            "head": str(chain.head),
            "broken": None
            if chain.broken is None
            else {"sequence": chain.broken.sequence, "message": chain.broken.why},
        }
        for chain in found
    ]
    show(rows, output, columns=(), cells=())


def _sentence(chain: ChainCheck) -> str:
    if chain.broken is None:
        first = f" from sequence {chain.begin.sequence + 1}" if chain.begin.sequence else ""
        return f"{chain.namespace}: intact, {chain.entries} entries{first}"
    return f"{chain.namespace}: entry {chain.broken.sequence} is broken: {chain.broken.why}"


def _row(entry: AuditEntry) -> Sequence[object]:
    told = " ".join(f"{name}={value}" for name, value in entry.detail.items())
    return entry.sequence, entry.recorded_at, entry.act, entry.principal, entry.address, entry.source, told
