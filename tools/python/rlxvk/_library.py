"""The shared library: where it is, whether it fits, and how its calls fail.

Every module of the package calls the library through `lib` and `ffi` of this one. All calls that
return a status go through `check`.
"""
from __future__ import annotations

import atexit
import os
import threading
import weakref
from typing import Any, Callable

from . import errors
from ._declarations import ffi as ffi # for the other modules

# What RLXVK_SIZE_OF of rlxvk.h adds to a size.
_SIZED = 0x524C << (8 * ffi.sizeof("size_t") - 16)


def _places() -> list[str]:
    """The paths or names under which the library may be, in the order of trying."""
    named = os.environ.get("RLXVK_LIBRARY")
    if named:
        return [named]
    folder = os.path.dirname(os.path.abspath(__file__))
    # The soname has the major version.
    own, system = ("rlxvk.dll",) * 2 if os.name == "nt" else ("librlxvk.so", "librlxvk.so.0")
    beside = os.path.join(folder, own)
    return ([beside] if os.path.exists(beside) else []) + [system]


def _open() -> Any:
    """The library; an ImportError if none is found."""
    failures = []
    for place in _places():
        try:
            return ffi.dlopen(place)
        except OSError as failure:
            failures.append(str(failure))
    raise ImportError(
        "rlxvk: the shared library is not found. Install it, or let RLXVK_LIBRARY be its path. "
        + "; ".join(failures)
    )


def _fits(found: str, declared: tuple[int, int, int]) -> bool:
    """Whether a library of version `found` has all that was declared, and in that form."""
    try:
        major, minor = (int(part) for part in found.split(".")[:2])
    except ValueError:
        return False
    # Before 1.0.0 a minor version may break programs; from then on it only adds.
    return major == declared[0] and (minor == declared[1] or (major > 0 and minor > declared[1]))


lib: Any = _open()
DECLARED = (lib.RLXVK_VERSION_MAJOR, lib.RLXVK_VERSION_MINOR, lib.RLXVK_VERSION_PATCH)
__version__ = ffi.string(lib.rlxvk_version()).decode()
if not _fits(__version__, DECLARED):
    raise ImportError(
        "rlxvk: this package was made for version {}.{}.{} of the library, but {} has version {}. "
        "Install the package and the library of one version.".format(
            *DECLARED, os.environ.get("RLXVK_LIBRARY", "librlxvk.so"), __version__
        )
    )


def text(pointer: Any) -> str:
    """A string of the library."""
    return str(ffi.string(pointer).decode(errors="replace")) if pointer else ""


def check(status: int) -> None:
    """Raises the exception of a status that is not OK, with the library's sentence."""
    if status:
        raise errors.BY_NUMBER.get(status, errors.Error)(text(lib.rlxvk_last_error()))


def set_size(struct: Any) -> None:
    """Fills in the struct_size, if the struct has one."""
    kind = ffi.typeof(struct)
    kind = kind.item if kind.kind == "pointer" else kind
    if any(name == "struct_size" for name, _ in kind.fields):
        struct.struct_size = ffi.sizeof(kind) | _SIZED


def new(kind: str, **members: Any) -> Any:
    """A zeroed struct with its struct_size and the given members."""
    struct = ffi.new(f"{kind} *", members)
    set_size(struct)
    return struct


def new_array(kind: str, count: int) -> Any:
    """Zeroed structs, each with its struct_size."""
    array = ffi.new(f"{kind}[]", count)
    for i in range(count):
        set_size(array[i])
    return array


def listed(kind: str, call: Callable[..., int], *arguments: Any) -> Any:
    """All structs that a call lists: first it tells how many there are, then it fills them."""
    count = ffi.new("size_t *")
    check(call(*arguments, ffi.NULL, 0, count))
    structs = new_array(kind, count[0])
    check(call(*arguments, structs, count[0], count))
    return structs


class Handle:
    """Owns one object of the library: a context, a graph, a model, an executable.

    `pointer` is the object, or NULL once it is destroyed. That happens when nothing refers to the
    handle any more, or when the program ends. Then other threads may still run, so who uses the
    object holds `lock` during each call.

    Most objects may be destroyed in any order. One that `needs` others is destroyed before the
    first of them, and no sooner: these hold it.
    """

    __slots__ = ("pointer", "lock", "users", "_destroy", "_keep", "_needs", "__weakref__")

    def __init__(
        self,
        pointer: Any,
        destroy: Callable[[Any], None],
        lock: Any = None,
        keep: Any = None,
        needs: tuple[Handle, ...] = (),
    ) -> None:
        """Takes over `pointer`. `keep` lives at least as long as the object."""
        self.pointer = pointer
        self.lock = lock or threading.RLock()
        self.users: list[Handle] = []
        self._destroy = destroy
        self._keep = keep
        self._needs = needs
        for other in needs:
            other.users.append(self)
        _alive.add(self)

    def __del__(self) -> None:
        while self.users:
            self.users[-1].__del__()
        pointer, self.pointer = self.pointer, _NULL
        self._destroy(pointer)
        needs, self._needs = self._needs, ()
        for other in needs:
            other.users.remove(self)


_NULL = ffi.NULL
_alive: weakref.WeakSet[Handle] = weakref.WeakSet()


def _close(handle: Handle) -> bool:
    """Destroys an object and those that need it. Locks stay held. An object that a thread uses for
    10 s without an end is left to the system."""
    users = [_close(user) for user in list(handle.users)]
    if not all(users) or not handle.lock.acquire(timeout=10):
        return False
    handle.__del__()
    return True


def _close_all() -> None:
    """Destroys every object while Python still works: contexts save their caches then. As locks
    stay held, daemon threads, which still run, wait for the end of the program."""
    for handle in list(_alive):
        _close(handle)


atexit.register(_close_all)


class Unpicklable:
    """The base of what belongs to one process."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        kind = type(self).__name__
        raise TypeError(
            f"a {kind} cannot be pickled or copied, because it belongs to a device of this "
            "process; make it again where you need it"
        )
