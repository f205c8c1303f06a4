const KEYS = [-2, -0.5, 1, 2.5];
const REACH = 6; // of the queries
const LIMIT = 10; // of the scores that a picture shows

// Hidden units q - k + b and q - k - b, score vector (a, -a): a ridge along q = k.
const additive = (query, key, bias, size) => size * (Math.tanh(query - key + bias) - Math.tanh(query - key - bias));

function softmax(scores) {
  const top = Math.max(...scores);
  const terms = scores.map((score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  return terms.map((term) => term / total);
}

// Everything the card shows.
function describe(query, bias, size) {
  const scores = KEYS.map((key) => additive(query, key, bias, size));
  const dots = KEYS.map((key) => query * key);
  const units = KEYS.map((key) => [Math.tanh(query - key + bias), Math.tanh(query - key - bias)]);
  const slopes = units.map(([first, second]) => size * (1 - first * first) - size * (1 - second * second));
  const bound = 2 * size;
  return {
    scores, dots, bound,
    weights: softmax(scores),
    dotWeights: softmax(dots),
    slope: Math.max(...slopes.map(Math.abs)),
    ceiling: 1 / (1 + (KEYS.length - 1) * Math.exp(-2 * bound)),
  };
}

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const sliders = ["query", "bias", "size"].map((name) => one(`[data-${name}]`));
  const sides = ["additive", "dot"].map((name) => buildSide(one(`[data-side="${name}"]`)));

  function draw() {
    const [query, bias, size] = sliders.map((slider) => Number(slider.value));
    const shown = describe(query, bias, size);
    sliders.forEach((slider) => {
      showBeside(slider, decimal(Number(slider.value), 1));
    });
    drawSide(sides[0], query, shown.scores, shown.weights, (q, key) => additive(q, key, bias, size));
    drawSide(sides[1], query, shown.dots, shown.dotWeights, (q, key) => q * key);
    for (const [fact, digits] of [["bound", 1], ["ceiling", 3], ["slope", 3]]) one(`[data-fact="${fact}"]`).textContent = decimal(shown[fact], digits);
    speak(root, summary(query, shown));
  }

  for (const slider of sliders) slider.addEventListener("input", draw);
  for (const button of root.querySelectorAll("[data-preset]")) {
    button.addEventListener("click", () => {
      button.dataset.preset.split(",").forEach((value, i) => (sliders[i].value = value));
      draw();
    });
  }
  onReset(root, draw);
  root.explorable = { describe };
  draw();
}

// The axes of a picture, and one bar for each key: its name, its score and its weight.
function buildSide(host) {
  const chart = host.querySelector("svg");
  const across = drawAxis(chart, { side: "bottom", span: [44, 326], cross: 174, ticks: [-6, -3, 0, 3, 6], label: "query q" });
  const up = drawAxis(chart, { side: "left", span: [174, 26], cross: 44, ticks: [-LIMIT, -5, 0, 5, LIMIT], label: "score e of each key" });
  host.querySelector("[data-zero]").setAttribute("d", `M ${across(-REACH)} ${up(0)} H ${across(REACH)} M ${across(0)} ${up(-LIMIT)} V ${up(LIMIT)}`);
  const bars = KEYS.map((key, j) => {
    const bar = document.createElement("div");
    bar.className = `attn-bar attn-bar-${j + 1}`;
    bar.innerHTML = `<span class="attn-key"><var>k</var><sub>${j + 1}</sub> = ${decimal(key, 1)}</span><span class="attn-groove"><span class="attn-fill"></span></span>`;
    const texts = ["score", "weight"].map((name) => {
      const text = document.createElement("span");
      text.className = "attn-number";
      text.dataset[name] = "";
      return bar.appendChild(text);
    });
    host.querySelector("[data-bars]").append(bar);
    return [bar.querySelector(".attn-fill"), ...texts];
  });
  return { across, up, curves: [...host.querySelectorAll(".attn-curve")], mark: host.querySelector(".attn-query"), bars };
}

// Both pictures have the same axes; a curve ends where it leaves them.
function drawSide({ across, up, curves, mark, bars }, query, scores, weights, scoreAt) {
  const queries = Array.from({ length: 241 }, (_, i) => (REACH * (i - 120)) / 120);
  curves.forEach((curve, j) => {
    const inside = queries.filter((q) => Math.abs(scoreAt(q, KEYS[j])) <= LIMIT);
    curve.setAttribute("d", `M ${inside.map((q) => `${across(q).toFixed(2)} ${up(scoreAt(q, KEYS[j])).toFixed(2)}`).join(" L ")}`);
  });
  mark.setAttribute("d", `M ${across(query)} ${up(-LIMIT)} V ${up(LIMIT)}`);
  bars.forEach(([fill, score, weight], j) => {
    fill.style.setProperty("--attn-share", weights[j]);
    score.textContent = decimal(scores[j], 2);
    weight.textContent = decimal(weights[j], 3);
  });
}

function leader(weights) {
  const most = Math.max(...weights);
  const winners = weights.flatMap((weight, j) => (most - weight < 1e-9 ? [j + 1] : []));
  if (winners.length === weights.length) return `all keys weigh the same, ${decimal(most, 3)}`;
  return winners.length > 1 ? `keys ${winners.join(" and ")} share the largest weight, ${decimal(most, 3)}` : `key ${winners[0]} has the largest weight, ${decimal(most, 3)}`;
}

function summary(query, { weights, dotWeights }) {
  const distances = KEYS.map((key) => Math.abs(query - key));
  const nearest = distances.indexOf(Math.min(...distances)) + 1;
  return `At q = ${decimal(query, 1)} the nearest key is key ${nearest}. Additive: ${leader(weights)}. Dot product: ${leader(dotWeights)}.`;
}
