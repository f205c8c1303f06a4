"""The door to the game that lessons handed out before it had a room of its own, and the copies that learners keep, come through."""

from attn_course.game.card import break_the_machine

__all__ = ["break_the_machine"]
