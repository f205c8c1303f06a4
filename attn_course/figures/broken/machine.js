// Built by attn_course/authoring/broken.py from the formulas of broken_formulas.py: change these, not this file.
const MACHINE = (() => {
// What formulas written as JavaScript compute with: plain numbers, or numbers that remember how they are written.
// A value is a number, a row [...], a column {column: [...]} or a matrix [[...], ...] of them.
const shown = (value) => {
  if (Number.isNaN(value)) return "NaN";
  const size = Math.abs(value);
  const text = size === Infinity ? "∞" : String(Number.isInteger(size) && size < 1e7 ? size : Number(size.toPrecision(3)));
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
  floor: Math.floor,
  max: (some) => some.reduce((largest, one) => (one > largest || Number.isNaN(one) ? one : largest), -Infinity),
};

// A word: its value, its text, and how tightly the text binds.
const SUM = 0, NEGATIVE = 1, PRODUCT = 2, SINGLE = 3, MOST = 5;
const tied = (word, least) => (word.binds < least ? `(${word.text})` : word.text);
const few = (texts, sign) => (texts.length > MOST ? [texts[0], texts[1], "…", texts[texts.length - 1]] : texts).join(sign);
const total = (terms) => few(terms.map((term) => tied(term, NEGATIVE)), " + ").replaceAll("+ −", "− ") || "0";
const wordy = (compute, write, binds) => (...words) => {
  const value = compute(...words.map((one) => (Array.isArray(one) ? one.map((word) => word.value) : one.value)));
  return { value, text: write(...words), binds };
};
const WORDS = {
  number: (value) => ({ value, text: shown(value), binds: value < 0 ? NEGATIVE : SINGLE }),
  value: (word) => word.value,
  plus: (terms) => (terms.length === 1 ? terms[0] : wordy(PLAIN.plus, total, SUM)(terms)),
  by: (factors) =>
    factors.length === 1 ? factors[0] : wordy(PLAIN.by, (some) => some.map((factor) => tied(factor, SINGLE)).join(" · "), PRODUCT)(factors),
  neg: (one) =>
    one.text === shown(one.value) && one.binds === NEGATIVE ? WORDS.number(-one.value) : wordy(PLAIN.neg, (x) => `−${tied(x, PRODUCT)}`, NEGATIVE)(one),
  over: wordy(PLAIN.over, (above, below) => `${tied(above, PRODUCT)} / ${tied(below, SINGLE)}`, PRODUCT),
  exp: wordy(PLAIN.exp, (one) => `exp(${one.text})`, SINGLE),
  ln: wordy(PLAIN.ln, (one) => `ln(${one.text})`, SINGLE),
  sqrt: wordy(PLAIN.sqrt, (one) => `√${tied(one, SINGLE)}`, SINGLE),
  floor: wordy(PLAIN.floor, (one) => `⌊${one.text}⌋`, SINGLE),
  max: wordy(PLAIN.max, (some) => `max(${few(some.map((one) => one.text), ", ")})`, SINGLE),
};

// The same operations for rows, columns and matrices, from those for single numbers.
const algebra = (one) => {
  const single = (x) => !Array.isArray(x) && !x.column;
  const each = (change, x) => (Array.isArray(x) ? x.map((y) => each(change, y)) : x.column ? { column: each(change, x.column) } : change(x));
  const short = (x) => each((y) => one.number(one.value(y)), x); // of a product of more than two only the last is written out
  const isRow = (x) => Array.isArray(x) && !Array.isArray(x[0]);
  const columns = (x) => x[0].map((_, place) => x.map((row) => row[place]));
  const dot = (a, b) => {
    if (a.length !== b.length) throw new Error(`the lengths ${a.length} and ${b.length} do not fit`);
    return one.plus(a.map((x, place) => one.by([x, b[place]])));
  };
  const product = (a, b) => {
    if (single(a) && single(b)) return one.by([a, b]);
    if (single(a)) return each((x) => one.by([a, x]), b);
    if (single(b)) return each((x) => one.by([x, b]), a);
    if (isRow(a)) return b.column ? dot(a, b.column) : columns(short(b)).map((column) => dot(short(a), column));
    if (b.column) return { column: a.map((row) => dot(row, b.column)) };
    return a.map((row) => columns(b).map((column) => dot(row, column)));
  };
  const add = (terms) => {
    if (terms.every(single)) return one.plus(terms);
    if (terms.some((x) => x.length !== terms[0].length)) throw new Error("rows of several lengths cannot be added");
    return terms[0].map((_, place) => add(terms.map((x) => x[place])));
  };
  const softmax = (row) => {
    const top = one.number(PLAIN.max(row.map(one.value)));
    if (one.value(top) === -Infinity) return row.map(() => one.number(0));
    const grown = row.map((x) => one.exp(one.plus([x, one.neg(top)])));
    return grown.map((x) => one.over(x, one.plus(grown)));
  };
  return {
    number: one.number,
    given: (x) => each(one.number, x),
    add: (...terms) => add(terms),
    times: (...factors) => (factors.every(single) ? one.by(factors) : factors.reduce((a, b) => product(a, b))),
    neg: (x) => each(one.neg, x),
    dot,
    over: (a, b) => each((x) => one.over(x, b), a),
    transpose: (x) => (isRow(x) ? { column: x } : x.column ? x.column : columns(x)),
    entry: (x, ...places) => places.reduce((y, place) => (y.column ?? y)[place], x),
    sum: add,
    max: (some) => one.max(some),
    softmax,
    exp: one.exp,
    ln: one.ln,
    sqrt: one.sqrt,
    floor: one.floor,
  };
};
const n = {
  ...algebra(PLAIN),
  run: (first, last) => Array.from({ length: Math.max(last - first + 1, 0) }, (_, place) => first + place),
  size: (x, axis) => (axis ? n.size(x[0], axis - 1) : (x.column ?? x).length),
  has: (members, place) => members[place] === 1,
  equal: (a, b) => a === b || (Math.abs(a - b) <= 1e-10 * Math.max(Math.abs(a), Math.abs(b)) && Number.isFinite(a - b)),
  unequal: (a, b) => !n.equal(a, b),
  less: (a, b) => a < b,
  more: (a, b) => a > b,
  most: (a, b) => a <= b || n.equal(a, b),
  least: (a, b) => a >= b || n.equal(a, b),
};
const words = algebra(WORDS);

const TOKENS = ["the", "cat", "sat", "it"];
const FEATURES = ["alive", "tells", "open", "cos", "sin"];
const INPUTS = [{"name": "X", "html": "X", "title": "the tokens", "role": "neutral", "value": [[0, 0, 1, 2, 0], [2, 0, 0, 1, 1], [0, 2, 0, -1, 1], [0, 0, 2, -1, -1]]}, {"name": "W_Q", "html": "W<sub>Q</sub>", "title": "what a token asks", "role": "query", "value": [[0, 1, 0, 0, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0, 0, 0], [1, 0, -1, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, -1, -1, -1], [0, 0, 0, 0, 3, 1, 1, 1]]}, {"name": "W_K", "html": "W<sub>K</sub>", "title": "what a token answers to", "role": "key", "value": [[1, 0, 0, 1, 0, 0, 0, 0], [0, 1, 0, -1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]]}, {"name": "W_V", "html": "W<sub>V</sub>", "title": "what a token hands on", "role": "value", "value": [[1, 0, 1, 1, 0, 0], [0, 1, 0, 0, 1, 0], [0, 0, -1, 0, 0, 1], [0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0]]}, {"name": "W_O", "html": "W<sub>O</sub>", "title": "what the heads write", "role": "output", "value": [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, -1, 0, 0], [1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]}, {"name": "mask", "title": "the mask", "role": "neutral", "choices": ["none", "causal", "past"], "value": "causal"}, {"name": "heads", "title": "heads", "role": "neutral", "choices": [1, 2], "value": 2}];
const PARTS = [
  {"name": "Q", "title": "queries", "role": "query", "axes": ["head", "query", "feature"], "label": "heads-are-column-blocks", "html": "Q<sub>h</sub> = X W<sub>Q</sub><sup>h</sup>", rule: { loops: ["head"], letters: 0, value: (o, $, { head, query }) => o.times(o.given($.X), o.entry(o.given($.heads.W_Q), n.given(head) - 0)) } },
  {"name": "K", "title": "keys", "role": "key", "axes": ["head", "key", "feature"], "label": "grouped-query-attention", "html": "K<sub>h</sub> = X W<sub>K</sub><sup>r</sup>,   r = ⌊(h / g)⌋,   g = H / H<sub>kv</sub>", rule: { loops: ["head"], letters: 0, value: (o, $, { head, query }) => o.times(o.given($.X), o.entry(o.given($.heads.W_K), n.floor(n.over(n.given(head), n.over(n.given($.H), n.given($.H_kv)))) - 0)) } },
  {"name": "V", "title": "values", "role": "value", "axes": ["head", "key", "feature"], "label": "grouped-query-attention", "html": "V<sub>h</sub> = X W<sub>V</sub><sup>r</sup>,   r = ⌊(h / g)⌋,   g = H / H<sub>kv</sub>", rule: { loops: ["head"], letters: 0, value: (o, $, { head, query }) => o.times(o.given($.X), o.entry(o.given($.heads.W_V), n.floor(n.over(n.given(head), n.over(n.given($.H), n.given($.H_kv)))) - 0)) } },
  {"name": "S", "title": "scores", "role": "scores", "axes": ["head", "query", "key"], "label": "scaled-score", "html": "s<sub>ij</sub> = (Q K<sup>T</sup>)<sub>ij</sub> / sqrt(d<sub>k</sub>)", rule: { loops: ["head"], letters: 2, value: (o, $, { head, query }, i, j) => o.over(o.entry(o.times(o.given($.Q[head]), o.transpose(o.given($.K[head]))), i - 1, j - 1), o.sqrt(o.given($.d_k))) } },
  {"name": "A", "title": "who may look at whom", "role": "neutral", "axes": ["query", "key"], "label": "causal-mask", "html": "A<sub>i</sub> = { j : j ≤ i + p }", rule: { loops: [], letters: 1, value: (o, $, { head, query }, i) => n.run(1, $.T).map((j) => n.most(n.number(j), n.add(n.number(i), n.given($.ahead))) ? 1 : 0) } },
  {"name": "M", "title": "mask", "role": "neutral", "axes": ["query", "key"], "label": "masked-exponential-is-zero", "html": "M<sub>j</sub> = {0 if j ∈ A; -∞ if j ∉ A}", rule: { loops: ["query"], letters: 1, value: (o, $, { head, query }, j) => (n.has(n.given($.A[query]), n.number(j) - 1) ? o.number(0) : !n.has(n.given($.A[query]), n.number(j) - 1) ? o.neg(o.number(Infinity)) : o.number(NaN)) } },
  {"name": "B", "title": "masked scores", "role": "scores", "axes": ["head", "query", "key"], "label": "masked-attention", "html": "b<sub>ij</sub> = s<sub>ij</sub> + M<sub>ij</sub>", rule: { loops: ["head"], letters: 2, value: (o, $, { head, query }, i, j) => o.add(o.entry(o.given($.S[head]), i - 1, j - 1), o.entry(o.given($.M), i - 1, j - 1)) } },
  {"name": "m", "title": "largest score", "role": "scores", "axes": ["head", "query"], "label": "reference-score-cancels", "html": "m<sub>i</sub> = max<sub>j</sub> b<sub>ij</sub>", rule: { loops: ["head"], letters: 1, value: (o, $, { head, query }, i) => o.max(n.run(1, n.size($.B[head], 1)).map((j) => o.entry(o.given($.B[head]), i - 1, j - 1))) } },
  {"name": "P", "title": "weights", "role": "weights", "axes": ["head", "query", "key"], "label": "attention-weights", "html": "p<sub>ij</sub> = {0 if m<sub>i</sub> = -∞; (e<sup>b<sub>ij</sub> - m<sub>i</sub></sup> / (sum<sub>l</sub> e<sup>b<sub>il</sub> - m<sub>i</sub></sup>)) if m<sub>i</sub> &gt; -∞}", rule: { loops: ["head"], letters: 2, value: (o, $, { head, query }, i, j) => (n.equal(n.entry(n.given($.m[head]), i - 1), n.neg(n.number(Infinity))) ? o.number(0) : n.more(n.entry(n.given($.m[head]), i - 1), n.neg(n.number(Infinity))) ? o.over(o.exp(o.add(o.entry(o.given($.B[head]), i - 1, j - 1), o.neg(o.entry(o.given($.m[head]), i - 1)))), o.sum(n.run(1, n.size($.B[head], 1)).map((l) => o.exp(o.add(o.entry(o.given($.B[head]), i - 1, l - 1), o.neg(o.entry(o.given($.m[head]), i - 1))))))) : o.number(NaN)) } },
  {"name": "Z", "title": "what each head found", "role": "value", "axes": ["head", "query", "feature"], "label": "output-of-a-query", "html": "z<sub>i</sub> = sum<sub>j = 1..T<sub>k</sub></sub> p<sub>ij</sub> v<sub>j</sub>", rule: { loops: ["head"], letters: 1, value: (o, $, { head, query }, i) => o.sum(n.run(n.number(1), n.given($.T)).map((j) => o.times(o.entry(o.given($.P[head]), i - 1, j - 1), o.entry(o.given($.V[head]), j - 1)))) } },
  {"name": "O", "title": "all heads together", "role": "output", "axes": ["query", "feature"], "label": "output-projection-sums-heads", "html": "[Z<sub>1</sub> ... Z<sub>H</sub>] W<sub>O</sub> = sum<sub>h = 1..H</sub> Z<sub>h</sub> W<sub>O</sub><sup>h</sup>", rule: { loops: [], letters: 0, value: (o, $, { head, query }) => o.sum(n.run(n.number(1), n.given($.H)).map((h) => o.times(o.entry(o.given($.Z), h - 1), o.entry(o.given($.heads.W_O), h - 1)))) } },
  {"name": "Y", "title": "output", "role": "output", "axes": ["query", "feature"], "label": "residual-stream", "html": "Y = X + O", rule: { loops: [], letters: 0, value: (o, $, { head, query }) => o.add(o.given($.X), o.given($.O)) } },
];
const TWINS = [
  {"id": "softmax-over-queries", "part": "P", "title": "the softmax runs over the queries", "names": "attention-weights", "html": "p<sub>ij</sub> = e<sup>s<sub>ij</sub></sup> / (sum<sub>l</sub> e<sup>s<sub>lj</sub></sup>)", rules: { P: { loops: ["head"], letters: 2, value: (o, $, { head, query }, i, j) => o.over(o.exp(o.entry(o.given($.B[head]), i - 1, j - 1)), o.sum(n.run(1, n.size($.B[head], 0)).map((l) => o.exp(o.entry(o.given($.B[head]), l - 1, j - 1))))) } } },
  {"id": "no-scale", "part": "S", "title": "the scores are not scaled", "names": "scaled-score", "html": "s<sub>ij</sub> = (Q K<sup>T</sup>)<sub>ij</sub>", rules: { S: { loops: ["head"], letters: 2, value: (o, $, { head, query }, i, j) => o.entry(o.times(o.given($.Q[head]), o.transpose(o.given($.K[head]))), i - 1, j - 1) } } },
];

const AHEAD = { none: (length) => length, causal: () => 0, past: () => -1 };

// Sizes, and matrices cut into heads: what formulas call W_Q of a head is a block of columns.
const sized = (inputs) => {
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
const applied = (rule, o, $, places) => {
  const at = Object.fromEntries(rule.loops.map((axis, place) => [axis, places[place]]));
  return rule.value(o, $, at, ...places.slice(rule.loops.length).map((place) => place + 1));
};
const evaluated = (part, rule, $) =>
  nested(part.axes.slice(0, rule.loops.length + rule.letters).map((axis) => lengths($)[axis]), (places) => applied(rule, n, $, places));

// Every part, for inputs and a twin (or null); `change` may replace a part once it is computed: {K: (K) => ...}.
const compute = (inputs, twin = null, change = {}) => {
  const $ = sized(inputs), { rules } = twinOf(twin);
  for (const part of PARTS) {
    $[part.name] = evaluated(part, rules[part.name] ?? part.rule, $);
    if (change[part.name]) $[part.name] = change[part.name]($[part.name], $);
  }
  return Object.fromEntries(PARTS.map((part) => [part.name, $[part.name]]));
};

const explain = (name, index, inputs, twin = null) => {
  const part = PARTS.find((one) => one.name === name);
  const rule = twinOf(twin).rules[name] ?? part.rule;
  const $ = { ...sized(inputs), ...compute(inputs, twin) };
  const depth = rule.loops.length + rule.letters;
  const word = index.slice(depth).reduce((value, place) => value[place], applied(rule, words, $, index.slice(0, depth)));
  const value = index.reduce((inner, place) => inner[place], $[name]);
  return word.text === undefined || word.text === shown(value) ? shown(value) : `${shown(value)} = ${word.text}`;
};

// What the places of an axis are called, for inputs of any size: those of an input's rows and columns, and of a part's axes.
const numbered = (letter, count) => n.run(1, count).map((place) => `${letter}${place}`);
const features = (count) => (count === FEATURES.length ? FEATURES : numbered("x", count));
const places = (axis, count) =>
  axis === "head" ? numbered("head ", count) : axis === "feature" ? numbered("", count) : TOKENS.slice(0, count).concat(numbered("token ", count - TOKENS.length));
const labels = (name, inputs) => {
  const input = inputs[name], width = features(inputs.X[0].length);
  if (name === "X") return { rows: places("query", input.length), columns: width };
  if (name === "W_O") return { rows: numbered("z", input.length), columns: width };
  if (input) return { rows: width, columns: numbered(name.slice(2).toLowerCase(), input[0].length) };
  const part = PARTS.find((one) => one.name === name), value = compute(inputs)[name];
  const sizes = part.axes.map((_, depth) => n.size(value, depth));
  return part.axes.map((axis, depth) => (axis === "feature" && "OY".includes(name) ? width : places(axis, sizes[depth])));
};
for (const input of INPUTS) if (Array.isArray(input.value)) Object.assign(input, labels(input.name, Object.fromEntries(INPUTS.map((one) => [one.name, one.value]))));

return { inputs: INPUTS, labels, parts: PARTS, twins: TWINS, levels: [], lamps: [], orders: [], compute, explain, shown, test: () => "" };
})();
