"""What can be wrong with an equation, from a false claim to a label nobody registered."""


class EquationError(Exception):
    """An equation failed its check."""

    def _render_traceback_(self) -> list[str]:
        """Show a notebook one line instead of the checker's own frames."""
        return [f"{type(self).__name__}: {self}"]


class Refuted(EquationError):
    """A counterexample was found."""


class Malformed(EquationError):
    """The formula cannot be read, has no meaning for what is given, or claims too little to be tested."""


class UnknownEquation(ValueError):
    """The label, lesson, topic or trap asked for does not exist."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]
