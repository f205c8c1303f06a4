"""Attention over several devices: what merges, what travels, and who waits."""

from typing import Any

import numpy as np

from attn_course import reference
from attn_course.equations.core import about
from attn_course.equations.counting import by_size, multiplications
from attn_course.formulas import derivative, matrix, of, row, rows, vector

claim = about("M3")


# ---- what merges
@claim("ring-update", rests_on="merge-of-finished-outputs")
def _(normal, n_A, n_B, d_k, d_v):
    r"""z' = z + \frac{z_c - z}{1 + e^{L - L_c}}, \qquad L' = \ln\bigl( e^{L} + e^{L_c} \bigr)
    where z, L: output and log-sum-exp over the keys so far ;; z_c, L_c: those over block c alone
    Two blocks merged: the new one gets the share e^{L_c} / (e^L + e^{L_c}), a logistic function, which never overflows.
        the shares exchanged: e^{L - L_c} -> e^{L_c - L}
        the plain mean: 1 + e^{L - L_c} -> 2
        the outputs added: \frac{z_c - z}{1 + e^{L - L_c}} -> z_c
        the later block for the difference: z_c - z -> z_c
        the logarithms added: \ln\bigl( e^{L} + e^{L_c} \bigr) -> L + L_c
    """
    query, key, value = normal(1, d_k), normal(n_A + n_B, d_k), normal(n_A + n_B, d_v)
    given: dict[str, Any] = {}
    for name, keys in {"": slice(n_A), "_c": slice(n_A, None), "'": slice(None)}.items():
        output, lse = reference.attention(query, key[keys], value[keys], return_lse=True)
        given |= {f"z{name}": row(output[0]), f"L{name}": lse[0]}
    return given


@claim("merged-output-gradients", rests_on="merge-of-finished-outputs lse-gradient")
def _(normal, n, d_v):
    r"""dz^{(c)} = e^{L^{(c)} - L}\, dz, \qquad dL^{(c)} = e^{L^{(c)} - L}\, dz \cdot (z^{(c)} - z)
    where z, L: merged from z^(c), L^(c) ;; the loss reads z
    The merge is a softmax over blocks: a block gets its share, and its share grows with what it has beside the mixture.
        the whole gradient for each block: dz^{(c)} = e^{L^{(c)} - L}\, dz -> dz^{(c)} = dz
        the shares taken as constants: e^{L^{(c)} - L}\, dz \cdot (z^{(c)} - z) -> 0
        the mixture not taken away: (z^{(c)} - z) -> z^{(c)}
    """
    outputs, lses, dz = normal(n, d_v), normal(n), normal(d_v)

    def merged(outputs: np.ndarray, lses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        z, L = reference.merge_partial_attention(list(outputs[:, None]), list(lses[:, None]))
        return z[0], L[0]

    z, L = merged(outputs, lses)
    gradients = {
        "dz^{(c)}": rows(derivative(lambda some: merged(some, lses)[0] @ dz, outputs)),
        "dL^{(c)}": vector(derivative(lambda some: merged(outputs, some)[0] @ dz, lses)),
    }
    return gradients | {"z^{(c)}": rows(outputs), "L^{(c)}": vector(lses), "z": row(z), "L": L, "dz": row(dz)}


@claim("block-weights-from-lse", rests_on="weights-from-lse merged-output-gradients")
def _(normal, T_q, n_A, n_B, d_k):
    r"""p'_{ij}\, e^{L'_i - L_i} = p_{ij} = e^{s_{ij} - L_i}
    where p', L': weights and log-sum-exp within one block ;; p, L: over all blocks, at the keys j of this one
    Going back a device needs the final L of its queries only: the weights of a passing block come out as if all keys were there.
        from the log-sum-exp of the block: e^{s_{ij} - L_i} -> e^{s_{ij} - L'_i}
        the weights of the block as they are: p'_{ij}\, e^{L'_i - L_i} -> p'_{ij}
        rescaled the other way: e^{L'_i - L_i} -> e^{L_i - L'_i}
    """
    query, key = normal(T_q, d_k), normal(n_A + n_B, d_k)
    _, weights, lse = reference.attention(query, key, key, return_weights=True, return_lse=True)
    _, within, own = reference.attention(query, key[n_A:], key[n_A:], return_weights=True, return_lse=True)
    scores = matrix(reference.scaled_dot_scores(query, key[n_A:]))
    return {"p'": matrix(within), "L'": vector(own), "p": matrix(weights[:, n_A:]), "L": vector(lse), "s": scores}


# ---- what travels
def sent_in_a_ring(T: int, n: int, H_kv: int, d_k: int, d_v: int) -> tuple[int, int]:
    """Pass blocks around, and count the numbers sent: keys and values once around, and sums of gradients on their way home."""
    blocks = [np.zeros((H_kv, len(held), d_k + d_v)) for held in np.array_split(np.arange(T), n)]
    passing, moved, back = list(range(n)), 0, 0
    sums: list[set[int]] = [set() for _ in range(n)]
    for step in range(n):
        for device, owner in enumerate(passing):
            if step < n - 1:
                moved += blocks[owner].size
            if device != owner:
                sums[owner].add(device)
                back += blocks[owner].size  # on to the next device; from the last one, home
        passing = [passing[-1], *passing[:-1]]
    if any(len(helpers | {owner}) < n for owner, helpers in enumerate(sums)):
        raise ValueError("a block has not met all devices")
    return moved, back


@claim("ring-bytes", rests_on="grouped-query-attention ring-update")
def _(rng, n, T, H_kv, d_k, d_v):
    r"""M_{\mathrm{ring}} = (n - 1)\, T\, H_{kv}\, (d_k + d_v)\, b
    where n devices, T positions, parts of any lengths ;; all bytes sent in a forward pass, b for each number
    Every block visits n - 1 other devices, whatever the mask hides: a hidden block is on its way to one that sees it.
        once around, back home: (n - 1) -> n
        queries travel too: (d_k + d_v) -> (2\, d_k + d_v)
        one block only: (n - 1)\, T -> T
        a causal mask saves half: (n - 1) -> \frac{n - 1}{2}
    """
    sizes = {"n": n, "T": T, "H_{kv}": H_kv, "d_k": d_k, "d_v": d_v}
    counted = sent_in_a_ring(T, n, H_kv, d_k, d_v)[0]
    return sizes | {"b": int(rng.integers(2, 9)), r"M_{\mathrm{ring}}": of(lambda b: b * counted, "b")}


@claim("ring-training-bytes", rests_on="ring-bytes block-weights-from-lse")
def _(rng, n, T, H_kv, d_k, d_v):
    r"""M_{\mathrm{training}} = (n - 1)\, T\, H_{kv}\, (d_k + d_v)\, (2\, b + b_g)
    where forward and backward pass ;; b_g bytes for a number of a sum of gradients
    Blocks pass again, and the sum of a block's gradients begins on the first foreign device: n - 1 hops, the last one home.
        keys and values kept from the forward pass: 2\, b + b_g -> b + b_g
        gradients stay where they are made: 2\, b + b_g -> 2\, b
        gradients go once around:
            (n - 1)\, T\, H_{kv}\, (d_k + d_v)\, (2\, b + b_g) -> T\, H_{kv}\, (d_k + d_v)\, \bigl( 2\, (n - 1)\, b + n\, b_g \bigr)
    """
    sizes = {"n": n, "T": T, "H_{kv}": H_kv, "d_k": d_k, "d_v": d_v}
    moved, back = sent_in_a_ring(T, n, H_kv, d_k, d_v)
    b, b_g = (int(size) for size in rng.integers(2, 9, size=2))
    sent = of(lambda b, b_g: (moved + moved) * b + back * b_g, "b", "b_g")
    return sizes | {"b": b, "b_g": b_g, r"M_{\mathrm{training}}": sent}


def sent_between_heads(T: int, n: int, H: int, H_kv: int, d_k: int, d_v: int) -> int:
    """Exchange parts of positions for parts of heads, and the outputs back; count the numbers sent to another device."""
    places, moved = np.array_split(np.arange(T), n), 0
    for heads, width in ((H, d_k), (H_kv, d_k), (H_kv, d_v), (H, d_v)):  # queries, keys, values; outputs, the other way
        whole = np.zeros((heads, T, width), np.int8)
        for share, part in enumerate(np.array_split(whole, n)):
            moved += sum(part[:, held].size for device, held in enumerate(places) if device != share)
    return moved


@claim(
    "head-exchange-bytes", rests_on="grouped-query-attention heads-are-column-blocks", sizes="n T m g d_k d_v H_kv H, H_kv = n m, H = g n m"
)
def _(rng, n, T, m, g, d_k, d_v, H_kv, H):
    r"""M_{\mathrm{heads}} = \frac{n - 1}{n}\, T\, (H + H_{kv})\, (d_k + d_v)\, b
    where n divides H_kv and H ;; all bytes sent in a forward pass: queries, keys, values, and outputs back
    A number is sent at most once each way, and one in n stays: the total does not grow with the number of devices.
        everything is sent: \frac{n - 1}{n}\, T -> T
        each device gets everything: \frac{n - 1}{n} -> (n - 1)
        outputs stay: (H + H_{kv})\, (d_k + d_v) -> \bigl( H\, d_k + H_{kv}\, (d_k + d_v) \bigr)
        as many heads of keys: H + H_{kv} -> 2 H
    """
    counted = sent_between_heads(T, n, H, H_kv, d_k, d_v)
    sizes = {"n": n, "T": T, "H": H, "H_{kv}": H_kv, "d_k": d_k, "d_v": d_v, "b": int(rng.integers(2, 9))}
    return sizes | {r"M_{\mathrm{heads}}": of(lambda b: b * counted, "b")}


@claim("ring-against-heads", rests_on="ring-bytes head-exchange-bytes", sizes="n T m g d_k d_v H_kv H, H_kv = n m, H = g n m")
def _(rng, n, T, m, g, d_k, d_v, H_kv, H):
    r"""\frac{M_{\mathrm{ring}}}{M_{\mathrm{heads}}} = \frac{n\, H_{kv}}{H + H_{kv}}
    A ring's bytes grow with the devices; but it hides them behind its work, and shared heads make them few.
        half the devices, shared heads or not: \frac{n\, H_{kv}}{H + H_{kv}} -> \frac{n}{2}
        a ring always sends more: \frac{n\, H_{kv}}{H + H_{kv}} -> n
        without the outputs: H + H_{kv} -> \frac{H}{2} + H_{kv}
    """
    sent = {
        r"M_{\mathrm{ring}}": sent_in_a_ring(T, n, H_kv, d_k, d_v)[0],
        r"M_{\mathrm{heads}}": sent_between_heads(T, n, H, H_kv, d_k, d_v),
    }
    return sent | {"n": n, "H": H, "H_{kv}": H_kv}


@claim("ring-hides-its-transfer", rests_on="ring-bytes attention-forward-flops roofline")
def _(rng, c, g, H_kv, d_k, d_v, draw):
    r"""t_{\mathrm{send}} \le t_{\mathrm{compute}} \iff c \ge \frac{b\, \pi\, H_{kv}}{2\, \beta\, H}
    where blocks of c positions, no mask ;; pi: FLOPs per second ;; beta: bytes per second to the next device ;; t: for one step
    Work grows with c^2, messages with c: from a length on that neither d nor T enters, sending costs no time.
        shared heads want longer blocks: \frac{b\, \pi\, H_{kv}}{2\, \beta\, H} -> \frac{b\, \pi\, H}{2\, \beta\, H_{kv}}
        a multiply-add counted once: {2\, \beta\, H} -> {\beta\, H}
        short blocks: c \ge -> c \le
    """
    H, b = g * H_kv, int(rng.integers(2, 9))
    flops = sum(2 * multiplications(lambda q, k, v: (q @ k.T) @ v, (c, d_k), (c, d_k), (c, d_v)) for _ in range(H))
    sent = sum(b * np.zeros((c, width), np.int8).size for width in (d_k, d_v) for _ in range(H_kv))
    pi = rng.uniform(2, 9)
    beta = sent / flops * pi * (rng.uniform(1.1, 1.4), rng.uniform(0.7, 0.9), 1.0)[draw]
    times = {r"t_{\mathrm{send}}": sent / beta, r"t_{\mathrm{compute}}": flops / pi}
    return times | {"c": c, "b": b, r"\pi": pi, r"\beta": beta, "H": H, "H_{kv}": H_kv}


# ---- who waits
def step_pairs(order: str, n: int, T: int) -> np.ndarray:
    """Return how many pairs each device computes at each step of a ring under a causal mask, (steps, devices), counted one by one."""
    places = reference.device_places(T, n, order)
    pairs = np.zeros((n, n), int)
    for step in range(n):
        for device in range(n):
            pairs[step, device] = sum(int(key <= query) for query in places[device] for key in places[device - step])
    return pairs


@claim("contiguous-causal-time", rests_on="causal-pair-count")
def _(rng, n, c):
    r"""\sum_{s} t_s = \frac{c\, (c + 1)}{2} + (n - 1)\, c^2
    where T = n c positions, each device holds a run of c ;; t_s: pairs of the slowest device at step s, of n steps
    After its own block a device has whole blocks or nothing, and one has a whole block at every step: the mask saves no time.
        each device has an n-th of the pairs: \frac{c\, (c + 1)}{2} + (n - 1)\, c^2 -> \frac{n\, c\, (n\, c + 1)}{2\, n}
        without a mask: \frac{c\, (c + 1)}{2} + (n - 1)\, c^2 -> n\, c^2
        half blocks in every step: (n - 1)\, c^2 -> (n - 1)\, \frac{c\, (c + 1)}{2}
    """
    return {"t": vector([max(step) for step in step_pairs("contiguous", n, n * c)]), "n": n, "c": c}


@claim("striped-causal-time", rests_on="causal-pair-count contiguous-causal-time")
def _(rng, n, c):
    r"""\sum_{s} t_s = n\, \frac{c\, (c + 1)}{2}
    where T = n c positions, each device holds every n-th ;; t_s: pairs of the slowest device at step s, of n steps
    Every block is a triangle, with its diagonal for the devices behind its owner: c pairs apart, and half the time.
        without a mask: n\, \frac{c\, (c + 1)}{2} -> n\, c^2
        perfectly even: n\, \frac{c\, (c + 1)}{2} -> \frac{n\, c\, (n\, c + 1)}{2\, n}
        later blocks without their diagonal: n\, \frac{c\, (c + 1)}{2} -> n\, \frac{c\, (c - 1)}{2} + c
    """
    return {"t": vector([max(step) for step in step_pairs("striped", n, n * c)]), "n": n, "c": c}


@claim("zigzag-causal-pairs", rests_on="causal-pair-count contiguous-causal-time")
def _(rng, n, h):
    r"""N_{sr} = 2\, h^2 + h\, [\, s = 0 \,]
    where 2 n runs of h positions, device r holds the r-th from the front and from the back
        ;; N_sr: pairs of device r at step s, both from 0
    Of four squares two are seen: both runs see the front one, or the back run sees both. Every device, at every step.
        the diagonal costs nothing: N_{sr} = 2\, h^2
        all steps alike: h\, [\, s = 0 \,] -> h
        two diagonals and nothing between: + h\, -> \, [\, s > 0 \,] + h\, (h + 1)\,
    """
    return {"N": matrix(step_pairs("zigzag", n, 2 * n * h), start=(0, 0)), "h": h}


@claim("contiguous-busy-share", rests_on="contiguous-causal-time")
def _(rng, n):
    r"""\lim_{c \to \infty} \frac{N}{n\, t} = \frac{n}{2\, n - 1}
    where N: all pairs ;; t: pairs of the slowest device, summed over steps ;; runs of c positions
    Two devices are busy for two thirds of the time, many for half of it.
        half, for any number of devices: \frac{n}{2\, n - 1} -> \frac{1}{2}
        one device works at a time: \frac{n}{2\, n - 1} -> \frac{1}{n}
        blocks on the diagonal computed in full: \frac{n}{2\, n - 1} -> \frac{n + 1}{2\, n}
    """
    counts = {
        "N": by_size(lambda c: int(step_pairs("contiguous", n, n * c).sum()), "c", "n"),
        "t": by_size(lambda c: int(step_pairs("contiguous", n, n * c).max(axis=1).sum()), "c", "n"),
    }
    return counts | {"n": n, "c": rng.uniform(3, 9)}
