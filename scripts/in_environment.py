"""Imported first by a script: it then runs in the environment of scripts/setup, whatever Python it was started with."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

_ENVIRONMENT = Path(__file__).resolve().parent.parent / ".venv"

if importlib.util.find_spec("polars") is None:
    python = _ENVIRONMENT / "bin" / "python"
    if not python.is_file() or Path(sys.prefix) == _ENVIRONMENT:
        sys.exit(f"{sys.argv[0]}: run scripts/setup first: it makes the environment that this runs in")
    os.execv(python, [str(python), *sys.argv])  # noqa: S606  # our own script again
