"""Rewrite of a spec without a sandbox, where the paths inside are the host's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlp_hub.sandbox.spec import SandboxSpec


def translate(spec: SandboxSpec) -> SandboxSpec:
    """Return the spec with every path inside replaced by the path that is bound there.

    Arguments and variables are rewritten where they begin with such a path, also after a colon as in
    PATH. Paths in a program itself (`/workspace/ckpt` in its code) are not: it should use the
    variables.
    """
    table = {bind.dst: bind.src for bind in spec.binds if bind.dst != bind.src}
    table |= {link.path: link.target for link in spec.links}
    table[spec.home_mount] = spec.home_dir
    ranks = spec.ranks
    if ranks is not None:
        ranks = replace(
            ranks,
            program=_command(ranks.program, table),
            programs=tuple(_command(program, table) for program in ranks.programs),
            envs=tuple(_variables(env, table) for env in ranks.envs),
        )
    return replace(
        spec,
        argv=_command(spec.argv, table),
        env=_variables(spec.env, table),
        cwd=_path(spec.cwd or spec.home_mount, table),
        home_mount=spec.home_dir,
        ranks=ranks,
    )


def _command(words: Sequence[str], table: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(_path(word, table) for word in words)


def _variables(env: Mapping[str, str], table: Mapping[str, str]) -> dict[str, str]:
    return {key: ":".join(_path(part, table) for part in value.split(":")) for key, value in env.items()}


def _path(text: str, table: Mapping[str, str]) -> str:
    for inside in sorted(table, key=len, reverse=True):
        if text == inside or text.startswith(inside + "/"):
            return table[inside] + text[len(inside) :]
    return text
