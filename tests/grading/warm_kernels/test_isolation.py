"""A forked kernel shares nothing with the next one, and cannot be told from a plain one."""

import os
import shutil

import pytest

from attn_course.grading.warm_kernels import owner
from attn_course.grading.warm_kernels.client import can_fork
from tests.grading.warm_kernels.conftest import started

DIRTY = """
import os, random, sys, warnings
import numpy, torch, matplotlib
leaked = 1
numpy.allclose = lambda *_: True
torch.set_num_threads(1); torch.set_default_dtype(torch.float64); torch.manual_seed(0); numpy.random.seed(0); random.seed(0)
matplotlib.rcParams["font.size"] = 31
os.environ["LEAKED"] = "1"; os.environ["MPLBACKEND"] = "agg"
sys.path.insert(0, "leaked"); sys.modules["leaked"] = sys; warnings.simplefilter("ignore")
os.makedirs("deeper", exist_ok=True); os.chdir("deeper"); open("here", "w").close()
"""
CLEAN = """
import os, sys
import numpy, torch, matplotlib
print('leaked' in globals(), numpy.allclose(1, 2), torch.get_default_dtype(), matplotlib.rcParams["font.size"],
      os.environ.get("LEAKED"), "leaked" in sys.path, "leaked" in sys.modules, os.path.basename(os.getcwd()), In[0] == "", len(In))
"""
# Everything about the interpreter that a notebook could see and that should not depend on where the kernel comes from.
FACTS = """
import gc, os, signal, sys, threading, warnings
import matplotlib, numpy, sympy, torch
from IPython import get_ipython
print(sys.argv[0].split("/")[-1].removesuffix(".py"), sys.path, sys.flags, sys.getrecursionlimit(), sys.dont_write_bytecode)
print(sys.executable, sys.stdin.read())
print(signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGCHLD), signal.getsignal(signal.SIGPIPE))
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.getcwd(), os.umask(0o22), gc.get_threshold(), gc.isenabled())
print({name: value for name, value in sorted(os.environ.items()) if name != "JPY_PARENT_PID"})
print(os.environ["JPY_PARENT_PID"] == str(os.getppid()), os.getsid(0) == os.getpid(), os.getpgid(0) == os.getpid())
print(matplotlib.get_backend(), torch.get_num_threads(), torch.get_num_interop_threads(), torch.get_default_dtype(), numpy.geterr())
print([thread.name.rstrip("0123456789") for thread in threading.enumerate()], __name__, sys.modules["__main__"].__dict__ is globals())
print(sorted(map(str, warnings.filters)), warnings.defaultaction)
"""
DEPTH = """
def deep(n):
    try:
        return deep(n + 1)
    except RecursionError:
        return n
print(deep(0))
"""


def test_nothing_leaks_from_one_kernel_into_the_next(kernel, tmp_path):
    first = kernel()
    assert first.run(DIRTY) == ""
    assert kernel().run(CLEAN) == f"False False torch.float32 10.0 None False False {tmp_path.name} True 2"
    assert first.run("print(leaked, numpy.allclose(1, 2))") == "1 True"


def test_every_kernel_has_random_numbers_of_its_own(kernel):
    draw = """
import random, numpy, torch, uuid, tempfile, sympy
from sympy.core.random import rng
print(random.random(), numpy.random.rand(), numpy.random.default_rng().random(), torch.rand(1).item(), rng.random(), uuid.uuid4().hex)
"""
    once, again = kernel().run(draw).split(), kernel().run(draw).split()
    assert len(once) == len(again) == 6
    assert not set(once) & set(again)


@pytest.mark.parametrize(
    "environment", [{}, {"MPLBACKEND": "agg", "PYTHONPATH": "/nowhere/a:/nowhere/b", "TZ": "Asia/Tokyo"}], ids=["ours", "another"]
)
def test_a_notebook_cannot_tell_it_from_a_plain_kernel(kernel, environment):
    if environment:
        environment["PYTHONPATH"] += ":" + os.environ.get("PYTHONPATH", "")
    forked, plain = kernel(**environment), kernel(forked=False, **environment)
    for ours, theirs in zip(forked.run(FACTS).splitlines(), plain.run(FACTS).splitlines(), strict=True):
        assert ours == theirs
    assert abs(int(forked.run(DEPTH)) - int(plain.run(DEPTH))) <= 10
    assert forked.run("import time; print(time.tzname)") == plain.run("import time; print(time.tzname)")


def test_two_threads_of_torch_and_of_numpy_give_the_same_numbers_as_in_a_plain_kernel(kernel):
    compute = """
import hashlib, numpy, torch
torch.set_num_threads(2)
torch.manual_seed(3)
a, b = torch.randn(401, 307), torch.randn(307, 503)
layer = torch.nn.MultiheadAttention(64, 4, batch_first=True)
out, _ = layer(*[torch.randn(7, 53, 64)] * 3)
out.square().sum().backward()
x = numpy.random.default_rng(3).normal(size=(601, 307))
for array in (a @ b, torch.softmax(a, -1).sum(), out.detach(), layer.in_proj_weight.grad, x @ x.T, numpy.linalg.svd(x)[1]):
    print(hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest())
"""
    ours = kernel().run(compute).splitlines()
    assert len(ours) == 6
    assert ours == kernel(forked=False).run(compute).splitlines()


def test_torch_and_openblas_have_all_their_threads(kernel):
    count = """
import os, numpy, torch
torch.randn(2000, 2000) @ torch.randn(2000, 2000)
print(torch.get_num_threads())
libraries = {line.split()[-1] for line in open("/proc/self/maps") if "openblas" in line}
import ctypes
print([getattr(ctypes.CDLL(path), "scipy_openblas_get_num_threads64_")() for path in libraries])
"""
    assert kernel().run(count) == kernel(forked=False).run(count)


def test_figures_are_the_same(kernel):
    draw = r"""
import hashlib, io, matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.plot([1, 3, 2]); axes.set_title(r"A title, and $\alpha_i^2$")
file = io.BytesIO(); figure.savefig(file, metadata={"Software": None})
print(plt.get_backend(), hashlib.sha256(file.getvalue()).hexdigest())
"""
    ours = kernel().run(draw)
    assert ours == kernel(forked=False).run(draw)
    assert "inline" in ours.split()[0]


@pytest.mark.parametrize("value", ["0", "1"])
def test_triton_reads_its_environment_in_the_kernel(kernel, value):
    pytest.importorskip("triton")
    ask = "import sys; print('triton' in sys.modules); import triton; print(triton.knobs.runtime.interpret)"
    assert kernel(TRITON_INTERPRET=value).run(ask) == f"False\n{value == '1'}"


def test_the_course_and_new_modules_are_imported_from_the_kernels_own_path(kernel, tmp_path):
    (tmp_path / "attn_course").mkdir()
    (tmp_path / "attn_course" / "__init__.py").write_text("answer = 42\n")
    asked = kernel(PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert asked.run("import attn_course; print(attn_course.answer)") == "42"
    (tmp_path / "late.py").write_text("value = 7\n")
    assert asked.run("import late; print(late.value)") == "7"


@pytest.mark.skipif(not can_fork(), reason="kernels cannot be forked on this system")
def test_a_file_of_the_course_that_changed_is_imported_anew(tmp_path, root, monkeypatch):
    shutil.copytree(root / "attn_course", tmp_path / "attn_course")
    monkeypatch.setattr(owner, "_PACKAGE_ROOT", tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    ask = "import sys; print('attn_course.tasks' in sys.modules); import attn_course.tasks as t; print(t.__file__, t.__doc__)"
    module = tmp_path / "attn_course" / "tasks" / "__init__.py"
    with owner.WarmKernels() as process:
        with started(process, tmp_path) as asked:
            assert asked.is_forked
            assert asked.run(ask).startswith(f"True\n{module} ")
        module.write_text(f'"""Changed."""\n{module.read_text()}')
        with started(process, tmp_path) as asked:
            assert asked.is_forked
            assert asked.run(ask) == f"False\n{module} Changed."
