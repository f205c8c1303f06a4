"""Notebooks that try to get points, or to harm others, by other means than a right answer."""
