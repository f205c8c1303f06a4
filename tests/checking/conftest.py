"""The toy course, which the tests of a class have too."""

from tests.classroom.conftest import toy_chapter, toy_course

__all__ = ["toy_chapter", "toy_course"]
