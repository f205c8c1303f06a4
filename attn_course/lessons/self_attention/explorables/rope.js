// Three pairs of features; the frequencies are 100^(-2m/6), so that all three clocks can be seen to move within 40 places.
const QUERY = [[1, 0], [0.8, 0.5], [0.6, 0.8]];
const KEY = [[0.9, 0.3], [1, 0], [0.3, 0.9]];
const FREQUENCIES = [0, 1, 2].map((m) => 100 ** (-m / 3));
const REACH = 40;

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
  const chart = one(".attn-curve");
  const across = drawAxis(chart, { side: "bottom", span: [44, 326], cross: 178, ticks: [-40, -20, 0, 20, 40], label: "distance u \u2212 t, positions" });
  const up = drawAxis(chart, { side: "left", span: [178, 24], cross: 44, ticks: [-1.2, -0.6, 0, 0.6, 1.2], label: "score" });
  one("[data-zero]").setAttribute("d", `M ${across(-REACH)} ${up(0)} H ${across(REACH)} M ${across(0)} ${up(-1.2)} V ${up(1.2)}`);
  all("[data-turn]").forEach((text, m) => (text.textContent = decimal((2 * Math.PI) / FREQUENCIES[m], 1)));

  const still = () => toggle.getAttribute("aria-pressed") === "true";
  const places = () => sliders.map((slider) => Number(slider.value));

  function draw() {
    const [t, u] = places();
    const shown = describe(t, u, still());
    sliders.forEach((slider) => showBeside(slider, slider.value));
    all('[data-hand="query"]').forEach((hand, m) => turnHand(hand, QUERY[m], still() ? 0 : FREQUENCIES[m] * t));
    all('[data-hand="key"]').forEach((hand, m) => turnHand(hand, KEY[m], still() ? 0 : FREQUENCIES[m] * u));
    all("[data-part]").forEach((cell, m) => (cell.textContent = decimal(shown.parts[m], 3)));
    one('[data-fact="distance"]').textContent = decimal(shown.distance, 0);
    one('[data-fact="product"]').textContent = decimal(shown.parts.reduce((sum, part) => sum + part, 0), 3);
    one('[data-fact="score"]').textContent = decimal(shown.score, 3);
    one("[data-curve]").setAttribute("d", curve(still(), across, up));
    one("[data-now]").style.transform = `translate(${across(shown.distance)}px, ${up(shown.score)}px)`;
    speak(root, summary(t, u, shown, still()));
  }

  function choose(t, u) {
    [sliders[0].value, sliders[1].value] = [t, u];
    draw();
  }

  const moves = { swap: ([t, u]) => [u, t], same: ([t]) => [t, t] };
  for (const slider of sliders) slider.addEventListener("input", draw);
  for (const button of all("[data-move]")) button.addEventListener("click", () => choose(...moves[button.dataset.move](places())));
  toggle.addEventListener("click", () => {
    toggle.setAttribute("aria-pressed", String(!still()));
    draw();
  });
  play(root, {
    every: 500,
    move(by) {
      const [t, u] = places();
      if (Math.min(t, u) + by < 0 || Math.max(t, u) + by > REACH) return false;
      choose(t + by, u + by);
      return true;
    },
    rewind() {
      const [t, u] = places();
      choose(t - Math.min(t, u), u - Math.min(t, u));
    },
  });
  onReset(root, draw);
  root.explorable = { describe };
  draw();
}

// A hand is as long as its pair of features. It is turned by a style, which moves it smoothly and the way the clock runs; pictures
// count downwards, clocks upwards.
function turnHand(hand, [a, b], angle) {
  hand.setAttribute("x2", Math.hypot(a, b));
  hand.style.transform = `rotate(${-(Math.atan2(b, a) + angle)}rad)`;
}

function curve(still, across, up) {
  const points = [];
  for (let distance = -REACH; distance <= REACH; distance += 0.25) points.push(`${across(distance)} ${up(describe(0, distance, still).score)}`);
  return `M ${points.join(" L ")}`;
}

function summary(t, u, { distance, score }, still) {
  const reason = still
    ? "The clocks stand still: the score is the same for all places."
    : `Every query at t with this key at t ${distance < 0 ? "\u2212" : "+"} ${Math.abs(distance)} has this score.`;
  return `Query at ${t}, key at ${u}: distance ${decimal(distance, 0)}, score ${decimal(score, 3)}. ${reason}`;
}
