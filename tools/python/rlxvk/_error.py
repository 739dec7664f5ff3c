"""The base of all exceptions of the package."""
from __future__ import annotations


class Error(Exception):
    """A call failed. The text says what is wrong and, mostly, what to do about it.

    `status` is the library's name of the error, for example "E_SHAPE". Each status has a subclass,
    for example ShapeError; `rlxvk.errors` has all of them.
    """

    status = "?"
