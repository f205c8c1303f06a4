"""Stop an answer that runs too long, in the main thread or any other, and leave no clock behind.

Standard library only, so that a confined worker can load it with `run`.
"""

import contextlib
import ctypes
import gc
import signal
import threading
from collections.abc import Iterator
from typing import Any


class TimeIsUp(BaseException):
    """Raised inside an answer that runs too long; no Exception, so that `except Exception` does not swallow it."""


@contextlib.contextmanager
def time_limit(seconds: float, *, of_work: bool = False) -> Iterator[None]:
    """Raise TimeIsUp in this thread after `seconds`; by a signal where there is one, else from a watching thread.

    `of_work`: seconds of this process's own work, which other work on the machine does not shorten, where there are signals; nor
    does a search of the whole heap for garbage, half a second in the process that builds all lessons: it waits until afterwards.
    """
    waiting = of_work and gc.isenabled()
    if waiting:
        gc.disable()
    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        clock, alarm = (signal.ITIMER_PROF, signal.SIGPROF) if of_work else (signal.ITIMER_REAL, signal.SIGALRM)

        def stop(*_: Any) -> None:
            raise TimeIsUp

        before = signal.signal(alarm, stop)

        def disarm() -> None:
            signal.setitimer(clock, 0)
            signal.signal(alarm, before or signal.SIG_DFL)

        signal.setitimer(clock, seconds, 0.1)  # again and again: a bare `except:` swallows the first
    else:
        thread, over = ctypes.c_ulong(threading.get_ident()), threading.Event()

        def watch() -> None:
            wait = seconds
            while not over.wait(wait):
                wait = 0.1
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeIsUp))

        watcher = threading.Thread(target=watch, daemon=True)

        def disarm() -> None:
            over.set()
            watcher.join()
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, None)  # one that was sent and has not arrived

        watcher.start()
    try:
        try:
            yield
        finally:
            disarm()
    finally:
        disarm()  # the last alarm may have struck inside the first
        if waiting:
            gc.enable()
