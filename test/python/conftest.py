"""What the tests share. They run on the package in $BUILD/python; test/python.sh sets the path."""
from __future__ import annotations

import os
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def python():
    """Runs a program in another Python and returns what it printed. It must end well and leave
    nothing in its standard error."""

    here = os.path.dirname(os.path.abspath(__file__))

    def run(program: str, fails: bool = False, folder: str = here, **environment: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, **environment},
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        if fails:
            assert done.returncode == 1, done
            return done.stderr
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    return run


@pytest.fixture(scope="session")
def root() -> str:
    return ROOT
