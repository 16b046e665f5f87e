"""The commands of `horarium secret`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from horarium.cli.service import DatabaseUrl, DataDir, failing_with_1, settings_of
from horarium.core.document.secret_values import MAX_VALUE_BYTES
from horarium.platform.cli import options
from horarium.platform.cli.lists import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.platform.cli.program import LaterModule, add_default_commands
from horarium.platform.cli.remote import Remote, by_flags, with_remote
from horarium.platform.cli.streams import STDIN, Format, printable, refuse, show_document, talk

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Manage secrets, which schedules can send but users cannot read.",
    epilog="Example: horarium secret list",
)

_MORE = "more secrets: --all, or --page-token {cursor}"
_FLAGS = {"name": "NAME", "value": "value", "hosts": "--host"}

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", show_default=False, help="Name of the secret.", autocompletion=options.secret_names),
]


@app.command("set")
@with_remote
def set_command(
    remote: Remote,
    name: Name,
    value_file: Annotated[
        str | None,
        typer.Option(
            "--value-file",
            metavar="FILE",
            show_default="stdin, or a prompt",
            help="File with the value; - reads stdin.",
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST",
            show_default="unchanged; any host for a new secret",
            help="Allowed host: HOST (https, port 443) or scheme://host:port, '*' = any; repeatable.",
        ),
    ] = None,
) -> None:
    """Create or replace a secret. The value is read from a file or stdin, or prompted for without echo.

    A single trailing line break is removed.

    Example: horarium secret set erp-token --value-file token.txt --host erp.example.com
    """
    value = _value(value_file)
    with by_flags(_FLAGS):
        kept = remote.client.put_secret(name, value, hosts=host or None)
    if remote.output is not Format.TABLE:
        show_document(kept.raw, remote.output, [])
        return
    where = "any" if kept.hosts is None else ", ".join(kept.hosts)
    talk(printable(f"secret {kept.name} set (version {kept.version}); allowed hosts: {where}"))


@app.command("list")
@with_remote
def list_command(remote: Remote, limit: Limit = 50, page_token: PageToken = None, everything: All = False) -> None:
    """List secrets and their allowed hosts. Values are never shown.

    Example: horarium secret list
    """
    from horarium.features.secrets.operations import SecretOperations

    call = SecretOperations.list_secrets(next_page_token=page_token)
    show_listing(
        Listing(remote, call, Paging("secrets"), None if everything else limit),
        ("Name", "Hosts", "Generated", "Version", "Set By", "Set At"),
        lambda s: (s.name, "any" if s.hosts is None else ", ".join(s.hosts), s.generated, s.version, s.principal,
                   s.updated_at),
        empty="no secrets in namespace {namespace}",
        hint=_MORE,
    )  # fmt: skip


@app.command("delete")
@with_remote
def delete_command(
    remote: Remote,
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Delete even if schedules use the secret.")] = False,
) -> None:
    """Delete a secret. Refused while a schedule uses it, because its runs would fail to launch.

    Example: horarium secret delete erp-token
    """
    gone = remote.client.delete_secret(name, force=force or None)
    talk(printable(f"secret {gone.name} deleted"))


@app.command("rekey")
def rekey_command(
    new_key_file: Annotated[
        Path | None,
        typer.Option(
            "--new-key-file",
            metavar="FILE",
            show_default="new file in the data directory",
            help="File with the new key; created if missing.",
        ),
    ] = None,
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
) -> None:
    """Replace the secret key and re-encrypt all secrets, in one transaction.

    Stop all processes first. The old key is read from the settings or the data directory.

    Example: horarium secret rekey
    """
    from horarium.platform.database.installation import KeyReplaced
    from horarium.serve.data_dir import WrongSecretKey
    from horarium.serve.maintenance import RekeyRefused, rekey

    settings = settings_of(data_dir=data_dir, database=database)
    try:
        with failing_with_1():
            done = rekey(settings, new_key_file)
    except (RekeyRefused, WrongSecretKey, KeyReplaced) as wrong:
        talk(f"error: {wrong.message}")
        raise typer.Exit(1) from None
    typer.echo(f"re-encrypted: {done.resealed.count}; the new key is in {done.new_key}")
    for each in done.resealed.unreadable:
        talk(
            printable(
                f"warning: cannot decrypt {each.table} {each.namespace}/{each.name} with the old key; set it again"
            )
        )
    if done.old_key is None:
        talk(f"set HORARIUM_SECRET_KEY to the content of {done.new_key} in all processes, then start them")
    else:
        talk(f"the old key is in {done.old_key}; keep it for earlier backups. Copy the new key to other machines")
    talk("set HORARIUM_SECRET_KEY_PREVIOUS to the old key so that open runs can report; it has no other use")


def _value(file: str | None) -> str:
    if file is None and sys.stdin.isatty():
        return str(typer.prompt("Value", hide_input=True, confirmation_prompt=True, err=True))
    raw = _raw(file or STDIN)
    # The server refuses a value that is slightly too long; more is not read.
    if len(raw) > MAX_VALUE_BYTES + 2:
        refuse(f"value: is longer than {MAX_VALUE_BYTES} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        refuse("value: is not UTF-8 text; encode it, for example as base64")
    return text.removesuffix("\n").removesuffix("\r")


def _raw(file: str) -> bytes:
    most = MAX_VALUE_BYTES + 3
    try:
        if file == STDIN:
            return sys.stdin.buffer.read(most)
        with Path(file).open("rb") as opened:
            return opened.read(most)
    except (OSError, ValueError) as wrong:  # a name with a NUL is a ValueError
        refuse(f"--value-file: cannot read {file!r}: {getattr(wrong, 'strerror', None) or wrong}")


add_default_commands(app, "secret", LaterModule("horarium.features.secrets.operations").SecretOperations)
