"""The error a command raises when the person at the terminal can mend it."""


class CommandError(Exception):
    """Something the caller can mend, said in one line: `attn-course` prints it without a traceback and exits with 2."""
