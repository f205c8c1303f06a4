"""What an equation is called: its label in words, with proper names and abbreviations as they are written."""

WRITTEN = {
    "alibi": "ALiBi", "cross entropy": "cross-entropy", "feed forward": "feed-forward", "flop": "FLOP", "flops": "FLOPs",
    "frobenius": "Frobenius", "gaussian": "Gaussian", "gelu": "GELU", "grouped query": "grouped-query", "jacobian": "Jacobian",
    "key value": "key–value", "kv": "KV", "log softmax": "log-softmax", "lse": "log-sum-exp", "moment generating": "moment-generating",
    "multi head": "multi-head", "nadaraya watson": "Nadaraya–Watson", "ntk": "NTK", "one norm": "one-norm", "post norm": "post-norm",
    "pre norm": "pre-norm", "query key": "query–key", "rms": "RMS", "rnn": "RNN", "rope": "RoPE", "self attention": "self-attention",
    "state space": "state-space", "transformer": "Transformer", "vector jacobian": "vector–Jacobian", "yarn": "YaRN",
}  # fmt: skip


def name_of(label: str) -> str:
    """Return the name that people read.

    >>> name_of("softmax-jacobian"), name_of("rms-norm"), name_of("multi-head-attention")
    ('Softmax Jacobian', 'RMS norm', 'Multi-head attention')
    """
    words = f" {label.replace('-', ' ')} "
    for plain, written in sorted(WRITTEN.items(), key=lambda pair: -len(pair[0])):
        words = words.replace(f" {plain} ", f" {written} ")
    return words[1].upper() + words[2:-1]
