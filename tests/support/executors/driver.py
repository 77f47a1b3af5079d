"""A driver of GPUs with the interface of `pynvml`: a test says what its devices do."""

# ruff: noqa: N802 - names of the library
from __future__ import annotations

import threading
from collections.abc import Mapping
from types import SimpleNamespace


class NVMLError(Exception):
    """Error of the driver."""


class Driver:
    """Devices by the numbers of their files, with what their engines do in percent.

    A device in `sliced` measures nothing, as with MIG. A `broken` driver answers nothing. With `hangs` it answers once that is set.
    """

    NVMLError = NVMLError
    NVML_GPU_UTILIZATION_SAMPLES = 1
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, percent: Mapping[int, int]) -> None:
        self.percent = dict(percent)
        self.encoder = dict.fromkeys(percent, 0)
        self.sliced: set[int] = set()
        self.broken = False
        self.hangs: threading.Event | None = None
        self.reached = threading.Event()
        self._samples: dict[int, list[SimpleNamespace]] = {device: [] for device in percent}
        self._time = 0
        for device in percent:
            self.burst(device, 0)

    def burst(self, device: int, percent: int) -> None:
        """Have worked for a moment."""
        self._time += 1
        value = SimpleNamespace(uiVal=percent)
        self._samples[device].append(SimpleNamespace(timeStamp=self._time, sampleValue=value))

    def nvmlInit(self) -> None:
        if self.hangs is not None:
            self.reached.set()
            self.hangs.wait()
        if self.broken:
            raise NVMLError

    def nvmlShutdown(self) -> None:
        pass

    def nvmlDeviceGetCount(self) -> int:
        return len(self.percent)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> int:
        return list(self.percent)[number]

    def nvmlDeviceGetMinorNumber(self, device: int) -> int:
        return device

    def nvmlDeviceGetMemoryInfo(self, _: int) -> SimpleNamespace:
        return SimpleNamespace(used=1, total=2)

    def nvmlDeviceGetTemperature(self, *_: int) -> int:
        raise NVMLError

    def nvmlDeviceGetPowerUsage(self, _: int) -> int:
        raise NVMLError

    def nvmlDeviceGetUtilizationRates(self, device: int) -> SimpleNamespace:
        if device in self.sliced:
            raise NVMLError
        return SimpleNamespace(gpu=self.percent[device])

    def nvmlDeviceGetEncoderUtilization(self, device: int) -> list[int]:
        return [self.encoder[device], 1000]

    def nvmlDeviceGetDecoderUtilization(self, _: int) -> list[int]:
        raise NVMLError

    def nvmlDeviceGetSamples(self, device: int, _: int, since: int) -> tuple[int, list[SimpleNamespace]]:
        found = [one for one in self._samples[device] if one.timeStamp > since]
        if not found:
            raise NVMLError
        return 1, found
