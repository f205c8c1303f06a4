// Three pairs of features; the frequencies are 100^(-2m/6), so that all three clocks can be seen to move within 40 places.
const QUERY = [[1, 0], [0.8, 0.5], [0.6, 0.8]];
const KEY = [[0.9, 0.3], [1, 0], [0.3, 0.9]];
const FREQUENCIES = [0, 1, 2].map((m) => 100 ** (-m / 3));
const REACH = 40;
const SPEAK_AFTER_MS = 250; // a screen reader hears the summary once the slider rests

const turn = ([a, b], angle) => [a * Math.cos(angle) - b * Math.sin(angle), a * Math.sin(angle) + b * Math.cos(angle)];

// Everything the card shows: the turned pairs, the product of each pair, and the score.
function describe(t, u, still) {
  const rates = still ? [0, 0, 0] : FREQUENCIES;
  const query = QUERY.map((pair, m) => turn(pair, rates[m] * t));
  const key = KEY.map((pair, m) => turn(pair, rates[m] * u));
  const parts = query.map(([a, b], m) => a * key[m][0] + b * key[m][1]);
  return { query, key, parts, distance: u - t, score: parts.reduce((sum, part) => sum + part, 0) / Math.sqrt(6) };
}

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const sliders = all("[data-place]");
  const toggle = one("[data-toggle]");
  const hands = { query: all('[data-hand="query"]'), key: all('[data-hand="key"]') };
  let speaking = 0;

  const still = () => toggle.getAttribute("aria-pressed") === "true";
  const places = () => sliders.map((slider) => Number(slider.value));

  function draw() {
    const [t, u] = places();
    const shown = describe(t, u, still());
    for (const slider of sliders) {
      slider.setAttribute("aria-valuetext", slider.value);
      slider.nextElementSibling.textContent = slider.value;
    }
    for (const name of ["query", "key"]) hands[name].forEach((hand, m) => point(hand, shown[name][m]));
    all("[data-part]").forEach((cell, m) => (cell.textContent = decimal(shown.parts[m], 3)));
    one('[data-fact="distance"]').textContent = decimal(shown.distance, 0);
    one('[data-fact="score"]').textContent = decimal(shown.score, 3);
    one("[data-curve]").setAttribute("d", curve(still()));
    one("[data-now]").setAttribute("d", `M ${shown.distance} ${-2 * shown.score} h 0.001`);
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(t, u, shown, still())), SPEAK_AFTER_MS);
  }

  function choose(t, u) {
    [sliders[0].value, sliders[1].value] = [t, u];
    draw();
  }

  const moves = {
    both: ([t, u]) => (Math.max(t, u) < REACH ? [t + 1, u + 1] : [t - Math.min(t, u), u - Math.min(t, u)]), // from the end back to the start
    swap: ([t, u]) => [u, t],
    same: ([t]) => [t, t],
  };
  for (const slider of sliders) slider.addEventListener("input", draw);
  for (const button of all("[data-move]")) button.addEventListener("click", () => choose(...moves[button.dataset.move](places())));
  toggle.addEventListener("click", () => {
    toggle.setAttribute("aria-pressed", String(!still()));
    draw();
  });
  root.explorable = { describe };
  draw();
}

// Pictures count downwards, clocks upwards.
function point(hand, [x, y]) {
  for (const [name, value] of Object.entries({ x1: 0, y1: 0, x2: x, y2: -y })) hand.setAttribute(name, value);
}

function curve(still) {
  const points = [];
  for (let distance = -REACH; distance <= REACH; distance += 0.25) points.push(`${distance} ${-2 * describe(0, distance, still).score}`);
  return `M ${points.join(" L ")}`;
}

function summary(t, u, { distance, score }, still) {
  const reason = still
    ? "The clocks stand still: the score is the same for all places."
    : `Every query at t with this key at t ${distance < 0 ? "−" : "+"} ${Math.abs(distance)} has this score.`;
  return `Query at ${t}, key at ${u}: distance ${decimal(distance, 0)}, score ${decimal(score, 3)}. ${reason}`;
}
