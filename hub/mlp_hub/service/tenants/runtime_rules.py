"""Checks of a runtime that a tenant registers, each refusal with the value and the way out; and its way over the wire."""

from __future__ import annotations

from typing import NoReturn

from mlp_api.jobs import runtimes as api
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.runtime import template
from mlp_hub.domain.runtime.image import check_image
from mlp_hub.domain.runtime.runtime import BUILT_IN, PS, RankRole, Runtime
from mlp_hub.service.support.units import maybe_when
from mlp_hub.store.records import StoredRuntime
from mlp_language.message import Message, msg

_OWN = "MLP_"
_START = "{start_rank}"


def runtime_from(tenant: str, name: str, asked: api.RuntimeUpdate, *, images: bool = False) -> Runtime:
    """Return the described runtime; raise `Refused` for an invalid one, or one that no tenant may have.

    `images`: ranks run in containers.
    """
    if name in BUILT_IN:
        _refuse(
            msg(
                "name: {name} is a runtime of the platform; use another name than {platform_names}",
                name=name,
                platform_names=", ".join(BUILT_IN),
            )
        )
    if asked.image is not None:
        _check_image(asked.image, images=images)
    roles = tuple(
        RankRole(r.name, r.count, None if r.program is None else tuple(r.program)) for r in asked.roles
    )
    _check_roles(roles, asked.ends_with)
    fixed = sum(role.count or 0 for role in roles)
    made = Runtime(
        name=name,
        title=asked.title,
        description=asked.description,
        program=tuple(asked.program),
        env=dict(asked.env),
        roles=roles,
        launcher=None if asked.launcher is None else tuple(asked.launcher),
        rank_env=asked.rank_env,
        needs=asked.needs,
        image=asked.image,
        ends_with=asked.ends_with,
        linger_s=asked.linger_s,
        success=tuple(sorted({0, *asked.success})),
        least_workers=fixed + 1,
        tenant=tenant,
    )
    _check_templates(made)
    return made


def _check_image(image: str, *, images: bool) -> None:
    if not images:
        _refuse(
            msg(
                "image: this hub starts no containers; leave it out, because programs run in the jobs' own environment"
            )
        )
    check_image(image)


def _check_roles(roles: tuple[RankRole, ...], ends_with: str | None) -> None:
    names = [role.name for role in roles]
    if len(set(names)) < len(names):
        _refuse(
            msg(
                "roles: {role_names} names one twice; each role once, with its count",
                role_names=", ".join(names),
            )
        )
    if PS in names and (names[-1] != PS or roles[-1].count is not None):
        _refuse(
            msg(
                "roles: {ps} must be last and without a count: --ps sets the number of parameter servers",
                ps=PS,
            )
        )
    rest = [role.name for role in roles if role.count is None and role.name != PS]
    if len(rest) != 1:
        _refuse(
            msg(
                "roles: {number} have no count; exactly one must have none, and gets the remaining ranks of --workers",
                number=len(rest),
            )
        )
    if ends_with is not None and (ends_with not in names or ends_with == PS):
        _refuse(
            msg(
                "ends_with {ends_with}: name one of {role_names}, or leave it out",
                ends_with=ends_with,
                role_names=", ".join(n for n in names if n != PS),
            )
        )


def _check_templates(made: Runtime) -> None:
    roles = [role.name for role in made.roles]
    commands: list[tuple[str | Message, tuple[str, ...]]] = [
        ("program", made.program),
        *(
            (msg("program of {role}", role=role.name), role.program)
            for role in made.roles
            if role.program is not None
        ),
    ]
    used: set[str] = set()
    for what, argv in commands:
        for argument in argv:
            _check(what, argument, roles, ("program", "args"))
            used |= {name for name, _ in template.places(argument)}
    if not used & {"program", "entry"}:
        _refuse(
            msg("program: neither {{program}} nor {{entry}} is in it, so the job's program would never run")
        )
    for name, value in made.env.items():
        _check(f"env {name}", value, roles)
    for name in (*made.env, made.rank_env):
        if name.startswith(_OWN):
            _refuse(
                msg(
                    "variable {name}: names that begin with {own} belong to the platform", name=name, own=_OWN
                )
            )
    if made.launcher is not None:
        _check_launcher(made.launcher, roles)


def _check_launcher(launcher: tuple[str, ...], roles: list[str]) -> None:
    for argument in launcher:
        _check("launcher", argument, roles, ("start_rank",))
        if argument != _START and not template.is_common(argument):
            _refuse(
                msg(
                    "launcher: {argument} has a placeholder of a single rank, but the launcher starts all ranks",
                    argument=repr(argument[:60]),
                )
            )
    if _START not in launcher:
        _refuse(msg("launcher: {start} is missing; it starts each rank", start=_START))


def _check(what: str | Message, text: str, roles: list[str], lists: tuple[str, ...] = ()) -> None:
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        _refuse(
            msg(
                "{what}: {argument} holds a control character; leave it out",
                what=what,
                argument=repr(text[:60]),
            )
        )
    try:
        template.check(text, roles, lists=lists)
    except template.TemplateError as error:
        _refuse(msg("{what}: {error}", what=what, error=error.message))


def runtime_to(runtime: Runtime, stored: StoredRuntime | None = None) -> api.RuntimeInfo:
    """Return a runtime as it is shown."""
    return api.RuntimeInfo(
        name=runtime.name,
        title=runtime.title,
        description=runtime.description,
        ps=runtime.has_ps,
        tenant=runtime.tenant,
        state=runtime.state.value,
        program=list(runtime.program),
        env=dict(runtime.env),
        roles=[
            api.RuntimeRole(
                name=r.name, count=r.count, program=None if r.program is None else list(r.program)
            )
            for r in runtime.roles
        ],
        launcher=None if runtime.launcher is None else list(runtime.launcher),
        rank_env=runtime.rank_env,
        needs=runtime.needs,
        image=runtime.image,
        ends_with=runtime.ends_with,
        linger_s=runtime.linger_s,
        success=list(runtime.success),
        changed_by=None if stored is None else stored.changed_by,
        changed_at=None if stored is None else maybe_when(stored.changed_at),
    )


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
