const LENGTH = 12;
const WIDTH = 4;
const SIZES = [1, 2, 3, 4, 6, 12];
const QUIET_MS = 250; // a screen reader hears the summary once the slider rests
const FILL = 0.85;

// Scores with a slow rise to the right, so that the maximum changes now and then; values of one feature.
const SCORES = Array.from({ length: LENGTH }, (_, i) =>
  Array.from({ length: LENGTH }, (_, j) => Math.round(10 * (2 * Math.sin(1.7 * i + 2.3 * j) + 0.2 * j)) / 10),
);
const VALUES = Array.from({ length: LENGTH }, (_, j) => (j * 5) % LENGTH);

const sees = (i, j, causal) => !causal || j <= i;

// The tiles in the order of the loop: block of queries by block of queries, keys passing by; hidden tiles are left out.
function plan(rows, columns, causal) {
  const visited = [];
  let skipped = 0;
  for (let i = 0; i < LENGTH; i += rows) {
    for (let j = 0; j < LENGTH; j += columns) {
      if (sees(i + rows - 1, j, causal)) visited.push([i, j]);
      else skipped += 1;
    }
  }
  return { visited, skipped };
}

// Numbers moved: queries when a block begins, keys and values for each tile, output and log-sum-exp when a block ends.
function moved({ rows, columns, causal }, step) {
  const { visited } = plan(rows, columns, causal);
  let total = 0;
  visited.slice(0, step).forEach(([i], place) => {
    if (place === 0 || visited[place - 1][0] !== i) total += rows * WIDTH;
    total += columns * 2 * WIDTH;
    if (place === visited.length - 1 || visited[place + 1][0] !== i) total += rows * (WIDTH + 1);
  });
  return total;
}

const PLAIN = 4 * LENGTH * WIDTH + 4 * LENGTH * LENGTH;

// Eq. tiled-attention-update for one query, over the tiles done so far.
function state({ rows, columns, causal }, step, query) {
  let [max, sum, acc, factor, scores] = [-Infinity, 0, 0, null, []];
  for (const [i, j] of plan(rows, columns, causal).visited.slice(0, step)) {
    if (query < i || query >= i + rows) continue;
    const keys = Array.from({ length: columns }, (_, c) => j + c).filter((key) => sees(query, key, causal));
    scores = keys.map((key) => SCORES[query][key]);
    const larger = Math.max(max, ...scores);
    factor = larger === -Infinity ? 0 : Math.exp(max - larger);
    sum *= factor;
    acc *= factor;
    for (const key of keys) {
      const share = Math.exp(SCORES[query][key] - larger);
      sum += share;
      acc += share * VALUES[key];
    }
    max = larger;
  }
  return { max, sum, acc, factor, scores, output: sum > 0 ? acc / sum : null };
}

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const slider = (name) => one(`[data-size="${name}"]`);
  const causal = one('[data-toggle="causal"]');
  const grid = one(".attn-grid");
  let speaking = 0;

  const cells = Array.from({ length: LENGTH * LENGTH }, (_, place) => {
    const cell = document.createElement("span");
    const strength = (SCORES[Math.floor(place / LENGTH)][place % LENGTH] + 2) / 6.2;
    cell.style.setProperty("--attn-strength", Math.max(0, Math.min(1, strength)) * FILL);
    grid.append(cell);
    return cell;
  });

  function sizes() {
    return {
      rows: SIZES[Number(slider("rows").value)],
      columns: SIZES[Number(slider("columns").value)],
      causal: causal.getAttribute("aria-pressed") === "true",
    };
  }

  function label(name, text) {
    slider(name).setAttribute("aria-valuetext", String(text));
    slider(name).nextElementSibling.textContent = String(text);
  }

  function draw() {
    const chosen = sizes();
    const { visited, skipped } = plan(chosen.rows, chosen.columns, chosen.causal);
    slider("step").max = visited.length;
    const step = Number(slider("step").value);
    const query = Number(slider("query").value);
    label("rows", chosen.rows);
    label("columns", chosen.columns);
    label("step", `${step} of ${visited.length}`);
    label("query", query);
    const [top, left] = step > 0 ? visited[step - 1] : [-1, -1];
    const done = new Set(visited.slice(0, step).map(([i, j]) => `${i},${j}`));
    cells.forEach((cell, place) => {
      const [i, j] = [Math.floor(place / LENGTH), place % LENGTH];
      const [tileI, tileJ] = [i - (i % chosen.rows), j - (j % chosen.columns)];
      cell.classList.toggle("attn-hidden", !sees(i, j, chosen.causal));
      cell.classList.toggle("attn-done", done.has(`${tileI},${tileJ}`));
      cell.classList.toggle("attn-now", step > 0 && tileI === top && tileJ === left);
      cell.classList.toggle("attn-row", i === query);
    });
    const now = state(chosen, step, query);
    const final = state(chosen, visited.length, query);
    const facts = {
      scores: now.scores.length > 0 ? now.scores.map((score) => decimal(score, 1)).join(", ") : "none",
      max: now.max === -Infinity ? "\u2212\u221e" : decimal(now.max, 1),
      factor: now.factor === null ? "none yet" : decimal(now.factor, 3),
      sum: decimal(now.sum, 3),
      acc: decimal(now.acc, 3),
      output: now.output === null ? "none yet" : decimal(now.output, 3),
      final: decimal(final.output, 3),
      moved: String(moved(chosen, step)),
      all: String(moved(chosen, visited.length)),
      plain: String(PLAIN),
      skipped: `${skipped} of ${skipped + visited.length}`,
    };
    for (const [fact, text] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = text;
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(step, visited, query, facts)), QUIET_MS);
  }

  for (const control of root.querySelectorAll("[data-size]")) control.addEventListener("input", draw);
  for (const button of root.querySelectorAll("[data-move]")) {
    button.addEventListener("click", () => {
      slider("step").value = Number(slider("step").value) + Number(button.dataset.move);
      draw();
    });
  }
  causal.addEventListener("click", () => {
    causal.setAttribute("aria-pressed", String(causal.getAttribute("aria-pressed") !== "true"));
    draw();
  });
  root.explorable = { plan, moved, state };
  draw();
}

function summary(step, visited, query, facts) {
  if (step === 0) return `Nothing read yet. ${visited.length} tiles to come, ${facts.skipped} skipped.`;
  const known = facts.output === "none yet" ? "has seen no key yet" : `has the output ${facts.output} so far, ${facts.final} at the end`;
  return `After ${step} of ${visited.length} tiles query ${query} ${known}. ${facts.moved} numbers moved, ${facts.all} in all, ${facts.plain} without tiles.`;
}
