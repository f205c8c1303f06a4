r"""What cannot be read, or has no meaning, is malformed: what was wanted, and where."""

import re
import time

import numpy as np
import pytest

from attn_course.formulas import (
    Formula,
    Malformed,
    Refuted,
    column,
    function,
    judge,
    matrix,
    names_of,
    of,
    read,
    row,
    rows,
    vector,
)

NAMES = ["a", "b", "c", "d", "f()", "Q", "t", "u", r"\omega"]


@pytest.mark.parametrize(
    ("latex", "problem", "place"),
    [
        ("a +", "expected a number, a symbol", ""),
        ("a = (b + c", "expected a closing parenthesis ), the formula ends", ""),
        ("a = b)", "expected the end of the formula or an operator, found )", ")"),
        (r"\frac{a}{b = c", "expected a closing brace }", "="),
        (r"a = \sum b_j", r"expected an index beneath \sum", "b"),
        (r"a = \sum_{j=1} b_j", "expected where j ends", "j=1"),
        (r"\sum_{j,k}^{n} b_j = a", "expected one index and where it starts", "k"),
        (r"a = \max_{a} b", r"expected an index beneath \max, one that is not given", "{a}"),
        ("a = b / c d", "behind a / comes one factor only", "d"),
        (r"a = \cos\omega(t - u)", r"\cos takes one factor only", "("),
        (r"a = \cos\omega\, t", r"\cos takes one factor only", "t"),
        (r"a = b \odot c \cdot d", "stand side by side: put one of them in parentheses", r"\cdot"),
        ("a = Q^T T_i", r"for the transpose write ^\top", "T"),
        ("a = Q^{-T} T_i", r"for the transpose write ^\top", "{"),
        ("a = x_i_j", "an index stands beneath an index", "_"),
        ("a = x^2^3", "a second exponent", "^"),
        ("a = x_{}", "expected an index", "{"),
        (r"a = \text{cost}", "cost is neither given nor known", r"\text{cost}"),
        (r"a = \foo", r"\foo is not known", r"\foo"),
        (r"a = \overline{b b}", r"an accent, and \overline too, stands above one symbol", r"\overline"),
        ("a = d 2", "a number stands behind a factor", "2"),
        ("a = d2", "a number stands behind a factor", "2"),
        ("a = delta_ij b", r"write \delta: each letter of delta is read for itself", "delta"),
        ("a = b_１", "write 1", "１"),
        (r"a = \begin{pmatrix} a & b \\ c \end{pmatrix}", "the rows have different lengths", r"\begin"),
        (r"a = \begin{cases} 1 \\ 2 \end{cases}", "each case wants a value & its condition", r"\begin"),
        ("a", r"expected a relation such as = or \le", ""),
        (r"a = \|b\|_3", r"expected one of the norms 1, 2, \infty, F, *", "3"),
        (r"a = \{ j + 1 : j < 2 \}", "expected one index before the colon of a set", "j + 1"),
        (r"a = \frac{\partial^2 b}{\partial c}", "order 2, the one beneath 1", "}"),
        ("a = b ; c", "expected the end of the formula or an operator, found ;", ";"),
        ("a = b ° c", "the sign '°' has no meaning here", "°"),
        (r"a = \int b", "expected the d of the variable", ""),
        ("a = f + 1", "f is a function: expected its argument", "+"),
        ("a = |b", "expected |", ""),
        ("a = b:", "expected what holds under the premise", ""),
        (r"a = b: \qquad c = 1: \qquad d = 2", "expected what holds under the premise before another one comes", r"\qquad"),
        ("a == b", "expected a number", "="),
        ("a = exp(b)", r"write \exp: each letter of exp is read for itself", "exp"),
        ("a = 2 ln (b)", r"write \ln", "ln"),
        ("a = exp b", r"write \exp", "exp"),
        ("a = log_2(b)", r"write \log", "log"),
        ("a = max_j b_j", r"write \max", "max"),
        ("a = sum_{j=1}^{3} b_j", r"write \sum", "sum"),
        ("a = sqrt{b}", r"write \sqrt", "sqrt"),
        ("a = tanh(b) c", r"write \tanh", "tanh"),
        ("a = softmax(b)_i", r"write \mathrm{softmax}", "softmax"),
        (r"a = \softmax(b)", r"\softmax is not known: did you mean \mathrm{softmax}?", r"\softmax"),
        (r"a = \lamda b", r"\lamda is not known: did you mean \lambda?", r"\lamda"),
        (r"a = b \mathrm{erfi}(c)", "erfi is neither given nor known", r"\mathrm{erfi}"),
        (r"a = (b \mathrm{erfi}(c))", "erfi is neither given nor known", r"\mathrm{erfi}"),
        (r"a = b \cdots c", r"write out what the dots stand for, with \sum or \prod", r"\cdots"),
        (r"a = b + \cdots + c", r"the dots want a run such as a_1 + \dots + a_n", "c"),
        (r"a = 2 + 4 + \cdots + 2 b", "in which one number goes up by 1", "2 b"),
        (r"a = b \over c", r"for a fraction write \frac{above}{below}", r"\over"),
        (r"a = \sum_{j != 2} b_j", r"this is a factorial: for unequal write \ne", "j != 2"),
        (r"a = \sum_{j=1:n} b_j", r"where it ends stands above, as in \sum_{j=1}^{n}", ":"),
        (r"a = \sum_{j=1, b \ne c}^{n} b_j", "expected one index and where it starts", "j=1"),
        (r"a = \sum_b c_b", "one that is not given: take another letter", "b"),
        ("a = 1e-3 b", r"for a power of ten write 1 \cdot 10^{-3}", "1e-3"),
        ("a = b^10", "only 1 stands above or beneath: put 10 in braces", "0"),
        ("a = b^-1", "put the exponent in braces, as in x^{-1}", "-"),
        ("a = e^x_i", "put the whole exponent in braces, as in e^{x_i}", "_"),
        ("a = b**2", "for a power write ^{...}", "*"),
        ("a = tanh^2(b)", r"write \tanh", "tanh"),
        (r"a = \exp^{b}", r"\exp wants its argument behind it, in parentheses", ""),
        (r"a = \tanh(b)'", "a prime stands right behind the symbol or the function", "'"),
        ("a = - - b", "put what has a second sign in parentheses", "-"),
        ("a = Q_{i:} b", r"row i of A is A_i or A_{i,:}, column j is A_{:,j}", "i"),
        ("a = Q_{:,i,:,j} b", r"row i of A is A_i or A_{i,:}, column j is A_{:,j}", "_"),
        (r"a = \{b + c\}", "as parentheses write ( and )", r"\}"),
        (r"a = \sum_{j \in \{1, 2, n\}} b_j", r"bounds as in \sum_{j=1}^{n}", ","),
        (r"a = \sum_{b=1}^{3} c_b", r"b is given, and no index: take another letter beneath \sum", "b=1"),
        (r"a = \arg\max_{i,j=1}^{3} b_i c_j", "expected one index and where it starts", "j=1"),
        ("a = √b", r"write \sqrt", "√"),
        ("a = b²", "write ^2", "²"),
        ("a = b₁", "write _1", "₁"),
        ("a = β b", r"write \beta", "β"),
        ("$a = b$", "write the formula alone", "$"),
        (r"\[a = b\]", "write the formula alone", "\\"),
        (r"\begin{equation} a = b \end{equation}", r"write the formula alone, without \begin{equation}", r"\begin{equation}"),
        ("a = <b, c>", r"for a dot product write \cdot", "<"),
    ],
)
def test_what_cannot_be_read_is_pointed_at(latex, problem, place):
    with pytest.raises(Malformed) as caught:
        read(latex, NAMES)
    assert problem in str(caught.value)
    assert latex[slice(*caught.value.place)] == place


GIVENS = {
    "x": vector(np.arange(3.0)),
    "y": vector(np.arange(5.0)),
    "q": row(np.ones(3)),
    "k": column(np.ones(3)),
    "A": matrix(np.ones((3, 5))),
    "v": rows(np.ones((3, 5))),
    "n": 3,
    "c": 1 + 1j,
    "f": function(lambda array: array[7]),
    "g": of(lambda n: n + 1, "n"),
}


@pytest.mark.parametrize(
    ("latex", "problem", "place"),
    [
        ("n = 2 z", "z is neither given, nor defined, nor an index", "z"),
        ("n = h(x)", "h is neither given, nor defined", "h"),
        ("x_i = y_i", "i runs from 1 to 3 in x and from 1 to 5 in y", "y"),
        ("n = q q", r"two rows of 3: for their dot product write \cdot", "q q"),
        (r"n = q \cdot k", r"has no meaning: write them side by side, without \cdot", r"q \cdot k"),
        (r"n = A \cdot A", "the lengths in the middle differ", r"A \cdot A"),
        (r"n = A \cdot q", r"has no meaning: write them side by side, without \cdot", r"A \cdot q"),
        (r"n = n \odot n", r"\odot of a number and a number has no meaning: write them side by side", r"n \odot n"),
        (r"A = A \oplus A", r"\oplus is not given", r"A \oplus A"),
        ("n = n * n", r"* is not given: for a product write the factors side by side, or \cdot", "n * n"),
        ("n = v^2", "a list of 3 rows stands where one of its entries is wanted: give it an index", "v^2"),
        ("n = n^\\top", "a number has no transpose", "n^\\top"),
        ("n = A q^\\top", "a 3 x 5 matrix times a column (3 x 1)", "A q^\\top"),
        ("n = x k", r"write \cdot for the dot product, \odot entry by entry, or give them indices", "x k"),
        ("q = k", "the two sides do not fit: left is a row (1 x 3), right is a column (3 x 1)", "q = k"),
        ("A = A + n", "this cannot be added: left is a 3 x 5 matrix, right is a number", "n"),
        ("v = A", "stands where one of its entries is wanted: give it an index", "v = A"),
        ("n = x_4", "the index reaches 4, beyond 1 to 3", "4"),
        ("x_i = x_{i+1}", "the index reaches 4, beyond 1 to 3", "i+1"),
        ("n = A_{123}", "the index reaches 123", "123"),
        ("n = x_{1,1}", "a vector of 3 has 1 index at most", "x_{1,1}"),
        ("n = x_{0.5}", "an index is a whole number", "0.5"),
        ("n = x_c", "complex numbers cannot stand here", "x_c"),
        (r"n = \max_j n", "the index j is not used in what stands behind", "j"),
        (r"n = \sum_j x_j \sum_j x_j", "the index j is in use already", r"\sum_j x_j"),
        (r"x_i = \sum_i x_i", "the index i is in use already", r"\sum_i x_i"),
        (r"x_i = z_i, \quad z_i = \sum_i x_i", "the index i is in use already", r"\sum_i x_i"),
        ("n = n", "both sides are the same", "n = n"),
        ("n = 3, \\qquad m = 4 n", "m is defined and no claim uses it", "n = 3, \\qquad m = 4 n"),
        ("m = n", "nothing is claimed: every left side is a definition", "m = n"),
        ("n = 3, \\qquad m = m + 1", "m is defined and no claim uses it", ""),
        ("n = u, \\qquad u = w + 1, \\qquad w = u - 1", "is defined by itself", "u - 1"),
        (r"n = \lim_{n \to \infty} \frac{n}{n}", "n runs in a limit, and has no value outside of it", "n"),
        (r"\lim_{n \to \infty} 1 / n = 0, \qquad n > 2", "n runs in a limit, and has no value outside of it", "n"),
        ("n + 3 = 3 + n", "both sides are the same", "n + 3 = 3 + n"),
        (r"n \approx 0", r"behind \approx stands a number as it is printed, and not 0", "0"),
        (r"n \notin \mathbb{R}", "says too little", ""),
        (r"n = \|A\|", r"write \|.\|_2 or \|.\|_F", r"\|A\|"),
        (r"n = \mathrm{tr}(A)", "the trace of a 3 x 5 matrix has no meaning", r"\mathrm{tr}(A)"),
        ("n = A^2", "it is not square", "A^2"),
        (r"n = \ln_2(n)", r"nothing stands beneath \ln", "2"),
        ("n = f(x)", "f does not take these arguments", "f(x)"),
        ("n = 1 / x", "only a number can divide, not a vector of 3: give it an index", "x"),
        ("n = 1 / A", "only a number can divide, not a 3 x 5 matrix; for the inverse write ^{-1}", "A"),
        (r"n \in x", "cannot be in", "x"),
        (r"x \le y", r"the sides of \le do not fit", r"x \le y"),
        ("n = [A, q]", "the blocks do not fit together", "[A, q]"),
        (r"n = \mathbf{1}^\top \mathbf{1}", "the length of the ones is not known", r"\mathbf{1}^\top \mathbf{1}"),
        (r"n = \frac{\partial n}{\partial f}", "f is a function: expected its argument", "}"),
        (r"n = \mathbb{E}[n]", "nothing random is given", r"\mathbb{E}[n]"),
        (r"n = \phi_n(2), \qquad \phi_x(u) = x_1 u", r"what stands beneath \phi differs from its definition", r"\phi_n(2)"),
        ("n = w_{11}, \\qquad w_{jj} = x_j", "the indices are the same", "w_{jj} = x_j"),
        (r"n = \mathbb{E}_x[y]", "the weights beneath E are a vector of 3, its argument is a vector of 5", r"\mathbb{E}_x[y]"),
        (r"n = n \Big|_{n_1 = 0}", "n has 0 indices", "n_1"),
        (r"n = \int_0^{x} u \,du", "the bounds of an integral are numbers", r"\int_0^{x} u \,du"),
    ],
)
def test_what_has_no_meaning_is_pointed_at(latex, problem, place):
    used = {name: given for name, given in GIVENS.items() if name in re.findall(r"(?<![A-Za-z\\])[A-Za-z](?![A-Za-z])", latex)}
    with pytest.raises(Malformed) as caught:
        judge(Formula.of(latex, names_of(used)), used)
    assert problem in str(caught.value)
    assert not place or latex[slice(*caught.value.place)] in (place, f"{{{place}}}")


def test_a_list_of_matrices_is_called_so():
    with pytest.raises(Malformed, match="a list of 2 matrices"):
        judge(Formula.of("n = P", ["n", "P"]), {"n": 3, "P": np.ones((2, 3, 5))})


def test_equal_terms_are_summed_where_it_is_said_how_many_there_are():
    judge(Formula.of(r"n = \sum_{j=1}^{3} 1", ["n"]), {"n": 3})
    with pytest.raises(Malformed, match="the range of j is not known"):
        judge(Formula.of(r"n = \sum_j n", ["n"]), {"n": 3})


def test_an_unused_given_is_malformed():
    with pytest.raises(Malformed, match="y is given and nowhere used"):
        judge(Formula.of("x_i = x_i + 0", ["x", "y"]), {"x": np.ones(3), "y": 1.0})


def test_what_another_given_is_computed_from_is_used():
    judge(Formula.of("g = 4", ["g", "n"]), {"g": of(lambda n: n + 1, "n"), "n": 3})


BOMBS = [
    "a = " + "(" * 900 + "b" + ")" * 900,
    "a = " + "{" * 900 + "b" + "}" * 900,
    "a = " + r"\ln" * 600 + " b",
    "a = " + r"\frac" * 380,
    "a = " + r"\sqrt" * 380 + "b",
    "a = b" + "!" * 1900,
    "a = b" + "'" * 1900,
    "a = b" + r" \cdot b" * 240,
    "a = " + r"\sum_j" * 320 + " b_j",
    "a = " + "b " * 5000,
    "a = " + "[" * 1900,
    r"a = \sum_{j=1}^{10^{9}} j b",
    r"a = \sum_{j=1}^{10^{300}} j b",
    r"a = \sum_{i=1}^{1000} \sum_{j=1}^{1000} \sum_{k=1}^{1000} i j k b",
    r"a = \prod_{i=1}^{3000} \sum_{j=1}^{3000} i j b",
    r"a = b! ",
    r"a = 10^{10^{10}} b",
    r"a = M^{100000} b",
    r"a = f(\sum_{i=1}^{3} i) b",
    r"a = \lim_{b \to 0} \lim_{c \to 0} \lim_{d \to 0} \cos(1 / b) \cos(1 / c) \cos(1 / d)",
    r"a = \lim_{b \to 0} \frac{\partial}{\partial c} \frac{\partial}{\partial M} \frac{\partial}{\partial M} \mathrm{tr}(M) c b",
    r"\frac{\partial a}{\partial b^{999999999}} = 0",
    r"\frac{\partial^{999999999} a}{\partial b} = 0",
]


@pytest.mark.parametrize("latex", BOMBS, ids=range(len(BOMBS)))
def test_a_bomb_ends_quickly(latex):
    givens = {"a": 1.0, "b": 171.0, "c": 1.0, "d": 1.0, "M": np.eye(2), "f": function(lambda x: 1 / 0)}
    used = {name: given for name, given in givens.items() if name in re.sub(r"\\[a-z]+", "", latex)}
    started = time.process_time()
    with pytest.raises((Malformed, Refuted)) as caught:
        judge(Formula.of(latex, names_of(used)), used)
    assert len(str(caught.value)) < 400
    assert time.process_time() - started < 2  # a generous bound: most take a few milliseconds
