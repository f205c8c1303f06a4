const KEYS = [[1, 0], [5, 2], [-2, 3], [-2, -3]];
const VALUES = [1, -1, 0.4, -0.2];
const EQUAL_LENGTH = 3;

const dot = (a, b) => a.reduce((sum, entry, i) => sum + entry * b[i], 0);

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
  const output = dot(weights, VALUES);
  // The covariance of value and key under the weights, times the rate
  const jacobian = [0, 1].map((a) => rate * weights.reduce((sum, weight, j) => sum + weight * (VALUES[j] - output) * keys[j][a], 0));
  const bound = (rate * (Math.max(...VALUES) - Math.min(...VALUES)) * diameter(keys)) / 4;
  return { keys, weights, output, jacobian, norm: Math.hypot(...jacobian), bound };
}

function diameter(rows) {
  return Math.max(...rows.flatMap((a) => rows.map((b) => Math.hypot(a[0] - b[0], a[1] - b[1]))));
}

const PRESETS = { origin: [0, 0], tie: [4.3, -6], far: [-6, 5] };
const ARROW = 28; // length of a slope of 1
const RING = 13; // the arrow begins outside the ring
const NAMED = [[25, 5], [0, -19], [0, -19], [0, -19]]; // where a name stands, from its key, outside the ring; of equal length, key 2 is just above key 1

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const sliders = all("[data-query]");
  const plane = one("[data-plane]");
  const ticks = [-6, -3, 0, 3, 6];
  const across = drawAxis(plane, { side: "bottom", span: [40, 316], cross: 298, ticks, label: "q₁, first entry" });
  const up = drawAxis(plane, { side: "left", span: [298, 22], cross: 40, ticks, label: "q₂, second entry" });
  const along = drawAxis(one(".attn-values"), { side: "bottom", span: [20, 320], cross: 44, ticks: [-1, -0.2, 0.4, 1], label: "values, and the output among them (large)" });
  one("[data-zero]").setAttribute("d", `M ${across(-6)} ${up(0)} H ${across(6)} M ${across(0)} ${up(-6)} V ${up(6)}`);
  all("[data-value]").forEach((mark, j) => place(mark, along(VALUES[j]), 44, [0, -20]));
  let record = { norm: 0 }; // the steepest place of this function that was visited

  const pressed = (name) => one(`[data-toggle="${name}"]`).getAttribute("aria-pressed") === "true";

  function draw() {
    const query = sliders.map((slider) => Number(slider.value));
    const shown = describe(query, pressed("equal"), pressed("gaussian"));
    if (shown.norm > record.norm) record = { norm: shown.norm, query };
    sliders.forEach((slider, i) => showBeside(slider, decimal(query[i], 1)));
    all(".attn-fill").forEach((fill, j) => fill.style.setProperty("--attn-share", shown.weights[j]));
    all("[data-weight]").forEach((text, j) => (text.textContent = decimal(shown.weights[j], 3)));
    all("[data-key]").forEach((mark, j) => place(mark, across(shown.keys[j][0]), up(shown.keys[j][1]), NAMED[j]));
    move(one('[data-place="query"]'), across(query[0]), up(query[1]));
    one('[data-place="slope"]').setAttribute("d", arrow([across(query[0]), up(query[1])], shown.jacobian, (x, y) => across(-6) <= x && x <= across(6) && up(6) <= y && y <= up(-6)));
    move(one('[data-place="output"]'), along(shown.output), 44);
    const facts = { output: shown.output, first: shown.jacobian[0], second: shown.jacobian[1], norm: shown.norm, bound: shown.bound };
    for (const [fact, value] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = decimal(value, 3);
    one('[data-fact="record"]').textContent = `${decimal(record.norm, 3)} at q = (${written(record.query, 1)})`;
    speak(root, summary(query, shown));
  }

  function drawAnother() {
    record = { norm: 0 };
    draw();
  }

  function choose(point) {
    sliders.forEach((slider, i) => (slider.value = point[i]));
    draw();
  }

  function drag(event) {
    if (event.buttons === 0) return;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(plane.getScreenCTM().inverse());
    const unit = across(1) - across(0);
    choose([(point.x - across(0)) / unit, (up(0) - point.y) / unit]);
  }

  for (const slider of sliders) slider.addEventListener("input", draw);
  for (const button of all("[data-preset]")) button.addEventListener("click", () => choose(PRESETS[button.dataset.preset] ?? keysOf(pressed("equal"))[0]));
  for (const button of all("[data-toggle]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!pressed(button.dataset.toggle)));
      drawAnother();
    });
  }
  plane.addEventListener("pointerdown", (event) => {
    plane.setPointerCapture(event.pointerId);
    drag(event);
  });
  plane.addEventListener("pointermove", drag);
  onReset(root, drawAnother);
  root.explorable = { describe };
  draw();
}

function move(circle, x, y) {
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", y);
}

function place(mark, x, y, [right, below]) {
  move(mark.firstElementChild, x, y);
  mark.lastElementChild.setAttribute("x", x + right);
  mark.lastElementChild.setAttribute("y", y + below);
}

// Along a slope, from a ring around a point or, where that would leave the picture, up to it; the head is as long as there is room for
// one, and pictures count downwards.
function arrow([x, y], [first, second], holds) {
  const [dx, dy] = [ARROW * first, -ARROW * second];
  const length = Math.hypot(dx, dy);
  if (length < 1) return "";
  const [ux, uy, head] = [dx / length, dy / length, Math.min(8, length / 2)];
  const begins = holds(x + RING * ux + dx, y + RING * uy + dy) ? RING : -RING - length;
  const at = (far) => [x + (begins + far) * ux, y + (begins + far) * uy];
  const [[fromX, fromY], [tipX, tipY]] = [at(0), at(length)];
  const wing = (side) => `${tipX - head * (ux - side * 0.6 * uy)} ${tipY - head * (uy + side * 0.6 * ux)}`;
  return `M ${fromX} ${fromY} L ${tipX} ${tipY} M ${wing(1)} L ${tipX} ${tipY} L ${wing(-1)}`;
}

const written = (entries, digits) => entries.map((entry) => decimal(entry, digits)).join(", ");

function summary(query, { keys, weights, output, norm }) {
  const most = Math.max(...weights);
  const winners = weights.flatMap((weight, j) => (most - weight < 1e-9 ? [j + 1] : []));
  const distances = keys.map((key) => Math.hypot(query[0] - key[0], query[1] - key[1]));
  const nearest = distances.indexOf(Math.min(...distances)) + 1;
  const verdict = winners.includes(nearest) ? "which is also the nearest key" : `although key ${nearest} is nearer`;
  const largest =
    winners.length > 1
      ? `keys ${winners.slice(0, -1).join(", ")} and ${winners.at(-1)} share the largest weight, ${decimal(most, 3)} each`
      : `key ${winners[0]} has the largest weight, ${decimal(most, 3)}, ${verdict}`;
  const slope = norm < 5e-4 ? "below 0.001" : decimal(norm, 3);
  return `At q = (${written(query, 1)}) ${largest}. The output is ${decimal(output, 3)}, and the slope there is ${slope}.`;
}
