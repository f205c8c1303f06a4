const QUERY = [[1.2, -0.4, 0.6], [-0.8, 1.1, 0.3], [0.5, 0.9, -1.3], [1.6, 0.2, 0.7], [-0.3, -1.2, 0.8]];
const KEY = [[0.9, 0.1, -0.5], [-0.6, 1.4, 0.2], [0.4, -0.7, 1.1], [1.3, 0.8, -0.9], [-1.1, 0.3, 0.6], [0.2, -1.5, 0.4]];
const VALUE = [[1, 0], [0, 1], [-1, 0], [0, -1], [2, 1], [-1, 2]];
const D_K = 3;

const T = "<sup>⊤</sup>";
const sub = (letter, index) => `${letter}<sub>${index}</sub>`;
const code = (text) => `<code>${text}</code>`;

// What each dialect writes. `turned`: columns are positions, so every table stands on its side.
const DIALECTS = {
  course: {
    turned: false,
    title: "In the course's own words",
    formula: code("softmax(query @ key.T / sqrt(d_k)) @ value"),
    names: { query: code("query"), key: code("key"), value: code("value"), weights: code("scores"), output: code("output") },
    axes: { query: ["q_len", "d_k"], key: ["kv_len", "d_k"], value: ["kv_len", "d_v"] },
    projection: `${code("x @ w_query")}, w_query is d_model × d_k`,
    axis: "along each row, the last axis",
    mask: "True = may attend; hidden strictly above the diagonal",
  },
  points: {
    turned: false,
    title: "With m data points",
    formula: `Z = σ(Q K${T} / √q) V`,
    names: { query: "Q", key: "K", value: "V", weights: `Q K${T} / √q`, output: "Z" },
    axes: { query: ["m", "q"], key: ["m", "q"], value: ["m", "v′"] },
    projection: `Q = X ${sub("W", "Q")}, ${sub("W", "Q")} is v × q; here q and v are lengths`,
    axis: "σ along each row; one m for queries and keys",
    mask: "hidden strictly above the diagonal",
  },
  columns: {
    turned: true,
    title: "With columns as positions",
    formula: `V softmax(K${T} Q / √${sub("d", "k")}), columns normalised`,
    names: { query: "Q", key: "K", value: "V", weights: `K${T} Q / √${sub("d", "k")}`, output: "V softmax(…)" },
    axes: { query: [sub("T", "q"), sub("d", "k")], key: [sub("T", "k"), sub("d", "k")], value: [sub("T", "k"), sub("d", "v")] },
    projection: `q = ${sub("W", "Q")} z, ${sub("W", "Q")} is ${sub("d", "k")} × ${sub("d", "model")}`,
    axis: "down each column, axis 0",
    mask: "hidden strictly BELOW the diagonal",
  },
  transformer: {
    turned: false,
    title: "In “Attention Is All You Need”",
    formula: `Attention(Q, K, V) = softmax(Q K${T} / √${sub("d", "k")}) V`,
    names: { query: "Q", key: "K", value: "V", weights: `Q K${T} / √${sub("d", "k")}`, output: "Attention(Q, K, V)" },
    axes: { query: ["n", sub("d", "k")], key: ["n", sub("d", "k")], value: ["n", sub("d", "v")] },
    projection: `X W<sup>Q</sup>, W<sup>Q</sup> is ${sub("d", "model")} × ${sub("d", "k")}; elsewhere X ${sub("W", "Q")}, f × d`,
    axis: "along each row",
    mask: "−∞ strictly above the diagonal, before the softmax",
  },
  torch: {
    turned: false,
    title: "In PyTorch",
    formula: code("F.scaled_dot_product_attention(query, key, value, attn_mask)"),
    names: { query: code("query"), key: code("key"), value: code("value"), weights: "inside", output: "returned" },
    axes: { query: ["L", "E"], key: ["S", "E"], value: ["S", "Ev"] },
    projection: `${code("nn.Linear")} keeps W as out × in, and computes x W${T}`,
    axis: code("dim=-1"),
    mask: `True = may attend here, but True = HIDE in ${code("nn.MultiheadAttention")}`,
  },
};

const transpose = (rows) => rows[0].map((_, column) => rows.map((row) => row[column]));

// Weights and output as the dialect writes them down; null where a key is hidden.
function describe(dialect, qLen, kvLen, causal) {
  const turn = DIALECTS[dialect].turned ? transpose : (rows) => rows;
  const weights = QUERY.slice(0, qLen).map((query, i) => {
    const scores = KEY.slice(0, kvLen).map((key) => query.reduce((sum, entry, a) => sum + entry * key[a], 0) / Math.sqrt(D_K));
    const terms = scores.map((score, j) => (causal && j > i ? 0 : Math.exp(score)));
    const total = terms.reduce((sum, term) => sum + term, 0);
    return terms.map((term, j) => (causal && j > i ? null : term / total));
  });
  const output = weights.map((row) => [0, 1].map((a) => row.reduce((sum, weight, j) => sum + (weight ?? 0) * VALUE[j][a], 0)));
  return { weights: turn(weights), output: turn(output), shapes: shapesOf(DIALECTS[dialect].turned, qLen, kvLen) };
}

function shapesOf(turned, qLen, kvLen) {
  const rows = { query: [qLen, 3], key: [kvLen, 3], value: [kvLen, 2], weights: [qLen, kvLen], output: [qLen, 2] };
  return turned ? Object.fromEntries(Object.entries(rows).map(([name, shape]) => [name, [...shape].reverse()])) : rows;
}

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const slider = (name) => one(`[data-size="${name}"]`);
  const size = (name) => Number(slider(name).value);
  const isPressed = (button) => button.getAttribute("aria-pressed") === "true";

  function draw() {
    slider("i").max = size("queries") - 1; // the browser moves the value along
    slider("j").max = size("keys") - 1;
    const dialect = all("[data-dialect]").find(isPressed).dataset.dialect;
    const words = DIALECTS[dialect];
    const causal = isPressed(one('[data-toggle="causal"]'));
    const shown = describe(dialect, size("queries"), size("keys"), causal);
    for (const input of all("[data-size]")) showBeside(input, input.value);
    for (const fact of ["formula", "projection", "axis", "mask"]) one(`[data-fact="${fact}"]`).innerHTML = words[fact];
    const axes = { ...words.axes, weights: [words.axes.query[0], words.axes.key[0]], output: [words.axes.query[0], words.axes.value[1]] };
    for (const [name, shape] of Object.entries(shown.shapes)) {
      one(`[data-name="${name}"]`).innerHTML = words.names[name];
      one(`[data-axes="${name}"]`).innerHTML = (words.turned ? [...axes[name]].reverse() : axes[name]).join(" × ");
      one(`[data-shape="${name}"]`).textContent = shape.join(" × ");
    }
    one('[data-fact="pair"]').textContent = placed(words, shown.weights, size("i"), size("j"));
    drawWeights(one('[data-grid="weights"]'), shown.weights, words.turned, size("i"), size("j"));
    drawOutput(one('[data-grid="output"]'), shown.output, words.turned);
    speak(root, summary(words, shown, size("i"), size("j")));
  }

  for (const input of all("[data-size]")) input.addEventListener("input", draw);
  for (const button of all("[data-dialect]")) {
    button.addEventListener("click", () => {
      for (const other of all("[data-dialect]")) other.setAttribute("aria-pressed", String(other === button));
      draw();
    });
  }
  for (const button of all("[data-toggle]")) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(!isPressed(button)));
      draw();
    });
  }
  one('[data-grid="weights"]').addEventListener("click", (event) => {
    if (!event.target.dataset.pair) return;
    [slider("i").value, slider("j").value] = event.target.dataset.pair.split(",");
    draw();
  });
  onReset(root, () => {
    draw(); // the sizes first, so that the pair has room again
    for (const name of ["i", "j"]) slider(name).value = slider(name).defaultValue;
    draw();
  });
  root.explorable = { describe };
  draw();
}

function drawWeights(grid, weights, turned, i, j) {
  const [down, across] = turned ? ["key", "query"] : ["query", "key"];
  const [row, column] = turned ? [j, i] : [i, j];
  const total = (entries) => entries.reduce((sum, weight) => sum + (weight ?? 0), 0);
  grid.caption.textContent = `Weights: rows are ${turned ? "keys, columns are queries" : "queries, columns are keys"}`;
  const head = ["", ...weights[0].map((_, c) => `${across} ${c}`), ...(turned ? [] : ["sum"])];
  const lines = weights.map((entries, r) => {
    const cells = entries.map((weight, c) => cell(weight, turned ? [c, r] : [r, c], r === row && c === column));
    return line(`${down} ${r}`, turned ? cells : [...cells, sumCell(total(entries))]);
  });
  const foot = turned ? [line("sum", transpose(weights).map((entries) => sumCell(total(entries))))] : [];
  grid.tBodies[0].replaceChildren(header(head), ...lines, ...foot);
}

function drawOutput(grid, output, turned) {
  grid.caption.textContent = `Output: ${turned ? "one column" : "one row"} per query`;
  const name = (kind, n) => (kind ? `query ${n}` : `feature ${n}`);
  const lines = output.map((entries, r) => line(name(!turned, r), entries.map((entry) => plainCell(decimal(entry, 2)))));
  grid.tBodies[0].replaceChildren(header(["", ...output[0].map((_, c) => name(turned, c))]), ...lines);
}

function header(texts) {
  const row = document.createElement("tr");
  row.append(
    ...texts.map((text) => {
      const head = document.createElement(text ? "th" : "td");
      if (text) head.scope = "col";
      else head.className = "attn-sum";
      head.textContent = text;
      return head;
    }),
  );
  return row;
}

function line(name, cells) {
  const row = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = name;
  row.append(head, ...cells);
  return row;
}

function plainCell(text, className = "") {
  const made = document.createElement("td");
  made.textContent = text;
  made.className = className;
  return made;
}

function sumCell(total) {
  return plainCell(decimal(total, 2), "attn-sum");
}

function cell(weight, pair, isPair) {
  const made = plainCell(weight === null ? "hidden" : decimal(weight, 2), [weight === null ? "attn-hidden" : "", isPair ? "attn-pair" : ""].join(" ").trim());
  made.dataset.pair = pair;
  made.style.setProperty("--attn-share", weight ?? 0);
  return made;
}

function placed(words, weights, i, j) {
  const [row, column] = words.turned ? [j, i] : [i, j];
  const weight = weights[row][column];
  return `${weight === null ? "hidden" : decimal(weight, 2)}, in row ${row}, column ${column}`;
}

function summary(words, { weights, shapes }, i, j) {
  return (
    `${words.title}, scores and weights are ${shapes.weights.join(" × ")}, and each ${words.turned ? "column" : "row"} sums to 1. ` +
    `The weight of key ${j} for query ${i}: ${placed(words, weights, i, j)}. ` +
    `${words.turned ? "This way of writing turns every table on its side." : "No table is turned: positions are rows."}`
  );
}
