const VALUES = [-1, 0, 1, 2];
const MOST = 2000; // steps that are made at once

// What four scores give, and the step that each takes against the gradient of the loss -z: dS = -p (v - z).
function describe(scores) {
  const top = Math.max(...scores);
  const terms = scores.map((score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  const weights = terms.map((term) => term / total);
  const output = weights.reduce((sum, weight, j) => sum + weight * VALUES[j], 0);
  return { weights, output, steps: weights.map((weight, j) => weight * (VALUES[j] - output)) };
}

const stepped = (scores) => describe(scores).steps.map((step, j) => scores[j] + step);

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const sliders = all("[data-score]");
  const rows = VALUES.map((value) => {
    const row = one(".attn-live tbody").insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = decimal(value, 0);
    row.append(head);
    return Array.from({ length: 3 }, () => row.insertCell());
  });
  let scores, count;

  function draw() {
    const { weights, output, steps } = describe(scores);
    all(".attn-fill").forEach((fill, j) => fill.style.setProperty("--attn-share", weights[j]));
    all("[data-weight]").forEach((text, j) => (text.textContent = decimal(weights[j], 3)));
    const facts = { count: String(count), output: decimal(output, 3), loss: decimal(-output, 3) };
    for (const [fact, text] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = text;
    rows.forEach((cells, j) => [scores[j], VALUES[j] - output, steps[j]].forEach((entry, n) => (cells[n].textContent = decimal(entry, 3))));
    speak(root, summary(count, weights, output));
  }

  function restart() {
    scores = sliders.map((slider) => Number(slider.value));
    count = 0;
    sliders.forEach((slider, j) => showBeside(slider, decimal(scores[j], 1)));
    draw();
  }

  function move() {
    if (describe(scores).weights[3] > 0.999) return false;
    scores = stepped(scores);
    count += 1;
    draw();
    return true;
  }

  one("[data-half]").addEventListener("click", () => {
    for (let made = 0; made < MOST && describe(scores).weights[3] <= 0.5; made++) {
      scores = stepped(scores);
      count += 1;
    }
    draw();
  });
  for (const slider of sliders) slider.addEventListener("input", restart);
  play(root, { move, rewind: restart, every: 120 });
  onReset(root, restart);
  root.explorable = { describe };
  restart();
}

function summary(count, weights, output) {
  const made = count === 1 ? "1 step" : `${count} steps`;
  const half = weights[3] > 0.5 ? "more than half" : "no more than half";
  return `After ${made} the value 2 has ${half} of the weight, ${decimal(weights[3], 3)}, and the output is ${decimal(output, 3)}.`;
}
