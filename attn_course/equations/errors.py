"""What can be wrong with an equation, from a false claim to a label nobody registered."""


class EquationError(Exception):
    """An equation failed its check."""

    def _render_traceback_(self) -> list[str]:
        """Show a notebook one line instead of the checker's own frames."""
        return [f"{type(self).__name__}: {self}"]


class Refuted(EquationError):
    """A counterexample was found: the two sides differ."""


class Unproved(EquationError):
    """No counterexample was found, but the check could not settle the claim either."""


class Malformed(EquationError):
    """The statement cannot be read as an equation: wrong type, shapes that differ, a number that is not one."""


class UnknownEquation(ValueError):
    """The label, lesson, row or trap asked for does not exist."""

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self}"]
