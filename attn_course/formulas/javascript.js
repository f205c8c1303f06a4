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
  floor: Math.floor,
  truth: (sign, a, b) => (n[sign](a, b) ? 1 : 0),
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
const SIGNS = { equal: "=", unequal: "≠", less: "<", more: ">", most: "≤", least: "≥" };
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
  truth: (sign, a, b) => ({ value: PLAIN.truth(sign, a.value, b.value), text: `[${a.text} ${SIGNS[sign]} ${b.text}]`, binds: SINGLE }),
  max: wordy(PLAIN.max, (some) => `max(${few(some.map((one) => one.text), ", ")})`, SINGLE),
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

// The same operations for rows, columns and matrices, from those for single numbers.
const algebra = (one) => {
  const single = (x) => !Array.isArray(x) && !x.column;
  const each = (change, x) => (Array.isArray(x) ? x.map((y) => each(change, y)) : x.column ? { column: each(change, x.column) } : change(x));
  const short = (x) => each((y) => one.number(one.value(y)), x); // of a product of more than two only the last is written out
  const isRow = (x) => Array.isArray(x) && !Array.isArray(x[0]);
  const columns = once((x) => x[0].map((_, place) => x.map((row) => row[place])));
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
    return whole(a, b);
  };
  const whole = once((a, b) => a.map((row) => columns(b).map((column) => dot(row, column))));
  const add = (terms) => {
    if (terms.every(single)) return one.plus(terms);
    if (terms.some((x) => x.length !== terms[0].length)) throw new Error("rows of several lengths cannot be added");
    return terms[0].map((_, place) => add(terms.map((x) => x[place])));
  };
  const at = (x, place) => {
    const found = (x.column ?? x)[place];
    if (found === undefined) throw new Error(`there is no number ${place + 1} among ${(x.column ?? x).length}`);
    return found;
  };
  const softmax = (row) => {
    const top = one.number(PLAIN.max(row.map(one.value)));
    if (one.value(top) === -Infinity) return row.map(() => one.number(0));
    const grown = row.map((x) => one.exp(one.plus([x, one.neg(top)])));
    return grown.map((x) => one.over(x, one.plus(grown)));
  };
  return {
    number: one.number,
    given: one === PLAIN ? (x) => x : (x) => each(one.number, x),
    add: (...terms) => add(terms),
    times: (...factors) => (factors.every(single) ? one.by(factors) : factors.reduce((a, b) => product(a, b))),
    neg: (x) => each(one.neg, x),
    dot,
    over: (a, b) => each((x) => one.over(x, b), a),
    transpose: (x) => (isRow(x) ? { column: x } : x.column ? x.column : columns(x)),
    entry: (x, ...places) => places.reduce(at, x),
    sum: add,
    max: (some) => one.max(some),
    truth: one.truth,
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
