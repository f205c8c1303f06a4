// The sentence of the course: alive, tells, open, cos, sin. Queries, keys and values are the tokens themselves.
const NAMES = ["the", "cat", "sat", "because", "it", "was", "tired"];
const TOKENS = [[0, 0, 1, 2, 0], [2, 0, 0, 1, 1], [0, 2, 0, -1, 1], [0, 0, 0, -2, 0], [0, 0, 2, -1, -1], [0, 1, 0, 1, -1], [1, 2, 0, 2, 0]];
const N = TOKENS.length;
const INDICES = TOKENS.map((_, i) => i);
const STEP = [0.7, -0.4, 0.3, 0.5, -0.6]; // by which the leak test moves a token; it stands upright on none of them
const REACHES = 1e-9; // smallest change that counts

const grid = (rule) => INDICES.map((i) => INDICES.map((j) => rule(i, j)));

const PRESETS = {
  causal: grid((i, j) => j <= i),
  window: grid((i, j) => j <= i && i - j <= 2),
  padding: grid((i, j) => j < 5),
  both: grid((i, j) => j <= i && j < 5),
  transposed: grid((i, j) => j >= i),
  wide: grid((i, j) => j <= i + 1),
  empty: grid(() => false),
};

const moved = (tokens, j, step) => tokens.map((token, i) => (i === j ? token.map((entry, a) => entry + step[a]) : token));

// Shares of 1 for scores of which some may be minus infinity; nothing at all where every one is.
function shares(scores) {
  const top = Math.max(...scores);
  if (top === -Infinity) return scores.map(() => 0);
  const terms = scores.map((score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  return terms.map((term) => term / total);
}

const turned = (matrix) => INDICES.map((i) => INDICES.map((j) => matrix[j][i]));

function weightsOf(tokens, mask, { after, queries }) {
  const scores = grid((i, j) => {
    const score = tokens[i].reduce((sum, entry, a) => sum + entry * tokens[j][a], 0) / Math.sqrt(STEP.length);
    return mask[i][j] || after ? score : -Infinity;
  });
  const weights = queries ? turned(turned(scores).map(shares)) : scores.map(shares);
  return after ? grid((i, j) => (mask[i][j] ? weights[i][j] : 0)) : weights;
}

function outputsOf(tokens, weights) {
  return weights.map((row) => STEP.map((_, a) => row.reduce((sum, weight, j) => sum + weight * tokens[j][a], 0)));
}

const distance = (a, b) => Math.hypot(...a.map((entry, n) => entry - b[n]));

// Everything the card shows, for a mask and a shift of the last token along STEP.
function describe(mask, shift, wrong) {
  const tokens = moved(TOKENS, N - 1, STEP.map((entry) => shift * entry));
  const run = (input) => outputsOf(input, weightsOf(input, mask, wrong));
  const weights = weightsOf(tokens, mask, wrong);
  const output = run(tokens);
  const start = run(TOKENS);
  const reached = INDICES.map((j) => run(moved(tokens, j, STEP)));
  return {
    weights,
    output,
    change: output.map((row, i) => distance(row, start[i])),
    sums: weights.map((row) => row.reduce((sum, weight) => sum + weight, 0)),
    leaks: grid((i, j) => j > i && distance(reached[j][i], output[i]) > REACHES),
  };
}

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const slider = one("[data-shift]");
  let mask = PRESETS.causal;

  buildGrid(one("[data-grid]"));
  const cells = all("[data-cell]");

  const pressed = (name) => one(`[data-toggle="${name}"]`).getAttribute("aria-pressed") === "true";

  function draw() {
    const wrong = { after: pressed("after"), queries: pressed("queries") };
    const shift = Number(slider.value);
    const shown = describe(mask, shift, wrong);
    showBeside(slider, decimal(shift, 1));
    cells.forEach((cell, n) => drawCell(cell, Math.floor(n / N), n % N, mask, shown, wrong.after ? "\u00d7 0" : "\u2212\u221e"));
    all("[data-sum]").forEach((text, i) => (text.textContent = decimal(shown.sums[i], 2)));
    all("[data-change]").forEach((text, i) => {
      text.textContent = decimal(shown.change[i], 2);
      text.classList.toggle("attn-moved", shown.change[i] > REACHES);
    });
    const facts = found(mask, shown);
    for (const [fact, value] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = value;
    for (const button of all("[data-preset]")) button.setAttribute("aria-pressed", String(same(mask, PRESETS[button.dataset.preset])));
    speak(root, summary(facts, shown, shift, wrong.after));
  }

  function choose(place) {
    cells.forEach((cell, n) => (cell.tabIndex = n === place ? 0 : -1));
    cells[place].focus();
  }

  cells.forEach((cell, place) => {
    const row = Math.floor(place / N);
    cell.addEventListener("click", () => {
      mask = grid((i, j) => (i * N + j === place ? !mask[i][j] : mask[i][j]));
      choose(place);
      draw();
    });
    cell.addEventListener("keydown", (event) => {
      const to = {
        ArrowLeft: Math.max(place - 1, row * N),
        ArrowRight: Math.min(place + 1, row * N + N - 1),
        ArrowUp: place - N < 0 ? place : place - N,
        ArrowDown: place + N >= N * N ? place : place + N,
        Home: row * N,
        End: row * N + N - 1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      choose(to);
    });
  });
  slider.addEventListener("input", draw);
  for (const button of all("[data-preset]")) {
    button.addEventListener("click", () => {
      mask = PRESETS[button.dataset.preset];
      draw();
    });
  }
  for (const button of all("[data-toggle]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!pressed(button.dataset.toggle)));
      draw();
    });
  }
  onReset(root, () => {
    mask = PRESETS.causal;
    draw();
  });
  root.explorable = { describe, presets: PRESETS, names: NAMES };
  draw();
}

function buildGrid(table) {
  const heads = [...NAMES, "sum", "output moved by"];
  table.tHead.innerHTML = `<tr><td></td>${heads.map((head) => `<th scope="col">${head}</th>`).join("")}</tr>`;
  table.tBodies[0].innerHTML = INDICES.map((i) => {
    const pairs = INDICES.map((j) => `<td class="attn-pair"><button type="button" data-cell tabindex="${i + j ? -1 : 0}"></button></td>`);
    return `<tr><th scope="row">${NAMES[i]}</th>${pairs.join("")}<td data-sum></td><td data-change></td></tr>`;
  }).join("");
}

function drawCell(cell, i, j, mask, { weights, leaks }, hidden) {
  const leak = leaks[i][j];
  const weight = decimal(weights[i][j], 2);
  cell.setAttribute("aria-pressed", String(mask[i][j]));
  cell.setAttribute("aria-label", `query ${NAMES[i]}, key ${NAMES[j]}: ${mask[i][j] ? `visible, weight ${weight}` : "hidden"}${leak ? ", leak" : ""}`);
  cell.textContent = `${leak ? "! " : ""}${mask[i][j] ? weight : hidden}`;
  cell.toggleAttribute("data-leak", leak);
  cell.style.setProperty("--attn-share", weights[i][j]);
}

const same = (a, b) => a.every((row, i) => row.every((entry, j) => entry === b[i][j]));
const listed = (rows) => (rows.length ? rows.map((i) => NAMES[i]).join(", ") : "none");

function found(mask, { sums, leaks }) {
  const empty = INDICES.filter((i) => !mask[i].includes(true));
  return {
    leaks: String(leaks.flat().filter(Boolean).length),
    empty: listed(empty),
    sums: listed(INDICES.filter((i) => Math.abs(sums[i] - 1) > REACHES && !empty.includes(i))),
  };
}

function summary(facts, { change }, shift, after) {
  const rows = INDICES.filter((i) => change[i] > REACHES);
  const move = shift === 0 ? "" : ` Moving \u201ctired\u201d by ${decimal(shift, 1)} moves the outputs of: ${listed(rows)}.`;
  const place = `The mask stands ${after ? "after" : "before"} the softmax`;
  return `${place}: ${facts.leaks === "0" ? "no leak" : `${facts.leaks} of 21 later pairs leak`}. Queries that see nothing: ${facts.empty}.${move}`;
}
