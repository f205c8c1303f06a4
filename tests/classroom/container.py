"""Run a command as if in a container: `python -m tests.classroom.container [--old] COMMAND ...`, on Linux.

Docker lets nobody make namespaces or mount anything; an old one does not know Landlock either.
"""

import os
import sys

from attn_course.classroom.sandbox import seccomp
from attn_course.classroom.sandbox.privileges import forbid_new_privileges

REFUSED = ("unshare", "setns", "mount", "umount2", "pivot_root")
LANDLOCK = ("landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self")


def words(*, old: bool) -> bytes:
    """The filter, as machine words of classic BPF."""
    passed, refused, unknown = (seccomp._step(seccomp._RETURN, answer) for answer in (seccomp._PASS, seccomp._REFUSE, seccomp._UNKNOWN))
    is_new = seccomp._step(seccomp._LOAD, seccomp._argument(0)), seccomp._step(seccomp._IF_ANY_BIT, seccomp._NAMESPACES, 0, 1)
    parts = [
        seccomp._step(seccomp._LOAD, seccomp._NUMBER),
        *(seccomp._when_called(name, refused) for name in REFUSED),
        *(seccomp._when_called(name, unknown) for name in ("clone3", *(LANDLOCK if old else ()))),
        seccomp._when_called("clone", *is_new, refused, passed),
        passed,
    ]
    return b"".join(parts)


if __name__ == "__main__":
    old = sys.argv[1] == "--old"
    command = sys.argv[2:] if old else sys.argv[1:]
    forbid_new_privileges()
    seccomp.put_on(words(old=old))
    os.execvp(command[0], command)
