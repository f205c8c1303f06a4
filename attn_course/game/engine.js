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
