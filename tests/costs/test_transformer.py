"""Parameters, FLOPs and bytes of a Transformer against the model itself: what it holds, multiplies and reads."""

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from attn_course import costs
from attn_course.modules import MeasuredCache, Transformer

MODELS = {
    "gpt2": ({"n_positions": 31, "bias": True}, {}),
    "llama": ({"n_kv_heads": 2, "d_hidden": 7, "gated": True, "tied": False}, {"norm": "rms", "rope_theta": 100.0}),
    "2017": ({"norm_first": False, "n_positions": 17, "d_hidden": 5}, {}),
}
PASSES = [(7, 7), (1, 8), (3, 11), (1, 1)]


@pytest.fixture(params=[*MODELS])
def both(request):
    """A model that computes step by step, so that all its products are seen, and its sizes."""
    options, more = MODELS[request.param]
    sizes = costs.TransformerSizes(23, 24, 6, 3, **options, norm_bias=more.get("norm") != "rms")
    return Transformer(23, 24, 6, 3, **options, **more, backend="eager"), sizes


def flops(call):
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        call()
    return counter.get_total_flops()


def read_after(model, past, new, batch=1):
    """Return a call that reads new tokens behind a past."""
    cache = model.new_cache()
    if past:
        with torch.no_grad():
            model(torch.ones(batch, past, dtype=torch.int64), cache=cache)
    return lambda: model(torch.ones(batch, new, dtype=torch.int64), cache=cache)


def test_the_parameters_are_those_of_the_model(both):
    model, sizes = both
    assert costs.transformer_parameters(sizes) == sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize(("q_len", "kv_len"), PASSES)
def test_a_pass_takes_the_flops_that_a_counter_sees(both, q_len, kv_len):
    model, sizes = both
    assert flops(read_after(model, kv_len - q_len, q_len)) == costs.transformer_flops(sizes, q_len, kv_len)


@pytest.mark.parametrize(("prompt_len", "n_new"), [(5, 6), (1, 1), (4, 0)])
@pytest.mark.parametrize("use_cache", [True, False])
def test_writing_takes_the_flops_that_a_counter_sees(both, prompt_len, n_new, use_cache):
    model, sizes = both
    prompt = torch.ones(1, prompt_len, dtype=torch.int64)
    seen = flops(lambda: model.generate(prompt, n_new, use_cache=use_cache))
    assert seen == costs.generation_flops(sizes, prompt_len, n_new, use_cache=use_cache)


def test_pairs_and_positions_that_are_left_out_cost_nothing():
    sizes = costs.TransformerSizes(23, 24, 6, 3)
    full = costs.transformer_flops(sizes, 7, 7)
    assert full - costs.transformer_flops(sizes, 7, 7, logits_len=1) == 2 * 6 * 24 * 23
    causal = costs.attended_pairs(7, 7, is_causal=True)
    assert full - costs.transformer_flops(sizes, 7, 7, pairs=causal) == 3 * 6 * costs.attention_flops(49 - causal, 4, 4)


class WeightsRead(TorchDispatchMode):
    """Sums the bytes of the parameters that any operation reads whole; looking up rows of a table is none."""

    def __init__(self, model):
        super().__init__()
        self.sizes = {parameter.data_ptr(): parameter.nbytes for parameter in model.parameters()}
        self.read = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        views = ("embedding", "slice", "t.default", "transpose", "detach", "view", "expand", "unsqueeze")
        if not any(view in str(function) for view in views):
            self.read |= {each.data_ptr() for each in args if isinstance(each, torch.Tensor)} & {*self.sizes}
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("n_sequences", [1, 5])
def test_a_step_reads_the_bytes_of_the_weights_and_of_the_cache(both, n_sequences):
    model, sizes = both
    cache = [MeasuredCache() for _ in model.blocks]
    with torch.no_grad():
        model(torch.ones(n_sequences, 9, dtype=torch.int64), cache=cache)
        with WeightsRead(model) as weights:
            model(torch.ones(n_sequences, 1, dtype=torch.int64), cache=cache)
    positions = 0 if model.w_positions is None else model.w_positions.data_ptr()
    read = sum(weights.sizes[pointer] for pointer in weights.read - {positions})
    seen = read + sum(own.n_bytes for own in cache)
    assert seen == costs.decoding_bytes(sizes, 10, n_sequences=n_sequences, bytes_per_number=4)
