"""Landlock: which files a worker may open, as an allow-list that it cannot leave."""

import contextlib
import os
import site
import stat
import struct
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path

from .layers import SandboxError
from .system_calls import system_call

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_ACCESSES = {1: 0x1FFF, 2: _REFER, 3: _TRUNCATE, 5: _IOCTL_DEVICE}  # the ABI that brought them
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FOR_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP_BIND_AND_CONNECT, _ABSTRACT_SOCKETS_AND_SIGNALS = 3, 3
_CREATE_RULESET_VERSION, _PATH_BENEATH = 1, 1
_SHARED_LIBRARIES = (
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/etc/ld.so.cache",
    "/usr/share/zoneinfo",
    "/etc/localtime",
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_HIDDEN = "attn_course"  # tasks and right answers, where the course is installed among the other packages


def abi() -> int:
    """Return which version of its interface the running kernel offers, by asking it.

    Raises SandboxError if it has none, or keeps it off.
    """
    return system_call("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)


def allow_only(readable: Iterable[Path], writable: Path) -> None:
    """Refuse this process, for good, every file but these; call it after `forbid_new_privileges`.

    Stops reading, listing, writing, making, renaming and running of all other files, /proc and devices among them; with ABI 4 also
    TCP; with ABI 6 abstract sockets and signals to processes outside. Stops no stat or access (a worker can see that a file exists, and
    its size), no chmod or chown, no descriptor that is open already, no UDP: seccomp and the namespaces do.

    `readable`: files and folders (with all beneath) to read and to execute; those that do not exist or that this user may not
    open are left out. `writable`: the one folder to do anything in. Raises SandboxError if the kernel has no Landlock, or refuses
    a rule.
    """
    version = abi()
    handled = 0
    for since, accesses in _ACCESSES.items():
        handled |= accesses if version >= since else 0
    words = [handled]
    if version >= 4:
        words.append(_TCP_BIND_AND_CONNECT)
    if version >= 6:
        words.append(_ABSTRACT_SOCKETS_AND_SIGNALS)
    attributes = struct.pack(f"={len(words)}Q", *words)
    ruleset = system_call("landlock_create_ruleset", attributes, len(attributes), 0)
    try:
        for path in readable:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError, PermissionError):  # out of reach anyway
                _allow(ruleset, path, _READ & handled)
        for device in _DEVICES:
            with contextlib.suppress(FileNotFoundError):
                _allow(ruleset, device, (_READ_FILE | _WRITE_FILE) & handled)
        _allow(ruleset, writable, handled & ~_EXECUTE)
        system_call("landlock_restrict_self", ruleset, 0)
    except OSError as error:
        raise SandboxError(f"a rule for {error.filename}: {error.strerror}") from error
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str | Path, accesses: int) -> None:
    handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            accesses &= _FOR_FILES
        system_call("landlock_add_rule", ruleset, _PATH_BENEATH, struct.pack("=Qi", accesses, handle), 0)
    finally:
        os.close(handle)


def interpreter_paths() -> tuple[Path, ...]:
    """Return what Python needs to go on importing: itself, its libraries, installed packages, shared libraries; never the course.

    Ask once, in the fork server: folders of packages that hold the course are listed entry by entry.
    """
    if sys.platform != "linux":
        return ()  # no layer asks
    base = Path(sys.base_prefix)
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
    folders += _package_folders()
    if base not in (Path("/usr"), Path("/")):
        folders += [base / "lib", base / "bin"]
    folders += [Path(sys.prefix) / "bin", Path(sys.prefix) / "pyvenv.cfg", *map(Path, _SHARED_LIBRARIES)]
    return tuple(dict.fromkeys(entry for folder in folders for entry in _without_course(folder)))


def _package_folders() -> list[Path]:
    known = [sysconfig.get_path("purelib"), sysconfig.get_path("platlib")]
    if site.ENABLE_USER_SITE:
        known.append(site.getusersitepackages())
    known += [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    return [Path(entry) for entry in dict.fromkeys(known)]


def _without_course(folder: Path) -> Sequence[Path]:
    """Return the folder, or, where the course is somewhere inside, what is in it but the course."""
    holders = [packages for packages in _package_folders() if (packages / _HIDDEN).exists()]
    inside = [packages for packages in holders if packages == folder or folder in packages.parents]
    if not inside:
        return [folder]
    found: list[Path] = []
    for entry in sorted(folder.iterdir()):
        if entry.name != _HIDDEN:
            found += _without_course(entry) if any(entry == packages or entry in packages.parents for packages in inside) else [entry]
    return found
