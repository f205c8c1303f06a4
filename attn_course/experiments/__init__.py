"""Trainings and measurements of the lessons: what is run, for which seeds, and what came out (results/*.json)."""

from attn_course.experiments.core import Experiment, ExperimentError, Record, all_experiments

__all__ = ["Experiment", "ExperimentError", "Record", "all_experiments"]
