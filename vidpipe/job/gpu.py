"""How busy this process's GPUs are, as NVIDIA's management library (NVML) says; nothing where it does not answer."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vidpipe.engine.devices import VISIBLE


@dataclass(frozen=True)
class Gpu:
    """One GPU at one moment."""

    name: str
    busy: float | None
    """Share of the last sampling period (a sixth of a second to one) in which a kernel ran; None for a MIG slice."""
    memory_used_bytes: int
    """By all processes on it."""
    memory_bytes: int


class Gpus:
    """The GPUs that an environment shows to CUDA.

    NVML numbers devices by their place on the bus, CUDA by speed unless CUDA_DEVICE_ORDER says otherwise;
    the two agree on hosts whose GPUs are of one kind.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._visible = environment.get(VISIBLE)
        self._nvml: Any = None
        self._devices: list[tuple[Any, str]] | None = None

    def read(self) -> tuple[Gpu, ...]:
        """Each of them now; empty where there is none, or no library to ask."""
        if self._devices is None:
            self._devices = self._open()
        found = []
        for device, name in self._devices:
            try:
                memory = self._nvml.nvmlDeviceGetMemoryInfo(device)
            except self._nvml.NVMLError:  # fallen off the bus: what remains is shown
                continue
            found.append(Gpu(name, self._busy(device), int(memory.used), int(memory.total)))
        return tuple(found)

    def _open(self) -> list[tuple[Any, str]]:
        try:
            import pynvml
        except ImportError:  # comes with the CUDA builds of the engines
            return []
        self._nvml = pynvml
        try:
            pynvml.nvmlInit()
            devices = [self._device(word) for word in self._words()]
            return [(device, _text(pynvml.nvmlDeviceGetName(device))) for device in devices]
        except (pynvml.NVMLError, ValueError):  # no driver, or a word that names nothing
            return []

    def _words(self) -> list[str]:
        if self._visible is None:
            return [str(number) for number in range(self._nvml.nvmlDeviceGetCount())]
        return [word.strip() for word in self._visible.split(",") if word.strip()]

    def _device(self, word: str) -> Any:
        if word.isdecimal():
            return self._nvml.nvmlDeviceGetHandleByIndex(int(word))
        return self._nvml.nvmlDeviceGetHandleByUUID(word.encode())

    def _busy(self, device: Any) -> float | None:
        try:
            return float(self._nvml.nvmlDeviceGetUtilizationRates(device).gpu) / 100
        except self._nvml.NVMLError:
            return None


def _text(name: str | bytes) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name
