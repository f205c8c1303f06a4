// Eight fixed draws with mean 0 and variance 1: a dot product is such a number times the square root of d_k, Eq. variance-of-a-score.
const DRAWS = [1.6, 0.9, 0.5, 0.1, -0.2, -0.5, -0.9, -1.5].map((draw) => draw / Math.sqrt(6.98 / 8));
const SPEAK_AFTER_MS = 250; // a screen reader hears the summary once the slider rests

// Everything the card shows. The largest score is subtracted first, so no exponent is positive.
function describe(width, power) {
  const divisor = width ** power;
  const scores = DRAWS.map((draw) => (draw * Math.sqrt(width)) / divisor);
  const top = Math.max(...scores);
  const terms = scores.map((score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  const weights = terms.map((term) => term / total);
  const entropy = weights.reduce((sum, weight, i) => sum - (weight > 0 ? weight * (scores[i] - top) : 0), Math.log(total));
  const bound = 1 - weights.reduce((sum, weight) => sum + weight * weight, 0);
  return { weights, divisor, deviation: Math.sqrt(width) / divisor, entropy, largest: Math.max(...weights), bound };
}

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const [dial, lever] = [one("[data-width]"), one("[data-power]")];
  const bars = buildBars(one("[data-bars]"), DRAWS.length);
  let speaking = 0;
  const beside = (input, text) => {
    input.setAttribute("aria-valuetext", text);
    input.nextElementSibling.textContent = text;
  };

  function draw() {
    const width = 2 ** Number(dial.value);
    const power = Number(lever.value);
    const shown = describe(width, power);
    beside(dial, String(width));
    beside(lever, decimal(power, 2));
    bars.forEach(([fill, text], i) => {
      fill.style.setProperty("--attn-share", shown.weights[i]);
      text.textContent = decimal(shown.weights[i], 3);
    });
    for (const [fact, digits] of [["divisor", 1], ["deviation", 2], ["entropy", 3], ["largest", 3], ["bound", 3]]) {
      one(`[data-fact="${fact}"]`).textContent = decimal(shown[fact], digits);
    }
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(width, shown)), SPEAK_AFTER_MS);
  }

  for (const input of [dial, lever]) input.addEventListener("input", draw);
  for (const button of root.querySelectorAll("[data-preset]")) {
    button.addEventListener("click", () => {
      lever.value = button.dataset.preset;
      draw();
    });
  }
  root.explorable = { describe };
  draw();
}

// One bar for each key: its name, a groove with the weight as a fill, and the number.
function buildBars(host, count) {
  return Array.from({ length: count }, (_, i) => {
    const bar = document.createElement("div");
    bar.className = "attn-bar";
    bar.innerHTML = `<span>k<sub>${i + 1}</sub></span><span class="attn-groove"><span class="attn-fill"></span></span>`;
    const text = document.createElement("span");
    text.className = "attn-number";
    text.dataset.weight = "";
    bar.append(text);
    host.append(bar);
    return [bar.querySelector(".attn-fill"), text];
  });
}

function summary(width, { divisor, deviation, entropy, largest, bound }) {
  return (
    `At d_k = ${width}, divided by ${decimal(divisor, 1)}, the scores have deviation ${decimal(deviation, 2)}. ` +
    `Entropy ${decimal(entropy, 3)} nats, largest weight ${decimal(largest, 3)}; the Jacobian's norm is at most ${decimal(bound, 3)}.`
  );
}
