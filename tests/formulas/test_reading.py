r"""LaTeX to tree and back: what the reader promises."""

import pytest

from attn_course.formulas import Formula, Malformed, Node, read, read_expression, write


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (r"\tfrac{1}{2} x", r"\frac12 x"),
        (r"\Bigl( x + y \Bigr)^{\!\top}", r"(x + y)^\top"),
        (r"\left\| x \right\|", r"\lVert x \rVert"),
        (r"x_{i}\,\; y_{j}", "x_i y_j"),
        ("d_{k}", "d_k"),
        (r"\bar x", r"\bar{x}"),
        (r"\operatorname{softmax}(A)", r"\mathrm{softmax}\bigl(A\bigr)"),
        (r"W_Q^{(h)\top}", r"{W_Q^{(h)}}^\top"),
        ("K^{R\\top}", "{K^R}^\\top"),
        ("K_h^R", "K^R_h"),
        ("x^2_i", "(x_i)^2"),
        (r"\sum\limits_{j} x_{j}", r"\sum_j x_j"),
        (r"\mathbf 1", r"\mathbf{1}"),
        (r"\langle A, A \rangle_F", r"\langle A, A \rangle"),
        (r"[\,x\;\; y\,]", "[x, y]"),
        (r"\frac{d}{dx} x^2", r"\frac{\mathrm{d}}{\mathrm{d} x} x^2"),
        (r"\frac{d^2 y}{dx^2}", r"\frac{\mathrm{d}^2 y}{\mathrm{d} x^2}"),
        (r"\delta_{x_i y_j}", r"\delta_{x_i, y_j}"),
        (r"\operatorname*{arg\,max}_j x_j", r"\arg\max_j x_j"),
        (r"\operatorname{tanh}(x)", r"\tanh(x)"),
        (
            r"\begin{cases} x & \text{if } x < y \\ y & \text{else} \end{cases}",
            r"\begin{cases} x & x < y \\ y & \text{otherwise} \end{cases}",
        ),
        (r"\sqrt[3]{x_i + y_i}", "(x_i + y_i)^{1 / 3}"),
        (r"\sqrt[d_k]{x_i} y_i", "x_i^{1 / d_k} y_i"),
        ("m_i' x_i", "m'_i x_i"),
        (r"m_{ij}'^2", "(m'_{ij})^2"),
        (r"m_i^\prime", "m'_i"),
        (r"m^{\prime}_i", "m'_i"),
        (r"m^{\prime\prime}_i", "m''_i"),
        (r"x_1 y_1 + x_2 y_2 + \dots + x_{d_k} y_{d_k}", r"\sum_{\iota=1}^{d_k} x_\iota y_\iota"),
        (r"y - x_2 - \cdots - x_{d_k - 1}", r"y + \sum_{\iota=2}^{d_k - 1} (-x_\iota)"),
        (r"x_i \quad (i = 1, \dots, d_k)", r"x_i \quad (1 \le i \le d_k)"),
        (r"x_i, \quad i = 1, 2, \dots, d_k", r"x_i \quad (1 \le i \le d_k)"),
        (r"x_i \;\; \forall i \in \{0, \dots, d_k\}", r"x_i \quad (0 \le i \le d_k)"),
        (r"x_i, \quad \forall i", "x_i"),
        (r"x_i, \qquad \forall i \in \{0, \dots, d_k\}", r"x_i \quad (0 \le i \le d_k)"),
        (r"x_i r \quad \text{where} \quad r = y_1 x_1", r"x_i r, \qquad r = y_1 x_1"),
        (r"x_i r_j, \text{ with } r_j = y_j x_1", r"x_i r_j, \qquad r_j = y_j x_1"),
        (r"x_i f(y_i) \text{ where } f(u) = y_1 u", r"x_i f(y_i), \qquad f(u) = y_1 u"),
        (r"x_i \text{ where } i = 1", r"x_i \quad (i = 1)"),
        (r"\lim_{x \downarrow 0} x", r"\lim_{x \to 0^+} x"),
        (r"\lim_{x \nearrow y} x", r"\lim_{x \uparrow y} x"),
        (r"\mathbb{V}\mathrm{ar}[x_i]", r"\mathrm{Var}[x_i]"),
        (r"\exp{(x_i)} y_i", r"\exp(x_i) y_i"),
        (r"\ln{\left(x_i + 1\right)}^2", r"(\ln(x_i + 1))^2"),
        (r"\sum_{j \not= 1} x_j", r"\sum_{j \ne 1} x_j"),
        (r"\sum_{j \not = 1} x_j", r"\sum_{j \ne 1} x_j"),
        (r"\sum_{j \not\in A} x_j", r"\sum_{j \notin A} x_j"),
        (r"\sum_{j <= i} x_j", r"\sum_{j \le i} x_j"),
        (r"\sum_{j>=i} x_j", r"\sum_{j \ge i} x_j"),
        (r"{x_i + 1 \over y_i} A", r"\frac{x_i + 1}{y_i} A"),
        (r"\sum_{j=1, j \ne i}^{d_k} x_j", r"\sum_{j=1, i \ne j}^{d_k} x_j"),
        (r"\sum_{\substack{j=1 \\ j \ne i}}^{d_k} x_j", r"\sum_{j=1, j \ne i}^{d_k} x_j"),
        (r"\sum^{d_k}_{j=1} x_j", r"\sum_{j=1}^{d_k} x_j"),
        (r"\cfrac{x}{y}", r"\frac{x}{y}"),
        (".5 x", "0.5 x"),
        ("x − 1 · y", r"x - 1 \cdot y"),
        (r"\mathbb{1}_{i = j} x_j", "[i = j] x_j"),
        (r"\mathbf{1}[i = j] x_j", "[i = j] x_j"),
        (r"1\{i = j\} x_j", "[i = j] x_j"),
        (r"\max\{x_i, 0\}", r"\max(x_i, 0)"),
        (r"||x||_2", r"\|x\|_2"),
        (r"\sum_{i, j = 1}^{d_k} x_i y_j", r"\sum_{i=1}^{d_k} \sum_{j=1}^{d_k} x_i y_j"),
        (r"\sum_{i, j = 1, i \ne j}^{d_k} x_i y_j", r"\sum_{i=1}^{d_k} \sum_{j=1, j \ne i}^{d_k} x_i y_j"),
        (r"\exp{x_i} y_i", r"\exp(x_i) y_i"),
        (r"\sigma{(x)}_i", r"\sigma(x)_i"),
        ("x^{(i)}", "x_i"),
        ("x^{(i)}_a y", "x_{ia} y"),
        ("x_a^{(i)} y", "x_{ia} y"),
        ("p_{q,i}", "(p_q)_i"),
        ("S_{k,ij}", "(S_k)_{ij}"),
        (r"W^{(h)}_{UK} x", r"W_{UK}^{(h)} x"),
        (r"W_Q^{(h)}{}^\top", r"{W_Q^{(h)}}^\top"),
        (r"x\, 2 y", "x (2) y"),
        ("(x + y) 2 y", "(x + y) (2) y"),
        ("x_i 1_{i = j}", "x_i [i = j]"),
        (
            r"\begin{cases} x, & \text{if } x < y, \\ y, & \text{otherwise} \end{cases}",
            r"\begin{cases} x & x < y \\ y & \text{otherwise} \end{cases}",
        ),
    ],
)
def test_spellings_of_one_thing_read_alike(one, other):
    names = ["x", "y", "A", "d_k", r"\bar{x}", "W_Q^{(h)}", "W_{UK}^{(h)}", "K^R", "m", "m'", "p_q", "S_k"]
    assert read(rf"0 \le {one}", names) == read(rf"0 \leq {other}", names)


def test_the_longest_name_wins_and_a_given_always():
    with_name, without = read_expression("dO x", ["dO", "x"]), read_expression("d O x", ["d", "O", "x"])
    assert [node.value for node in with_name.children] == ["dO", "x"]
    assert [node.value for node in without.children] == ["d", "O", "x"]
    assert read_expression("W_Q W", ["W", "W_Q"]).children[0].value == "W_Q"


def test_a_condition_beside_bounds_is_written_so_that_it_reads():
    tree = read_expression(r"\sum_{j=1, j \ne i}^{n} x_j", ["x", "n"])
    assert write(tree) == r"\sum_{j=1, j \ne i}^{n} x_{j}"
    assert read_expression(write(tree), ["x", "n"]) == tree
    assert tree.letters() == {"i"}


def test_an_index_stands_beside_a_part_of_a_name_only_if_the_rest_is_no_name():
    assert write(read_expression("m_{q,i}", ["m_q", "m_k"])) == "(m_q)_{i}"
    assert [child.value for child in read_expression("m_{q,i}", ["m", "m_q"]).children] == ["m", "q", "i"]


def test_a_prime_behind_an_index_belongs_to_the_name_only_if_it_is_given():
    assert read_expression("m_i'", ["m", "m'"]).children[0].value == "m'"
    assert [child.value for child in read_expression("m_i'", ["m"]).children] == ["m", "i'"]


def test_what_is_no_name_beneath_a_name_is_an_index():
    entry = read_expression("W_{ij}", ["W", "W_Q"])
    assert (entry.kind, [child.kind for child in entry.children]) == ("entry", ["name", "index", "index"])
    assert [child.kind for child in read_expression("P_{t,2i+1}", ["P"]).children] == ["name", "index", "sum"]
    assert [child.kind for child in read_expression("K_{1:t}", ["K"]).children] == ["name", "slice"]


def test_a_letter_before_a_parenthesis_is_a_call_only_for_a_function():
    assert read_expression("f(x)", ["f()", "x"]).kind == "call"
    assert read_expression("f(x)", ["f", "x"]).kind == "product"
    assert read_expression("f^{(3)}(x)", ["f()", "x"]).value == "f" + 3 * "'"
    assert read("y = f(x), \\qquad f(u) = u^2", ["x", "y"]).children[0].children[2].kind == "call"


def test_a_function_without_a_parenthesis_takes_one_factor():
    product = read_expression(r"y \ln x^2", ["x", "y"])
    assert product.kind == "product"
    assert product.children[1].children[1].kind == "power"
    for unclear in (r"\ln x^2 y", r"\cos x (y)", r"\mathrm{tr} A (B)"):
        with pytest.raises(Malformed, match="takes one factor only"):
            read_expression(unclear, ["x", "y", "A", "B"])


def test_a_sum_reaches_to_the_end_of_its_term():
    total = read_expression(r"\sum_j x_j y_j \cdot z + 1", ["x", "y", "z"])
    assert [term.kind for term in total.children] == ["big", "number"]


def test_bare_e_is_a_number_unless_given_but_a_power_of_it_is_the_exponential():
    assert read_expression("e x", ["x"]).children[0].kind == "constant"
    given = read_expression("e_{ij} e^{e_{ij}}", ["e"])
    assert given.children[0].children[0].kind == "name"
    assert given.children[1].children[0].kind == "constant"


def test_statements_premises_and_arrows_nest_as_printed():
    formula = read(r"a = b: \qquad c = 1, \quad d = 2, \qquad a = 0 \Rightarrow c = 2, \quad d = 3, \qquad b = 1: c = 4", "abcd")
    assert [statement.kind for statement in formula.children] == ["given", "given"]
    assert [child.kind for child in formula.children[0].children] == ["chain", "chain", "chain", "implies"]
    assert formula.children[0].children[3].children[1].kind == "all"


@pytest.mark.parametrize("latex", [r"\text{decode:} \quad a = b", r"a = b \quad \text{(linear)}"])
def test_a_remark_belongs_to_its_clause_and_is_no_part_of_what_it_claims(latex):
    formula = read(latex, "ab")
    (clause,) = formula.children
    assert clause.children == read("a = b", "ab").children[0].children
    assert clause.value in latex
    assert read(write(formula), "ab") == formula


def test_where_something_goes_may_stand_behind_its_limit():
    assert read(r"a \to b < c \quad (d \to \infty)", "abcd") == read(r"a \xrightarrow[d \to \infty]{} b < c", "abcd")


def test_a_condition_belongs_to_its_clause():
    formula = read(r"a_{ij} = 0 \quad (i \ne j), \qquad a_{ii} = 1", ["a"])
    assert [statement.kind for statement in formula.children] == ["where", "chain"]


def test_every_node_knows_its_place():
    latex = r"J = \mathrm{diag}(s) - s\,s^\top"
    for node in read(latex, ["J", "s"]).walk():
        start, end = node.place
        assert 0 <= start < end <= len(latex) or node.kind == "none"
        if node.kind == "name":
            assert latex[start:end] == node.value


def test_a_tree_can_be_changed_and_written():
    def flipped(node: Node) -> Node:
        return node.children[0] if node.kind == "neg" else node

    assert write(read_expression("x - y", ["x", "y"]).map(flipped)) == "x + y"


def test_numbers_in_the_place_of_names_are_written_so_that_they_read():
    def filled(node: Node) -> Node:
        return Node("number", value={"x": "0.5", "y": "2"}[node.value]) if node.kind == "name" else node

    written = write(read_expression("x y - y^x", ["x", "y"]).map(filled))
    assert written == r"0.5\, (2) - 2^{0.5}"
    read_expression(written)


def test_no_index_is_written_beneath_an_index():
    assert write(read_expression("(W_Q)_{ar}", ["W_Q"])) == "(W_Q)_{a r}"
    assert write(read_expression("W_Q^{(h)\\top}", ["W_Q^{(h)}"])) == "{W_Q^{(h)}}^\\top"


def test_a_complaint_shows_the_place():
    with pytest.raises(Malformed) as caught:
        Formula.of(r"J = \mathrm{diag}(s) - q\,s^\top", ["J", "s"])
    assert caught.value.latex[slice(*caught.value.place)] == "q"
    assert "^" in str(caught.value).splitlines()[-1]
