"""Stop an answer that runs too long, in the main thread or any other, and leave no clock behind.

Standard library only, so that a confined worker can load it with `run`.
"""

import _thread
import contextlib
import ctypes
import gc
import signal
import threading
import time
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
    inside, waiting = True, of_work and gc.isenabled()
    if waiting:
        gc.disable()
    if hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread():
        clock, alarm = (signal.ITIMER_PROF, signal.SIGPROF) if of_work else (signal.ITIMER_REAL, signal.SIGALRM)

        def stop(*_: Any) -> None:
            raise TimeIsUp

        before = signal.signal(alarm, stop)

        def arm() -> None:
            signal.setitimer(clock, seconds, 0.1)  # again and again: a bare `except:` swallows the first

        def disarm() -> None:
            signal.setitimer(clock, 0)
            signal.signal(alarm, before or signal.SIG_DFL)
    else:
        thread, ident = threading.current_thread(), ctypes.c_ulong(threading.get_ident())
        over, striking = threading.Lock(), False
        over.acquire()

        def watch() -> None:
            nonlocal striking
            wait = seconds
            while not over.acquire(timeout=wait) and thread.is_alive():  # a later thread may get the number of one that has ended
                striking, wait = True, 0.1
                if inside:
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(TimeIsUp))
                striking = False

        def arm() -> None:
            _thread.start_new_thread(watch, ())

        def disarm() -> None:  # an alarm may strike between any two of these; then it is called again
            if over.locked():
                over.release()
            while striking:
                time.sleep(0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, None)  # one that was sent and has not arrived

    try:
        try:
            arm()
            yield
        finally:
            inside = False  # before all else: from here on at most one more alarm arrives
            disarm()
    finally:
        inside = False
        disarm()  # the last alarm may have struck inside the first
        if waiting:
            gc.enable()
