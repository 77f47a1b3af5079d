"""Work of GPUs since the last look, as NVML has it; for one thread, because the driver may take a while."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any


class GpuMeter:
    """Looks at devices by the numbers of their files. It remembers up to when it has seen the driver's samples."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def look(self, devices: Collection[int]) -> dict[int, float | None]:
        """Return the most that any engine of each device did since the last look, from 0 to 1; None where that is not measured.

        The driver keeps samples of some seconds. Encoders and decoders count as much as what computes. A device in slices (MIG) has no
        such measure.
        """
        unknown: dict[int, float | None] = dict.fromkeys(devices)
        if not devices:
            return unknown
        try:
            import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415 - optional
        except ImportError:
            return unknown
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return unknown
        try:
            for number in range(pynvml.nvmlDeviceGetCount()):
                handle = pynvml.nvmlDeviceGetHandleByIndex(number)
                device = int(pynvml.nvmlDeviceGetMinorNumber(handle))
                if device in unknown:
                    unknown[device] = self._most(pynvml, handle, device)
        except pynvml.NVMLError:
            return dict.fromkeys(devices)
        finally:
            pynvml.nvmlShutdown()
        return unknown

    def _most(self, nvml: Any, handle: Any, device: int) -> float | None:
        now = _measured(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu)
        if now is None:
            return None
        percent = [float(now), *self._samples(nvml, handle, device)]
        for read in (nvml.nvmlDeviceGetEncoderUtilization, nvml.nvmlDeviceGetDecoderUtilization):
            used = _measured(nvml, partial(read, handle))
            percent += [] if used is None else [float(used[0])]
        return min(1.0, max(percent) / 100)

    def _samples(self, nvml: Any, handle: Any, device: int) -> list[float]:
        """Return the samples since the last look; at the first one only those to come count."""
        last = self._seen.get(device)
        found = _measured(
            nvml, lambda: nvml.nvmlDeviceGetSamples(handle, nvml.NVML_GPU_UTILIZATION_SAMPLES, last or 0)[1]
        )
        if not found:
            return []
        self._seen[device] = max(int(one.timeStamp) for one in found)
        return [] if last is None else [float(one.sampleValue.uiVal) for one in found if one.timeStamp > last]


def _measured(nvml: Any, read: Callable[[], Any]) -> Any:
    """Return a value that not every device, or driver, measures."""
    try:
        return read()
    except nvml.NVMLError:
        return None
