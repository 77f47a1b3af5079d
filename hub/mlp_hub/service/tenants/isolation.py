"""Location of a tenant's files: the available ones, and the begin of a change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.relocation import REVOCABLE, Relocation, RelocationPhase, check_relocation_move
from mlp_hub.domain.tenants.tenant import DEDICATED, ENCRYPTED, Isolation, Tenant
from mlp_hub.executors.tenant_files import TenantFiles
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

R = RelocationPhase
PHASES: Mapping[RelocationPhase, Message] = {
    R.WAITING: msg("waiting for running work"),
    R.COPYING: msg("copying"),
    R.COMPARING: msg("comparing the copy"),
    R.REMOVING: msg("removing the old files"),
    R.UNDOING: msg("undoing"),
    R.DONE: msg("done"),
    R.FAILED: msg("failed"),
}
"""Phase of a relocation, for people."""
_IN_A_CLUSTER: Mapping[str, Message] = {
    ENCRYPTED: msg(
        "isolation encrypted is not possible in a cluster, because pods mount the volume themselves and must not have the rights for decryption; choose shared, on a volume whose storage class encrypts"
    ),
    DEDICATED: msg(
        "isolation dedicated is not possible in a cluster, because pods mount the one volume of the hub; choose shared, or give the team its own hub on its own volume"
    ),
}


def check_fields(tenant: Tenant) -> None:
    """Raise `Invalid` for a root without the grade that has one, or the grade without it."""
    if tenant.isolation == DEDICATED and not tenant.data_root:
        raise Refused(
            Reason.INVALID,
            msg(
                "isolation dedicated needs data_root: the absolute path of a directory for {name} alone, such as /srv/{name}",
                name=tenant.name,
            ),
        )
    if tenant.isolation != DEDICATED and tenant.data_root:
        raise Refused(
            Reason.INVALID,
            msg(
                "data_root {root} has no meaning with isolation {grade}; leave it out, or choose dedicated",
                root=tenant.data_root,
                grade=tenant.isolation,
            ),
        )


async def check_place(files: TenantFiles | None, tenant: Tenant, others: Mapping[str, Isolation]) -> None:
    """Raise `Invalid` for a location that is not available; `others` are present and future roots of others."""
    check_fields(tenant)
    if files is not None:
        await files.check(tenant.name, tenant.kept, others)
    elif tenant.isolation in _IN_A_CLUSTER:
        raise Refused(Reason.INVALID, _IN_A_CLUSTER[tenant.isolation])


def kept_by_others(tx: Tx, name: str) -> dict[str, Isolation]:
    """Return the roots of other tenants' files; those in a move appear with both ends, under two names."""
    found = {tenant.name: tenant.kept for tenant in tx.tenants.dedicated() if tenant.name != name}
    for relocation in tx.relocations.all(under_way=True):
        if relocation.tenant != name:
            found[f"{relocation.tenant} "] = relocation.old
    return found


def check_free(tx: Tx, tenant: Tenant) -> None:
    """Raise `Conflict` where another tenant was given the same root since that was looked at."""
    theirs = [
        other
        for other, kept in kept_by_others(tx, tenant.name).items()
        if kept.root and kept.root == tenant.data_root
    ]
    if theirs:
        text = msg(
            "{root} is now the root of team {other}; choose another",
            root=tenant.data_root,
            other=theirs[0].strip(),
        )
        raise Refused(Reason.CONFLICT, text)


def begin(tx: Tx, before: Isolation, after: Tenant, actor: str, now: float) -> None:
    """Start the move of a tenant's files to their new location, or call it off. Raises `WrongState`."""
    if after.kept == before:
        return
    last = tx.relocations.get(after.name)
    if last is not None and last.under_way:
        if after.kept == last.old and last.phase in REVOCABLE:
            check_relocation_move(last, R.UNDOING)
            tx.relocations.put(replace(last, phase=R.UNDOING, message=msg("cancelled by {who}", who=actor)))
            return
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "the files of {name} are being moved ({phase}); wait for the end, or set isolation back to {old} to cancel the move, which is possible until the files are compared",
                name=after.name,
                phase=PHASES[last.phase],
                old=last.old.grade,
            ),
        )
    old = Isolation() if last is None else last.kept
    if old != after.kept:
        tx.relocations.put(Relocation(after.name, R.WAITING, old, after.kept, actor, now))


def check_shared(tx: Tx, name: str) -> None:
    """Raise `WrongState` for a tenant whose files are not in the shared tree.

    Its remaining files count for others, and are looked for there.
    """
    last = tx.relocations.get(name)
    if last is not None and (last.under_way or last.kept != Isolation()):
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "the files of {name} are kept {grade}; set its isolation to shared and wait until they are moved, then delete it",
                name=name,
                grade=last.new.grade if last.under_way else last.kept.grade,
            ),
        )
