"""Work of the GPUs of this pod, as NVIDIA's driver library tells it, which the container runtime shows to pods with GPUs."""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from collections import deque
from typing import Any

_LIBRARY = "libnvidia-ml.so.1"
_EVERY_S = 1.0
"""Tuning: seconds between two looks: the driver's own measure is of about the last second."""
_KEPT_S = 60.0
"""Tuning: seconds for which work is remembered: longer than the service's time between two looks."""


class _Rates(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class PodGpus:
    """Looks at all GPUs that this pod sees, in a thread: a driver that hangs keeps no rank from being looked after."""

    def __init__(self, library: str = _LIBRARY, monotonic: Any = time.monotonic) -> None:
        self._name, self._monotonic = library, monotonic
        self._library: Any = None
        self._handles: list[ctypes.c_void_p] = []
        self._seen: deque[tuple[float, int]] = deque()
        self.looks = 0
        """Number of looks at all GPUs that were successful: where it does not grow, nothing is known."""

    def begin(self) -> None:
        """Look from now on, if the pod has GPUs. It starts a thread, so the caller forks no process after that."""
        try:
            library = ctypes.CDLL(self._name)
        except OSError:
            return  # a pod without GPUs
        threading.Thread(target=self._look_on, args=(library,), name="gpus", daemon=True).start()

    def open(self, library: Any) -> None:
        """Find the devices by a library. It may wait for a driver that hangs."""
        count = ctypes.c_uint()
        if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
            return
        handles = []
        for number in range(count.value):
            handle = ctypes.c_void_p()
            if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(number), ctypes.byref(handle)):
                return
            handles.append(handle)
        self._library, self._handles = library, handles

    def most(self) -> int | None:
        """Return the most percent that an engine of any GPU did in the last minute; None where that is not known."""
        seen = [percent for at, percent in [*self._seen] if at >= self._monotonic() - _KEPT_S]
        return max(seen, default=None)

    def look(self) -> None:
        """Look once. A device that is not measured, as one in slices, makes all of it unknown."""
        found = [self._percent(handle) for handle in self._handles]
        if not found or None in found:
            return
        now = self._monotonic()
        self._seen.append((now, max(percent or 0 for percent in found)))
        while self._seen[0][0] < now - _KEPT_S:
            self._seen.popleft()
        self.looks += 1

    def _percent(self, handle: ctypes.c_void_p) -> int | None:
        rates, used, period = _Rates(), ctypes.c_uint(), ctypes.c_uint()
        if self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates)):
            return None
        most = rates.gpu
        for engine in ("Encoder", "Decoder"):
            read = getattr(self._library, f"nvmlDeviceGet{engine}Utilization")
            if not read(handle, ctypes.byref(used), ctypes.byref(period)):
                most = max(most, used.value)
        return int(most)

    def _look_on(self, library: Any) -> None:
        with contextlib.suppress(AttributeError):  # an image may have another library of this name
            self.open(library)
            while self._handles:
                self.look()
                time.sleep(_EVERY_S)
