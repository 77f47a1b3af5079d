"""Choices of a person for a notebook server: the form, its answer, and the same as JSON; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from mlp_language.message import NOTHING, Message, Span, msg, msgs
from mlp_language.render import ENGLISH, Reader, render
from mlp_spawner.errors import OptionsError
from mlp_spawner.quota.service_client import Account, Room, ServerEnvironment

CPU_MIN = 0.1  # cores
RAM_MIN = 100  # MiB
CPU_MAX = 1_000_000.0
RAM_MAX = 1_000_000_000
GPU_MAX = 64
NAME_MAX = 50  # characters of an environment
FIELDS = ("tenant", "cpu", "ram", "environment", "without_settings")
GPU_FIELDS = ("gpu", "gpu_kind")
"""Given: additional choices where servers can have GPUs."""
NO_ENVIRONMENTS: Mapping[str, Sequence[ServerEnvironment]] = {}
"""Given: none to choose from."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """Resources of a server without a choice: cpu in cores, ram in MiB."""

    cpu: float
    ram: int


@dataclass(frozen=True, slots=True)
class Choice:
    """Options of a server's start."""

    tenant: str
    cpu: float
    ram: int
    gpu: int = 0
    gpu_kind: str = ""
    environment: ServerEnvironment | None = None
    without_settings: bool = False


def fields_of(*, gpus: bool) -> tuple[str, ...]:
    """Return what may be chosen."""
    return (*FIELDS, *GPU_FIELDS) if gpus else FIELDS


def form(
    defaults: Defaults,
    account: Account,
    last: Mapping[str, Any],
    *,
    reader: Reader = ENGLISH,
    network: str = "outbound",
    ended: Message = NOTHING,
    gpus: bool = False,
    idle_s: int = 0,
) -> str:
    """Return the fields of the spawn page as HTML, filled with the last choice.

    `network` is of servers in general. `ended` is the end of the last one, if its user should know.
    `gpus`: servers can have some, and the form asks for them if a tenant may use any. `idle_s`: seconds
    after which an idle one is stopped, 0 for never.

    The form asks for the tenant only if there are several; the free part of its quota is always shown.
    It has plain labelled inputs: they work by keyboard alone.
    """

    def say(message: Message) -> str:
        return escape(render(message, reader))

    name = say(msg("Notebook server"))
    parts = [f'<fieldset id="mlp-options"><legend class="visually-hidden">{name}</legend>']
    if ended:
        parts.insert(0, f'<p class="alert alert-warning" id="mlp-ended" role="alert">{say(ended)}</p>')
    tenants = account.tenants
    chosen = last.get("tenant") if last.get("tenant") in tenants else account.default_tenant
    if len(tenants) > 1:
        options = "".join(
            f'<option value="{escape(t)}"{" selected" if t == chosen else ""}>'
            f"{say(msg('{tenant}: {room}', tenant=t, room=_room(account.room.get(t))))}</option>"
            for t in tenants
        )
        parts.append(
            f'<div class="mb-3"><label class="form-label" for="mlp-tenant">{say(msg("Team"))}</label>'
            f'<select class="form-select" id="mlp-tenant" name="tenant" aria-describedby="mlp-tenant-help">{options}'
            f'</select><div class="form-text" id="mlp-tenant-help">{say(msg("The team whose quota the server uses."))}</div>'
            "</div>"
        )
    else:
        tenant = account.default_tenant
        line = say(msg("Team {name}: {room}.", name="\0", room=_room(account.room.get(tenant))))
        bold = f"<strong>{escape(tenant)}</strong>"
        parts.append(f'<p id="mlp-tenant">{line.replace(chr(0), bold)}</p>')
    if any(_back(account.room.get(t)) for t in tenants):
        back = msg(
            "If the server needs quota that others borrowed, the hub takes it back. It stops some of their work, and the start waits until that work has ended."
        )
        parts.append(f'<p class="form-text" id="mlp-back">{say(back)}</p>')
    parts += _environments(account, environment_in(last), str(chosen), say)
    cpu = _or(last.get("cpu"), defaults.cpu, CPU_MAX)
    ram = _or(last.get("ram"), defaults.ram, RAM_MAX)
    label, text = say(msg("CPU (cores)")), say(msg("A share: idle cores can be used too."))
    parts.append(_number("cpu", label, value=f"{cpu:g}", low=f"{CPU_MIN:g}", step="0.1", text=text))
    label, text = say(msg("Memory (MiB)")), say(msg("A limit for notebooks and terminals together."))
    parts.append(_number("ram", label, value=f"{ram:.0f}", low=f"{RAM_MIN}", step="1", text=text))
    if gpus and any(account.room[t].gpu for t in tenants if t in account.room):
        parts += _gpus(account, last, say)
    if said := _networks(account, network):
        parts.append(f'<p class="form-text" id="mlp-network">{say(said)}</p>')
    if idle_s:
        idle = msg(
            "A server that nobody uses for {time} is stopped. An open page, a kernel at work and a program in a terminal count as use.",
            time=Span(idle_s),
        )
        parts.append(f'<p class="form-text" id="mlp-idle">{say(idle)}</p>')
    parts.append(_check("without_settings", say(msg("Start without my settings")), say(_WITHOUT)))
    parts.append("</fieldset>")
    return "".join(parts)


def _environments(account: Account, last: str, tenant: str, say: Callable[[Message], str]) -> Iterator[str]:
    """Return the field for the environment: each name once, with the teams that have it where there are several to choose from."""
    found: dict[str, list[str]] = {}
    kernels = False
    for team in account.tenants:
        for each in account.room.get(team, Room()).environments:
            found.setdefault(each.name, []).append(team)
            kernels = kernels or each.kernel is not None
    kept = last if tenant in found.get(last, ()) else ""
    if last and not kept:
        gone = msg(
            "Environment {name}, which your last server had, no longer exists for team {tenant}. The server starts with the platform's environment unless you choose another.",
            name=last,
            tenant=tenant,
        )
        yield f'<p class="alert alert-warning" id="mlp-environment-gone" role="alert">{say(gone)}</p>'
    if not found:
        return
    names = [("", say(msg("the platform's environment")))]
    for name, teams in found.items():
        several = msg("{name} (team {tenants})", name=name, tenants=tuple(teams))
        names.append((name, say(several) if len(account.tenants) > 1 else escape(name)))
    choices = "".join(
        f'<option value="{escape(name)}"{" selected" if name == kept else ""}>{text}</option>'
        for name, text in names
    )
    text = say(
        msg("New notebooks begin with its packages; each notebook can change its kernel.")
        if kernels
        else msg("The image that the server runs in.")
    )
    yield (
        f'<div class="mb-3"><label class="form-label" for="mlp-environment">{say(msg("Environment"))}</label>'
        f'<select class="form-select" id="mlp-environment" name="environment" aria-describedby="mlp-environment-help">{choices}'
        f'</select><div class="form-text" id="mlp-environment-help">{text}</div></div>'
    )


def environment_in(stored: Mapping[str, Any]) -> str:
    """Return the environment in options of any source; empty for the platform's, or an invalid name."""
    found = stored.get("environment")
    # half a character keeps a page from being written; a line's end makes a line of a log two
    return found if isinstance(found, str) and found.isprintable() and len(found) <= NAME_MAX else ""


def repeated(
    stored: Mapping[str, Any], default_tenant: str, environments: Mapping[str, Sequence[ServerEnvironment]]
) -> dict[str, Any]:
    """Return the options of the last start as a start that gives none repeats them: without an environment that is gone, with settings."""
    name, tenant = environment_in(stored), stored.get("tenant", default_tenant)
    there = environments.get(tenant, ()) if isinstance(tenant, str) else ()
    gone = bool(name) and all(each.name != name for each in there)
    once = {"without_settings"}  # to mend what is wrong
    return {k: v for k, v in stored.items() if not (gone and k == "environment") and k not in once}


def _gpus(account: Account, last: Mapping[str, Any], say: Callable[[Message], str]) -> Iterator[str]:
    """Return the fields for GPUs: how many, and of which kind where there are several."""
    gpu = _or(last.get("gpu"), 0, GPU_MAX)
    text = say(msg("Nobody else can use them while the server runs."))
    yield _number("gpu", say(msg("GPUs")), value=f"{gpu:.0f}", low="0", step="1", text=text)
    kinds = sorted({kind for room in account.room.values() for kind in room.gpu_kinds})
    if kinds:
        names = [("", say(msg("any"))), *((kind, escape(kind)) for kind in kinds)]
        options = "".join(
            f'<option value="{escape(kind)}"{" selected" if kind == last.get("gpu_kind") else ""}>{name}</option>'
            for kind, name in names
        )
        yield (
            f'<div class="mb-3"><label class="form-label" for="mlp-gpu_kind">{say(msg("Kind of GPU"))}</label>'
            f'<select class="form-select" id="mlp-gpu_kind" name="gpu_kind">{options}</select></div>'
        )


def _room(room: Room | None) -> Message:
    """Return the message about the room of a server in a tenant's quota, and beyond it."""
    free = []
    if room and room.cpu is not None and room.cpu_free is not None:
        free.append(msg("{free} of {all} cpu", free=room.cpu_free, all=room.cpu))
    if room and room.ram is not None and room.ram_free is not None:
        free.append(msg("{free} of {all} MiB memory", free=room.ram_free, all=room.ram))
    if room and room.gpu and room.gpu_free is not None:
        free.append(msg("{free} of {all} gpu", free=room.gpu_free, all=room.gpu))
    parts = (
        msg("{amounts} free", amounts=tuple(free)) if free else msg("no separate limit, only the machine's")
    )
    if more := () if room is None else _amounts(room.cpu_borrow, room.ram_borrow):
        parts = msg("{room}, {amounts} more to borrow", room=parts, amounts=more)
    if room is not None and (back := _back(room)):
        parts = msgs(
            "{room}; {amounts} more of its quota, lent to team {tenants}, can be taken back",
            "{room}; {amounts} more of its quota, lent to teams {tenants}, can be taken back",
            n=len(room.back_from),
            room=parts,
            amounts=back,
            tenants=tuple(room.back_from),
        )
    return parts


def _amounts(cpu: float, ram: int) -> tuple[Message, ...]:
    found = [msg("{n} cpu", n=cpu)] if cpu else []
    return (*found, *([msg("{n} MiB memory", n=ram)] if ram else []))


def _back(room: Room | None) -> tuple[Message, ...]:
    """Return the additional amounts from taking back; empty if nobody has borrowed."""
    return () if room is None else _amounts(room.cpu_back, room.ram_back)


def _networks(account: Account, default: str) -> Message:
    """Say of which tenants jobs and servers have no network, and who can allow it; nothing where all have one."""
    rooms = [(tenant, account.room.get(tenant, Room())) for tenant in account.tenants]
    jobs = tuple(t for t, room in rooms if room.job_network != "outbound")
    notebooks = tuple(t for t, room in rooms if (room.network or default) != "outbound")
    said = []
    if jobs:
        said.append(
            msgs(
                "Jobs of team {names} have no network",
                "Jobs of teams {names} have no network",
                n=len(jobs),
                names=jobs,
            )
        )
    if notebooks:
        said.append(
            msgs(
                "Notebooks of team {names} have no network",
                "Notebooks of teams {names} have no network",
                n=len(notebooks),
                names=notebooks,
            )
        )
    if not said:
        return NOTHING
    what = said[0] if len(said) == 1 else msg("{first}. {second}", first=said[0], second=said[1])
    return msg("{what}; an administrator of the hub can allow it.", what=what)


def _or(value: Any, default: float, most: float) -> float:
    """Return a number that was chosen before; the default where it is none that can be chosen, as an API may have left one."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value <= most else default


_WITHOUT = msg(
    "For a server that does not start, or kernels that die: it leaves out what you have set and installed for Jupyter, IPython and Python "
    "in your home."
)


def _check(name: str, label: str, text: str) -> str:
    return (
        f'<div class="mb-3 form-check"><input class="form-check-input" id="mlp-{name}" name="{name}" type="checkbox" value="yes" '
        f'aria-describedby="mlp-{name}-help"><label class="form-check-label" for="mlp-{name}">{label}</label>'
        f'<div class="form-text" id="mlp-{name}-help">{text}</div></div>'
    )


def _number(name: str, label: str, *, value: str, low: str, step: str, text: str) -> str:
    return (
        f'<div class="mb-3"><label class="form-label" for="mlp-{name}">{label}</label>'
        f'<input class="form-control" id="mlp-{name}" name="{name}" type="number" value="{escape(value)}" '
        f'min="{low}" step="{step}" aria-describedby="mlp-{name}-help" required>'
        f'<div class="form-text" id="mlp-{name}-help">{text}</div></div>'
    )


def from_form(data: Mapping[str, Sequence[Any]], *, gpus: bool = False) -> dict[str, Any]:
    """Turn the form's answer (lists of texts) into options as the API takes them; empty fields are left out."""
    found: dict[str, Any] = {}
    for name, values in data.items():
        if name == "_xsrf":
            continue
        if name not in fields_of(gpus=gpus):
            raise OptionsError(_unknown(name, gpus=gpus))
        text = str(values[0]).strip() if values else ""
        if not text:
            continue
        if name == "without_settings":
            found[name] = True  # a box that is not ticked is not sent
        else:
            found[name] = text if name in {"tenant", "gpu_kind", "environment"} else _parse(name, text)
    return found


def _parse(name: str, text: str) -> float | int:
    try:
        return float(text) if name == "cpu" else int(text)
    except ValueError:
        given = repr(text[:40])
        raise OptionsError(
            {
                "cpu": msg("cpu is {given}; it must be a number of cores", given=given),
                "ram": msg("ram is {given}; it must be a whole number of MiB", given=given),
                "gpu": _no_gpus(given),
            }[name]
        ) from None


def _no_gpus(given: str) -> Message:
    return msg("gpu is {given}; it must be a whole number of GPUs, {most} at most", given=given, most=GPU_MAX)


def choose(
    options: Mapping[str, Any],
    defaults: Defaults,
    tenants: Sequence[str],
    default_tenant: str,
    *,
    gpus: bool = False,
    environments: Mapping[str, Sequence[ServerEnvironment]] = NO_ENVIRONMENTS,
) -> Choice:
    """Check the options, from any source, and fill in the missing ones.

    `environments`: the environments for servers of each tenant, as the service has them; all data
    except its name is from there.
    """
    for name in options:
        if name not in fields_of(gpus=gpus):
            raise OptionsError(_unknown(name, gpus=gpus))
    tenant = options.get("tenant", default_tenant)
    if not isinstance(tenant, str) or tenant not in tenants:
        given, mine = repr(str(tenant)[:60]), ", ".join(tenants)
        raise OptionsError(
            msg("you are not in a team {given}; you are in: {mine}", given=given, mine=mine)
            if mine
            else msg("you are in no team")
        )
    cpu, ram = options.get("cpu", defaults.cpu), options.get("ram", defaults.ram)
    if (
        isinstance(cpu, bool) or not isinstance(cpu, int | float) or not CPU_MIN <= cpu <= CPU_MAX
    ):  # what is not finite, or too large for a float, is out of these bounds too
        text = msg(
            "cpu is {given}; it must be a number of cores of at least {least}",
            given=str(cpu)[:40],
            least=CPU_MIN,
        )
        raise OptionsError(text)
    if isinstance(ram, bool) or not isinstance(ram, int) or not RAM_MIN <= ram <= RAM_MAX:
        text = msg(
            "ram is {given}; it must be a whole number of MiB of at least {least}",
            given=str(ram)[:40],
            least=RAM_MIN,
        )
        raise OptionsError(text)
    gpu, kind = options.get("gpu", 0), options.get("gpu_kind", "")
    if isinstance(gpu, bool) or not isinstance(gpu, int) or not 0 <= gpu <= GPU_MAX:
        raise OptionsError(_no_gpus(str(gpu)[:40]))
    if not isinstance(kind, str) or len(kind) > 64:
        raise OptionsError(
            msg("gpu_kind is {given}; it must be the name of a kind of GPU", given=repr(str(kind)[:40]))
        )
    environment = _environment(options.get("environment"), tenant, environments.get(tenant, ()))
    without = options.get("without_settings", False)
    if not isinstance(without, bool):
        raise OptionsError(
            msg("without_settings is {given}; it must be true or false", given=repr(str(without)[:40]))
        )
    return Choice(tenant, float(cpu), ram, gpu, kind if gpu else "", environment, without)


def _environment(given: Any, tenant: str, there: Sequence[ServerEnvironment]) -> ServerEnvironment | None:
    """Return the environment of a tenant that was chosen, None where that is the platform's."""
    if given is None or given == "":
        return None
    found = next((each for each in there if each.name == given), None)
    if found is None:
        shown, names = repr(str(given)[:60]), tuple(each.name for each in there)
        raise OptionsError(
            msg(
                "team {tenant} has no ready environment {given}; it has: {names}",
                tenant=tenant,
                given=shown,
                names=names,
            )
            if names
            else msg(
                "team {tenant} has no ready environment {given}, nor any other; leave it out for the platform's",
                tenant=tenant,
                given=shown,
            )
        )
    return found


def _unknown(name: str, *, gpus: bool) -> Message:
    if name in GPU_FIELDS:
        return msg("{name}: notebook servers of this machine have no GPUs; submit a job instead", name=name)
    fields = ", ".join(fields_of(gpus=gpus))
    return msg(
        "{name} is not an option of a notebook server; options are {fields}",
        name=repr(name[:60]),
        fields=fields,
    )
