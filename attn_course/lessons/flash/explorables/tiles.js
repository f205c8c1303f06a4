const LENGTH = 12;
const WIDTH = 4; // d_k and d_v
const SIZES = [1, 2, 3, 4, 6, 12];
const NUMBER = 2; // bytes of a stored number, and of one of the float32 ones: L, scores, and what is kept for a row
const FLOAT32 = 4;

// Small whole numbers, so that every score is whole and the largest one of a row changes now and then.
const matrix = (text) => text.split(";").map((row) => row.trim().split(" ").map(Number));
const Q = matrix("2 0 -2 0; 0 0 2 -2; -2 -2 -2 0; 2 -2 -2 2; 0 2 2 0; 0 -2 -2 -2; -2 2 0 -2; 2 2 2 0; 2 2 2 2; 2 -2 2 -2; 2 0 0 0; 2 2 0 2");
const K = matrix("-1 0 0 1; -1 0 0 0; -1 -1 0 1; -1 1 0 -1; 1 0 0 1; -1 -1 -1 1; 0 1 1 -1; 1 1 1 -1; -1 -1 -1 1; -1 -1 1 1; 0 -1 -1 1; 1 0 -1 -1");
const V = matrix("0 1 1 1; -2 -1 -1 2; 1 1 -2 -1; 1 2 -1 -1; -2 -1 -1 1; -2 0 -2 1; 2 2 -2 0; -2 -1 1 2; 2 -2 2 -1; -1 1 -1 -2; 0 2 -2 2; 1 2 -2 -1");

const dot = (a, b) => a.reduce((sum, entry, i) => sum + entry * b[i], 0);
const range = (from, count) => Array.from({ length: count }, (_, i) => from + i);
const sees = (i, j, causal) => !causal || j <= i;
const score = (i, j, causal) => (sees(i, j, causal) ? dot(Q[i], K[j]) / Math.sqrt(WIDTH) : -Infinity);

// The tiles in the order of the loop: block of queries by block of queries, keys passing by; hidden tiles are left out.
function plan({ rows, columns, causal }) {
  const all = range(0, LENGTH / rows).flatMap((i) => range(0, LENGTH / columns).map((j) => [i * rows, j * columns]));
  const visited = all.filter(([i, j]) => sees(i + rows - 1, j, causal));
  return { visited, skipped: all.length - visited.length };
}

// Whether a block of queries begins, or ends, with a step (counted from 1).
const begins = (visited, step) => step === 1 || visited[step - 2][0] !== visited[step - 1][0];
const ends = (visited, step) => step === visited.length || visited[step][0] !== visited[step - 1][0];

// Bytes moved up to a step: queries when a block begins, keys and values for each tile, output and L when a block ends.
function moved(sizes, step) {
  const { visited } = plan(sizes);
  return range(1, step).reduce((bytes, s) => {
    const passing = 2 * sizes.columns * WIDTH * NUMBER;
    const queries = begins(visited, s) ? sizes.rows * WIDTH * NUMBER : 0;
    return bytes + passing + queries + (ends(visited, s) ? sizes.rows * (WIDTH * NUMBER + FLOAT32) : 0);
  }, 0);
}

// Plain attention reads Q, K and V, writes O, and writes and reads both scores and weights.
const PLAIN = NUMBER * (4 * LENGTH * WIDTH + 4 * LENGTH * LENGTH);

// Bytes that one tile needs: its queries, keys, values, scores, and m, l and a of each row.
const held = ({ rows, columns }) => NUMBER * WIDTH * (rows + 2 * columns) + FLOAT32 * rows * (columns + 2 + WIDTH);

// Eq. tiled-attention-update for one query, over the tiles of a step and before.
function state(sizes, step, query) {
  let [max, sum, factor, acc] = [-Infinity, 0, 0, V[0].map(() => 0)];
  for (const [i, j] of plan(sizes).visited.slice(0, step)) {
    if (query < i || query >= i + sizes.rows) continue;
    const scores = range(j, sizes.columns).map((key) => score(query, key, sizes.causal));
    const larger = Math.max(max, ...scores);
    const shares = scores.map((s) => Math.exp(s - larger));
    factor = Math.exp(max - larger);
    sum = sum * factor + shares.reduce((total, share) => total + share, 0);
    acc = acc.map((entry, c) => entry * factor + shares.reduce((total, share, k) => total + share * V[j + k][c], 0));
    max = larger;
  }
  return { max, sum, factor, acc, output: acc.map((entry) => entry / sum) };
}

// The same row in one piece.
function plain(query, causal) {
  const scores = range(0, LENGTH).map((key) => score(query, key, causal));
  const weights = scores.map((s) => Math.exp(s - Math.max(...scores)));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return V[0].map((_, c) => weights.reduce((sum, weight, key) => sum + weight * V[key][c], 0) / total);
}

// Queries whose block has ended, and how far their output is from that of plain attention.
function written(sizes, step) {
  const { visited } = plan(sizes);
  const queries = range(1, step).filter((s) => ends(visited, s)).flatMap((s) => range(visited[s - 1][0], sizes.rows));
  const differences = queries.flatMap((query) => {
    const whole = plain(query, sizes.causal);
    return state(sizes, step, query).output.map((entry, c) => Math.abs(entry - whole[c]));
  });
  return { queries, difference: Math.max(0, ...differences) };
}

// All numbers of a step.
function describe(sizes, step) {
  const { visited, skipped } = plan(sizes);
  const [first, finished] = [visited[step - 1][0], written(sizes, step)];
  return {
    steps: visited.length,
    skipped,
    moved: moved(sizes, step),
    all: moved(sizes, visited.length),
    held: held(sizes),
    block: range(first, sizes.rows).map((query) => ({ query, ...state(sizes, step, query) })),
    written: finished.queries,
    difference: finished.difference,
  };
}

// HBM: Q, the scores' place, O and L side by side, the keys above and the values below their columns. Returns how to show a step.
function drawHbm(chart) {
  const cell = 13;
  const [left, top, right, below] = [92, 92, 256, 256];
  const put = (kind, attributes, text) => chart.appendChild(svg(kind, { "aria-hidden": "true", ...attributes }, text));
  const place = (role, x, y, width, height) => put("rect", { class: `attn-place ${role}`, x: x + 0.5, y: y + 0.5, width: width - 1, height: height - 1 });
  const letter = (x, y, text) => put("text", { class: "attn-letter", x, y, "text-anchor": "middle" }, text);
  const along = range(0, LENGTH);
  for (const i of along) {
    if (i % 2 === 1) continue;
    put("text", { class: "attn-index", x: 26, y: top + i * cell + 10, "text-anchor": "end" }, String(i));
    put("text", { class: "attn-index", x: left + i * cell + 6.5, y: 28, "text-anchor": "middle" }, String(i));
  }
  put("text", { x: left + 78, y: 13, "text-anchor": "middle" }, "key j");
  put("text", { x: 0, y: top - 24 }, "query i");
  [[58, top - 6, "Q"], [left - 12, 62, "K\u1d40"], [left - 12, 290, "V\u1d40"], [right + 26, top - 6, "O"], [right + 64, top - 6, "L"]].forEach((at) => letter(...at));
  const cells = along.flatMap((i) => along.map((j) => place("attn-s", left + j * cell, top + i * cell, cell, cell)));
  const hatches = along.flatMap((i) => along.map((j) => put("path", { class: "attn-masked", d: `M${left + j * cell + 2} ${top + (i + 1) * cell - 2}l9 -9` })));
  put("rect", { class: "attn-empty", x: left, y: top, width: LENGTH * cell, height: LENGTH * cell });
  const queries = along.map((i) => place("attn-q", 32, top + i * cell, WIDTH * cell, cell));
  const outputs = along.map((i) => [place("attn-o", right, top + i * cell, WIDTH * cell, cell), place("attn-o", right + 58, top + i * cell, cell, cell)]);
  const keys = along.map((j) => place("attn-k", left + j * cell, 34, cell, WIDTH * cell));
  const values = along.map((j) => place("attn-v", left + j * cell, below, cell, WIDTH * cell));
  const walker = put("rect", { class: "attn-walker" });

  return (sizes, step, finished) => {
    const visited = plan(sizes).visited;
    const [top0, left0] = visited[step - 1];
    const done = new Set(visited.slice(0, step).map(String));
    const within = (start, count, index) => index >= start && index < start + count;
    along.forEach((index) => {
      queries[index].classList.toggle("attn-lit", within(top0, sizes.rows, index));
      for (const passing of [keys, values]) passing[index].classList.toggle("attn-lit", within(left0, sizes.columns, index));
      for (const part of outputs[index]) part.classList.toggle("attn-lit", finished.includes(index));
    });
    cells.forEach((square, at) => {
      const [i, j] = [Math.floor(at / LENGTH), at % LENGTH];
      square.classList.toggle("attn-done", done.has(String([i - (i % sizes.rows), j - (j % sizes.columns)])));
      hatches[at].toggleAttribute("hidden", sees(i, j, sizes.causal));
    });
    const at = { x: left + left0 * cell, y: top + top0 * cell, width: sizes.columns * cell, height: sizes.rows * cell };
    for (const [name, value] of Object.entries(at)) walker.setAttribute(name, value);
  };
}

// The chip: the tile's queries, keys, values and scores, each with its numbers.
function drawChip(chart, sizes, step) {
  const [wide, high, gap] = [19, 17, 8];
  const [top0, left0] = plan(sizes).visited[step - 1];
  const [left, top] = [24 + WIDTH * wide + gap, 22 + WIDTH * high + gap];
  const below = top + sizes.rows * high + gap;
  chart.replaceChildren();
  chart.setAttribute("viewBox", `0 0 ${Math.max(340, left + sizes.columns * wide + 20)} ${below + WIDTH * high + 4}`); // room for "S"
  const write = (attributes, text) => chart.append(svg("text", { "aria-hidden": "true", "text-anchor": "middle", ...attributes }, text));
  const square = (role, x, y, value) => {
    chart.append(svg("rect", { class: `attn-place ${role}`, x: x + 0.5, y: y + 0.5, width: wide - 1, height: high - 1 }));
    write({ class: "attn-on-cell", x: x + wide / 2, y: y + 12.5 }, value === -Infinity ? "\u2212\u221e" : decimal(value, 0));
  };
  range(0, sizes.rows).forEach((r) => {
    write({ x: 20, y: top + r * high + 12.5, "text-anchor": "end" }, String(top0 + r));
    Q[top0 + r].forEach((entry, c) => square("attn-q", 24 + c * wide, top + r * high, entry));
    range(0, sizes.columns).forEach((k) => square("attn-s", left + k * wide, top + r * high, score(top0 + r, left0 + k, sizes.causal)));
  });
  range(0, sizes.columns).forEach((k) => {
    write({ x: left + (k + 0.5) * wide, y: 16 }, String(left0 + k));
    K[left0 + k].forEach((entry, c) => square("attn-k", left + k * wide, 22 + c * high, entry));
    V[left0 + k].forEach((entry, c) => square("attn-v", left + k * wide, below + c * high, entry));
  });
  const name = (x, y, text) => write({ class: "attn-letter", x, y }, text);
  name(24 + 2 * wide, top - 6, "Q");
  name(left - 14, 22 + 2 * high + 4, "K\u1d40");
  name(left - 14, below + 2 * high + 4, "V\u1d40");
  name(left + sizes.columns * wide + 12, top + (sizes.rows * high) / 2 + 4, "S");
}

// Three bars over one axis of bytes, each with a mark where it will end. Returns how to show a step.
function drawBytes(chart) {
  const [left, floor] = [10, 122];
  const at = drawAxis(chart, { side: "bottom", span: [left, 322], cross: floor, ticks: [0, 1000, 2000, 3000], label: "bytes" });
  const bars = [["attn-tiled", "tiles have moved"], ["attn-plain", "plain attention has moved"], ["attn-held", "the chip holds"]].map(([kind, name], row) => {
    const y = 38 * row + 18;
    const bar = chart.appendChild(svg("rect", { class: `attn-bar ${kind}`, x: left, y, height: 14 }));
    const goal = chart.appendChild(svg("path", { class: "attn-goal" }));
    return { name, y, bar, goal, said: chart.appendChild(svg("text", { class: "attn-on-cell", x: left, y: y - 5, "data-bytes": kind })) };
  });
  return (...amounts) =>
    amounts.forEach(([bytes, all], row) => {
      const { name, y, bar, goal, said } = bars[row];
      bar.setAttribute("width", at(bytes) - left);
      goal.setAttribute("d", `M${at(all)} ${y - 2}v18`);
      said.textContent = `${name} ${bytes === all ? "" : `${bytes} of `}${all} bytes`;
    });
}

function start(root) {
  const one = (selector) => root.querySelector(`.attn-live ${selector}`);
  const chart = (name) => one(`[data-chart="${name}"]`);
  const slider = (name) => one(`[data-size="${name}"]`);
  const causal = one('[data-toggle="causal"]');
  const [showHbm, showBytes] = [drawHbm(chart("hbm")), drawBytes(chart("bytes"))];

  function chosen() {
    const size = (name) => SIZES[Number(slider(name).value)];
    return { rows: size("rows"), columns: size("columns"), causal: causal.getAttribute("aria-pressed") === "true" };
  }

  function draw() {
    const sizes = chosen();
    slider("step").max = plan(sizes).visited.length;
    const step = Number(slider("step").value);
    const shown = describe(sizes, step);
    showBeside(slider("step"), `${step} of ${shown.steps}`);
    showBeside(slider("rows"), sizes.rows);
    showBeside(slider("columns"), sizes.columns);
    showHbm(sizes, step, shown.written);
    drawChip(chart("chip"), sizes, step);
    showBytes([shown.moved, shown.all], [Math.round((PLAIN * step) / shown.steps), PLAIN], [shown.held, shown.held]);
    one("tbody").replaceChildren(...shown.block.map(stateRow));
    const facts = {
      skipped: `${shown.skipped} of ${shown.skipped + shown.steps}`,
      written: `${shown.written.length} of ${LENGTH}`,
      difference: shown.written.length === 0 ? "none is written yet" : shown.difference < 1e-12 ? "below 10\u207b\u00b9\u00b2" : String(shown.difference),
    };
    for (const [fact, text] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = text;
    speak(root, summary(sizes, step, shown));
  }

  function move(by) {
    const before = slider("step").value;
    slider("step").value = Number(before) + by;
    draw();
    return slider("step").value !== before;
  }

  // Another tile is another walk.
  function rewind() {
    slider("step").value = 1;
    draw();
  }

  slider("step").addEventListener("input", draw);
  for (const name of ["rows", "columns"]) slider(name).addEventListener("input", rewind);
  causal.addEventListener("click", () => {
    causal.setAttribute("aria-pressed", String(causal.getAttribute("aria-pressed") !== "true"));
    rewind();
  });
  onReset(root, draw);
  play(root, { move, rewind, every: 500 });
  root.explorable = { given: { Q, K, V }, describe };
  draw();
}

function stateRow({ query, max, factor, sum, acc }) {
  const row = document.createElement("tr");
  row.innerHTML = '<th scope="row"></th>';
  row.firstChild.textContent = String(query);
  const texts = [decimal(max, 0), decimal(factor, 3), decimal(sum, 2), ...acc.map((entry) => decimal(entry, 2))];
  for (const text of texts) row.insertCell().textContent = text;
  return row;
}

function summary(sizes, step, { moved: now, all }) {
  const { visited } = plan(sizes);
  const [i, j] = visited[step - 1];
  const span = (start, count, one, many) => (count === 1 ? `${one} ${start}` : `${many} ${start} to ${start + count - 1}`);
  const tile = `${span(i, sizes.rows, "query", "queries")}, ${span(j, sizes.columns, "key", "keys")}`;
  const result = `In all tiles move ${all} bytes and plain attention ${PLAIN}.`;
  if (step === visited.length) return `Done: all rows of O are written, and they are those of plain attention. ${result} No score left the chip.`;
  const next = ends(visited, step) ? "This block of queries has seen all its keys, so its rows of O are written." : "These queries stay; the next keys and values come.";
  return `Tile ${step} of ${visited.length}: ${tile}. ${next} ${now} bytes have moved so far. ${result}`;
}
