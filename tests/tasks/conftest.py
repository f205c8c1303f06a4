"""Functions defined as a learner defines them."""

import importlib.util
import itertools

import pytest

_numbers = itertools.count()


@pytest.fixture
def define(tmp_path):
    """Define a function as the learner does: its text can be found by `inspect`."""

    def define(text, name="my_f"):
        path = tmp_path / f"cell_{next(_numbers)}.py"
        path.write_text(text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return getattr(module, name)

    return define
