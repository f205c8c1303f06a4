// Everything the card shows, from scores and temperature. The maximum is subtracted first, so no exponent is positive.
function describe(scores, temperature) {
  const top = Math.max(...scores);
  const exponents = scores.map((score) => (score - top) / temperature);
  const terms = exponents.map(Math.exp);
  const total = terms.reduce((sum, term) => sum + term, 0);
  const weights = terms.map((term) => term / total);
  const jacobian = weights.map((s_i, i) => weights.map((s_j, j) => (i === j ? s_i * (1 - s_i) : -s_i * s_j)));
  // H = ln(total) - sum of s_i times its exponent; a weight of 0 adds 0, also where its exponent is -Infinity
  const entropy = weights.reduce((sum, weight, i) => sum - (weight > 0 ? weight * exponents[i] : 0), Math.log(total));
  const norm = spectralNorm(jacobian);
  return { weights, jacobian, entropy, largest: Math.max(...weights), norm, byScore: norm / temperature };
}

// Largest eigenvalue of a symmetric matrix without negative ones: squared again and again, the matrix keeps only
// the directions of that eigenvalue, and the quotient of Rayleigh reads it off.
function spectralNorm(matrix) {
  const trace = (m) => m.reduce((sum, row, i) => sum + row[i], 0);
  const scaled = (m, factor) => m.map((row) => row.map((entry) => entry / factor));
  if (trace(matrix) < 1e-300) return 0;
  let power = scaled(matrix, trace(matrix));
  for (let step = 0; step < 60; step++) {
    const square = power.map((row) => row.map((_, j) => row.reduce((sum, entry, k) => sum + entry * power[k][j], 0)));
    power = scaled(square, trace(square));
  }
  const dot = (a, b) => a.reduce((sum, entry, i) => sum + entry * b[i], 0);
  const direction = power.reduce((best, row) => (dot(row, row) > dot(best, best) ? row : best));
  const image = matrix.map((row) => dot(row, direction));
  return dot(direction, image) / dot(direction, direction);
}

const PRESETS = {
  uniform: { scores: [0, 0, 0, 0], temperature: 1 },
  tie: { scores: [2, 2, 0, -1], temperature: 0.1 },
};
const SHIFT = 100;

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const sliders = all("[data-score]");
  const dial = one("[data-temperature]");
  const toggle = one("[data-shift]");
  const cells = buildCells(one(".attn-live tbody"), sliders.length);

  const shift = () => (toggle.getAttribute("aria-pressed") === "true" ? SHIFT : 0);
  const temperature = () => Number((10 ** Number(dial.value)).toPrecision(2));

  function draw() {
    const scores = sliders.map((slider) => Number(slider.value) + shift());
    const shown = describe(scores, temperature());
    sliders.forEach((slider, i) => showBeside(slider, decimal(scores[i], 1)));
    one("[data-added]").hidden = !shift();
    showBeside(dial, temperature());
    all(".attn-fill").forEach((fill, i) => fill.style.setProperty("--attn-share", shown.weights[i]));
    all("[data-weight]").forEach((text, i) => (text.textContent = decimal(shown.weights[i], 3)));
    for (const fact of ["entropy", "largest", "norm", "byScore"]) one(`[data-fact="${fact}"]`).textContent = decimal(shown[fact], 3);
    colourCells(cells, shown.jacobian);
    speak(root, document.createRange().createContextualFragment(summary(shown, temperature(), shift())));
  }

  function choose({ scores, temperature }) {
    sliders.forEach((slider, i) => (slider.value = scores[i]));
    dial.value = Math.log10(temperature);
    draw();
  }

  for (const input of [...sliders, dial]) input.addEventListener("input", draw);
  for (const button of all("[data-preset]")) button.addEventListener("click", () => choose(PRESETS[button.dataset.preset]));
  toggle.addEventListener("click", () => {
    toggle.setAttribute("aria-pressed", String(shift() === 0));
    draw();
  });
  onReset(root, draw);
  root.explorable = { describe };
  draw();
}

// One row per output: its name, its derivatives, and their sum.
function buildCells(body, count) {
  return Array.from({ length: count }, (_, i) => {
    const row = body.insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.innerHTML = `<var>s</var><sub>${i + 1}</sub>`;
    row.append(head);
    const cells = Array.from({ length: count }, () => row.insertCell());
    for (const cell of cells) cell.className = "attn-cell";
    return [...cells, row.insertCell()];
  });
}

// Purple above zero, orange below; a quarter is the largest derivative there is.
function colourCells(cells, jacobian) {
  jacobian.forEach((row, i) => {
    row.forEach((entry, j) => {
      const cell = cells[i][j];
      cell.textContent = decimal(entry, 3);
      cell.style.setProperty("--attn-hue", `var(--attn-${entry < 0 ? "negative" : "positive"})`);
      cell.style.setProperty("--attn-strength", Math.min(1, Math.abs(entry) / 0.25));
    });
    cells[i][row.length].textContent = decimal(row.reduce((sum, entry) => sum + entry, 0), 3);
  });
}

function summary({ weights, entropy, largest, norm, byScore }, temperature, shift) {
  const winners = weights.flatMap((weight, i) => (largest - weight < 1e-12 ? [`<var>s</var><sub>${i + 1}</sub>`] : []));
  const added = shift ? ` With ${shift} added to every score the weights are the same.` : "";
  return (
    `At <var>T</var> = ${temperature} the weights are ${weights.map((weight) => decimal(weight, 3)).join(", ")}; ` +
    `largest: ${winners.join(" and ")}. Entropy ${decimal(entropy, 3)} nats. A small change reaches the weights at most ` +
    `${decimal(norm, 3)} times as large if it is one of <var>z</var> / <var>T</var>, and ${decimal(byScore, 3)} times if it is one of <var>z</var>.${added}`
  );
}
