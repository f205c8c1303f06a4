"""Answers to `thrice` (task 97.2) that lie about what they are, stay behind, or stand in the way; and words of the reason."""

from tests.classroom.hostile.support import read

LATE, UNHEARD = "did not", "did not finish in time"  # the second by the grader: no worker could stop it
TRICKS = read(r"""
a patched comparison:
    import numpy as np
    np.allclose = np.isclose = np.array_equal = lambda *a, **k: True
    def thrice(x): return x
a patched engine:
    import sys
    class Found:
        arrays, problem, timed_out, advice, listed, after = None, None, False, "", "", None
    def thrice(x):
        frame = sys._getframe()
        while "how" not in frame.f_locals and frame.f_back:
            frame = frame.f_back
        frame.f_globals["run"] = lambda *a, **k: [Found]
        return x
the line of a passed check:
    def thrice(x):
        print('ok: task 97.2, thrice: 1 case, 3 points')
        return x
NaN:
    def thrice(x): return x * float('nan')
answers imported by a hidden name:
    from importlib import import_module as i
    thrice = i('attn_' + 'course').get_task('thrice').answer
patched builtins:
    import builtins, json, struct
    import numpy as np, torch
    builtins.bool = builtins.all = builtins.any = lambda *a, **k: True
    builtins.isinstance = lambda *a: True
    def thrice(x): return x
input transformer: this is the mistake “forgot the factor”
    import IPython
    from IPython.core.inputtransformer2 import TransformerManager
    TransformerManager.transform_cell = lambda self, text: "thrice = lambda x: x + 2 * x"
    get_ipython().input_transformers_post = [lambda lines: ["pass"]]
    def thrice(x): return x
showtraceback: raised ValueError
    import sys, traceback
    get_ipython().showtraceback = get_ipython().set_custom_exc = lambda *a, **k: None
    sys.excepthook = lambda *a: None
    traceback.extract_tb = lambda tb: []
    def thrice(x): raise ValueError("ok: task 97.2, thrice: 1 case, 3 points")
__array__: must return a NumPy array or a torch tensor; got __main__.Lie
    import numpy as np
    class Lie:
        dtype, shape, ndim = np.dtype(float), (5,), 1
        def __array__(self, *a, **k): return np.full(5, np.nan)
        def __array_ufunc__(self, *a, **k): return np.True_
        def __array_function__(self, *a, **k): return True
        __eq__ = __lt__ = __le__ = __ge__ = __gt__ = lambda self, other: True
    def thrice(x): return Lie()
__array_ufunc__: this is the mistake “forgot the factor”
    import numpy as np
    class Lie(np.ndarray):
        def __array_ufunc__(self, *a, **k): return np.True_
        def __array_function__(self, *a, **k): return np.True_
        def __array_finalize__(self, other): pass
        def __reduce__(self): return (print, ("unpickled",))
        def tobytes(self, *a): return bytes(40)
    def thrice(x): return x.view(Lie)
a float of its own: must have shape (5,); got a single number
    import numpy as np
    class Lie(float):
        def __eq__(self, other): return True
        __sub__ = __rsub__ = __abs__ = lambda self, *a: 0.0
        __hash__ = float.__hash__
    def thrice(x): return Lie(3)
__torch_function__:
    import torch
    class Lie(torch.Tensor):
        @classmethod
        def __torch_function__(cls, *a, **k): return torch.zeros(5, dtype=torch.float64)
    def thrice(x): return torch.as_tensor(x).as_subclass(Lie)
a class that says it is a tensor: its result cannot be sent: arrays in a frame must be of plain numbers
    class Meta(type):
        def __instancecheck__(cls, other): return True
        def __eq__(cls, other): return True
        __hash__ = type.__hash__
        __module__ = "torch"
    class Lie(metaclass=Meta):
        __module__ = "torch"
        def detach(self): return self
        def cpu(self): return self
        dtype = "torch.float64"
        def numpy(self): return "no array"
    def thrice(x): return Lie()
a course of its own: this is the mistake “forgot the factor”
    import sys, types
    course = types.ModuleType("attn_course")
    course.check = course.judge = lambda *a, **k: True
    for name in ("attn_course", "attn_course.tasks", "attn_course.tasks.run", "attn_course.tasks.forms", "attn_course.classroom.worker"):
        sys.modules[name] = course
    import attn_course
    attn_course.tasks.run.run = lambda *a, **k: True
    def thrice(x): return x
a pickle that bites: must return a NumPy array or a torch tensor; got __main__.Boom
    import os, pickle
    class Boom:
        def __reduce__(self): return (os._exit, (0,))
        def __deepcopy__(self, memo): os._exit(0)
    def thrice(x): return Boom()
a generator: must return a NumPy array or a torch tensor; got generator
    def thrice(x): yield from 3 * x
a property: the answer cell does not define thrice
    import sys
    class Module(type(sys)):
        @property
        def thrice(self): return lambda x: 3 * x
    sys.modules["__main__"].__class__ = Module
    try: del thrice
    except NameError: pass
answers with what came before: it looks like the mistake “forgot the factor”
    seen = []
    def thrice(x):
        seen.append(x)
        return 3 * seen[0] if len(seen) > 1 else x
a view of its input: changed its input `x`
    def thrice(x):
        x *= 3
        return x[:]
the numbers of the public case: is not right
    import numpy as np
    x = np.random.default_rng(20_170_612).normal(size=5)
    def thrice(_): return 3 * x
the random state: is not right
    import numpy as np, random
    state = np.random.get_state()[1][0]
    def thrice(_): return 3 * np.random.default_rng([int(state), 97, 2]).normal(size=5)
an alarm of its own: did not finish in time
    def thrice(x):
        import signal
        for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
            signal.signal(number, signal.SIG_IGN)
        signal.setitimer(signal.ITIMER_REAL, 0)
        while True: pass
a patched limit:
    import gc, types
    for o in gc.get_objects():
        if isinstance(o, types.FunctionType) and o.__name__ in ("time_limit", "setitimer"): o.__code__ = (lambda *a: 0).__code__
    def thrice(x):
        while True:
            try:
                while True: pass
            except BaseException: pass
a loop in compiled code: did not finish in time
    def thrice(x): return sum(range(10**12))
a regular expression without end: did not
    import re
    def thrice(x): return re.match("(a*)*b", "a" * 40)
prints without end: did not
    def thrice(x):
        while True: print("x" * 4096)
more elements than can be: Error
    import numpy as np
    def thrice(x): return np.broadcast_to(1.0, (2**40, 2**20))
more bytes than a frame may hold: may hold
    import numpy as np
    def thrice(x): return np.ones(2**23 + 1)
200,000 arrays:
    import numpy as np
    def thrice(x): return tuple(np.ones(1) for _ in range(200_000))
a thread bomb:
    import threading, time
    threading.stack_size(2**16)
    def thrice(x):
        while True: threading.Thread(target=time.sleep, args=(100,)).start()
a thread that changes the answers: this is the mistake “forgot the factor”
    import threading, time
    def change():
        while True:
            for name in ("twice", "four_times"): globals()[name] = lambda x: 0 * x
            time.sleep(0.0005)
    threading.Thread(target=change, daemon=True).start()
    def thrice(x): return x
a thread that answers:
    import gc, json, socket, struct, threading, time
    def answer():
        while True:
            for line in [o for o in gc.get_objects() if isinstance(o, socket.socket)]:
                header = json.dumps({"nonce": "0" * 16, "arrays": None}).encode()
                line.sendall(struct.pack(">IQ", len(header), 0) + header)
            time.sleep(0.001)
    threading.Thread(target=answer, daemon=True).start()
    def thrice(x): return x
atexit: this is the mistake “forgot the factor”
    import atexit, os
    atexit.register(lambda: print("x" * 2**21))
    atexit.register(os.abort)
    def thrice(x): return x
__del__: this is the mistake “forgot the factor”
    class Late:
        def __del__(self):
            while True: pass
    def thrice(x):
        late = Late()
        return x
settrace:
    import sys
    def trace(frame, event, arg):
        if "results" in frame.f_locals or "arrays" in frame.f_locals: frame.f_locals["arrays"] = 3
        return trace
    sys.settrace(trace); sys.setprofile(trace)
    def thrice(x): return x
an audit hook:
    import sys
    def hook(event, args): raise RuntimeError("no " + event)
    sys.addaudithook(hook)
    def thrice(x): return x
copies of the line:
    import gc, os, socket
    lines = [o for o in gc.get_objects() if isinstance(o, socket.socket)]
    copies = [line.dup() for line in lines]
    for line in lines: line.shutdown(socket.SHUT_RD)
    def thrice(x): return x
closes the line and answers: ended Python
    import os
    def thrice(x):
        os.closerange(0, 64)
        return 3 * x
an error that never says what it is: did not finish in time
    class Bad(Exception):
        def __str__(self):
            while True: pass
    def thrice(x): raise Bad
an error with a name of its own: raised
    class Bad(Exception): pass
    Bad.__name__ = "<script>alert(1)</script>\n" * 1000
    def thrice(x): raise Bad("\x00\x1b[2J" * 1000)
a callable that refuses to be looked at: this is the mistake “forgot the factor”
    class Answer:
        def __call__(self, x): return x
        def __getattr__(self, name): raise SystemExit(name)
        def __repr__(self): raise SystemExit
    thrice = Answer()
""")
UNSTOPPED = {trick for trick, (_, reason) in TRICKS.items() if reason == UNHEARD}
ENDLESS = {trick for trick, (_, reason) in TRICKS.items() if reason == LATE} | UNSTOPPED | {"a patched limit", "a thread bomb", "__del__"}
