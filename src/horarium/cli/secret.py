"""`horarium secret`: what schedules may send and nobody may read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from horarium.cli import completion
from horarium.cli.naming import by_flags
from horarium.cli.pages import All, Limit, Listing, PageToken, Paging, show_listing
from horarium.cli.present import printable, show_document
from horarium.cli.reading import STDIN, refuse
from horarium.cli.remote import Remote, with_remote
from horarium.cli.render import Format, talk
from horarium.cli.service import DatabaseUrl, DataDir, failing_with_1, settings_of
from horarium.schedule.secret_value import MAX_VALUE_BYTES

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Secrets: what schedules may send and nobody may read.",
    epilog="Example: horarium secret list",
)

_MORE = "more secrets: --all, or --page-token {cursor}"
_FLAGS = {"name": "NAME", "value": "the value", "hosts": "--host"}

Name = Annotated[
    str,
    typer.Argument(metavar="NAME", show_default=False, help="Its name.", autocompletion=completion.secret_names),
]


@app.command("set")
@with_remote
def set_command(
    remote: Remote,
    name: Name,
    value_file: Annotated[
        str | None,
        typer.Option(
            "--value-file", metavar="FILE", show_default="stdin, or asked for", help="Where the value is; - is stdin."
        ),
    ] = None,
    host: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="HOST",
            show_default="as before; a new one may go to any",
            help="Where it may be sent: a host (https, port 443) or scheme://host:port; repeatable. '*' = anywhere.",
        ),
    ] = None,
) -> None:
    """Set a secret, or replace it. Its value is read from a file or from stdin, or asked for without showing it.

    One line break at its end does not belong to it. It is no argument: others can see those.

    Example: horarium secret set erp-token --value-file token.txt --host erp.example.com
    """
    value = _value(value_file)
    with by_flags(_FLAGS):
        kept = remote.client.put_secret(name, value, hosts=host or None)
    if remote.output is not Format.TABLE:
        show_document(kept.raw, remote.output, [])
        return
    where = "any host" if kept.hosts is None else ", ".join(kept.hosts)
    talk(printable(f"secret {kept.name} is set (version {kept.version}); it may go to {where}"))


@app.command("list")
@with_remote
def list_command(remote: Remote, limit: Limit = 50, page_token: PageToken = None, everything: All = False) -> None:
    """The names of the secrets of the namespace, and where each may go.

    Example: horarium secret list
    """
    from horarium.client.secret_calls import SecretCalls

    call = SecretCalls.list_secrets(next_page_token=page_token)
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
    force: Annotated[bool, typer.Option("--force", help="Also while schedules name it.")] = False,
) -> None:
    """Forget a secret. Refused while a schedule names it: none of its runs could be launched any more.

    Example: horarium secret delete erp-token
    """
    gone = remote.client.delete_secret(name, force=force or None)
    talk(printable(f"secret {gone.name} is deleted"))


@app.command("rekey")
def rekey_command(
    new_key_file: Annotated[
        Path | None,
        typer.Option(
            "--new-key-file",
            metavar="FILE",
            show_default="a new key in the data directory",
            help="Holds the new key; one that is not there is made.",
        ),
    ] = None,
    data_dir: DataDir = None,
    database: DatabaseUrl = None,
) -> None:
    """Replace the key of the installation: everything that is sealed is sealed anew, all of it or nothing.

    Stop all processes before. The old key is that of the settings, or of the data directory.

    Example: horarium secret rekey
    """
    from horarium.serve.rekey import RekeyRefused, rekey
    from horarium.serve.secret_key import WrongSecretKey
    from horarium.store.sealing import KeyReplaced

    settings = settings_of(data_dir=data_dir, database=database)
    try:
        with failing_with_1():
            done = rekey(settings, new_key_file)
    except (RekeyRefused, WrongSecretKey, KeyReplaced) as wrong:
        talk(f"error: {wrong.message}")
        raise typer.Exit(1) from None
    typer.echo(f"sealed anew: {done.resealed.count}; the new key is in {done.new_key}")
    for each in done.resealed.unreadable:
        talk(printable(f"warning: {each.table} {each.namespace}/{each.name} did not open before either; set it again"))
    if done.old_key is None:
        talk(f"set HORARIUM_SECRET_KEY to what {done.new_key} holds, in all processes, and start them")
    else:
        talk(f"the old key is in {done.old_key}; backups from before need it. Give the new one to other machines")
    talk("HORARIUM_SECRET_KEY_PREVIOUS set to the old key lets runs that are open report; it is good for nothing else")


def _value(file: str | None) -> str:
    if file is None and sys.stdin.isatty():
        return str(typer.prompt("Value", hide_input=True, confirmation_prompt=True, err=True))
    raw = _raw(file or STDIN)
    # The server says the same of one that is a little too long; more than that is not read at all.
    if len(raw) > MAX_VALUE_BYTES + 2:
        refuse(f"the value: is longer than {MAX_VALUE_BYTES} bytes")
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        refuse("the value: is not UTF-8 text; encode it, as base64 for example")
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
