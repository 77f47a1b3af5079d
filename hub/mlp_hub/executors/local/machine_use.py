"""Use of this machine, from /proc, its file system and NVML; for a thread, because it reads files."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mlp_hub.executors.node_use import GpuUse, NodeUse

PROC = Path("/proc")
_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SHOWN = {"user": "user", "system": "system", "idle": "idle", "iowait": "iowait", "steal": "steal"}


def read_node_use(node: str, disk: str, proc: Path = PROC) -> NodeUse:
    """Read all of it; `disk` is a path on the file system to look at."""
    total, available = _memory(proc)
    found = os.statvfs(disk)
    received, sent = _network(proc)
    return NodeUse(
        node,
        cpu_s=_cpu(proc),
        memory_total=total,
        memory_available=available,
        disk_total=found.f_blocks * found.f_frsize,
        disk_available=found.f_bavail * found.f_frsize,
        received=received,
        sent=sent,
        gpus=_gpus(),
    )


def _cpu(proc: Path) -> dict[str, float]:
    """Return processor time by mode, in seconds; unnamed modes are `other`."""
    ticks = os.sysconf("SC_CLK_TCK")
    modes = dict.fromkeys((*_SHOWN.values(), "other"), 0.0)
    with (proc / "stat").open() as lines:
        values = next(lines).split()[1:]
    for mode, value in zip(_MODES, values, strict=False):
        modes[_SHOWN.get(mode, "other")] += int(value) / ticks
    return modes


def _memory(proc: Path) -> tuple[int | None, int | None]:
    """Return the memory of the machine in bytes: all, and the part that programs could still get."""
    text = (proc / "meminfo").read_text()
    found = dict(re.findall(r"^(MemTotal|MemAvailable):\s+(\d+) kB", text, re.MULTILINE))
    total, available = found.get("MemTotal"), found.get("MemAvailable")
    return (
        None if total is None else int(total) * 1024,
        None if available is None else int(available) * 1024,
    )


def _network(proc: Path) -> tuple[int | None, int | None]:
    """Return the bytes that all interfaces except loopback received and sent; None without any."""
    received = sent = None
    for line in (proc / "net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        values = rest.split()
        if name.strip() != "lo" and len(values) > 8:
            received, sent = (received or 0) + int(values[0]), (sent or 0) + int(values[8])
    return received, sent


def _gpus() -> tuple[GpuUse, ...]:
    """Return the use of each NVIDIA device; empty without a driver."""
    try:
        import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
    except ImportError:
        return ()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return ()
    try:
        return tuple(_gpu(pynvml, number) for number in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError:
        return ()
    finally:
        pynvml.nvmlShutdown()


def _gpu(nvml: Any, number: int) -> GpuUse:
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return GpuUse(
        int(nvml.nvmlDeviceGetMinorNumber(handle)),
        _measured(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100),
        int(memory.used),
        int(memory.total),
        _measured(nvml, lambda: float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))),
        _measured(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000),
    )


def _measured(nvml: Any, read: Callable[[], float]) -> float | None:
    """Return a value that not every device measures."""
    try:
        return read()
    except nvml.NVMLError:
        return None
