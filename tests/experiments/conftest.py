"""One thread for each test process: two processes with two threads each take many times as long on two cores."""

from tests.modules.conftest import one_thread

__all__ = ["one_thread"]
