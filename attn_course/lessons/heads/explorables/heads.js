const { tokens, names, features, x, query: QUERY, key: KEY, value: VALUE, output: OUTPUT } = DATA;
const MODEL = { layers: 32, heads: 32, width: 128 };
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const THICKEST = 12; // pixels, for the weight 1
const SIDE = 2; // heads above the words; the others are below
const WIDTHS = tokens.map((token) => Math.max(5, token.length)); // of the columns of the words, in letters
const hue = (head) => `--attn-hue: var(--attn-head-${head})`;
const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
const mix = (weights, rows) => rows[0].map((_, c) => sum(weights.map((weight, r) => weight * rows[r][c])));

// Each group of neighbouring heads gets the mean of its keys (or values), Eq. mean-pooled-key-heads.
function shared(arrays, group) {
  return arrays.map((_, head) => {
    const members = arrays.slice(head - (head % group), head - (head % group) + group);
    return members[0].map((_, t) => mix(members.map(() => 1 / group), members.map((member) => member[t])));
  });
}

// Everything the card shows of the sentence: weights and additions of each head, and the features of the word that asks, after the layer.
// Words that come later are hidden. A number takes 2 bytes.
function describe({ asks, group, muted }) {
  const [keys, values] = [shared(KEY, group), shared(VALUE, group)];
  const width = KEY[0][0].length + VALUE[0][0].length;
  const weights = QUERY.map((queries, head) => {
    const scores = keys[head].map((key, t) => (t > asks ? -Infinity : sum(key.map((entry, c) => entry * queries[asks][c])) / Math.sqrt(key.length)));
    const largest = Math.max(...scores);
    const terms = scores.map((score) => Math.exp(score - largest));
    return terms.map((term) => term / sum(terms));
  });
  const added = weights.map((row, head) => mix(mix(row, values[head]), OUTPUT[head]).map((entry) => (muted[head] ? 0 : entry)));
  const token = 2 * (QUERY.length / group) * width;
  return { weights, added, output: mix([1, 1, 1, 1, 1], [x[asks], ...added]), token, cache: token * (asks + 1) };
}

// The same sharing in a large model: the bytes it keeps for a context, and those of its attention weights.
function model({ group, context }) {
  const { layers, heads, width } = MODEL;
  const keys = heads / group;
  return { keys, cache: 2 * layers * keys * 2 * width * context, weights: 2 * layers * 2 * heads * width * width * (heads + keys) };
}

function size(bytes) {
  const unit = Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const number = bytes / 1024 ** unit;
  return `${decimal(number, unit === 0 || number >= 100 ? 0 : number < 10 ? 2 : 1)} ${UNITS[unit]}`;
}

function start(root) {
  const live = root.querySelector(".attn-live"); // the words have a table too
  const one = (selector) => live.querySelector(selector);
  const all = (selector) => [...live.querySelectorAll(selector)];
  const make = (name, text, attributes = {}) => {
    const element = document.createElement(name);
    element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const push = (text, attributes) => make("button", text, { type: "button", "aria-pressed": "false", ...attributes });
  const chosen = (name) => Number(one(`[data-${name}][aria-pressed="true"]`).dataset[name]);

  names.forEach((name, head) => {
    const mute = push(name, { "data-mute": head, "aria-label": `mute ${name}`, style: hue(head) });
    mute.addEventListener("click", () => {
      mute.setAttribute("aria-pressed", String(mute.getAttribute("aria-pressed") !== "true"));
      draw();
    });
    one(`[data-voices="${Math.floor(head / SIDE)}"]`).append(mute);
    one("thead tr").append(make("th", name, { scope: "col" }));
  });
  tokens.forEach((token, t) => {
    one(".attn-words-row").append(push(token, { "data-asks": t }));
    const row = make("tr", "");
    row.append(make("th", token, { scope: "row" }), ...names.map(() => make("td", "")));
    one("tbody").append(row);
  });
  choose("asks", tokens.indexOf("it"));
  one(".attn-words-row").style.gridTemplateColumns = WIDTHS.map((letters) => `minmax(0, ${letters}fr)`).join(" ");
  for (const weight of [0.1, 0.5, 1]) {
    one(".attn-scale").append(make("span", `weight ${weight}`, { style: `--attn-thick: ${weight * THICKEST}px` }));
  }

  function choose(name, value) {
    for (const button of all(`[data-${name}]`)) button.setAttribute("aria-pressed", String(Number(button.dataset[name]) === value));
  }
  for (const name of ["asks", "group"]) {
    for (const button of all(`[data-${name}]`)) {
      button.addEventListener("click", () => {
        choose(name, Number(button.dataset[name]));
        draw();
      });
    }
  }
  one(".attn-words-row").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = all("[data-asks]")[chosen("asks") + step];
    next?.focus();
    next?.click();
  });
  one("[data-context]").addEventListener("input", draw);
  onReset(root, draw);

  function draw() {
    const [asks, group] = [chosen("asks"), chosen("group")];
    const muted = all("[data-mute]").map((button) => button.getAttribute("aria-pressed") === "true");
    const shown = describe({ asks, group, muted });
    const whole = describe({ asks, group: 1, muted: muted.map(() => false) });
    const change = Math.max(...shown.weights.flatMap((row, head) => row.map((weight, t) => Math.abs(weight - whole.weights[head][t]))));
    const context = 2 ** Number(one("[data-context]").value);
    const large = model({ group, context });
    showBeside(one("[data-context]"), context);
    drawArcs(all(".attn-arcs"), asks, shown.weights, muted);
    drawOutput(one('[data-chart="output"]'), asks, shown, whole);
    drawModel(one('[data-chart="model"]'), large);
    drawSharing(group);
    all("[data-asks]").forEach((button, t) => button.classList.toggle("attn-later", t > asks));
    all("tbody tr").forEach((row, t) => {
      row.classList.toggle("attn-asks", t === asks);
      row.querySelectorAll("td").forEach((cell, head) => {
        cell.textContent = t > asks ? "\u2013" : decimal(shown.weights[head][t], 2);
        cell.classList.toggle("attn-muted", muted[head]);
      });
    });
    const facts = {
      asking: `What \u201c${tokens[asks]}\u201d holds after the layer`,
      token: size(shown.token),
      far: `Cache up to \u201c${tokens[asks]}\u201d (${asks + 1} token${asks === 0 ? "" : "s"})`,
      cache: size(shown.cache),
      change: decimal(change, 2),
      heads: `Cache of ${large.keys} key heads`,
      model: size(large.cache),
      weights: size(large.weights),
    };
    for (const [fact, text] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = text;
    speak(root, summary(asks, group, muted, shown, change));
  }

  function drawSharing(group) {
    const keys = Array.from({ length: names.length / group }, (_, r) => {
      const [first, last] = [r * group, (r + 1) * group - 1];
      const text = group === 1 ? `keys ${r}` : `mean of keys ${first} ${group === 2 ? "and" : "to"} ${last}`;
      return make("span", text, { "data-key": "", style: `grid-column: span ${group}` });
    });
    one(".attn-keys").replaceChildren(...names.map((name, head) => make("span", name, { style: hue(head) })), ...keys);
  }

  root.explorable = { describe, model, size };
  draw();
}

// The middle of a word, where the whole sentence is 7 wide.
function middle(t) {
  return (7 * (sum(WIDTHS.slice(0, t)) + WIDTHS[t] / 2)) / sum(WIDTHS);
}

// From the word that asks to the words it looks at. Two heads of a side start and end a little apart, so that neither hides the other.
function drawArcs(charts, asks, weights, muted) {
  for (const chart of charts) chart.replaceChildren();
  weights.forEach((row, head) => {
    const below = head >= SIDE;
    const apart = head % SIDE === 0 ? -0.09 : 0.09;
    row.slice(0, asks + 1).forEach((weight, t) => {
      if (muted[head] || weight < 0.005) return;
      const loop = t === asks ? 0.16 : 0;
      const [from, to] = [middle(asks) + apart + loop, middle(t) + apart - loop];
      const height = 0.35 + (0.9 * (asks - t)) / 6;
      const level = (y) => (below ? y : 1 - y);
      const d = `M${from} ${level(0)}C${from} ${level(height)} ${to} ${level(height)} ${to} ${level(0)}`;
      charts[Number(below)].append(svg("path", { d, "stroke-width": weight * THICKEST, style: hue(head) }));
    });
  });
}

// For each feature the word itself and what the heads add, end to end: above zero to the right, below zero to the left.
function drawOutput(chart, asks, shown, whole) {
  chart.replaceChildren();
  const place = drawAxis(chart, { side: "bottom", span: [56, 310], cross: 134, ticks: [-4, -2, 0, 2, 4, 6], label: "value of the feature (a plain number)" });
  features.forEach((feature, f) => {
    const y = 8 + 42 * f;
    chart.append(svg("text", { class: "attn-name", x: 48, y: y + 19, "text-anchor": "end" }, feature));
    const ends = [0, 0];
    [x[asks], ...shown.added].forEach((part, n) => {
      const side = Number(part[f] > 0);
      const [a, b] = [ends[side], ends[side] + part[f]];
      ends[side] = b;
      const look = n === 0 ? { class: "attn-own" } : { style: hue(n - 1) };
      if (a !== b) chart.append(svg("rect", { x: Math.min(place(a), place(b)), y, width: Math.abs(place(b) - place(a)), height: 28, ...look }));
    });
    const mark = (name, value) => chart.append(svg("path", { class: name, d: `M${place(value)} ${y - 5}v38` }));
    mark("attn-whole", whole.output[f]);
    mark("attn-sum", shown.output[f]);
    chart.append(svg("text", { class: "attn-name", x: 356, y: y + 19, "text-anchor": "end" }, decimal(shown.output[f], 2)));
  });
  chart.append(svg("path", { class: "attn-axis", d: `M${place(0)} 2V134` }));
}

function drawModel(chart, { cache, weights }) {
  chart.replaceChildren();
  const ticks = [[2 ** 24, "16 MiB"], [2 ** 28, "256 MiB"], [2 ** 32, "4 GiB"], [2 ** 36, "64 GiB"], [2 ** 40, "1 TiB"]];
  const place = drawAxis(chart, { side: "bottom", span: [62, 330], cross: 62, ticks, label: "bytes that one step reads (logarithmic)", log: true });
  [["cache", cache, "key"], ["weights", weights, "soft"]].forEach(([name, bytes, role], n) => {
    chart.append(svg("text", { class: "attn-name", x: 54, y: 20 + 28 * n, "text-anchor": "end" }, name));
    chart.append(svg("rect", { x: 62, y: 5 + 28 * n, width: place(bytes) - 62, height: 22, style: `--attn-hue: var(--attn-${role})` }));
  });
}

function summary(asks, group, muted, shown, change) {
  const looks = names.flatMap((name, head) => {
    const most = Math.max(...shown.weights[head]);
    const winners = tokens.filter((_, t) => most - shown.weights[head][t] < 1e-9).map((token) => `\u201c${token}\u201d`);
    return muted[head] ? [] : [`${name} gives ${winners.length > 2 ? "all words" : winners.join(" and ")} ${decimal(most, 2)}`];
  });
  const after = features.map((feature, f) => `${feature} ${decimal(shown.output[f], 2)}`).join(", ");
  const lost = {
    1: "Each head has keys of its own.",
    2: `The cache is half as large and no weight has changed: ${names[0]} and ${names[1]} ask the same keys, and so do ${names[2]} and ${names[3]}.`,
    4:
      asks === 0
        ? "The cache is a quarter as large; the first word sees only itself, so that no weight can change."
        : `The cache is a quarter as large, and here a weight changes by ${decimal(change, 2)}: one mean now stands for two kinds of keys.`,
  }[group];
  return `When \u201c${tokens[asks]}\u201d asks, ${looks.length > 0 ? looks.join(", ") : "all heads are mute"}. It then holds ${after}. ${lost}`;
}
