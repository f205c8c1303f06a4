"""The probe tells each level, as root and as an ordinary user, and a missing layer leads to the next level without an error."""

import json
import sys

import pytest

from attn_course.classroom.sandbox import FULL, LAYERS, LIMITS_ONLY, NO_NETWORK_NAMESPACE, NONE, Layer, Probe, probe
from tests.classroom.sandbox_child import HERE, USERS, need_all_layers, need_landlock, python

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the layers are Linux's")
REPORT = "import sys; sys.path.append({folder!r}); {before}\nfrom sandbox.probe import report\nreport({wanted!r})"


def reported(wanted: str, *, before: str = "", user: str = "this user") -> Probe:
    done = python(REPORT.format(folder=str(HERE.parent), before=before, wanted=wanted), user=user)
    assert done.returncode == 0, done.stderr
    return Probe(tuple(Layer(*entry) for entry in json.loads(done.stdout.splitlines()[-1])))


@LINUX
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("switched_off", "level"),
    [
        ((), FULL),
        (("pid namespace",), FULL),
        (("namespaces",), NO_NETWORK_NAMESPACE),
        (("landlock",), LIMITS_ONLY),
        (("seccomp",), LIMITS_ONLY),
        (("namespaces", "landlock", "seccomp"), LIMITS_ONLY),
        (("limits",), NONE),
    ],
)
def test_each_level_is_told(switched_off: tuple[str, ...], level: str, user: str):
    need_all_layers()
    wanted = [name for name in (*LAYERS, "pid namespace") if name not in switched_off]
    found = reported(",".join(wanted), user=user)
    assert (found.level, [layer.name for layer in found.layers if not layer.holds]) == (level, [*switched_off])


@LINUX
@pytest.mark.parametrize(
    ("call", "missing", "level"),
    [
        ("unshare", {"namespaces", "pid namespace"}, NO_NETWORK_NAMESPACE),  # as Ubuntu and many containers forbid it
        ("mount", {"namespaces"}, NO_NETWORK_NAMESPACE),
        ("mount_setattr", {"namespaces"}, NO_NETWORK_NAMESPACE),  # before Linux 5.12
        ("landlock_create_ruleset", {"landlock"}, LIMITS_ONLY),
        ("prctl 22", {"seccomp"}, LIMITS_ONLY),
    ],
)
def test_a_layer_the_kernel_refuses_is_missing_with_its_reason(call: str, missing: set[str], level: str):
    refuse = f"""
import sandbox
from sandbox import landlock, namespaces, privileges, seccomp, system_calls
real = system_calls.system_call
def refusing(name, *arguments):
    if {call!r} in (name, f"{{name}} {{arguments[0]}}"):
        raise sandbox.SandboxError(f"{{name}}: Operation not permitted")
    return real(name, *arguments)
for module in (landlock, namespaces, privileges, seccomp):
    module.system_call = refusing
"""
    need_all_layers()
    found = reported(",".join((*LAYERS, "pid namespace")), before=refuse)
    assert {layer.name for layer in found.layers if not layer.holds} == missing
    assert found.level == level
    assert all(layer.why for layer in found.layers if not layer.holds)
    assert "Operation not permitted" in str(found) or "refuses it" in str(found)


@LINUX
@pytest.mark.parametrize(("layer", "function"), [("landlock", "allow_only"), ("namespaces", "isolate"), ("seccomp", "refuse_calls")])
def test_a_layer_that_claims_success_and_does_nothing_does_not_hold(layer: str, function: str):
    """The probe tries the forbidden acts; it believes no return code."""
    found = reported(layer, before=f"from sandbox import {layer}; {layer}.{function} = lambda *_: None")
    assert next(entry.why for entry in found.layers if entry.name == layer).startswith("a worker still ")


@LINUX
def test_layers_that_hold_alone_and_break_honest_work_do_not_hold():
    need_landlock()
    block = "from sandbox import landlock; real = landlock.allow_only; landlock.allow_only = lambda readable, writable: real((), writable)"
    found = reported("landlock", before=block)
    assert "an honest worker no longer" in found.layers[2].why


def test_without_fork_nothing_holds_and_nothing_breaks():
    found = reported(",".join(LAYERS), before="import os; del os.fork")
    assert (found.level, found.holding) == (NONE, ())
    assert str(found).startswith("sandbox: none (nothing holds; no ")


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_there_are_limits_at_most(platform: str):
    without = "; sys.modules['resource'] = None" if platform == "win32" else ""
    found = reported(",".join((*LAYERS, "pid namespace")), before=f"import os, tempfile; sys.platform = {platform!r}{without}")
    assert (found.level, found.holding) == ((NONE, ()) if without else (LIMITS_ONLY, ("limits",)))


def test_a_probe_that_cannot_run_reports_no_protection(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    found = probe()
    assert found.level == NONE
    assert str(found).count("the probe failed") == 1


def test_the_line_for_a_report_names_level_layers_and_reasons():
    found = Probe((Layer("limits", True), Layer("namespaces", False, "unshare: denied"), Layer("landlock", True), Layer("seccomp", True)))
    assert str(found) == "sandbox: no network namespace (limits, landlock, seccomp; no namespaces: unshare: denied)"


def test_the_package_imports_nothing_of_the_course():
    modules = "sorted(name for name in sys.modules if 'attn' in name or name in ('numpy', 'torch'))"
    assert python(f"import sys; sys.path.append({str(HERE.parent)!r}); import sandbox; print({modules})").stdout.strip() == "[]"
