"""What a person may choose for a notebook server: the form, its answer, and the same as JSON; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isfinite
from typing import Any

from mlp_spawner.errors import OptionsError
from mlp_spawner.service import Account, Room

CPU_MIN = 0.1  # cores
RAM_MIN = 100  # MiB
CPU_MAX = 1_000_000.0
RAM_MAX = 1_000_000_000
FIELDS = ("tenant", "cpu", "ram")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a server gets where nothing is chosen: cpu in cores, ram in MiB."""

    cpu: float
    ram: int


@dataclass(frozen=True, slots=True)
class Choice:
    """What a server is started with."""

    tenant: str
    cpu: float
    ram: int


def form(defaults: Defaults, account: Account, last: Mapping[str, Any]) -> str:
    """Return the fields of the spawn page as HTML, filled with the last choice.

    The tenant is asked for only where there are several; what is free of its quota is shown always. Plain labelled
    inputs: they work by keyboard alone.
    """
    parts = ['<fieldset id="mlp-options"><legend class="visually-hidden">Notebook server</legend>']
    tenants = account.tenants
    if len(tenants) > 1:
        chosen = last.get("tenant") if last.get("tenant") in tenants else account.default_tenant
        options = "".join(
            f'<option value="{escape(t)}"{" selected" if t == chosen else ""}>{escape(t)}: '
            f"{_free(account.room.get(t))}</option>"
            for t in tenants
        )
        parts.append(
            '<div class="mb-3"><label class="form-label" for="mlp-tenant">Tenant</label>'
            f'<select class="form-select" id="mlp-tenant" name="tenant" aria-describedby="mlp-tenant-help">{options}'
            '</select><div class="form-text" id="mlp-tenant-help">Whose quota the server takes from.</div></div>'
        )
    else:
        tenant = account.default_tenant
        parts.append(
            f'<p id="mlp-tenant">Tenant <strong>{escape(tenant)}</strong>: {_free(account.room.get(tenant))}.</p>'
        )
    if any(_back(account.room.get(t)) for t in tenants):
        parts.append(
            '<p class="form-text" id="mlp-back">What others borrowed is taken back where the server needs it: work of '
            "theirs is stopped, and the start waits until that has ended.</p>"
        )
    cpu = _or(last.get("cpu"), defaults.cpu)
    ram = _or(last.get("ram"), defaults.ram)
    text = "A share: idle cores may be used."
    parts.append(_number("cpu", "CPU (cores)", value=f"{cpu:g}", low=f"{CPU_MIN:g}", step="0.1", text=text))
    text = "A limit for notebooks and terminals together."
    parts.append(_number("ram", "Memory (MiB)", value=f"{ram:.0f}", low=f"{RAM_MIN}", step="1", text=text))
    parts.append("</fieldset>")
    return "".join(parts)


def _free(room: Room | None) -> str:
    """Say what is free of a tenant's quota."""
    parts = []
    if room and room.cpu is not None and room.cpu_free is not None:
        parts.append(f"{room.cpu_free:g} of {room.cpu:g} cpu")
    if room and room.ram is not None and room.ram_free is not None:
        parts.append(f"{room.ram_free} of {room.ram} MiB memory")
    free = f"{' and '.join(parts)} free" if parts else "no limit of its own, only the machine's"
    return f"{free}{_back(room)}"


def _back(room: Room | None) -> str:
    """Say what may be had besides by taking it back, and from whom; nothing where nobody has borrowed."""
    if room is None:
        return ""
    parts = [f"{room.cpu_back:g} cpu"] if room.cpu_back else []
    parts += [f"{room.ram_back} MiB memory"] if room.ram_back else []
    if not parts:
        return ""
    names = ", ".join(escape(t) for t in room.back_from)
    whose = f"tenant{'' if len(room.back_from) == 1 else 's'} {names}"
    return f"; {' and '.join(parts)} more of its own, lent to {whose}, may be taken back"


def _or(value: Any, default: float) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else default


def _number(name: str, label: str, *, value: str, low: str, step: str, text: str) -> str:
    return (
        f'<div class="mb-3"><label class="form-label" for="mlp-{name}">{label}</label>'
        f'<input class="form-control" id="mlp-{name}" name="{name}" type="number" value="{escape(value)}" '
        f'min="{low}" step="{step}" aria-describedby="mlp-{name}-help" required>'
        f'<div class="form-text" id="mlp-{name}-help">{text}</div></div>'
    )


def from_form(data: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Turn the form's answer (lists of texts) into options as the API takes them; empty fields are left out."""
    found: dict[str, Any] = {}
    for name, values in data.items():
        if name == "_xsrf":
            continue
        if name not in FIELDS:
            raise OptionsError(_unknown(name))
        text = str(values[0]).strip() if values else ""
        if not text:
            continue
        found[name] = text if name == "tenant" else _parse(name, text)
    return found


def _parse(name: str, text: str) -> float | int:
    try:
        return int(text) if name == "ram" else float(text)
    except ValueError:
        kind = "a whole number of MiB" if name == "ram" else "a number of cores"
        raise OptionsError(f"{name} is {text[:40]!r}; it must be {kind}") from None


def choose(
    options: Mapping[str, Any], defaults: Defaults, tenants: Sequence[str], default_tenant: str
) -> Choice:
    """Check the options, from whichever way they came, and fill in what was left out."""
    for name in options:
        if name not in FIELDS:
            raise OptionsError(_unknown(name))
    tenant = options.get("tenant", default_tenant)
    if not isinstance(tenant, str) or tenant not in tenants:
        raise OptionsError(
            f"you are not in a tenant {str(tenant)[:60]!r}; you are in: {', '.join(tenants) or 'none'}"
        )
    cpu, ram = options.get("cpu", defaults.cpu), options.get("ram", defaults.ram)
    if (
        isinstance(cpu, bool)
        or not isinstance(cpu, int | float)
        or not isfinite(cpu)
        or not CPU_MIN <= cpu <= CPU_MAX
    ):
        raise OptionsError(f"cpu is {str(cpu)[:40]}; it must be a number of cores of at least {CPU_MIN:g}")
    if isinstance(ram, bool) or not isinstance(ram, int) or not RAM_MIN <= ram <= RAM_MAX:
        raise OptionsError(f"ram is {str(ram)[:40]}; it must be a whole number of MiB of at least {RAM_MIN}")
    return Choice(tenant, float(cpu), ram)


def _unknown(name: str) -> str:
    return f"{name[:60]!r} is no option of a notebook server; there are: {', '.join(FIELDS)}"
