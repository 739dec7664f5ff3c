"""Devices and contexts."""
from __future__ import annotations

import contextlib
import contextvars
import os
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Union

from ._library import Handle, Unpicklable, check, ffi, lib, listed, new, text

_KINDS = ("other", "integrated", "discrete", "virtual", "cpu")


@dataclass(frozen=True)
class Device:
    """A device of this machine, as `devices()` lists it.

    `name` and `driver` are texts of the driver. `uuid` has 32 hexadecimal digits. `index` is the
    place in the list. `kind` is "discrete", "integrated", "virtual", "cpu" or "other".
    `memory_bytes` is the size of its memory. If `usable` is False, `reason` tells why.
    """

    name: str
    driver: str
    uuid: str
    index: int
    kind: str
    memory_bytes: int
    usable: bool
    reason: str


# What names a device: an index, a text as in RLXVK_DEVICE, a Device, or a Context of it.
DeviceLike = Union[int, str, Device, "Context"]


def _device(info: Any) -> Device:
    return Device(
        name=text(info.name),
        driver=text(info.driver),
        uuid=text(info.uuid),
        index=info.index,
        kind=_KINDS[info.kind] if info.kind < len(_KINDS) else "other",
        memory_bytes=info.device_memory_bytes,
        usable=info.usable,
        reason=text(info.reason),
    )


def devices() -> list[Device]:
    """Lists the Vulkan devices of this machine, also those that rlxvk cannot use.

    Raises NoDeviceError if there is no Vulkan loader.
    """
    return [_device(info) for info in listed("rlxvk_device_info", lib.rlxvk_device_list)]


def _find(device: int | str | Device) -> Any:
    """The library's description of a device."""
    if isinstance(device, Device):
        device = device.index
    info = new("rlxvk_device_info")
    check(lib.rlxvk_device_find(str(device).encode(), info))
    return info


class Context(Unpicklable):
    """An open device. Any number of threads may use it.

    `device` is an index in `devices()`, a name or a part of one, a UUID, a PCI address such as
    "65:00.0", or a Device. "" is the best device. None is the device that the environment variable
    RLXVK_DEVICE names, or else the best one.

    Raises NoDeviceError if no usable device has this name, or several do.

    Most programs need no context of their own: `load` and `device` share one for each device. The
    device is closed when no model uses it any more.
    """

    def __init__(self, device: int | str | Device | None = None) -> None:
        options = new("rlxvk_context_options")
        info = None if device is None else _find(device) # lives until the call is over
        if info is not None:
            options.device = info
        out = ffi.new("rlxvk_context **")
        check(lib.rlxvk_context_create(options, out))
        self._handle = Handle(out[0], lib.rlxvk_context_destroy)

    @property
    def device(self) -> Device:
        """The device that is open."""
        info = new("rlxvk_device_info")
        lib.rlxvk_context_device(self._handle.pointer, info)
        return _device(info)

    def __repr__(self) -> str:
        return f"<rlxvk.Context of {self.device.name!r}>"


_lock = threading.Lock()
# The contexts of this process by device: its UUID and index, or None for the default.
_shared: weakref.WeakValueDictionary[Any, Context] = weakref.WeakValueDictionary()
_default: dict[int, Context] = {} # by process: after a fork, those of the parent are useless
_chosen: contextvars.ContextVar[Context | None] = contextvars.ContextVar("device", default=None)


def chosen_context() -> Context | None:
    """That of the innermost `device` block."""
    return _chosen.get()


def context_of(device: DeviceLike | None) -> Context:
    """The shared context of a device. None: that of the innermost `device` block, or a default."""
    if isinstance(device, Context):
        return device
    if device is None:
        return _chosen.get() or _default_context()
    info = _find(device)
    key = (os.getpid(), text(info.uuid), info.index)
    with _lock:
        context = _shared.get(key)
        if context is None:
            context = _shared[key] = Context(info.index)
        return context


def _default_context() -> Context:
    with _lock:
        context = _default.get(os.getpid())
        if context is None:
            context = _default[os.getpid()] = Context()
            device = context.device
            _shared[os.getpid(), device.uuid, device.index] = context
        return context


@contextlib.contextmanager
def device(device: DeviceLike) -> Iterator[Context]:
    """Within the block, models are loaded for this device: `with rlxvk.device("H200"):`.

    `device` is as in Context. The block holds for the running thread or task only. Raises
    NoDeviceError if no usable device has this name, or several do.
    """
    context = context_of(device)
    token = _chosen.set(context)
    try:
        yield context
    finally:
        _chosen.reset(token)
