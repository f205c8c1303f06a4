const QUERIES = 64;
const KEYS = 64;
const DOUBLINGS = 10; // d_k = 1, 2, 4, ..., 1024
const BIN = 3; // width of a bin of the histogram
const EDGE = 150; // beyond all scores
const SHOWN = 16; // weights that have a bar

// Standard normal numbers, the same ones on every page: mulberry32 from a fixed seed, two uniform draws to one number (Box and Muller).
function normals(seed) {
  let state = seed;
  const uniform = () => {
    state = (state + 1831565813) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

// Of the seeds 1 to 200 this one is nearest the means: at 64 entries, not divided, 11 queries lie below 0.01, and 10.75 on average.
const draw1 = normals(70);
const vectors = (count) => Array.from({ length: count }, () => Float64Array.from({ length: 2 ** DOUBLINGS }, draw1));
const [QUERY, KEY] = [vectors(QUERIES), vectors(KEYS)];

// q.k of the first d_k entries, for all d_k at once: SCORES[power][query][key].
const SCORES = Array.from({ length: DOUBLINGS + 1 }, () => Array.from({ length: QUERIES }, () => new Float64Array(KEYS)));
QUERY.forEach((query, i) =>
  KEY.forEach((key, j) => {
    let [sum, power] = [0, 0];
    for (let entry = 0; entry < query.length; entry += 1) {
      sum += query[entry] * key[entry];
      if (entry + 1 === 2 ** power) SCORES[power++][i][j] = sum;
    }
  }),
);

// The largest score is subtracted first, so no exponent is positive.
function softmax(scores) {
  const top = Math.max(...scores);
  const terms = Array.from(scores, (score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  return terms.map((term) => term / total);
}

// Spectral norm of diag(w) - w w^T: its largest eigenvalue x solves sum of w_i^2 / (w_i - x) = 1 between the two largest weights.
function jacobianNorm(weights) {
  let [high, low] = [...weights].sort((a, b) => b - a);
  for (let halving = 0; halving < 60; halving += 1) {
    const x = (low + high) / 2;
    if (x === low || x === high) break;
    if (weights.reduce((sum, weight) => sum + weight ** 2 / (weight - x), 0) < 1) low = x;
    else high = x;
  }
  return (low + high) / 2;
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// Everything the card shows for 2^power entries, from scores divided by the square root of d_k or as they are.
function describe(power, scaled) {
  const scores = SCORES[power].map((row) => Array.from(row, (score) => (scaled ? score / Math.sqrt(2 ** power) : score)));
  const all = scores.flat();
  const weights = scores.map(softmax);
  const norms = weights.map(jacobianNorm);
  return {
    scores,
    weights,
    norms,
    deviation: Math.sqrt(mean(all.map((score) => score ** 2)) - mean(all) ** 2),
    largest: weights.map((row) => Math.max(...row)),
    inUse: weights.map((row) => 1 / row.reduce((sum, weight) => sum + weight ** 2, 0)),
    norm: mean(norms),
    still: norms.filter((norm) => norm < 0.01).length,
  };
}

function histogram(scores) {
  const counts = new Array((2 * EDGE) / BIN + 1).fill(0);
  for (const score of scores.flat()) counts[Math.round((score + EDGE) / BIN)] += 1;
  return counts;
}

const WAYS = [["scaled", true], ["unscaled", false]];
const FOUND = Array.from({ length: DOUBLINGS + 1 }, (_, power) => WAYS.map(([, scaled]) => describe(power, scaled)));

// [what, its text for one way and one query]
const FACTS = [
  ["standard deviation", (found) => decimal(found.deviation, 2)],
  ["largest weight, this query", (found, i) => decimal(found.largest[i], 3)],
  ["largest weight, mean", (found) => decimal(mean(found.largest), 3)],
  ["keys in use, 1 / Σw²", (found, i) => decimal(found.inUse[i], 1)],
  ["Jacobian norm, this query", (found, i) => decimal(found.norms[i], 3)],
  ["Jacobian norm, mean", (found) => decimal(found.norm, 3)],
  [`norms below 0.01 (of ${QUERIES})`, (found) => String(found.still)],
];

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const [width, query] = [one("[data-width]"), one("[data-query]")];
  const chart = (name) => one(`[data-chart="${name}"]`);
  const part = (name, kind, attributes = {}) => chart(name).appendChild(svg(kind, attributes));
  const [left, right, top, floor] = [42, 330, 24, 150];

  const score = drawAxis(chart("scores"), { side: "bottom", span: [left, right], cross: floor, ticks: [-150, -75, 0, 75, 150], label: "score (a number without unit)" });
  const count = drawAxis(chart("scores"), { side: "left", span: [floor, top], cross: left, ticks: [[0.5, ""], 1, 10, 100, 1000, 10000], log: true, label: "scores in a bin of width 3 (count)" });
  const areas = WAYS.map(([way]) => part("scores", "path", { class: `attn-${way}` }));

  const rank = drawAxis(chart("weights"), { side: "bottom", span: [left + 12, right - 9], cross: floor, ticks: [1, 4, 8, 12, SHOWN], label: "key, from the largest weight on (16 of 64)" });
  const weight = drawAxis(chart("weights"), { side: "left", span: [floor, top], cross: left, ticks: [0, 0.25, 0.5, 0.75, 1], label: "weight (share of 1)" });
  const bars = WAYS.map(([way], side) => Array.from({ length: SHOWN }, (_, i) => part("weights", "rect", { class: `attn-${way}`, x: rank(i + 1) - 7 + 7 * side, width: 6 })));

  const entries = drawAxis(chart("norms"), { side: "bottom", span: [left + 26, right - 22], cross: floor, ticks: [1, 4, 16, 64, 256, 1024], log: true, label: "dₖ (entries of a vector, log axis)" });
  const norm = drawAxis(chart("norms"), { side: "left", span: [floor, top], cross: left, ticks: [0, 0.1, 0.2, 0.3, 0.4, 0.5], label: "norm of the softmax Jacobian" });
  const here = part("norms", "path", { class: "attn-here" });
  const dots = WAYS.map(([way]) => Array.from({ length: QUERIES }, () => part("norms", "circle", { class: `attn-${way}`, r: 3 })));
  WAYS.forEach(([way], side) => {
    const points = FOUND.map((found, power) => `${entries(2 ** power)} ${norm(found[side].norm)}`);
    part("norms", "path", { class: `attn-line attn-${way}`, d: `M${points.join("L")}` });
  });

  const cells = FACTS.map(([name], at) => {
    const row = one(at < 4 ? ".attn-live tbody" : "details tbody").insertRow();
    row.innerHTML = '<th scope="row"></th>';
    row.firstChild.textContent = name;
    return WAYS.map(() => row.insertCell());
  });

  function draw() {
    const [power, chosen] = [Number(width.value), Number(query.value) - 1];
    showBeside(width, 2 ** power);
    showBeside(query, chosen + 1);
    one("[data-name]").textContent = String(chosen + 1);
    here.setAttribute("d", `M${entries(2 ** power)} ${floor}V${top}`);
    FOUND[power].forEach((found, side) => {
      const half = (score(BIN) - score(0)) / 2;
      const counts = histogram(found.scores);
      const first = counts.findIndex((number) => number > 0);
      const steps = counts.slice(first, counts.findLastIndex((number) => number > 0) + 1).map((number) => `V${count(Math.max(number, 0.5))}h${2 * half}`);
      areas[side].setAttribute("d", `M${score(first * BIN - EDGE) - half} ${floor}${steps.join("")}V${floor}Z`);
      const sorted = [...found.weights[chosen]].sort((a, b) => b - a);
      bars[side].forEach((bar, i) => {
        bar.setAttribute("y", weight(sorted[i]));
        bar.setAttribute("height", floor - weight(sorted[i]));
        bar.toggleAttribute("hidden", sorted[i] < 0.002);
      });
      dots[side].forEach((dot, i) => {
        dot.setAttribute("cx", entries(2 ** power) + (side === 0 ? -1 : 1) * (5 + 4 * (i % 4)));
        dot.setAttribute("cy", norm(found.norms[i]));
        dot.classList.toggle("attn-chosen", i === chosen);
      });
      FACTS.forEach(([, text], row) => (cells[row][side].textContent = text(found, chosen)));
    });
    speak(root, summary(power, chosen));
  }

  function move(by) {
    const before = width.value;
    width.value = Number(before) + by;
    draw();
    return width.value !== before;
  }

  for (const input of [width, query]) input.addEventListener("input", draw);
  onReset(root, draw);
  play(root, {
    move,
    rewind() {
      width.value = 0;
      draw();
    },
    every: 1000,
  });
  root.explorable = { describe, histogram, vectors: () => [QUERY, KEY].map((rows) => rows.map((row) => Array.from(row))) };
  draw();
}

function summary(power, chosen) {
  const [scaled, unscaled] = FOUND[power];
  const say = (found) =>
    `the scores spread by ${decimal(found.deviation, 1)}, and the largest weight of query ${chosen + 1} is ${decimal(found.largest[chosen], 3)}`;
  if (power === 0) return "At dₖ = 1 the scale divides by 1: both ways are the same. Let dₖ grow.";
  return `At dₖ = ${2 ** power}, divided by √dₖ: ${say(scaled)}. Not divided: ${say(unscaled)}.`;
}
