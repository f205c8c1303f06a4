"""Notebooks from text: build lessons, solutions and exercises from their sources, and check that they agree."""

from attn_course.authoring.build import BuildReport, Step, build
from attn_course.authoring.check import check
from attn_course.authoring.problems import AuthoringError, Problem

__all__ = ["AuthoringError", "BuildReport", "Problem", "Step", "build", "check"]
