"""Shared by the tests of the layers: one thread."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Small products are quicker on one thread, and their sums always the same."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
