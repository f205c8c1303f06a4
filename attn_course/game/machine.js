// Built by attn_course/game/build.py from the formulas of formulas.py: change these, not this file.
const MACHINE = (() => {
// What formulas written as JavaScript compute with: plain numbers, or numbers that remember how they are written.
// A value is a number, a row [...], a column {column: [...]} or a matrix [[...], ...] of them.
const shown = (value) => {
  if (Number.isNaN(value)) return "NaN";
  const size = Math.abs(value);
  const text = size === Infinity ? "∞" : String(Number.isInteger(size) && size < 1e7 ? size : Number(size < 1e-3 || size > 1e3 ? size.toPrecision(4) : size.toFixed(3)));
  return (value < 0 ? "−" : "") + text;
};

const PLAIN = {
  number: (value) => value,
  value: (one) => one,
  plus: (terms) => terms.reduce((sum, term) => sum + term, 0),
  by: (factors) => factors.reduce((product, factor) => product * factor, 1),
  neg: (one) => -one,
  over: (above, below) => above / below,
  exp: Math.exp,
  ln: Math.log,
  sqrt: Math.sqrt,
  cos: Math.cos,
  sin: Math.sin,
  tan: Math.tan,
  tanh: Math.tanh,
  abs: Math.abs,
  floor: Math.floor,
  ceil: Math.ceil,
  power: (base, exponent) => base ** exponent,
  factorial: (count) => n.run(1, count).reduce((product, factor) => product * factor, 1),
  truth: (sign, a, b) => (n[sign](a, b) ? 1 : 0),
  max: (some) => some.reduce((largest, one) => (one > largest || Number.isNaN(one) ? one : largest), -Infinity),
  min: (some) => -PLAIN.max(some.map((one) => -one)),
};

// A word: its value, its text, how tightly the text binds, and the numbers `from` which it is made, as "name,row,column".
const SUM = 0, NEGATIVE = 1, PRODUCT = 2, SINGLE = 3, MOST = 5, RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
let longest = Infinity; // characters of a part: of a longer one its number stands
const tied = (word, least) => {
  if (word.text.length > longest) return tied(WORDS.number(word.value), least);
  return word.binds < least ? `(${word.text})` : word.text;
};
const few = (texts, sign) => (texts.length > MOST ? [texts[0], texts[1], "…", texts[texts.length - 1]] : texts).join(sign);
const total = (terms) => few(terms.map((term) => tied(term, NEGATIVE)), " + ").replaceAll("+ −", "− ") || "0";
const NOWHERE = [];
const merged = (words) => {
  const some = words.filter((word) => word.from.length);
  return some.length < 2 ? (some[0]?.from ?? NOWHERE) : [...new Set(some.flatMap((word) => word.from))];
};
const wordy = (compute, write, binds) => (...words) => {
  const value = compute(...words.map((one) => (Array.isArray(one) ? one.map((word) => word.value) : one.value)));
  return { value, text: write(...words), binds, from: merged(words.flat()) };
};
const word = (value, from = NOWHERE) => ({ value, text: shown(value), binds: value < 0 ? NEGATIVE : SINGLE, from });
const inside = (word) => tied(word, SUM);
const named = (name) => wordy(PLAIN[name], (one) => `${name}(${inside(one)})`, SINGLE);
const extreme = (name) => wordy(PLAIN[name], (some) => `${name}(${few(some.map(inside), ", ")})`, SINGLE);
const raised = (base, exponent) => {
  const { value, text } = exponent, small = Number.isInteger(value) && value >= 0 && text === String(value);
  return tied(base, SINGLE + (base.value < 0)) + (small ? Array.from(text, (digit) => RAISED[digit]).join("") : `^${/^[\w.]+$/.test(text) ? text : `(${text})`}`);
};
const SIGNS = { equal: "=", unequal: "≠", less: "<", more: ">", most: "≤", least: "≥" };
const WORDS = {
  number: (value, from) => word(value, from),
  value: (word) => word.value,
  plus: (terms) => (terms.length === 1 ? terms[0] : wordy(PLAIN.plus, total, SUM)(terms)),
  by: (factors) =>
    factors.length === 1 ? factors[0] : wordy(PLAIN.by, (some) => few(some.map((factor) => tied(factor, SINGLE)), " · "), PRODUCT)(factors),
  neg: (one) =>
    one.text === shown(one.value) && one.binds === NEGATIVE ? word(-one.value, one.from) : wordy(PLAIN.neg, (x) => `−${tied(x, PRODUCT)}`, NEGATIVE)(one),
  over: wordy(PLAIN.over, (above, below) => `${tied(above, PRODUCT)} / ${tied(below, SINGLE)}`, PRODUCT),
  ...Object.fromEntries(["exp", "ln", "cos", "sin", "tan", "tanh"].map((name) => [name, named(name)])),
  sqrt: wordy(PLAIN.sqrt, (one) => `√${tied(one, SINGLE)}`, SINGLE),
  abs: wordy(PLAIN.abs, (one) => `|${inside(one)}|`, SINGLE),
  floor: wordy(PLAIN.floor, (one) => `⌊${inside(one)}⌋`, SINGLE),
  ceil: wordy(PLAIN.ceil, (one) => `⌈${inside(one)}⌉`, SINGLE),
  power: wordy(PLAIN.power, raised, SINGLE),
  factorial: wordy(PLAIN.factorial, (one) => `${tied(one, SINGLE)}!`, SINGLE),
  truth: (sign, a, b) => ({ value: PLAIN.truth(sign, a.value, b.value), text: `[${inside(a)} ${SIGNS[sign]} ${inside(b)}]`, binds: SINGLE, from: merged([a, b]) }),
  max: extreme("max"),
  min: extreme("min"),
};

// Transposes and products of matrices are computed once: a formula asks for Q K^T again for each of its entries. Arrays never change.
const once = (compute) => {
  const known = new WeakMap();
  return (a, b = a) => {
    if (!known.has(a)) known.set(a, new WeakMap());
    if (!known.get(a).has(b)) known.get(a).set(b, compute(a, b));
    return known.get(a).get(b);
  };
};

// The same operations for rows, columns and matrices, from those for isNumber numbers.
// What has no size yet takes that of its neighbour: a column or a row of equal numbers {ones}, {onesRow}, a matrix whose rows or columns
// are all the same {each}, {across}, a multiple of I {identity}, one number at a place {unit, place}.
const SHAPES = ["column", "ones", "onesRow", "each", "across", "identity", "unit"];
const TURNED = { ones: "onesRow", onesRow: "ones", each: "across", across: "each", identity: "identity" };
const shapeOf = (x) => (typeof x === "object" && !Array.isArray(x) ? SHAPES.find((key) => key in x) : undefined);
const isNumber = (x) => !Array.isArray(x) && !shapeOf(x);
const isRow = (x) => Array.isArray(x) && !Array.isArray(x[0]);
const isMatrix = (x) => Array.isArray(x) && Array.isArray(x[0]);
const flat = (x) => x.column ?? x;
const algebra = (one) => {
  const each = (change, x, place = []) => {
    if (Array.isArray(x)) return x.map((y, at) => each(change, y, [...place, at]));
    const shape = shapeOf(x);
    return shape ? { ...x, [shape]: each(change, x[shape], place) } : change(x, place);
  };
  const zip = (join, a, b) => {
    if (isNumber(a) && isNumber(b)) return join(a, b);
    const [x, y] = [fitted(a, b), fitted(b, a)];
    return x.column ? { column: x.column.map((z, place) => join(z, y.column[place])) } : rowwise([x, y], (...pair) => zip(join, ...pair));
  };
  const short = (x) => each((y) => one.number(one.value(y), y.from), x); // of a product of more than two only the last is written out


  const columns = once((x) => x[0].map((_, place) => x.map((row) => row[place])));
  const dot = (a, b) => {
    if (a.length !== b.length) throw new Error(`the lengths ${a.length} and ${b.length} do not fit`);
    return one.plus(a.map((x, place) => one.by([x, b[place]])));
  };
  const scaled = (factor, x) => (one.value(factor) === 1 ? x : each((y) => one.by([factor, y]), x));
  const sumOf = (x, factor) => scaled(factor, one.plus(x));
  // A value in the size of another, where it has none.
  const fitted = (x, like) => {
    const [shape, other] = [shapeOf(x), flat(like)];
    if (isNumber(x) && isMatrix(like)) throw new Error("a number is no matrix");
    if (isNumber(x)) return each(() => x, like);
    if (shape === "unit") return fitted(other.map((_, at) => (at + 1 === x.place ? x.unit : one.number(0))), like);
    if (shape === "ones" || shape === "onesRow") return isMatrix(like) ? like.map((row) => row.map(() => x[shape])) : each(() => x[shape], like);
    if (shape === "identity") return like.map((row, i) => row.map((_, j) => (i === j ? x.identity : one.number(0))));
    if (shape === "each") return like.map(() => x.each);
    if (shape === "across") return like.map((row, i) => row.map(() => x.across[i]));
    return like.column && isRow(x) ? { column: x } : x;
  };
  const sized = (x, like) => (Array.isArray(x) || x.column ? x : fitted(x, like));
  const product = (a, b) => {
    if (isNumber(a) && isNumber(b)) return one.by([a, b]);
    if (isNumber(a)) return each((x) => one.by([a, x]), b);
    if (isNumber(b)) return each((x) => one.by([x, b]), a);
    if (a.identity !== undefined) return scaled(a.identity, b);
    if (b.identity !== undefined) return scaled(b.identity, a);
    if (a.ones !== undefined && (isRow(b) || b.onesRow !== undefined)) return { each: scaled(a.ones, b) };
    if (a.column && b.onesRow !== undefined) return { across: scaled(b.onesRow, a.column) };
    if (a.onesRow !== undefined) return b.column ? sumOf(b.column, a.onesRow) : columns(b).map((column) => sumOf(column, a.onesRow));
    if (b.ones !== undefined) return isRow(a) ? sumOf(a, b.ones) : { column: a.map((row) => sumOf(row, b.ones)) };
    if (a.each) return b.column ? { ones: product(a.each, b) } : { each: product(a.each, b) };
    if (b.across) return { across: product(a, { column: b.across }).column };
    if (b.each) return product(a, (isRow(a) ? a : a[0]).map(() => b.each));
    if (a.across) return product(a.across.map((x) => flat(b).map(() => x)), b);
    if (a.column) return a.column.map((x) => b.map((y) => one.by([x, y])));
    if (isRow(a)) return b.column ? dot(a, b.column) : columns(short(b)).map((column) => dot(short(a), column));
    if (b.column) return { column: a.map((row) => dot(row, b.column)) };
    return whole(a, b);
  };
  const whole = once((a, b) => a.map((row) => columns(b).map((column) => dot(row, column))));
  const rowwise = (terms, join) => {
    if (terms.some((x) => x.length !== terms[0].length)) throw new Error("rows of several lengths cannot be added");
    return terms[0].map((_, place) => join(...terms.map((x) => x[place])));
  };
  const add = (...terms) => {
    if (terms.every(isNumber)) return one.plus(terms);
    const solid = terms.find((x) => x.column) ?? terms.find(Array.isArray), shape = shapeOf(solid ?? terms[0]);
    if (!solid && terms.some((x) => shapeOf(x) !== shape)) throw new Error("these cannot be added");
    const fit = solid ? terms.map((x) => fitted(x, solid)) : terms;
    return shape ? { ...fit[0], [shape]: add(...fit.map((x) => x[shape])) } : rowwise(fit, add);
  };
  const at = (x, place) => {
    const found = flat(x)[place];
    if (found === undefined) throw new Error(`there is no number ${place + 1} among ${flat(x).length}`);
    return found;
  };
  const softmax = (x) => {
    if (isMatrix(x)) return x.map(softmax);
    if (x.column) return { column: softmax(x.column) };
    const top = one.number(PLAIN.max(x.map(one.value)));
    if (one.value(top) === -Infinity) return x.map(() => one.number(0));
    const grown = x.map((y) => one.exp(one.plus([y, one.neg(top)])));
    return grown.map((y) => one.over(y, one.plus(grown)));
  };
  const times = (...factors) => (factors.every(isNumber) ? one.by(factors) : factors.reduce((a, b) => product(a, b)));
  const transpose = (x) => {
    const shape = shapeOf(x);
    if (TURNED[shape]) return { [TURNED[shape]]: x[shape] };
    return isRow(x) ? { column: x } : (x.column ?? columns(x));
  };
  const numbersOf = (x) => (isNumber(x) ? [x] : numbersIn(x[shapeOf(x)] ?? x));
  const numbersIn = (x) => (Array.isArray(x) ? x.flatMap(numbersIn) : numbersOf(x));
  const entrywise = ["exp", "ln", "sqrt", "cos", "sin", "tan", "tanh", "floor", "ceil"];
  const extremes = Object.fromEntries(["max", "min"].map((name) => [name, (some) => one[name](some.flatMap(flat))]));
  return {
    number: one.number,
    each,
    columns,
    given: one === PLAIN ? (x) => x : (x, name) => each((y, place) => one.number(y, name === undefined ? undefined : [[name, ...place].join()]), x),
    add,
    times,
    neg: (x) => each(one.neg, x),
    dot: (a, b) => (isNumber(a) || isNumber(b) ? product(a, b) : isMatrix(a) ? one.plus(a.map((row, place) => dot(row, b[place]))) : dot(flat(sized(a, b)), flat(sized(b, a)))),
    odot: (a, b) => zip((x, y) => one.by([x, y]), a, b),
    over: (a, b) => each((x) => one.over(x, b), a),
    transpose,
    entry: (x, ...places) => places.reduce(at, x),
    slice: (x, first, last) => (x.column ? { column: x.column.slice(first, last) } : x.slice(first, last)),
    sum: (terms) => add(...terms),
    prod: (factors) => one.by(factors),
    ...extremes,
    truth: (sign, a, b) => (isNumber(a) && isNumber(b) ? one.truth(sign, a, b) : one.number(n[sign](each(one.value, a), each(one.value, b)) ? 1 : 0)),
    softmax,
    ones: () => ({ ones: one.number(1) }),
    identity: () => ({ identity: one.number(1) }),
    unit: (place) => ({ unit: one.number(1), place }),
    ...Object.fromEntries(entrywise.map((name) => [name, (x) => each((y) => one[name](y), x)])),
    both: (a, b) => {
      const [sized, other] = [a, b].map((x) => Array.isArray(x) || x.column !== undefined);
      const like = (x, y) => (isNumber(x) ? each(() => x, y) : fitted(x, y));
      return [sized || !other ? a : like(a, b), other || !sized ? b : like(b, a)].map(numbersOf);
    },
  };
};
const ROUND_OFF = 1e-13; // of the largest number
const n = {
  ...algebra(PLAIN),
  run: (first, last) => Array.from({ length: Math.max(last - first + 1, 0) }, (_, place) => first + place),
  size: (x, axis) => (axis ? n.size(x[0], axis - 1) : (x.column ?? x).length),
  has: (members, place) => members[place] === 1,
  close: (a, b, slack = 0) => a === b || (Math.abs(a - b) <= 1e-10 * Math.max(Math.abs(a), Math.abs(b)) + slack && Number.isFinite(a - b)),
  // Of vectors every entry: both words mean that, as in NumPy.
  compared: (a, b) => {
    const [some, others] = n.both(a, b), slack = ROUND_OFF * PLAIN.max([1, ...[...some, ...others].map(Math.abs).filter(Number.isFinite)]);
    return some.map((x, place) => some.length === others.length && n.close(x, others[place], slack));
  },
  equal: (a, b) => n.compared(a, b).every((same) => same),
  unequal: (a, b) => n.compared(a, b).every((same) => !same),
  less: (a, b) => a < b && !(Number.isFinite(a - b) && b - a <= 1e-12 * Math.max(Math.abs(a), Math.abs(b))),
  more: (a, b) => n.less(b, a),
  most: (a, b) => a <= b || n.equal(a, b),
  least: (a, b) => a >= b || n.equal(a, b),
};
const words = algebra(WORDS);

const TOKENS = ["the","cat","sat","it"];
const FEATURES = ["alive","tells","open","cos","sin"];
const INPUTS = [{"name":"X","title":"the tokens","role":"neutral"},{"name":"W_Q","title":"for queries","role":"query"},{"name":"W_K","title":"for keys","role":"key"},{"name":"W_V","title":"for values","role":"value"},{"name":"W_O","title":"for outputs","role":"output"},{"name":"mask","title":"the mask","role":"neutral","choices":["none","causal","past"]},{"name":"heads","title":"heads","role":"neutral","choices":[1,2]}];
const PARTS = [
  {"name":"Q","title":"queries","role":"query","axes":["head","query","feature"],"html":"Q<sub>h</sub> = X W<sub>Q</sub><sup>h</sup>", rule: { value: (o, $, { head }) => o.times(o.given($.X), o.entry(o.given($.heads.W_Q), head - 0)) } },
  {"name":"K","title":"keys","role":"key","axes":["head","key","feature"],"html":"K<sub>h</sub> = X W<sub>K</sub><sup>r</sup>,   r = ⌊h / g⌋,   g = H / H<sub>kv</sub>", rule: { value: (o, $, { head }) => o.times(o.given($.X), o.entry(o.given($.heads.W_K), n.floor(n.over(head, n.over($.H, $.H_kv))) - 0)) } },
  {"name":"V","title":"values","role":"value","axes":["head","key","feature"],"html":"V<sub>h</sub> = X W<sub>V</sub><sup>r</sup>,   r = ⌊h / g⌋,   g = H / H<sub>kv</sub>", rule: { value: (o, $, { head }) => o.times(o.given($.X), o.entry(o.given($.heads.W_V), n.floor(n.over(head, n.over($.H, $.H_kv))) - 0)) } },
  {"name":"S","title":"scores","role":"scores","axes":["head","query","key"],"html":"s<sub>ij</sub> = (Q K<sup>T</sup>)<sub>ij</sub> / √d<sub>k</sub>", rule: { value: (o, $, { head }, i, j) => o.over(o.entry(o.times(o.given($.Q[head]), o.transpose(o.given($.K[head]))), i - 1, j - 1), o.sqrt(o.given($.d_k))) } },
  {"name":"A","title":"who may look at whom","role":"neutral","axes":["query","key"],"html":"A<sub>i</sub> = { j : j ≤ i + p }", rule: { loops: [], value: (o, $, _, i) => n.run(1, $.T).map((j) => o.truth("most", o.number(j), o.add(o.number(i), o.given($.ahead)))) } },
  {"name":"M","title":"mask","role":"neutral","axes":["query","key"],"html":"M<sub>j</sub> = {0 if j ∈ A; −∞ if j ∉ A}", rule: { loops: ["query"], value: (o, $, { query }, j) => (n.has($.A[query], j - 1) ? o.number(0) : !n.has($.A[query], j - 1) ? o.neg(o.number(Infinity)) : o.number(NaN)) } },
  {"name":"B","title":"masked scores","role":"scores","axes":["head","query","key"],"html":"b<sub>ij</sub> = s<sub>ij</sub> + M<sub>ij</sub>", rule: { value: (o, $, { head }, i, j) => o.add(o.entry(o.given($.S[head]), i - 1, j - 1), o.entry(o.given($.M), i - 1, j - 1)) } },
  {"name":"m","title":"largest score","role":"scores","axes":["head","query"],"html":"m<sub>i</sub> = max<sub>j</sub> b<sub>ij</sub>", rule: { value: (o, $, { head }, i) => o.max(n.run(1, n.size($.B[head], 1)).map((j) => o.entry(o.given($.B[head]), i - 1, j - 1))) } },
  {"name":"P","title":"weights","role":"weights","axes":["head","query","key"],"html":"p<sub>ij</sub> = {0 if m<sub>i</sub> = −∞; (e<sup>b<sub>ij</sub> − m<sub>i</sub></sup> / (Σ<sub>l</sub> e<sup>b<sub>il</sub> − m<sub>i</sub></sup>)) if m<sub>i</sub> &gt; −∞}", rule: { value: (o, $, { head }, i, j) => (n.equal(n.entry($.m[head], i - 1), n.neg(Infinity)) ? o.number(0) : n.more(n.entry($.m[head], i - 1), n.neg(Infinity)) ? o.over(o.exp(o.add(o.entry(o.given($.B[head]), i - 1, j - 1), o.neg(o.entry(o.given($.m[head]), i - 1)))), o.sum(n.run(1, n.size($.B[head], 1)).map((l) => o.exp(o.add(o.entry(o.given($.B[head]), i - 1, l - 1), o.neg(o.entry(o.given($.m[head]), i - 1))))))) : o.number(NaN)) } },
  {"name":"Z","title":"what was found","role":"value","axes":["head","query","feature"],"html":"z<sub>i</sub> = Σ<sub>j = 1..T<sub>k</sub></sub> p<sub>ij</sub> v<sub>j</sub>", rule: { value: (o, $, { head }, i) => o.sum(n.run(1, $.T).map((j) => o.times(o.entry(o.given($.P[head]), i - 1, j - 1), o.entry(o.given($.V[head]), j - 1)))) } },
  {"name":"O","title":"joined heads","role":"output","axes":["query","feature"],"html":"O = Σ<sub>h = 1..H</sub> Z<sub>h</sub> W<sub>O</sub><sup>h</sup>", rule: { loops: [], value: (o, $, _) => o.sum(n.run(1, $.H).map((h) => o.times(o.entry(o.given($.Z), h - 1), o.entry(o.given($.heads.W_O), h - 1)))) } },
  {"name":"Y","title":"output","role":"output","axes":["query","feature"],"html":"Y = X + O", rule: { loops: [], value: (o, $, _) => o.add(o.given($.X), o.given($.O)) } },
];
const TWINS = [
  {"id":"softmax-over-queries","part":"P","title":"the softmax runs over the queries","html":"p<sub>ij</sub> = σ<sub>l</sub>(b<sub>lj</sub>)<sub>i</sub>","beside":"p<sub>ij</sub> = σ<sub>l</sub>(b<sub>il</sub>)<sub>j</sub>", rules: { P: { value: (o, $, { head }, i, j) => o.entry(o.softmax(n.run(1, n.size($.B[head], 0)).map((l) => o.entry(o.given($.B[head]), l - 1, j - 1))), i - 1) } } },
  {"id":"no-scale","part":"S","title":"the scores are not scaled","html":"s<sub>ij</sub> = (Q K<sup>T</sup>)<sub>ij</sub>", rules: { S: { value: (o, $, { head }, i, j) => o.entry(o.times(o.given($.Q[head]), o.transpose(o.given($.K[head]))), i - 1, j - 1) } } },
  {"id":"scaled-by-length","part":"S","title":"the scores are divided by d_k, not by its square root","html":"s<sub>ij</sub> = (Q K<sup>T</sup>)<sub>ij</sub> / d<sub>k</sub>", rules: { S: { value: (o, $, { head }, i, j) => o.over(o.entry(o.times(o.given($.Q[head]), o.transpose(o.given($.K[head]))), i - 1, j - 1), o.given($.d_k)) } } },
  {"id":"scaled-by-width","part":"S","title":"the scale is that of all heads together","html":"s<sub>ij</sub> = (Q K<sup>T</sup>)<sub>ij</sub> / √(H d<sub>k</sub>)","tested":"O", rules: { S: { value: (o, $, { head }, i, j) => o.over(o.entry(o.times(o.given($.Q[head]), o.transpose(o.given($.K[head]))), i - 1, j - 1), o.sqrt(o.times(o.given($.H), o.given($.d_k)))) } } },
  {"id":"keys-ask","part":"S","title":"the keys ask and the queries answer: the scores are transposed","html":"s<sub>ij</sub> = (K Q<sup>T</sup>)<sub>ij</sub> / √d<sub>k</sub>", rules: { S: { value: (o, $, { head }, i, j) => o.over(o.entry(o.times(o.given($.K[head]), o.transpose(o.given($.Q[head]))), i - 1, j - 1), o.sqrt(o.given($.d_k))) } } },
  {"id":"past-hidden","part":"A","title":"the mask is transposed","html":"A<sub>i</sub> = { j : j ≥ i + p }", rules: { A: { loops: [], value: (o, $, _, i) => n.run(1, $.T).map((j) => o.truth("least", o.number(j), o.add(o.number(i), o.given($.ahead)))) } } },
  {"id":"self-hidden","part":"A","title":"the mask hides the token itself","html":"A<sub>i</sub> = { j : j &lt; i + p }", rules: { A: { loops: [], value: (o, $, _, i) => n.run(1, $.T).map((j) => o.truth("less", o.number(j), o.add(o.number(i), o.given($.ahead)))) } } },
  {"id":"mask-after-softmax","part":"P","title":"the mask comes after the softmax","html":"p<sub>j</sub> = [j ∈ A] w<sub>j</sub>,   w = σ(s)","beside":"p<sub>j</sub> = σ(s + M)<sub>j</sub>", rules: { P: { loops: ["head","query"], value: (o, $, { head, query }, j) => o.times(o.number(n.has($.A[query], j - 1) ? 1 : 0), o.entry(o.softmax(o.given($.S[head][query])), j - 1)) } } },
  {"id":"multiplied-mask","part":"P","title":"the scores are multiplied by a mask of zeros and ones","html":"p<sub>j</sub> = e<sup>[j ∈ A] s<sub>j</sub></sup> / (Σ<sub>l</sub> e<sup>[l ∈ A] s<sub>l</sub></sup>)", rules: { P: { loops: ["head","query"], value: (o, $, { head, query }, j) => o.over(o.exp(o.times(o.number(n.has($.A[query], j - 1) ? 1 : 0), o.entry(o.given($.S[head][query]), j - 1))), o.sum(n.run(1, n.size($.A[query], 0)).map((l) => o.exp(o.times(o.number(n.has($.A[query], l - 1) ? 1 : 0), o.entry(o.given($.S[head][query]), l - 1)))))) } } },
  {"id":"finite-fill","part":"P","title":"a hidden score is made smaller by 10000, not by infinity","html":"p<sub>ij</sub> = σ<sub>l</sub>(s<sub>il</sub> − 10000 [l ∉ A<sub>i</sub>])<sub>j</sub>","beside":"p<sub>ij</sub> = σ<sub>l</sub>(s<sub>il</sub> + M<sub>il</sub>)<sub>j</sub>", rules: { P: { value: (o, $, { head }, i, j) => o.entry(o.softmax(n.run(1, n.size($.S[head], 1)).map((l) => o.add(o.entry(o.given($.S[head]), i - 1, l - 1), o.neg(o.times(o.number(10000), o.number(!n.has(n.entry($.A, i - 1), l - 1) ? 1 : 0)))))), j - 1) } } },
  {"id":"maximum-kept","part":"P","title":"the largest score is not subtracted","html":"p<sub>ij</sub> = e<sup>b<sub>ij</sub></sup> / (Σ<sub>l = 1..T<sub>k</sub></sub> e<sup>b<sub>il</sub></sup>)", rules: { P: { value: (o, $, { head }, i, j) => o.over(o.exp(o.entry(o.given($.B[head]), i - 1, j - 1)), o.sum(n.run(1, $.T).map((l) => o.exp(o.entry(o.given($.B[head]), i - 1, l - 1))))) } } },
  {"id":"weights-transposed","part":"Z","title":"the output takes the column of its query, not the row","html":"z<sub>i</sub> = Σ<sub>j = 1..T<sub>k</sub></sub> p<sub>ji</sub> v<sub>j</sub>", rules: { Z: { value: (o, $, { head }, i) => o.sum(n.run(1, $.T).map((j) => o.times(o.entry(o.given($.P[head]), j - 1, i - 1), o.entry(o.given($.V[head]), j - 1)))) } } },
  {"id":"accumulator-kept","part":"Z","title":"what was added up before is not rescaled when a larger score comes","html":"ℓ'<sub>i</sub> = ℓ<sub>i</sub> + Σ<sub>j</sub> e<sup>s<sub>ij</sub> − m'<sub>i</sub></sup>,   a'<sub>i</sub> = a<sub>i</sub> + Σ<sub>j</sub> e<sup>s<sub>ij</sub> − m'<sub>i</sub></sup> v<sub>j</sub>","beside":"ℓ'<sub>i</sub> = e<sup>m<sub>i</sub> − m'<sub>i</sub></sup> ℓ<sub>i</sub> + Σ<sub>j</sub> e<sup>s<sub>ij</sub> − m'<sub>i</sub></sup>,   a'<sub>i</sub> = e<sup>m<sub>i</sub> − m'<sub>i</sub></sup> a<sub>i</sub> + Σ<sub>j</sub> e<sup>s<sub>ij</sub> − m'<sub>i</sub></sup> v<sub>j</sub>", rules: {  }, update: { m: { loops: [], value: (o, $, _, i) => o.max([o.entry(o.given($.old.m), i - 1), o.max(n.run(1, n.size($.s, 1)).map((j) => o.entry(o.given($.s), i - 1, j - 1)))]) }, l: { loops: [], value: (o, $, _, i) => o.add(o.entry(o.given($.old.l), i - 1), o.sum(n.run(1, n.size($.s, 1)).map((j) => o.exp(o.add(o.entry(o.given($.s), i - 1, j - 1), o.neg(o.entry(o.given($.m), i - 1))))))) }, a: { loops: [], value: (o, $, _, i) => o.add(o.entry(o.given($.old.a), i - 1), o.sum(n.run(1, n.size($.s, 1)).map((j) => o.times(o.exp(o.add(o.entry(o.given($.s), i - 1, j - 1), o.neg(o.entry(o.given($.m), i - 1)))), o.entry(o.given($.v), j - 1))))) } } },
  {"id":"heads-tiled","part":"K","title":"four heads use the key heads 0, 1, 0, 1 instead of 0, 0, 1, 1","html":"K<sub>h</sub> = X W<sub>K</sub><sup>r</sup>,   r = h − H<sub>kv</sub> ⌊(g h) / H⌋,   g = H / H<sub>kv</sub>","tested":"O", rules: { K: { value: (o, $, { head }) => o.times(o.given($.X), o.entry(o.given($.heads.W_K), n.add(head, n.neg(n.times($.H_kv, n.floor(n.over(n.times(n.over($.H, $.H_kv), head), $.H))))) - 0)) }, V: { value: (o, $, { head }) => o.times(o.given($.X), o.entry(o.given($.heads.W_V), n.add(head, n.neg(n.times($.H_kv, n.floor(n.over(n.times(n.over($.H, $.H_kv), head), $.H))))) - 0)) } } },
  {"id":"heads-reshaped","part":"Q","title":"the queries are reshaped into heads without a transposition","html":"q<sub>ia</sub> = Σ<sub>u</sub> x<sub>nu</sub> (W<sub>Q</sub>)<sub>uc</sub>,   n = ⌊(h T + i − 1) / H⌋ + 1,   c = (h T + i − 1 − H (n − 1)) d<sub>k</sub> + a","beside":"q<sub>ia</sub> = Σ<sub>u</sub> x<sub>iu</sub> (W<sub>Q</sub>)<sub>uc</sub>,   c = h d<sub>k</sub> + a","tested":"O", rules: { Q: { value: (o, $, { head }, i, a) => o.sum(n.run(1, n.size($.X, 1)).map((u) => o.times(o.entry(o.given($.X), n.add(n.floor(n.over(n.add(n.times(head, $.T), i, n.neg(1)), $.H)), 1) - 1, u - 1), o.entry(o.given($.W_Q), u - 1, n.add(n.times(n.add(n.times(head, $.T), i, n.neg(1), n.neg(n.times($.H, n.add(n.add(n.floor(n.over(n.add(n.times(head, $.T), i, n.neg(1)), $.H)), 1), n.neg(1))))), $.d_k), a) - 1)))) } } },
  {"id":"one-block-of-outputs","part":"O","title":"every head writes with the rows of the first","html":"O = Σ<sub>h = 1..H</sub> Z<sub>h</sub> W<sub>O</sub><sup>1</sup>","tested":"O", rules: { O: { loops: [], value: (o, $, _) => o.sum(n.run(1, $.H).map((h) => o.times(o.entry(o.given($.Z), h - 1), o.entry(o.given($.heads.W_O), 1 - 1)))) } } },
];
const UPDATE = { m: { loops: [], value: (o, $, _, i) => o.max([o.entry(o.given($.old.m), i - 1), o.max(n.run(1, n.size($.s, 1)).map((j) => o.entry(o.given($.s), i - 1, j - 1)))]) }, l: { loops: [], value: (o, $, _, i) => o.add(o.times(o.exp(o.add(o.entry(o.given($.old.m), i - 1), o.neg(o.entry(o.given($.m), i - 1)))), o.entry(o.given($.old.l), i - 1)), o.sum(n.run(1, n.size($.s, 1)).map((j) => o.exp(o.add(o.entry(o.given($.s), i - 1, j - 1), o.neg(o.entry(o.given($.m), i - 1))))))) }, a: { loops: [], value: (o, $, _, i) => o.add(o.times(o.exp(o.add(o.entry(o.given($.old.m), i - 1), o.neg(o.entry(o.given($.m), i - 1)))), o.entry(o.given($.old.a), i - 1)), o.sum(n.run(1, n.size($.s, 1)).map((j) => o.times(o.exp(o.add(o.entry(o.given($.s), i - 1, j - 1), o.neg(o.entry(o.given($.m), i - 1)))), o.entry(o.given($.v), j - 1))))) } };
const DONE = { loops: [], value: (o, $, _) => o.over(o.given($.a), o.given($.l)) };
const LEVELS = [
  {"id":"softmax-over-queries","lamp":"rows","title":"A symmetric square of scores","hint":"The scores are symmetric, and all their rows hold the same numbers. Make one row of X larger than the other.","story":"A softmax along the wrong axis gives a matrix of the right shape, and each of its columns sums to 1. If the scores are symmetric and all their rows hold the same numbers, each of its rows sums to 1 as well. A test with more keys than queries, or fewer, finds it at once.","start":{"X":[[1,0],[0,1]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"none","heads":1},"par":1},
  {"id":"no-scale","lamp":"spread","title":"Nobody asks, nobody answers","hint":"All scores are 0. A score needs a query and a key that are not 0.","story":"Without the scale nothing looks wrong: rows sum to 1, nothing leaks, heads stay apart. Only the lamp for the spread of scores shows it: for random ±1 queries and keys the variance of a score should be 1, and without the scale it is d_k, here 2.","start":{"X":[[1,2],[3,1]],"W_Q":[[0,0],[0,0]],"W_K":[[0,0],[0,0]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"none","heads":1},"par":2},
  {"id":"keys-ask","lamp":"own","title":"Who asks whom?","hint":"While W_Q and W_K are equal, token i scores j as j scores i. No tokens tell the two apart: change W_Q or W_K.","story":"With one matrix for queries and keys the scores are symmetric, whatever the tokens are, so that exchanging the roles changes nothing. The mistake is the same as an exchange of rows and columns of W_Q W_K^T.","start":{"X":[[1,2],[3,-1],[0,2]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"none","heads":1},"par":1},
  {"id":"weights-transposed","lamp":"own","title":"Three equal tokens","hint":"All weights are 1/3, and all values are equal. Let one token differ from the others.","story":"p_ij is the weight of input j in output i. Read the other way round, the weights of an output need not sum to 1, and a query changes what other tokens find.","start":{"X":[[1,2],[1,2],[1,2]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"none","heads":1},"par":1},
  {"id":"mask-after-softmax","lamp":"rows","title":"A future that is far away","hint":"The first token scores the second so low that its weight is 0 in floating point even without a mask. Make them more alike.","story":"Weights that are hidden after the softmax have already taken their share of the sum. What is left sums to less than 1. The missing amount depends on the later words, and so it reveals something of them.","start":{"X":[[40,0],[-40,1]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"causal","heads":1},"par":1},
  {"id":"finite-fill","lamp":"leak","title":"A row with nothing to see","hint":"exp(−10000) is 0 in floating point. Look for a row in which everything is hidden, or for a hidden score larger by 10000.","story":"A large finite fill hides keys as long as no hidden score is larger by about 10000 than all that are seen. Where all keys of a row are hidden, each score is made smaller by the same number, which no softmax notices: the weights are those without any mask.","start":{"X":[[1,2],[2,0],[0,1]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"causal","heads":1},"par":1},
  {"id":"heads-tiled","lamp":"heads","title":"All shapes fit","hint":"Both key heads have the same columns of W_K and W_V. Let one number differ. If nothing changes, try another one.","note":"A key head is a block of columns of W_K and W_V: it makes keys and values. Here four heads share two key heads, two heads each.","story":"Heads 0 and 1 should share key head 0, and heads 2 and 3 key head 1. In the twin the key heads go 0, 1, 0, 1 and not 0, 0, 1, 1, so that heads 0 and 2 share one. All shapes fit.","start":{"X":[[1,2],[2,-1],[0,1]],"W_Q":[[1,2,-1,1],[1,0,2,1]],"W_K":[[1,1],[2,2]],"W_V":[[1,1],[1,1]],"W_O":[[1,0],[0,1],[1,1],[1,-1]],"mask":"none","heads":4},"par":1},
  {"id":"heads-reshaped","lamp":"heads","title":"Two heads that see alike","hint":"All tokens are equal, and so are the queries of both heads: wherever a query lands, it is the right one. Change one token.","story":"Reshaping the numbers in memory into heads, without a transposition, gives the right shape, and reshaping back gives the queries again. But head 0 gets the queries of the first half of the tokens, and head 1 those of the second.","start":{"X":[[1,2],[1,2],[1,2],[1,2]],"W_Q":[[1,0,1,0],[0,1,0,1]],"W_K":[[1,0,1,1],[0,1,0,2]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"none","heads":2},"par":1},
  {"id":"scaled-by-width","lamp":"spread","title":"One head hides it","hint":"With one head, the width of all heads together is the width of that head. Choose two heads.","story":"The scale is the square root of the width of one head, not of all heads together. With a single head these are the same.","start":{"X":[[1,2],[3,-1],[0,2]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"none","heads":1},"locked":[],"par":1},
  {"id":"accumulator-kept","lamp":"permutation","title":"The best comes first","hint":"For each query the first key has the largest score. Let a later one be larger.","story":"An online softmax takes the keys one by one and measures its sums from the largest score so far. When a larger one comes, all that was summed up must shrink, or early keys count too much. Scores that never rise from key to key hide it, and so does a single key.","start":{"X":[[3],[2],[1]],"W_Q":[[1]],"W_K":[[1]],"W_V":[[1]],"W_O":[[1]],"mask":"none","heads":1},"par":1},
  {"id":"maximum-kept","lamp":"shift","title":"As long as numbers are small","hint":"In double precision exp(x) is infinite from about x = 710 on. One number is enough.","story":"Without the subtraction of the largest score the exponential of a score of 710 is infinite, and infinity divided by infinity is no number. In half precision a score of 12 is enough.","start":{"X":[[1,2],[2,0],[0,1]],"W_Q":[[1,0],[0,1]],"W_K":[[1,0],[0,1]],"W_V":[[1,0],[0,1]],"W_O":[[1,0],[0,1]],"mask":"causal","heads":1},"par":1},
];

const AHEAD = { none: (length) => length, causal: () => 0, past: () => -1 };

// Sizes, and matrices cut into heads: what formulas call W_Q of a head is a block of columns.
const sized = (given) => {
  const inputs = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, Array.isArray(value) ? value.map((row) => [...row]) : value]));
  const whole = (count, what) => {
    if (!Number.isInteger(count) || count < 1) throw new Error(`${what}: the widths do not fit ${inputs.heads} heads`);
    return count;
  };
  const columns = (matrix, count) => {
    const width = whole(matrix[0].length / count, "columns");
    return n.run(0, count - 1).map((head) => matrix.map((row) => row.slice(head * width, (head + 1) * width)));
  };
  const T = inputs.X.length, H = inputs.heads;
  const d_k = whole(inputs.W_Q[0].length / H, "W_Q"), H_kv = whole(inputs.W_K[0].length / d_k, "W_K");
  const d_v = whole(inputs.W_V[0].length / H_kv, "W_V"), rows = whole(inputs.W_O.length / H, "W_O");
  if (rows !== d_v) throw new Error(`W_O has ${inputs.W_O.length} rows, and the heads find ${H * d_v} numbers`);
  const heads = {
    W_Q: columns(inputs.W_Q, H), W_K: columns(inputs.W_K, H_kv), W_V: columns(inputs.W_V, H_kv),
    W_O: n.run(0, H - 1).map((head) => inputs.W_O.slice(head * d_v, (head + 1) * d_v)),
  };
  return { ...inputs, heads, T, H, H_kv, d_k, d_v, ahead: AHEAD[inputs.mask](T) };
};

const twinOf = (id) => TWINS.find((twin) => twin.id === id) ?? { rules: {} };
const lengths = ($) => ({ head: $.H, query: $.T, key: $.T, feature: $.d_k });
const nested = (sizes, make, places = []) =>
  sizes.length ? n.run(0, sizes[0] - 1).map((place) => nested(sizes.slice(1), make, [...places, place])) : make(places);
// A rule goes along some axes one by one, mostly along the heads; behind them stand the letters of its formula, from the fourth argument on.
const loopsOf = ({ loops = ["head"] }) => loops;
const depthOf = (rule) => loopsOf(rule).length + rule.value.length - 3;
const applied = (rule, o, $, places) => {
  const loops = loopsOf(rule);
  const at = Object.fromEntries(loops.map((axis, place) => [axis, places[place]]));
  return rule.value(o, $, at, ...places.slice(loops.length).map((place) => place + 1));
};
const evaluated = (part, rule, $) =>
  nested(part.axes.slice(0, depthOf(rule)).map((axis) => lengths($)[axis]), (places) => applied(rule, n, $, places));

// One query goes through the keys it may look at, a block at a time: the largest score so far, the sum, and the accumulator.
const begun = (width) => ({ m: [-Infinity], l: [0], a: [Array(width).fill(0)] });
const gone = (old, scores, values, update) => {
  const state = { old, s: [scores], v: values };
  for (const name of ["m", "l", "a"]) state[name] = [update[name].value(n, state, {}, 1)];
  return state;
};
const done = (state, o = n) => DONE.value(o, { a: state.a[0], l: state.l[0] }, {});
const seen = ($, query) => n.run(0, $.T - 1).filter((key) => $.A[query][key]);
const online = ($, update, head, query) => {
  const each = (state, key) => gone(state, [$.S[head][query][key]], [$.V[head][key]], update);
  return seen($, query).reduce(each, begun($.d_v));
};
const summed = ($, update, head, query) => (seen($, query).length ? done(online($, update, head, query)) : Array($.d_v).fill(0));

// Every part, for inputs and a twin (or null); `change` may replace a part once it is computed: {K: (K) => ...}; `last`: the last one wanted.
const compute = (inputs, twin = null, change = {}, last = "Y") => {
  const $ = sized(inputs), { rules, update } = twinOf(twin), found = {};
  for (const part of PARTS) {
    const { name } = part;
    $[name] = name === "Z" && update ? nested([$.H, $.T], ([head, query]) => summed($, update, head, query)) : evaluated(part, rules[name] ?? part.rule, $);
    found[name] = $[name] = change[name] ? change[name]($[name], $) : $[name];
    if (name === last) break;
  }
  return found;
};

// One number of a part, in an algebra, from what came before.
const ruleOf = (name, twin) => twinOf(twin).rules[name] ?? PARTS.find((part) => part.name === name).rule;
const single = (o, name, index, $, twin) => {
  const { update } = twinOf(twin), rule = ruleOf(name, twin), depth = depthOf(rule);
  const row = name === "Z" && update ? done(online($, update, index[0], index[1]), o) : applied(rule, o, $, index.slice(0, depth));
  return index.slice(depth).reduce((value, place) => value[place], row);
};

const explain = (name, index, inputs, twin = null) => {
  const $ = { ...sized(inputs), ...compute(inputs, twin, {}, name) };
  const word = single(words, name, index, $, twin);
  const value = index.reduce((inner, place) => inner[place], $[name]);
  return word.text === undefined || word.text === shown(value) ? shown(value) : `${shown(value)} = ${word.text}`;
};

// The names of what a part is made of.
const uses = (name, twin = null) => {
  if (name === "Z" && twinOf(twin).update) return ["S", "A", "V"];
  return [...new Set([...String(ruleOf(name, twin).value).matchAll(/\$\.(?:heads\.)?(\w+)/g)].map(([, found]) => found))];
};

// The numbers that one number is made of, each as [name, index]: with another one there, and all else as it was, it is another one too.
// What is tried is small, so that nothing is beyond a computer; what hides a key stays as it is.
const reads = (name, index, inputs, twin = null) => {
  const small = (x) =>
    Array.isArray(x) ? x.map((y) => (Array.isArray(y) ? small(y) : y === -Infinity ? y : Math.max(-1, Math.min(1, y)) || 0)) : x;
  const given = { ...inputs, ...compute(inputs, twin, {}, name) };
  for (const key of Object.keys(given)) given[key] = small(given[key]);
  const put = (x, [place, ...rest], value) => x.map((y, i) => (i !== place ? y : rest.length ? put(y, rest, value) : value));
  const numbers = (x, place = []) => (Array.isArray(x) ? x.flatMap((y, i) => numbers(y, [...place, i])) : [[place, x]]);
  const own = single(n, name, index, sized(given), twin);
  const moves = (key, place, value) => !Object.is(single(n, name, index, sized({ ...given, [key]: put(given[key], place, value) }), twin), own);
  return uses(name, twin).filter((key) => Array.isArray(given[key])).flatMap((key) =>
    numbers(given[key]).filter(([place, x]) => moves(key, place, NaN) || moves(key, place, 1 - x)).map(([place]) => [key, place]));
};

// ---- Lamps: a property of attention, measured on the machine as it is, or on inputs changed for it.
// What is no number in both has not changed.
const close = (a, b) =>
  Array.isArray(a)
    ? a.every((x, place) => close(x, b[place]))
    : Object.is(a, b) || (Number.isFinite(a - b) && Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b)));
const token = (place) => `\`${TOKENS[place] ?? `token ${place + 1}`}\``;
const nudge = (row, by = 1) => row.map((x, place) => x + by * (1 + (place % 3)));
const blocks = (matrix, count, block) => {
  const width = matrix[0].length / count;
  return matrix.map((row, line) => row.map((x, place) => (Math.floor(place / width) === block ? x + 1 + ((line + place) % 3) : x)));
};
const find = (items, test) => items.find(test) ?? null;
const heads = ($) => n.run(0, $.H - 1), tokens = ($) => n.run(0, $.T - 1);

const rows = (inputs, twin) => {
  const { P, A } = compute(inputs, twin), $ = sized(inputs);
  const sum = ([head, query]) => P[head][query].reduce((total, weight) => total + weight, 0);
  const seen = (query) => AHEAD[inputs.mask]($.T) + query >= 0;
  const all = heads($).flatMap((head) => tokens($).map((query) => [head, query]));
  const wrong = find(all, (place) => !close(sum(place), seen(place[1]) ? 1 : 0));
  const blind = tokens($).filter((query) => !seen(query)).map(token);
  const where = ([head, query]) => `The weights of ${token(query)}${$.H > 1 ? ` in head ${head}` : ""} sum to`;
  if (wrong) return { on: false, says: `${where(wrong)} ${shown(sum(wrong))}${seen(wrong[1]) ? "" : ", though it may see nothing"}.` };
  return { on: true, says: `Each row of weights sums to 1${blind.length ? `; ${blind.join(", ")} may see nothing, and has weights of 0 only` : ""}.` };
};

// All queries and keys of plus and minus ones: products of d_k signs have mean 0 and variance d_k, scores 1.
const spread = (inputs, twin) => {
  const { d_k, H, H_kv } = sized(inputs);
  const signs = n.run(0, 2 ** d_k - 1).map((bits) => n.run(0, d_k - 1).map((place) => ((bits >> place) & 1 ? 1 : -1)));
  const eye = (count) => n.run(0, d_k - 1).map((row) => n.run(0, count * d_k - 1).map((place) => (place % d_k === row ? 1 : 0)));
  const zeros = (count, width) => n.run(1, count).map(() => Array(width).fill(0));
  const probe = { ...inputs, X: signs, W_Q: eye(H), W_K: eye(H_kv), W_V: zeros(d_k, H_kv), W_O: zeros(H, d_k), mask: "none" };
  const squares = compute(probe, twin, {}, "S").S.flat(2).map((score) => score ** 2);
  const variance = squares.reduce((sum, square) => sum + square, 0) / squares.length;
  return { on: close(variance, 1), says: `For random ±1 queries and keys the variance of the scores, their spread, is ${shown(variance)}.` };
};

const SHIFT = 1000;
const shift = (inputs, twin) => {
  const { Z } = compute(inputs, twin);
  const moved = compute(inputs, twin, { S: (S) => S.map((head) => head.map((row) => row.map((score) => score + SHIFT))) }).Z;
  const wrong = find(tokens(sized(inputs)), (query) => !Z.every((head, place) => close(head[query], moved[place][query])));
  const finite = wrong === null || moved.every((head) => head[wrong].every(Number.isFinite));
  const finds = finite ? `changes what ${token(wrong)} finds` : `makes exponentials too large for a computer: what ${token(wrong)} finds is no number`;
  const says = `Adding ${SHIFT} to every score ${wrong === null ? "changes nothing" : finds}.`;
  return { on: wrong === null, says };
};

const permutation = (inputs, twin) => {
  const open = { ...inputs, mask: "none" }, turned = { ...open, X: [...inputs.X].reverse() };
  const { Y } = compute(open, twin), back = compute(turned, twin).Y.reverse();
  const wrong = find(tokens(sized(inputs)), (query) => !close(Y[query], back[query]));
  const says = wrong === null ? "Without a mask, tokens in another order give the same outputs in that order." : `Without a mask, ${token(wrong)} has another output when the tokens are reordered.`;
  return { on: wrong === null, says };
};

const leak = (inputs, twin) => {
  const masked = inputs.mask === "none" ? { ...inputs, mask: "causal" } : inputs, { Y } = compute(masked, twin);
  const under = inputs.mask === "past" ? "Where only earlier tokens are seen" : "With a causal mask";
  for (const late of tokens(sized(inputs))) {
    const { Y: other } = compute({ ...masked, X: masked.X.map((row, place) => (place === late ? nudge(row) : row)) }, twin);
    const early = find(n.run(0, late - 1), (query) => !close(Y[query], other[query]));
    if (early !== null) return { on: false, says: `${under}, the output of ${token(early)} changes with ${token(late)}, which comes later.` };
  }
  return { on: true, says: `${under}, no output depends on a later token.` };
};

// Each head has queries of its own, shares its keys with its group only, and is silent when its rows of W_O are 0. What was `changed` is tried first.
const independent = (inputs, twin, changed = []) => {
  const { H, H_kv } = sized(inputs);
  const probe = { ...inputs, X: inputs.X.map((row, place) => nudge(row, 0.25 * (1 + place))) }, { Z } = compute(probe, twin);
  const counts = [["W_Q", H], ["W_K", H_kv], ["W_V", H_kv]].sort(([a], [b]) => changed.includes(b) - changed.includes(a));
  const changes = counts.flatMap(([name, count]) => n.run(0, count - 1).map((block) => [name, count, block]));
  for (const [name, count, block] of changes) {
    const other = compute({ ...probe, [name]: blocks(probe[name], count, block) }, twin).Z;
    const wrong = find(n.run(0, H - 1), (head) => Math.floor((head * count) / H) !== block && !close(Z[head], other[head]));
    if (wrong !== null) return { on: false, says: `Head ${wrong} changes with columns of ${name} that belong to other heads.` };
  }
  const height = inputs.W_O.length / H;
  const finite = heads(sized(inputs)).filter((head) => Z[head].flat().every(Number.isFinite)); // 0 times no number is not 0
  const muted = find(finite, (head) => {
    const rows = probe.W_O.map((row, place) => (Math.floor(place / height) === head ? row.map(() => 0) : row));
    const silent = compute(probe, twin, { Z: (found) => found.map((one, place) => (place === head ? one.map((row) => row.map(() => 0)) : one)) });
    return !close(compute({ ...probe, W_O: rows }, twin).O, silent.O);
  });
  if (muted !== null) return { on: false, says: `Head ${muted} is not silent when its rows of W_O are 0.` };
  return { on: true, says: H === 1 ? "There is only one head." : "No head depends on what belongs to another." };
};

const own = (inputs, twin) => {
  const $ = sized(inputs), { Z } = compute(inputs, twin);
  for (const query of tokens($)) {
    const change = (Q) => Q.map((head) => head.map((row, place) => (place === query ? nudge(row) : row)));
    const other = compute(inputs, twin, { Q: change }).Z;
    const wrong = find(tokens($), (place) => place !== query && !Z.every((head, h) => close(head[place], other[h][place])));
    if (wrong !== null) return { on: false, says: `Changing the query of ${token(query)} changes what ${token(wrong)} finds.` };
  }
  return { on: true, says: "Changing a query changes only what its own token finds." };
};

const LAMPS = [
  { id: "rows", title: "rows sum to 1, or to 0 if all is hidden", measure: rows },
  { id: "spread", title: "scores spread by 1, for any d_k", random: true, measure: spread },
  { id: "shift", title: "a common shift changes nothing", measure: shift },
  { id: "permutation", title: "the order of tokens does not count", measure: permutation },
  { id: "leak", title: "nothing leaks from the future", measure: leak },
  { id: "heads", title: "heads are independent", measure: independent },
  { id: "own", title: "a query affects only its own row", measure: own },
];

// ---- Orders: the same outputs, computed in another order; bytes between a large slow memory and a small fast one, 4 to a number.
// Each order is counted from X and the weight matrices, which lie in the large memory, to the outputs of all heads, which are written there.
const NUMBER = 4, BLOCK = 2;
const listed = (places) => places.map(token).join(", ").replace(/, ([^,]*)$/, " and $1");
const empty = ($) => nested([$.H, $.T, $.d_v], () => null);
// `ready` of a step: how many queries have their outputs.
const replayed = (replay) => (inputs) => {
  const $ = { ...sized(inputs), ...compute(inputs) };
  const steps = replay($).map((step, place, all) => ({ ready: place === all.length - 1 ? $.T : 0, ...step }));
  return { steps, output: steps[steps.length - 1].done, bytes: steps.reduce((sum, step) => sum + step.bytes, 0) };
};
const softmaxed = ($, scores) => nested([$.H, $.T], ([head, query]) => {
  const weights = n.softmax(tokens($).map((key) => ($.A[query][key] ? scores(head, query, key) : -Infinity)));
  return n.run(0, $.d_v - 1).map((place) => n.sum(weights.map((weight, key) => weight * $.V[head][key][place])));
});
const projected = ($) => ({
  says: "X, W_Q, W_K and W_V are read, and queries, keys and values are written.",
  bytes: NUMBER * ($.T * $.X[0].length + ($.X[0].length + $.T) * ($.H * $.d_k + $.H_kv * ($.d_k + $.d_v))),
  ready: 0,
  done: empty($),
});
const whole = ($) => {
  const numbers = (count) => NUMBER * $.H * count;
  return [
    projected($),
    { says: "Queries and keys are read, and all scores are written.", bytes: numbers(2 * $.T * $.d_k + $.T ** 2), done: empty($) },
    { says: "The scores are read, and all weights are written.", bytes: numbers(2 * $.T ** 2), done: empty($) },
    { says: "Weights and values are read, and the outputs are written.", bytes: numbers($.T ** 2 + 2 * $.T * $.d_v), done: $.Z },
  ];
};
const absorbed = ($) => {
  const d = $.X[0].length, numbers = (count) => NUMBER * $.H * count;
  const W = heads($).map((head) => n.times($.heads.W_Q[head], n.transpose($.heads.W_K[Math.floor((head * $.H_kv) / $.H)])));
  const scores = (head, query, key) => n.times($.X[query], W[head], n.transpose($.X[key])) / Math.sqrt($.d_k);
  return [
    { says: "W_Q and W_K are read, and their product is written: there are no queries or keys.", bytes: numbers(d * $.d_k + d * d) + NUMBER * $.H_kv * d * $.d_k, done: empty($) },
    { says: "X and W_V are read, and the values are written.", bytes: NUMBER * ($.T * d + (d + $.T) * $.H_kv * $.d_v), done: empty($) },
    { says: "X and that product are read, and all scores are written.", bytes: numbers($.T * d + d * d + $.T ** 2), done: empty($) },
    { says: "The scores are read, and all weights are written.", bytes: numbers(2 * $.T ** 2), done: empty($) },
    { says: "Weights and values are read, and the outputs are written.", bytes: numbers($.T ** 2 + 2 * $.T * $.d_v), done: softmaxed($, scores) },
  ];
};
const tiles = ($, rows, columns) => {
  const steps = [], finished = empty($), chunk = (first, size) => n.run(first, Math.min(first + size, $.T) - 1);
  for (let top = 0; top < $.T; top += rows) {
    const queries = chunk(top, rows), states = nested([$.H, queries.length], () => begun($.d_v));
    for (let left = 0; left < $.T; left += columns) {
      const keys = chunk(left, columns);
      if (!queries.some((query) => keys.some((key) => $.A[query][key]))) continue;
      for (const head of heads($)) queries.forEach((query, place) => {
        const open = keys.filter((key) => $.A[query][key]);
        if (!open.length) return;
        states[head][place] = gone(states[head][place], open.map((key) => $.S[head][query][key]), open.map((key) => $.V[head][key]), UPDATE);
        finished[head][query] = done(states[head][place]);
      });
      const first = !steps.length || steps[steps.length - 1].top !== top;
      const bytes = $.H * NUMBER * (keys.length * ($.d_k + $.d_v) + (first ? queries.length * $.d_k : 0));
      const says = `What ${listed(queries)} ask${queries.length === 1 ? "s" : ""} meets the key${keys.length === 1 ? "" : "s"} of ${listed(keys)}.`;
      steps.push({ says, bytes, top, ready: top, done: structuredClone(finished) });
    }
    for (const head of heads($)) for (const query of queries) finished[head][query] = finished[head][query].map((x) => x ?? 0);
    const written = { says: `The outputs of ${listed(queries)} are written.`, top, ready: top + queries.length };
    const read = steps.some((step) => step.top === top) ? 0 : queries.length * $.d_k;
    steps.push({ ...written, bytes: $.H * NUMBER * (read + queries.length * $.d_v), done: structuredClone(finished) });
  }
  return [projected($), ...steps.map(({ says, bytes, ready, done }) => ({ says, bytes, ready, done }))];
};
const ORDERS = [
  { id: "whole", title: "whole matrices", says: "All scores are written down, then all weights.", replay: replayed(whole) },
  { id: "tiled", title: `tiles of ${BLOCK} by ${BLOCK}`, says: "Two queries meet two keys at a time, and no score is written down.", replay: replayed(($) => tiles($, BLOCK, BLOCK)) },
  { id: "recurrent", title: "one key after the other", says: "All queries meet one key at a time, and no score is written down.", replay: replayed(($) => tiles($, $.T, 1)) },
  { id: "absorbed", title: "W_Q and W_K absorbed", says: "As whole matrices, but W_Q W_K^T takes the place of queries and keys.", replay: replayed(absorbed) },
];

// ---- The test cell: these inputs, and what the machine makes of them, for a learner's own function.
const python = (x) => {
  if (Array.isArray(x)) return `[${x.map(python).join(", ")}]`;
  return Number.isNaN(x) ? "np.nan" : Number.isFinite(x) ? String(x) : `${x < 0 ? "-" : ""}np.inf`;
};
const array = (name, value) => `${name} = np.array(\n    [\n${value.map((one) => `        ${python(one)},\n`).join("")}    ],\n    dtype=float,\n)\n`;
// Whether somebody sees that other numbers leave the twin, or none: in what the test compares and in what all heads write.
const LEAST = 0.005, SHARE = 0.001; // of one number, and of the largest
const exposed = (inputs, twin) => {
  const machine = compute(inputs), other = compute(inputs, twin);
  return [twinOf(twin).tested ?? "Z", "O"].every((name) => {
    const [right, made] = [machine, other].map((found) => found[name].flat(9));
    const least = Math.max(LEAST, SHARE * Math.max(...right.map(Math.abs)));
    return right.every(Number.isFinite) && right.some((x, place) => !(Math.abs(x - made[place]) < least));
  });
};
// What the twin's test calls, heads made and merged or one call of attention: what is given, the call, what is wanted, and what is called.
const HEADS = `multi_head_attention(x_query, x_key_value, w_query, w_key, w_value, w_output,
#                          *, n_heads, n_kv_heads, mask)
# It gets x twice, with a row for each token, and returns what all heads together write.`;
const AXES = `
# All arrays have the axes head, token, feature, and so has what it returns.`;
const called = (twin, inputs, found) => {
  const mask = `mask = np.array(${python(found.A)}) == 1  # True: may attend\n`;
  if (twin.tested === "O") {
    const names = { x: "X", w_query: "W_Q", w_key: "W_K", w_value: "W_V", w_output: "W_O" }, { H, H_kv } = sized(inputs);
    const given = Object.entries(names).map(([name, input]) => array(name, inputs[input])).join("") + mask;
    return [given, `multi_head_attention(x, x, w_query, w_key, w_value, w_output, n_heads=${H}, n_kv_heads=${H_kv}, mask=mask)`, found.O, HEADS];
  }
  const given = array("query", found.Q) + array("key", found.K) + array("value", found.V);
  if (twin.part === "A" && inputs.mask === "causal") return [given, "attention(query, key, value, is_causal=True)", found.Z, `attention(query, key, value, *, is_causal)${AXES}`];
  return [given + mask, "attention(query, key, value, mask=mask)", found.Z, `attention(query, key, value, *, mask)${AXES}`];
};
const test = (inputs, twin) => {
  const mistake = twinOf(twin), [given, call, wanted, callee] = called(mistake, inputs, compute(inputs));
  const message = `not what attention gives${exposed(inputs, twin) ? `; with these numbers this mistake shows: ${mistake.title}` : ""}`;
  return `# This test calls a function of your own. Define it before you run this:
#     ${callee}
import numpy as np

${given}
${array("wanted", wanted)}
got = ${call}
np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9, err_msg=${JSON.stringify(message)})
print("Passed: your function gives what the machine gives.")
`;
};

// What the places of an axis are called, for inputs of any size: those of an input's rows and columns, and of a part's axes.
const numbered = (letter, count) => n.run(0, count - 1).map((place) => `${letter}${place}`);
const features = (count) => (count === FEATURES.length ? FEATURES : numbered("x", count));
const places = (axis, count) =>
  axis === "head" ? n.run(0, count - 1).map((place) => `head ${place}`) : axis === "feature" ? numbered("", count) : TOKENS.slice(0, count).concat(numbered("token ", count - TOKENS.length));
const labels = (name, inputs) => {
  const input = inputs[name], width = features(inputs.X[0].length);
  if (name === "X") return { rows: places("query", input.length), columns: width };
  if (name === "W_O") return { rows: numbered("z", input.length), columns: width };
  if (input) return { rows: width, columns: numbered(name.slice(2).toLowerCase(), input[0].length) };
  const part = PARTS.find((one) => one.name === name), value = compute(inputs)[name];
  const sizes = part.axes.map((_, depth) => n.size(value, depth));
  return part.axes.map((axis, depth) => (axis === "feature" && "OY".includes(name) ? width : places(axis, sizes[depth])));
};

return { tokens: TOKENS, features: FEATURES, inputs: INPUTS, labels, parts: PARTS, twins: TWINS, levels: LEVELS, lamps: LAMPS, orders: ORDERS, compute, exposed, explain, uses, reads, shown, test };
})();
