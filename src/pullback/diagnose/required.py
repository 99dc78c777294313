"""NumPy, the one package that is required: imported first, so that a program hears in words if it is missing.

It gets an ImportError. The command `pullback` cannot run at all, and ends with the same text alone.
"""

import os
import sys

LEAST = 2


def wrong() -> str:
    """What is wrong with NumPy here, and what to do; "" if nothing is."""
    install = f'"{sys.executable}" -m pip install "numpy>={LEAST}"'
    if _ERROR is not None:
        found = f"{type(_ERROR).__name__}: {_ERROR}".rstrip(".")
        if not isinstance(_ERROR, ModuleNotFoundError) or _ERROR.name != "numpy":  # pip takes it for installed
            install = install.replace(" install ", " install --force-reinstall ")
    else:
        version, places = str(getattr(numpy, "__version__", "")), [*dict.fromkeys(getattr(numpy, "__path__", []))]
        first = version.partition(".")[0]
        if first.isdigit() and int(first) >= LEAST:
            return ""
        found = f"numpy {version or 'of no version'} in {places}"
        if not version:
            install = (
                f"rename {' and '.join(places) or 'it'}, which hides NumPy; or, where NumPy is not installed, {install}"
            )
    return f"pullback needs NumPy {LEAST} or newer, and no other package.\n  Found: {found}.\n  What to do: {install}."


def runs_the_command() -> bool:
    """Whether this process is `pullback ...` or `python -m pullback ...`, and no program that imports the package."""
    first = (getattr(sys, "argv", None) or [""])[0]
    if first == "-m":  # while Python looks for the module that it is to run
        words = [*sys.orig_argv, "", ""]
        return "-m" in words and words[words.index("-m") + 1].partition(".")[0] == "pullback"
    return os.path.splitext(os.path.basename(first))[0] == "pullback"


_ERROR: ImportError | None = None
try:
    import numpy
except ImportError as _error:
    _ERROR = _error

if wrong():
    raise SystemExit(wrong()) if runs_the_command() else ImportError(wrong(), name="numpy") from _ERROR
