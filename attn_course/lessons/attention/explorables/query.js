const KEYS = [[1, 0], [5, 2], [-2, 3], [-2, -3]];
const VALUES = [[0, 1], [1, 0], [0, -1], [-1, 0]];
const EQUAL_LENGTH = 3;

const dot = (a, b) => a.reduce((sum, entry, i) => sum + entry * b[i], 0);
const mix = (weights, rows) => rows[0].map((_, a) => weights.reduce((sum, weight, j) => sum + weight * rows[j][a], 0));

function keysOf(equal) {
  return equal ? KEYS.map((key) => key.map((entry) => (EQUAL_LENGTH * entry) / Math.hypot(...key))) : KEYS;
}

// Everything the card shows. Both similarities have the slope k_j times `rate` in q, up to a part common to all keys.
function describe(query, equal, gaussian) {
  const keys = keysOf(equal);
  const rate = gaussian ? 1 : 1 / Math.SQRT2;
  const scores = keys.map((key) => (gaussian ? -(Math.hypot(query[0] - key[0], query[1] - key[1]) ** 2) / 2 : rate * dot(query, key)));
  const top = Math.max(...scores);
  const terms = scores.map((score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  const weights = terms.map((term) => term / total);
  const output = mix(weights, VALUES);
  const mean = mix(weights, keys);
  // The covariance of values and keys under the weights, times the rate
  const jacobian = output.map((z, a) =>
    mean.map((k, b) => rate * weights.reduce((sum, weight, j) => sum + weight * (VALUES[j][a] - z) * (keys[j][b] - k), 0)),
  );
  return { keys, weights, output, jacobian, norm: spectralNorm(jacobian), bound: (rate * diameter(VALUES) * diameter(keys)) / 4 };
}

// The largest singular value of a matrix of two rows and two columns.
function spectralNorm([[a, b], [c, d]]) {
  return (Math.hypot(a + d, c - b) + Math.hypot(a - d, b + c)) / 2;
}

function diameter(rows) {
  return Math.max(...rows.flatMap((a) => rows.map((b) => Math.hypot(a[0] - b[0], a[1] - b[1]))));
}

const PRESETS = { key: [1, 0], origin: [0, 0], tie: [0.7, 4.9], far: [-6, 5] };
const QUIET_MS = 250; // a screen reader hears the summary once the slider rests
const REACH = 6;

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const sliders = all("[data-query]");
  const plane = one("[data-plane]");
  let speaking = 0;

  const pressed = (name) => one(`[data-toggle="${name}"]`).getAttribute("aria-pressed") === "true";
  const query = () => sliders.map((slider) => Number(slider.value));

  function draw() {
    const q = query();
    const shown = describe(q, pressed("equal"), pressed("gaussian"));
    sliders.forEach((slider, i) => {
      slider.setAttribute("aria-valuetext", decimal(q[i], 1));
      slider.nextElementSibling.textContent = decimal(q[i], 1);
    });
    all(".attn-fill").forEach((fill, j) => fill.style.setProperty("--attn-share", shown.weights[j]));
    all("[data-weight]").forEach((text, j) => (text.textContent = decimal(shown.weights[j], 3)));
    all("[data-key]").forEach((mark, j) => place(mark, shown.keys[j], 1.25));
    all("[data-value]").forEach((mark, j) => place(mark, VALUES[j], 0.26));
    move(one('[data-place="query"]'), q);
    move(one('[data-place="output"]'), shown.output);
    const facts = { z1: shown.output[0], z2: shown.output[1], norm: shown.norm, bound: shown.bound };
    for (const [fact, value] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = decimal(value, 3);
    colourCells(all(".attn-cell"), shown.jacobian.flat(), shown.bound);
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(q, shown)), QUIET_MS);
  }

  function choose(point) {
    sliders.forEach((slider, i) => (slider.value = point[i]));
    draw();
  }

  function drag(event) {
    if (event.buttons === 0) return;
    const box = plane.getBoundingClientRect();
    const half = REACH * 1.1; // the view box reaches a tenth further than the sliders
    choose([((event.clientX - box.left) / box.width) * 2 * half - half, half - ((event.clientY - box.top) / box.height) * 2 * half]);
  }

  for (const slider of sliders) slider.addEventListener("input", draw);
  for (const button of all("[data-preset]")) button.addEventListener("click", () => choose(PRESETS[button.dataset.preset]));
  for (const button of all("[data-toggle]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!pressed(button.dataset.toggle)));
      draw();
    });
  }
  plane.addEventListener("pointerdown", (event) => {
    plane.setPointerCapture(event.pointerId);
    drag(event);
  });
  plane.addEventListener("pointermove", drag);
  root.explorable = { describe };
  draw();
}

// Pictures count downwards, planes upwards.
function move(circle, [x, y]) {
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", -y);
}

function place(mark, point, above) {
  move(mark.firstElementChild, point);
  mark.lastElementChild.setAttribute("x", point[0]);
  mark.lastElementChild.setAttribute("y", -point[1] + (point[1] < 0 ? above : -0.6 * above));
}

// Purple above zero, orange below; no entry can exceed the bound on the norm.
function colourCells(cells, entries, bound) {
  cells.forEach((cell, n) => {
    cell.textContent = decimal(entries[n], 3);
    cell.style.setProperty("--attn-hue", `var(--attn-${entries[n] < 0 ? "negative" : "positive"})`);
    cell.style.setProperty("--attn-strength", Math.min(1, Math.abs(entries[n]) / bound));
  });
}

function summary(query, { keys, weights, output, norm }) {
  const most = Math.max(...weights);
  const winners = weights.flatMap((weight, j) => (most - weight < 1e-9 ? [j + 1] : []));
  const distances = keys.map((key) => Math.hypot(query[0] - key[0], query[1] - key[1]));
  const nearest = distances.indexOf(Math.min(...distances)) + 1;
  const verdict = winners.includes(nearest) ? "which is also the nearest key" : `although key ${nearest} is nearer`;
  const largest =
    winners.length > 1
      ? `keys ${winners.join(" and ")} share the largest weight, ${decimal(most, 3)} each`
      : `key ${winners[0]} has the largest weight, ${decimal(most, 3)}, ${verdict}`;
  return (
    `At q = (${query.map((entry) => decimal(entry, 1)).join(", ")}) ${largest}. ` +
    `Output (${output.map((entry) => decimal(entry, 3)).join(", ")}), spectral norm of the Jacobian ${decimal(norm, 3)}.`
  );
}
