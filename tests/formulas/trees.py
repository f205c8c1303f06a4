"""Random trees for hypothesis, as the reader would make them."""

from hypothesis import strategies as st

from attn_course.formulas import Node

NAMES = ["x", "y", "A", "d_k", "dO", r"\bar{x}", "W_Q", "W_Q^{(h)}", "K^R", "f()", r"\phi()", "v'", r"F_{\mathrm{one}}"]
PLAIN = [name for name in NAMES if not name.endswith("()") and "(h)" not in name]


def node(kind, *children, value=""):
    return Node(kind, tuple(children), value)


INDEX = st.sampled_from("ijkl").map(lambda letter: node("index", value=letter))
NUMBER = st.sampled_from(["0", "1", "2", "0.5", "12", "10000"]).map(lambda text: node("number", value=text))
NAME = st.sampled_from(PLAIN).map(lambda name: node("name", value=name))
CONSTANT = st.sampled_from(["e", r"\pi", r"\infty", "1", "I", r"\emptyset"]).map(lambda text: node("constant", value=text))
NONE = st.just(node("none"))
LEAF = st.one_of(NUMBER, NAME, CONSTANT, INDEX)
RELATION = st.sampled_from(["=", r"\le", r"\ge", "<", ">", r"\ne", r"\in", r"\notin", r"\approx"]).map(
    lambda sign: node("relation", value=sign)
)


def made(kind, *children, values=("",)):
    """A node of a kind with one of some values; children that come as a list are spread."""

    def together(drawn):
        value, *parts = drawn
        return node(kind, *(child for part in parts for child in (part if isinstance(part, list) else [part])), value=value)

    return st.tuples(st.sampled_from(values), *children).map(together)


def chains(inner):
    return made("chain", inner, RELATION, inner)


def extended(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    pair = st.lists(inner, min_size=2, max_size=2)
    offset = made("sum", INDEX, NUMBER)
    indices = st.one_of(
        st.lists(st.one_of(INDEX, NAME), min_size=1, max_size=2),
        st.lists(offset, min_size=1, max_size=1),
        st.lists(offset, min_size=2, max_size=2),
    )
    ranges = made("domain", made("range", INDEX, inner, inner))
    conditions = made("domain", made("chain", INDEX, RELATION.filter(lambda relation: relation.value != "="), inner))
    letters = made("domain", st.lists(INDEX, min_size=1, max_size=2, unique_by=lambda one: one.value))
    infinity = st.just(node("constant", value=r"\infty"))
    limits = made("domain", st.one_of(made("to", NAME, infinity), made("to", NAME, NUMBER, values=["", "+"])))
    return st.one_of(
        made("sum", several),
        made("sum", inner, st.lists(made("neg", inner), min_size=1, max_size=2)),
        made("product", several),
        *(made(kind, inner, inner) for kind in ("dot", "odot", "times", "union", "intersection", "power")),
        made("operator", inner, inner, values=[r"\oplus"]),
        made("over", inner, inner, values=["/", r"\frac"]),
        *(made(kind, inner) for kind in ("neg", "transpose", "factorial", "bars", "floor", "ceil")),
        made("entry", inner.filter(lambda one: one != node("constant", value="e")), indices),  # e_i is a unit vector
        made("entry", st.just(node("name", value="W_Q^{(h)}")), indices),
        made("call", NONE, inner, values=["softmax", r"\ln", r"\tanh", "f", r"\phi", "rank", r"\sqrt", "E", "Var", "strictly lower"]),
        made("call", INDEX, inner, values=[r"\sigma", "f"]),
        made("call", NONE, inner, inner, values=["KL", "Cov", r"\max", "f"]),
        made("call", st.just(node("word", value="columns")), inner, values=["softmax"]),
        made("big", ranges, inner, values=[r"\sum", r"\prod"]),
        made("big", st.one_of(conditions, letters), inner, values=[r"\sum", r"\max", r"\arg\max"]),
        made("big", limits, inner, values=[r"\lim"]),
        made("integral", INDEX, inner, inner, inner),
        made("derivative", inner, st.lists(NAME, min_size=1, max_size=2), values=[r"\partial"]),
        made("nabla", st.one_of(NONE, NAME), NAME),
        made("norm", inner, values=["", "1", "2", "F", "*", r"\infty"]),
        made("iverson", st.one_of(chains(inner), made("all", chains(inner), chains(inner)), made("any", chains(inner), chains(inner)))),
        made("set", INDEX, chains(inner)),
        made("tuple", several),
        made("blocks", made("cells", pair), made("cells", pair), values=["[", "pmatrix"]),
        made("cases", inner, chains(inner), inner, chains(inner)),
        made("at", NAME, chains(inner)),
    )


EXPRESSIONS = st.recursive(LEAF, extended, max_leaves=12)


def formulas():
    right = EXPRESSIONS.filter(lambda one: one.kind not in ("index", "entry"))  # which may be defined, from right to left
    chain = made("chain", st.one_of(NUMBER, made("call", NONE, NAME, values=["f"])), RELATION, right)
    clause = st.one_of(chain, made("where", chain, chain))
    several = made("all", st.lists(clause, min_size=2, max_size=3))
    implies = made("implies", st.one_of(chain, several), st.one_of(clause, several), values=[r"\Rightarrow", r"\iff"])
    statements = st.lists(st.one_of(clause, implies), min_size=1, max_size=3)
    given = made("given", st.one_of(chain, several), statements)
    return st.one_of(made("formula", statements), made("formula", statements, given))
