"""A file for each lesson, named like it: RIGHT = {task id: right answers, each written in another way}.

Functions of write and repair tasks stand as a learner would define them; those of derive tasks take the symbols, and
those of predict and figure tasks take nothing, and return the answer.
"""
