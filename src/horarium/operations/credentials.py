"""How the credentials of a definition are kept: as generated secrets, written in the transaction of the definition.

Whoever writes the same value again changes nothing. A generated secret goes to the host that its definition calls and
to no other, so that nobody who may name it can have it sent elsewhere.
"""

from __future__ import annotations

from horarium.operations.caller import Caller
from horarium.operations.errors import Refused
from horarium.operations.resources import Resources
from horarium.operations.secrets import seal
from horarium.schedule.credentials import hosts_of
from horarium.schedule.definition import Definition
from horarium.schedule.document import Parsed
from horarium.schedule.json_limits import Json
from horarium.schedule.redaction import Redactor
from horarium.schedule.secret import names_in, secret_names
from horarium.store import secrets
from horarium.store.database import Connection
from horarium.store.runs.read import RunRow
from horarium.store.sealing import CannotUnseal, Sealer, require_key
from horarium.store.secrets import SecretRow

SECRETS = "secrets"
"""What is said to have changed where only a value has."""


def keep_credentials(resources: Resources, connection: Connection, caller: Caller, parsed: Parsed) -> tuple[str, ...]:
    """The names of those that were not there, or had another value; the others are left alone."""
    given = parsed.credentials
    if not given:
        return ()
    if resources.sealer is None:
        raise Refused("this process has no secret key, so it cannot store credentials; set secret_key")
    namespace, sealer = parsed.definition.namespace, resources.sealer
    hosts = hosts_of(parsed.definition.action)
    known = secrets.find_all(connection, namespace, given)
    written = []
    for name, value in given.items():
        if not _is(known.get(name), sealer, value, hosts):
            seal(resources, connection, caller, sealer, name, value, hosts, generated=True)
            written.append(name)
    return tuple(written)


def _is(row: SecretRow | None, sealer: Sealer, value: str, hosts: tuple[str, ...] | None) -> bool:
    """Tell whether the secret has this value; if it was set by hand since, its hosts are not compared."""
    if row is None or (row.generated and row.hosts != hosts):
        return False
    try:
        return row.unseal(sealer) == value
    except CannotUnseal:
        return False


def redactor(resources: Resources, connection: Connection, run: RunRow, definition: Definition) -> Redactor:
    """Build a redactor for all that the run may have received.

    Raises KeyReplaced: with an older key it would mask nothing.
    """
    return redactor_for(resources, connection, run.namespace, definition, run.inputs)


def redactor_for(
    resources: Resources, connection: Connection, namespace: str, definition: Definition, inputs: Json
) -> Redactor:
    names = secret_names(definition) | names_in(definition.action, inputs)
    if not names or resources.sealer is None:
        return Redactor(())
    found = secrets.find_all(connection, namespace, names)
    values = secrets.openable(resources.sealer, found.values())
    if len(values) < len(found):
        require_key(connection, resources.sealer)
    return Redactor(values)
