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


def chains(inner):
    return st.tuples(inner, RELATION, inner).map(lambda parts: node("chain", *parts))


def extended(inner):
    several = st.lists(inner, min_size=2, max_size=3)
    offset = st.tuples(INDEX, NUMBER).map(lambda pair: node("sum", pair[0], pair[1]))
    indices = st.one_of(
        st.lists(st.one_of(INDEX, NAME), min_size=1, max_size=2),
        st.lists(offset, min_size=1, max_size=1),
        st.lists(offset, min_size=2, max_size=2),
    )
    family = st.tuples(st.just(node("name", value="W_Q^{(h)}")), indices)
    ranges = st.tuples(INDEX, inner, inner).map(lambda parts: node("domain", node("range", *parts)))
    conditions = st.tuples(INDEX, RELATION.filter(lambda relation: relation.value != "="), inner).map(
        lambda parts: node("domain", node("chain", *parts))
    )
    letters = st.lists(INDEX, min_size=1, max_size=2, unique_by=lambda one: one.value).map(lambda found: node("domain", *found))
    limits = st.tuples(NAME, st.one_of(NUMBER, st.just(node("constant", value=r"\infty"))), st.sampled_from(["", "+"])).map(
        lambda parts: node("domain", node("to", parts[0], parts[1], value=parts[2] if parts[1].kind == "number" else ""))
    )
    return st.one_of(
        several.map(lambda terms: node("sum", *terms)),
        several.map(lambda terms: node("sum", terms[0], *[node("neg", term) for term in terms[1:]])),
        inner.map(lambda one: node("neg", one)),
        several.map(lambda factors: node("product", *factors)),
        st.tuples(st.sampled_from(["dot", "odot", "times", "union", "intersection"]), inner, inner).map(lambda p: node(p[0], p[1], p[2])),
        st.tuples(inner, inner).map(lambda pair: node("operator", *pair, value=r"\oplus")),
        st.tuples(st.sampled_from(["/", r"\frac"]), inner, inner).map(lambda p: node("over", p[1], p[2], value=p[0])),
        st.tuples(inner, inner).map(lambda pair: node("power", *pair)),
        inner.map(lambda one: node("transpose", one)),
        inner.map(lambda one: node("factorial", one)),
        st.tuples(inner.filter(lambda one: one != node("constant", value="e")), indices).map(  # e_i is a unit vector
            lambda pair: node("entry", pair[0], *pair[1])
        ),
        family.map(lambda pair: node("entry", pair[0], *pair[1])),
        st.tuples(
            st.sampled_from(["softmax", r"\ln", r"\tanh", "f", r"\phi", "rank", r"\sqrt", "E", "Var", "strictly lower"]), NONE, inner
        ).map(lambda parts: node("call", parts[1], parts[2], value=parts[0])),
        st.tuples(st.sampled_from([r"\sigma", "f"]), INDEX, inner).map(lambda parts: node("call", parts[1], parts[2], value=parts[0])),
        st.tuples(st.sampled_from(["KL", "Cov", r"\max", "f"]), inner, inner).map(
            lambda parts: node("call", node("none"), *parts[1:], value=parts[0])
        ),
        st.tuples(inner).map(lambda parts: node("call", node("word", value="columns"), *parts, value="softmax")),
        st.tuples(st.sampled_from([r"\sum", r"\prod"]), ranges, inner).map(lambda p: node("big", p[1], p[2], value=p[0])),
        st.tuples(st.sampled_from([r"\sum", r"\max", r"\arg\max"]), st.one_of(conditions, letters), inner).map(
            lambda p: node("big", p[1], p[2], value=p[0])
        ),
        st.tuples(limits, inner).map(lambda pair: node("big", *pair, value=r"\lim")),
        st.tuples(INDEX, inner, inner, inner).map(lambda parts: node("integral", *parts)),
        st.tuples(inner, NAME).map(lambda pair: node("derivative", *pair, value=r"\partial")),
        st.tuples(inner, NAME, NAME).map(lambda parts: node("derivative", *parts, value=r"\partial")),
        st.tuples(st.one_of(NONE, NAME), NAME).map(lambda pair: node("nabla", *pair)),
        st.tuples(st.sampled_from(["bars", "floor", "ceil"]), inner).map(lambda pair: node(pair[0], pair[1])),
        st.tuples(st.sampled_from(["", "1", "2", "F", "*", r"\infty"]), inner).map(lambda pair: node("norm", pair[1], value=pair[0])),
        chains(inner).map(lambda chain: node("iverson", chain)),
        st.tuples(st.sampled_from(["all", "any"]), chains(inner), chains(inner)).map(lambda p: node("iverson", node(*p))),
        st.tuples(INDEX, chains(inner)).map(lambda pair: node("set", *pair)),
        several.map(lambda entries: node("tuple", *entries)),
        st.tuples(st.sampled_from(["[", "pmatrix"]), several, several).map(
            lambda p: node("blocks", node("cells", *p[1][:2]), node("cells", *p[2][:2]), value=p[0])
        ),
        st.tuples(inner, chains(inner), inner, chains(inner)).map(lambda parts: node("cases", *parts)),
        st.tuples(NAME, chains(inner)).map(lambda pair: node("at", *pair)),
    )


EXPRESSIONS = st.recursive(LEAF, extended, max_leaves=12)


def formulas():
    right = EXPRESSIONS.filter(lambda one: one.kind not in ("index", "entry"))  # which may be defined, from right to left
    not_defining = st.tuples(st.one_of(NUMBER, NAME.map(lambda one: node("call", node("none"), one, value="f"))), RELATION, right)
    chain = not_defining.map(lambda parts: node("chain", *parts))
    where = st.tuples(chain, chain).map(lambda pair: node("where", *pair))
    clause = st.one_of(chain, where)
    several = st.lists(clause, min_size=2, max_size=3).map(lambda clauses: node("all", *clauses))
    implies = st.tuples(st.one_of(chain, several), st.one_of(clause, several), st.sampled_from([r"\Rightarrow", r"\iff"])).map(
        lambda parts: node("implies", parts[0], parts[1], value=parts[2])
    )
    statements = st.lists(st.one_of(clause, implies), min_size=1, max_size=3)
    given = st.tuples(st.one_of(chain, several), statements).map(lambda pair: node("given", pair[0], *pair[1]))
    return st.one_of(
        statements.map(lambda found: node("formula", *found)),
        st.tuples(statements, given).map(lambda pair: node("formula", *pair[0], pair[1])),
    )
