"""Devices and contexts."""
from __future__ import annotations

import threading

import numpy as np
import pytest
import rlxvk
from onnx_file import identity
from rlxvk._device import context_of

X = np.ones(2, np.float32)


def usable() -> rlxvk.Device:
    return next(d for d in rlxvk.devices() if d.usable)


def test_devices_are_listed():
    found = rlxvk.devices()
    assert [d.index for d in found] == list(range(len(found)))
    device = usable()
    assert device.name and device.driver and len(device.uuid) == 32 and device.reason == ""
    assert device.kind == "cpu" and device.memory_bytes > 0


def test_a_device_has_several_names():
    device = usable()
    part = device.name[2:6].upper()
    for name in (device, device.index, device.uuid, device.name, part, "", None):
        assert rlxvk.Context(name).device == device
    assert device.name in repr(rlxvk.Context())
    with pytest.raises(rlxvk.errors.NoDeviceError, match="no such device"):
        rlxvk.Context("no such device")
    with pytest.raises(rlxvk.errors.NoDeviceError):
        rlxvk.load(identity("float32"), device="no such device")
    with pytest.raises(rlxvk.errors.NoDeviceError):
        with rlxvk.device(99):
            pass


def test_one_context_for_each_device():
    default = context_of(None)
    assert context_of(None) is default and context_of(usable()) is default
    assert context_of(str(usable().index)) is default
    own = rlxvk.Context()
    assert own is not default and context_of(own) is own


def test_a_block_chooses_the_device():
    own, inner = rlxvk.Context(), rlxvk.Context()
    seen = []
    with rlxvk.device(own) as chosen:
        assert chosen is own
        m = rlxvk.load(identity("float32"))
        with rlxvk.device(inner):
            assert rlxvk.load(identity("float32"))._context is inner
            explicit = rlxvk.load(identity("float32"), device=own)
        assert context_of(None) is own
        thread = threading.Thread(target=lambda: seen.append(context_of(None)))
        thread.start()
        thread.join()
    assert m._context is own and explicit._context is own and (m(X)[0] == X).all()
    assert context_of(None) is not own and seen == [context_of(None)]
    with pytest.raises(KeyError):
        with rlxvk.device(own):
            raise KeyError
    assert context_of(None) is not own


def test_the_environment_names_a_device(python):
    program = "import rlxvk\ntry: rlxvk.Context()\nexcept rlxvk.Error as e: print(e.status)"
    assert python(program, RLXVK_DEVICE="no such device") == "E_NO_DEVICE\n"
