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
  const { text, value } = word; // what has a part such as 1.4e-37 is said rounded
  if (text.length > longest / (/\de-/.test(text) && text !== shown(value) ? 9 : 1)) return tied(WORDS.number(value), least);
  return word.binds < least ? `(${text})` : text;
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
