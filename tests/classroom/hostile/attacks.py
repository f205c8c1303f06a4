"""What hostile learners write: into the cell that should define `thrice` (task 97.2), or `my_softmax` (task stable-softmax)."""

from tests.classroom.hostile.support import read

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


FROM_THE_ENGINE = """
import sys, torch
def my_softmax(scores, axis):
    frame = sys._getframe()
    while "how" not in frame.f_locals: frame = frame.f_back
    frame.f_locals["self"]._stubs._rules = frozenset()
    return torch.exp(torch.as_tensor(scores)) / torch.exp(torch.as_tensor(scores)).sum(axis, keepdim=True)
"""
DISARMED = """
import contextlib, sys, torch
frame = sys._getframe()
while "_stubs" not in dir(frame.f_locals.get("self")):
    frame = frame.f_back
frame.f_locals["self"]._stubs.forbidding = lambda *a, **k: contextlib.nullcontext()
def my_softmax(scores, axis): return getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)
"""
WAYS = r"""
aliased:
    import torch, torch.nn.functional as F
    sm = F.softmax
    def my_softmax(scores, axis): return sm(torch.as_tensor(scores), axis)
getattr:
    import torch
    def my_softmax(scores, axis): return getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)
a method:
    import torch
    def my_softmax(scores, axis): return getattr(torch.as_tensor(scores), "soft" + "max")(axis)
caught:
    import torch
    def my_softmax(scores, axis):
        try: return getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)
        except BaseException: return scores
made before:
    import torch
    layers = {n: getattr(torch.nn, "Soft" + "max")(n) for n in range(-3, 3)}
    def my_softmax(scores, axis): return layers[axis](torch.as_tensor(scores))
star:
    import torch
    from torch.nn.functional import *
    def my_softmax(scores, axis): return softmax(torch.as_tensor(scores), axis)
by an attention:
    import torch
    def my_softmax(scores, axis):
        s = torch.as_tensor(scores).movedim(axis, -1)
        flat, n = s.reshape(-1, s.shape[-1]), s.shape[-1]
        q, eye = torch.zeros(len(flat), n, n, dtype=s.dtype), torch.eye(n, dtype=s.dtype).expand(len(flat), n, n)
        out = torch.nn.functional.scaled_dot_product_attention(q[:, :1], q, eye, attn_mask=flat[:, None])
        return out.reshape(s.shape).movedim(-1, axis)
by a gradient:
    import torch
    def my_softmax(scores, axis):
        x = torch.tensor(scores, requires_grad=True)
        getattr(x, "logsum" + "exp")(axis).sum().backward()
        return x.grad
under another file's name:
    import torch
    text = "def my_softmax(scores, axis): return getattr(torch, 'soft' + 'max')(torch.as_tensor(scores), axis)"
    exec(compile(text, torch.__file__, "exec"), globals())
in a thread:
    import threading, torch
    def my_softmax(scores, axis):
        out = []
        thread = threading.Thread(target=lambda: out.append(getattr(torch, "soft" + "max")(torch.as_tensor(scores), axis)))
        thread.start()
        thread.join()
        return out[0]
an operator in a pool:
    import torch
    def my_softmax(scores, axis):
        from concurrent.futures import ThreadPoolExecutor
        return ThreadPoolExecutor(1).submit(torch.ops.aten._softmax, torch.as_tensor(scores), axis, False).result()
an operator in a hidden pool:
    import importlib, torch
    def my_softmax(scores, axis):
        pool = getattr(importlib.import_module("con" + "current.fut" + "ures"), "Thread" + "PoolExecutor")(1)
        return pool.submit(torch.ops.aten._softmax, torch.as_tensor(scores), axis, False).result()
an operator in a thread that was there before:
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
an operator in a thread of an event loop:
    import asyncio, torch
    def my_softmax(scores, axis):
        async def far(): return await asyncio.to_thread(torch.ops.aten._softmax, torch.as_tensor(scores), axis, False)
        return asyncio.run(far())
the watch emptied:
    import gc, torch
    def my_softmax(scores, axis):
        for found in gc.get_objects():
            for name in ("kernels", "beginnings"):
                if hasattr(type(found), "__torch_dispatch__") and hasattr(found, name): setattr(found, name, type(getattr(found, name))())
        return torch.ops.aten._softmax(torch.as_tensor(scores), axis, False)
the watch taken down:
    import torch
    from torch.utils._python_dispatch import _get_current_dispatch_mode
    def my_softmax(scores, axis):
        type(_get_current_dispatch_mode()).__torch_dispatch__ = lambda self, f, types, args=(), kwargs=None: f(*args, **(kwargs or {}))
        return torch.ops.aten._softmax(torch.as_tensor(scores), axis, False)
the last of the running sums:
    import torch
    def my_softmax(scores, axis):
        x = torch.as_tensor(scores)
        return torch.exp(x - getattr(torch, "logcum" + "sumexp")(x, axis).narrow(axis, x.shape[axis] - 1, 1))
"""


def _by(function: str) -> str:
    return f"import sys, torch\ndef my_softmax(scores, axis):\n    x = torch.as_tensor(scores)\n    return {function}"


FORBIDDEN = {
    "direct": "import torch\ndef my_softmax(scores, axis): return torch.softmax(torch.as_tensor(scores), axis)",
    "by its kernel": _by("torch._softmax(x, axis, False)"),
    "by its operator": _by("torch.ops.aten._softmax(x, axis, False)"),
    "by the base class": _by('getattr(torch._C.TensorBase, "soft" + "max")(x, axis)'),
    "by torch's own table": _by('getattr(torch._VF, "soft" + "max")(x, axis)'),
    "by another module's name for it": _by('getattr(sys.modules["torch.masked"], "soft" + "max")(x, axis)'),
    "of a sparse tensor": _by('getattr(torch.sparse, "soft" + "max")(x.to_sparse(), axis).to_dense()'),
    "what the stub wraps": _by('getattr(torch, "soft" + "max").__wrapped__(x, axis)'),
    "by the class's dict": _by('vars(torch.Tensor)["soft" + "max"](x, axis)'),
    "put together for eval": _by('eval("torch.soft" + "max")(x, axis)'),
} | {name: code for name, (code, _) in read(WAYS).items()}
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
    "a function implemented by hand": """
from sympy.utilities.lambdify import implemented_function
my_fill = implemented_function("log", lambda x: np.log(x))(r * (1 - epsilon) / epsilon)""",
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
