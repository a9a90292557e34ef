"""Needs of the machine besides Python: looked for, named, and on Debian as root installed.

Libraries are looked for by loading them, so that the answer is right on any Linux; only their
package names are Debian's and Ubuntu's.
"""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import dev_environment
from dev_environment import Stopped, say


class Part(NamedTuple):
    """Something the system lacks or has: what it is called, and the package that brings it."""

    name: str
    package: str


# What `ldd` names for QtCore, QtGui, QtWidgets and QtDBus of PySide6 6.11 and the wheel does not
# bring along.
QT = (
    Part("libglib-2.0.so.0", "libglib2.0-0"),
    Part("libgthread-2.0.so.0", "libglib2.0-0"),
    Part("libGL.so.1", "libgl1"),
    Part("libEGL.so.1", "libegl1"),
    Part("libfontconfig.so.1", "libfontconfig1"),
    Part("libxkbcommon.so.0", "libxkbcommon0"),
    Part("libdbus-1.so.3", "libdbus-1-3"),
)
# The same for its platform plugin xcb (X11, and Wayland by way of XWayland).
X11 = (
    Part("libX11-xcb.so.1", "libx11-xcb1"),
    Part("libxcb-cursor.so.0", "libxcb-cursor0"),
    Part("libxcb-icccm.so.4", "libxcb-icccm4"),
    Part("libxcb-image.so.0", "libxcb-image0"),
    Part("libxcb-keysyms.so.1", "libxcb-keysyms1"),
    Part("libxcb-randr.so.0", "libxcb-randr0"),
    Part("libxcb-render-util.so.0", "libxcb-render-util0"),
    Part("libxcb-render.so.0", "libxcb-render0"),
    Part("libxcb-shape.so.0", "libxcb-shape0"),
    Part("libxcb-shm.so.0", "libxcb-shm0"),
    Part("libxcb-sync.so.1", "libxcb-sync1"),
    Part("libxcb-util.so.1", "libxcb-util1"),
    Part("libxcb-xfixes.so.0", "libxcb-xfixes0"),
    Part("libxcb-xkb.so.1", "libxcb-xkb1"),
    Part("libxkbcommon-x11.so.0", "libxkbcommon-x11-0"),
)
# And for its plugin wayland.
WAYLAND = (
    Part("libwayland-client.so.0", "libwayland-client0"),
    Part("libwayland-cursor.so.0", "libwayland-cursor0"),
)
FONT = Part("a font", "fonts-dejavu-core")
FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "~/.local/share/fonts", "~/.fonts")
VENV_MODULES = ("venv", "ensurepip")
APT_LISTS = Path("/var/lib/apt/lists")


def provide(
    environ: Mapping[str, str], *, needs_qt: bool = False, needs_display: bool = False
) -> None:
    """See to it that the system has what the caller is about to use.

    Root on Debian or Ubuntu gets everything that is missing installed; anyone else is told what
    to install. `Stopped` is raised when it is still missing and cannot be done without:
    `needs_qt` to load Qt at all, `needs_display` to show a window on the display that `environ`
    names. On other systems than Linux nothing is missing, as the wheels bring it along.
    """
    if sys.platform != "linux":
        return
    venv, qt, x11, wayland = missing_venv(), *map(missing_libraries, (QT, X11, WAYLAND))
    missing = [*venv, *qt, *x11, *wayland, *([] if has_font() else [FONT])]
    if not missing or (os.geteuid() == 0 and shutil.which("apt-get") and install(missing)):
        return
    say(advice(missing, sudo=os.geteuid() != 0))
    lacking = {"DISPLAY": x11, "WAYLAND_DISPLAY": wayland}
    # With both displays at hand Qt takes the one whose plugin loads.
    displays = [name for name in lacking if environ.get(name)]
    no_way = bool(displays) and all(lacking[name] for name in displays)
    if venv or (needs_qt and qt) or (needs_display and no_way):
        raise Stopped("Not going on without it.")
    say("Going on: what comes next does not need it.")


def missing_libraries(wanted: Iterable[Part]) -> list[Part]:
    """Return those of `wanted` that the dynamic linker does not find."""
    return [part for part in wanted if not _loads(part.name)]


def missing_venv() -> list[Part]:
    """Return what `python -m venv` lacks: Debian ships it apart from Python."""
    if dev_environment.has_pip():
        return []
    if all(importlib.util.find_spec(module) for module in VENV_MODULES):
        return []
    return [Part("the Python module venv", f"python3.{sys.version_info[1]}-venv")]


def has_font() -> bool:
    """Return whether any scalable font is installed; without one Qt draws boxes."""
    folders = (Path(folder).expanduser() for folder in FONT_FOLDERS)
    return any(
        path.suffix.lower() in {".ttf", ".otf", ".ttc"}
        for folder in folders
        for path in folder.rglob("*")
    )


def advice(missing: Iterable[Part], *, sudo: bool) -> str:
    """Return what is missing and how to get it, in a few lines."""
    missing = list(missing)
    names = ", ".join(part.name for part in missing)
    packages = " ".join(_packages(missing))
    prefix = "sudo " if sudo else ""
    return (
        f"Missing on this system: {names}\n"
        f"On Debian or Ubuntu: {prefix}apt-get update && {prefix}apt-get install {packages}\n"
        "Elsewhere: the packages that bring these files."
    )


def install(missing: Iterable[Part]) -> bool:
    """Install the Debian packages of `missing`; return whether apt could, which says why not."""
    packages = _packages(missing)
    say(f"Installing system packages: {' '.join(packages)}")
    if not any(APT_LISTS.glob("*_Packages*")):
        _apt("update")
    options = ["install", "--yes", "--no-install-recommends", *packages]
    if _apt(*options) == 0:
        return True
    say("That failed; trying once more with fresh package lists")
    _apt("update")
    return _apt(*options) == 0


def _packages(missing: Iterable[Part]) -> list[str]:
    return list(dict.fromkeys(part.package for part in missing))


def _loads(library: str) -> bool:
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def _apt(*arguments: str) -> int:
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    silent = subprocess.DEVNULL  # every package unpacked; what went wrong comes on stderr
    return subprocess.run(["apt-get", "-qq", *arguments], env=environ, stdout=silent).returncode
