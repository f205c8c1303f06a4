"""Machines drawn as machines: parts of attention, each called with its numbers by the lesson that is about it."""
