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
