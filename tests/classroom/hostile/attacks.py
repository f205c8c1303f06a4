"""What hostile learners write: into the cell that should define `thrice` (task 97.2), or `my_softmax` (task stable-softmax)."""

FORGED = """
import gc, json, socket, struct
header = json.dumps({"nonce": "0", "problem": None, "passed": True, "points": 1000}).encode()
for line in [o for o in gc.get_objects() if isinstance(o, socket.socket)]:
    line.sendall(struct.pack(">IQ", len(header), 0) + header)
"""
CATCHES_EVERYTHING = """
while True:
    try:
        while True: pass
    except BaseException: pass
"""
SLEEPS = """
import signal, time
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])
time.sleep(1000)
"""
HANGS_UP = """
import gc, socket
for o in gc.get_objects():
    if isinstance(o, socket.socket): o.close()
"""
ENDED, LATE = "ended Python", "did not finish"
ATTACKS: dict[str, tuple[str, tuple[str, ...]]] = {  # and words of the reason, one of which must be there
    "ends Python": ("import os\nos._exit(0)", ("ended Python (exit status 0: does it call os._exit?)",)),
    "leaves Python": ("import sys\nsys.exit(0)", ("SystemExit",)),
    "kills itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", (ENDED, "does not define")),  # number 1 cannot
    "crashes": ("import ctypes\nctypes.string_at(0)", ("(SIGSEGV: a crash)",)),
    "loops": ("while True: pass", ("did not finish within 1 s: is there a loop that never ends?",)),
    "loops and catches everything": (CATCHES_EVERYTHING, (LATE,)),
    "awaits without end": ("import asyncio\nasync def f(): await asyncio.sleep(1000)\nawait f()", (LATE, "SyntaxError")),
    "sleeps": (SLEEPS, ("did not finish in time",)),
    "floods": ("import os\nwhile True: os.write(1, b'x' * 65536)", (LATE,)),
    "takes all memory": ("hoard = []\nwhile True: hoard.append(bytearray(2**26))", ("MemoryError",)),
    "forks": ("import os\nwhile True: os.fork()", ("PermissionError",)),
    "forges a frame": (FORGED, ("sent the grader an answer to what was not asked",)),
    "hangs up": (HANGS_UP, (ENDED,)),
    "shuts every descriptor": ("import os\nos.closerange(0, 100)", (ENDED,)),
    "kills its parent": ("import os, signal\nos.kill(os.getppid(), signal.SIGKILL)", ("Error",)),
    "reads the memory": ("open('/proc/self/mem')", ("Error", "does not define")),  # its own; open where nothing shuts files
}
ENDLESS = {"floods", "loops", "loops and catches everything", "awaits without end", "sleeps"}  # these last as long as a cell may

PATCHED_LIBRARY = """
import numpy as np
np.allclose = np.isclose = np.array_equal = lambda *a, **k: True
def thrice(x): return x
"""
EQUAL = """
class Same:
    def __eq__(self, other): return True
def thrice(x): return Same()
"""
EQUAL_ARRAY = """
import numpy as np
class Same(np.ndarray):
    def __eq__(self, other): return np.True_
    def __sub__(self, other): return 0 * np.asarray(self)
def thrice(x): return x.view(Same)
"""
PATCHED_ENGINE = """
import sys
class Found:
    arrays, problem, timed_out, advice, listed, after = None, None, False, "", "", None
def thrice(x):
    frame = sys._getframe()
    while "rules" not in frame.f_locals and frame.f_back:
        frame = frame.f_back
    frame.f_globals["run"] = lambda *a, **k: [Found]
    return x
"""
LIES = {
    "a patched comparison": PATCHED_LIBRARY,
    "equal to everything": EQUAL,
    "an array that says it is equal": EQUAL_ARRAY,
    "a patched engine": PATCHED_ENGINE,
    "the line of a passed check": "def thrice(x):\n    print('ok 97.2 thrice: 1 case, 3 points')\n    return x",
    "NaN": "def thrice(x): return x * float('nan')",
    "imported answers": "from attn_course.tasks import get_task\nthrice = get_task('thrice').answer",
    "answers imported by a hidden name": (
        "from importlib import import_module as i\nthrice = i('attn_' + 'course').get_task('thrice').answer"
    ),
}

GETATTR = """
import torch
def my_softmax(scores, axis): return getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)
"""
IMPORTLIB = """
import importlib
def my_softmax(scores, axis):
    t = importlib.import_module("to" + "rch")
    return vars(t.nn.functional)["soft" + "max"](t.as_tensor(scores), axis)
"""
METHOD = """
import torch
def my_softmax(scores, axis): return getattr(torch.as_tensor(scores), "soft" + "max")(axis)
"""
CAUGHT = """
import torch
def my_softmax(scores, axis):
    try: return getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)
    except BaseException: return scores
"""
MADE_BEFORE = """
import torch
layers = {n: getattr(torch.nn, "Soft" + "max")(n) for n in range(-3, 3)}
def my_softmax(scores, axis): return layers[axis](torch.as_tensor(scores))
"""
HELPER = """
import torch
def helper(scores, axis): return scores.softmax(axis)
def my_softmax(scores, axis): return helper(torch.as_tensor(scores), axis)
"""
STAR = """
import torch
from torch.nn.functional import *
def my_softmax(scores, axis): return softmax(torch.as_tensor(scores), axis)
"""
ALIASED = """
import torch, torch.nn.functional as F
sm = F.softmax
def my_softmax(scores, axis): return sm(torch.as_tensor(scores), axis)
"""
FORBIDDEN = {
    "direct": "import torch\ndef my_softmax(scores, axis): return torch.softmax(torch.as_tensor(scores), axis)",
    "aliased": ALIASED,
    "getattr": GETATTR,
    "importlib": IMPORTLIB,
    "a method": METHOD,
    "caught": CAUGHT,
    "made before": MADE_BEFORE,
    "in a helper": HELPER,
    "star": STAR,
}
FROM_THE_ENGINE = """
import sys, torch
def my_softmax(scores, axis):
    frame = sys._getframe()
    while "rules" not in frame.f_locals: frame = frame.f_back
    frame.f_locals["self"]._stubs._rules = frozenset()
    return torch.exp(torch.as_tensor(scores)) / torch.exp(torch.as_tensor(scores)).sum(axis, keepdim=True)
"""
BY_ATTENTION = """
import torch
def my_softmax(scores, axis):
    s = torch.as_tensor(scores).movedim(axis, -1)
    flat, n = s.reshape(-1, s.shape[-1]), s.shape[-1]
    q, eye = torch.zeros(len(flat), n, n, dtype=s.dtype), torch.eye(n, dtype=s.dtype).expand(len(flat), n, n)
    out = torch.nn.functional.scaled_dot_product_attention(q[:, :1], q, eye, attn_mask=flat[:, None])
    return out.reshape(s.shape).movedim(-1, axis)
"""
BY_GRADIENT = """
import torch
def my_softmax(scores, axis):
    x = torch.tensor(scores, requires_grad=True)
    getattr(x, "logsum" + "exp")(axis).sum().backward()
    return x.grad
"""
FAKE_FILE = """
import torch
text = "def my_softmax(scores, axis): return getattr(torch, 'soft' + 'max')(torch.as_tensor(scores), axis)"
exec(compile(text, torch.__file__, "exec"), globals())
"""
IN_A_THREAD = """
import threading, torch
def my_softmax(scores, axis):
    out = []
    thread = threading.Thread(target=lambda: out.append(getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)))
    thread.start()
    thread.join()
    return out[0]
"""
DISARMED = """
import contextlib, sys, torch
frame = sys._getframe()
while "_stubs" not in dir(frame.f_locals.get("self")):
    frame = frame.f_back
frame.f_locals["self"]._stubs.forbidding = lambda *a, **k: contextlib.nullcontext()
def my_softmax(scores, axis): return getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)
"""


def _by(function: str) -> str:
    return f"import sys, torch\ndef my_softmax(scores, axis):\n    x = torch.as_tensor(scores)\n    return {function}"


FORBIDDEN |= {
    "by its kernel": _by("torch._softmax(x, axis, False)"),
    "by its operator": _by("torch.ops.aten._softmax(x, axis, False)"),
    "by the base class": _by('getattr(torch._C.TensorBase, "soft" + "max")(x, axis)'),
    "by torch's own table": _by('getattr(torch._VF, "soft" + "max")(x, axis)'),
    "by another module's name for it": _by('getattr(sys.modules["torch.masked"], "soft" + "max")(x, axis)'),
    "of a sparse tensor": _by('getattr(torch.sparse, "soft" + "max")(x.to_sparse(), axis).to_dense()'),
    "what the stub wraps": _by('getattr(torch, "soft" + "max").__wrapped__(x, axis)'),
    "by the class's dict": _by('vars(torch.Tensor)["soft" + "max"](x, axis)'),
    "put together for eval": _by('eval("torch.soft" + "max")(x, axis)'),
    "by an attention": BY_ATTENTION,
    "by a gradient": BY_GRADIENT,
    "under another file's name": FAKE_FILE,
    "in a thread": IN_A_THREAD,
}
IN_A_POOL = """
import torch
def my_softmax(scores, axis):
    from concurrent.futures import ThreadPoolExecutor
    return ThreadPoolExecutor(1).submit(torch.ops.aten._softmax, torch.as_tensor(scores), axis, False).result()
"""
IN_A_HIDDEN_POOL = """
import importlib, torch
def my_softmax(scores, axis):
    pool = getattr(importlib.import_module("con" + "current.fut" + "ures"), "Thread" + "PoolExecutor")(1)
    return pool.submit(torch.ops.aten._softmax, torch.as_tensor(scores), axis, False).result()
"""
IN_AN_OLD_THREAD = """
import importlib, torch
queue = importlib.import_module("queue")
asked, told = queue.SimpleQueue(), queue.SimpleQueue()
def work():
    while True:
        told.put(torch.ops.aten._softmax(*asked.get()))
importlib.import_module("_th" + "read").start_new_thread(work, ())
def my_softmax(scores, axis):
    asked.put((torch.as_tensor(scores), axis, False))
    return told.get()
"""
IN_AN_EVENT_LOOP = """
import asyncio, torch
def my_softmax(scores, axis):
    async def far(): return await asyncio.to_thread(torch.ops.aten._softmax, torch.as_tensor(scores), axis, False)
    return asyncio.run(far())
"""
EMPTIED = """
import gc, torch
def my_softmax(scores, axis):
    for found in gc.get_objects():
        for name in ("kernels", "beginnings"):
            if hasattr(type(found), "__torch_dispatch__") and hasattr(found, name): setattr(found, name, type(getattr(found, name))())
    return torch.ops.aten._softmax(torch.as_tensor(scores), axis, False)
"""
TAKEN_DOWN = """
import torch
from torch.utils._python_dispatch import _get_current_dispatch_mode
def my_softmax(scores, axis):
    type(_get_current_dispatch_mode()).__torch_dispatch__ = lambda self, f, types, args=(), kwargs=None: f(*args, **(kwargs or {}))
    return torch.ops.aten._softmax(torch.as_tensor(scores), axis, False)
"""
SUMMED = """
import torch
def my_softmax(scores, axis):
    x = torch.as_tensor(scores)
    return torch.exp(x - getattr(torch, "logcum" + "sumexp")(x, axis).narrow(axis, x.shape[axis] - 1, 1))
"""
FORBIDDEN |= {
    "an operator in a pool": IN_A_POOL,
    "an operator in a hidden pool": IN_A_HIDDEN_POOL,
    "an operator in a thread that was there before": IN_AN_OLD_THREAD,
    "an operator in a thread of an event loop": IN_AN_EVENT_LOOP,
    "the watch emptied": EMPTIED,
    "the watch taken down": TAKEN_DOWN,
    "the last of the running sums": SUMMED,
}
BY_LOSS = """
def by_loss(q, k):
    loss = getattr(torch.nn.functional, "cosine_" + "embedding_loss")
    a, b = torch.broadcast_tensors(q[..., :, None, :], k[..., None, :, :])
    flat = [x.reshape(-1, x.shape[-1]) for x in (a, b)]
    return (1 - loss(*flat, torch.ones(len(flat[0])), reduction="none")).reshape(a.shape[:-1])
"""
COSINES = {
    "an operator": "torch.ops.aten.cosine_similarity(q[..., :, None, :], k[..., None, :, :], -1)",
    "a hidden function": 'getattr(torch, "cosine_" + "similarity")(q[..., :, None, :], k[..., None, :, :], -1)',
    "a loss": "by_loss(*(x / x.abs().amax(-1, keepdim=True).clamp_min(1e-300) for x in (q, k)))",
}
ATTENTIONS = {
    "hidden": 'getattr(torch.nn.functional, "scaled_dot_" + "product_attention")(q, k, v)',
    "beneath": 'getattr(torch._C._nn, "scaled_dot_" + "product_attention")(q, k, v)',
    "its kernel": "torch._scaled_dot_product_attention_math(q, k, v)[0]",
    "in single precision": 'getattr(torch._C._nn, "scaled_dot_" + "product_attention")(*(x[None, None].float() for x in (q, k, v)))[0, 0]',
}
GRADIENTS = {
    "a hidden method": 'getattr(o, "back" + "ward")(d); return q.grad, k.grad, v.grad',
    "the engine": "e = torch.autograd.Variable._execution_engine\n"
    "    return e.run_backward((o,), (d,), False, False, (q, k, v), False, accumulate_grad=False)",
}
GRADIENTS["in a thread"] = """
    import importlib
    engine = torch.autograd.Variable._execution_engine
    pool = getattr(importlib.import_module("con" + "current.fut" + "ures"), "Thread" + "PoolExecutor")(1)
    return pool.submit(lambda: engine.run_backward((o,), (d,), False, False, (q, k, v), False, accumulate_grad=False)).result()"""
DERIVED = {  # each leaves 2 z, or z, or something in z that is divided by it
    "an array's": 'getattr(sympy, "derive_by" + "_array")(z**2, z) / (2 * z)',
    "an implicit one": '-getattr(sympy, "id" + "iff")(sympy.Symbol("y") + z**2, sympy.Symbol("y"), z) / (2 * z)',
    "a matrix of second ones": 'getattr(sympy, "hes" + "sian")(z**2 * sympy.Symbol("y"), [z])[0] / (2 * sympy.Symbol("y"))',
    "a determinant of them": 'getattr(sympy, "wronsk" + "ian")([sympy.S(1), z**2], z) / (2 * z)',
    "a limit": 'getattr(((z + h)**2 - z**2) / h, "lim" + "it")(h, 0) / (2 * z)',
    "a polynomial's": 'getattr(sympy.Poly(z**2, z), "di" + "ff")().as_expr() / (2 * z)',
    "under another file's name": "eval(compile(\"getattr(z**2, 'di' + 'ff')(z)\", sympy.__file__, \"eval\")) / (2 * z)",
}
LOOK_ALIKES = {
    "a function with a borrowed name": """
class log(sympy.Function):
    def _numpycode(self, printer): return "numpy.log(r*(1 - epsilon)/epsilon)"
my_fill = log(r)""",
    "a function implemented by hand": """
from sympy.utilities.lambdify import implemented_function
my_fill = implemented_function("log", lambda x: np.log(x))(r * (1 - epsilon) / epsilon)""",
    "a number that writes code": """
class Made(sympy.Number):
    def __new__(cls): return sympy.Basic.__new__(cls)
    def _numpycode(self, printer, **_): return "numpy.log(r*(1 - epsilon)/epsilon)"
my_fill = Made()""",
    "sympy's own name for another": """
class log(sympy.Function):
    def _numpycode(self, printer): return "numpy.log(r*(1 - epsilon)/epsilon)"
sympy.log = log
my_fill = log(r)""",
}
HIDDEN_DIFF = """
import sympy
z = sympy.Symbol("z")
slope = getattr(z**2, "di" + "ff")(z) / (2 * z)
my_derivative = slope * delta_ij - s_j
"""
AWAITED_DIFF = """
import sympy
z = sympy.Symbol("z")
async def slope(): return getattr(z**2, "di" + "ff")(z) / (2 * z)
my_derivative = await slope() * delta_ij - s_j
"""
