const KEYS = [-2, -0.5, 1, 2.5];
const QUIET_MS = 250; // a screen reader hears the summary once the slider rests
const REACH = 6;

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
  let speaking = 0;

  function draw() {
    const [query, bias, size] = sliders.map((slider) => Number(slider.value));
    const shown = describe(query, bias, size);
    sliders.forEach((slider) => {
      slider.setAttribute("aria-valuetext", decimal(Number(slider.value), 1));
      slider.nextElementSibling.textContent = decimal(Number(slider.value), 1);
    });
    drawSide(sides[0], query, shown.scores, shown.weights, (q, key) => additive(q, key, bias, size));
    drawSide(sides[1], query, shown.dots, shown.dotWeights, (q, key) => q * key);
    for (const [fact, digits] of [["bound", 1], ["ceiling", 3], ["slope", 3]]) one(`[data-fact="${fact}"]`).textContent = decimal(shown[fact], digits);
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(query, shown)), QUIET_MS);
  }

  for (const slider of sliders) slider.addEventListener("input", draw);
  for (const button of root.querySelectorAll("[data-preset]")) {
    button.addEventListener("click", () => {
      button.dataset.preset.split(",").forEach((value, i) => (sliders[i].value = value));
      draw();
    });
  }
  root.explorable = { describe };
  draw();
}

// One bar for each key: its name, its score and its weight.
function buildSide(host) {
  const bars = KEYS.map((key, j) => {
    const bar = document.createElement("div");
    bar.className = `attn-bar attn-bar-${j + 1}`;
    bar.innerHTML = `<span class="attn-key">k<sub>${j + 1}</sub> = ${decimal(key, 1)}</span><span class="attn-groove"><span class="attn-fill"></span></span>`;
    const texts = ["score", "weight"].map((name) => {
      const text = document.createElement("span");
      text.className = "attn-number";
      text.dataset[name] = "";
      return bar.appendChild(text);
    });
    host.querySelector("[data-bars]").append(bar);
    return [bar.querySelector(".attn-fill"), ...texts];
  });
  return { curves: [...host.querySelectorAll(".attn-curve")], mark: host.querySelector(".attn-query"), bars };
}

// Both pictures reach from -10 to 10; what lies beyond is cut off.
function drawSide({ curves, mark, bars }, query, scores, weights, scoreAt) {
  const height = (score) => (-score / 2).toFixed(3);
  curves.forEach((curve, j) => {
    const points = Array.from({ length: 121 }, (_, i) => (REACH * (i - 60)) / 60).map((q) => `${q.toFixed(2)} ${height(scoreAt(q, KEYS[j]))}`);
    curve.setAttribute("d", `M ${points.join(" L ")}`);
  });
  mark.setAttribute("d", `M ${query} -5 V 5`);
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
