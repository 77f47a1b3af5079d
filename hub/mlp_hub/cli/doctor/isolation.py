"""Doctor's checks of the isolation of tenants' files: needs of encryption, keys, and separate roots."""

from __future__ import annotations

from pathlib import Path

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.domain.tenants.tenant import DEDICATED, ENCRYPTED
from mlp_hub.isolation import KeyUnknownError, TenantRoots, lacking, roots_of
from mlp_hub.settings import Settings
from mlp_language.render import say

NAME = "isolation"


def isolation(settings: Settings) -> list[Check]:
    """Tell which grades can be had here, and whether the files of tenants that have one are there."""
    roots = roots_of(settings)
    kept = roots.kept()
    encrypted = [tenant for tenant, how in kept.items() if how.grade == ENCRYPTED]
    found = [_encryption(encrypted)]
    for tenant in encrypted:
        found += _key(roots, tenant)
    for tenant, how in kept.items():
        if how.grade == DEDICATED and not roots.is_marked(tenant, Path(how.root)):
            found.append(
                Check(
                    NAME,
                    FAIL,
                    say("the root {root} of team {tenant} is missing", root=how.root, tenant=tenant),
                    say(
                        "Mount its volume. Until then nothing of the team starts; everything else continues."
                    ),
                )
            )
    return found


def _encryption(encrypted: list[str]) -> Check:
    why = lacking()
    if why is None:
        return Check(
            NAME,
            OK,
            say("shared, dedicated and encrypted: gocryptfs is installed; {n} encrypted", n=len(encrypted)),
        )
    status = FAIL if encrypted else WARN
    return Check(NAME, status, say("shared and dedicated; no team can be kept encrypted"), f"{why}.")


def _key(roots: TenantRoots, tenant: str) -> list[Check]:
    assert roots.mounts is not None  # noqa: S101 - that of a hub has them
    try:
        roots.mounts.keys.keys(tenant)
    except KeyUnknownError as error:
        return [
            Check(
                NAME,
                FAIL,
                say("the key of team {tenant} is not available: {error}", tenant=tenant, error=str(error)),
                say(
                    "Restore the directories secrets and isolation of the state from a backup: without the key nobody can read the files."
                ),
            )
        ]
    return []
