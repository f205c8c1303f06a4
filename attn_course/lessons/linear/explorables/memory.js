const NAMES = ["A", "B", "C"];
const STORY = [["A", 1], ["B", 1], ["A", -1]]; // the card opens before the last of these
const LENGTH = 2; // how far the axes reach

// Everything the card shows: the state after all writes, and what each key reads. Values are single numbers, so the state is a vector.
function describe({ angles, writes, rule, beta }) {
  const keys = Object.fromEntries(NAMES.map((name) => [name, [Math.cos((angles[name] * Math.PI) / 180), Math.sin((angles[name] * Math.PI) / 180)]]));
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1];
  let state = [0, 0];
  const written = {};
  for (const [name, value] of writes) {
    const change = rule === "sums" ? value : beta * (value - dot(state, keys[name]));
    state = [state[0] + change * keys[name][0], state[1] + change * keys[name][1]];
    written[name] = value;
  }
  const read = Object.fromEntries(NAMES.map((name) => [name, dot(state, keys[name])]));
  return { keys, state, written, read };
}

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const all = (selector) => [...root.querySelectorAll(selector)];
  const beta = one("[data-beta]");
  const chart = one(".attn-plane");
  const ticks = [-2, -1, 0, 1, 2];
  const across = drawAxis(chart, { side: "bottom", span: [40, 316], cross: 298, ticks, label: "first entry" });
  const up = drawAxis(chart, { side: "left", span: [298, 22], cross: 40, ticks, label: "second entry" });
  let writes = STORY;
  let done = 2; // how many of the writes have happened

  const at = ([x, y]) => [across(x), up(y)];
  const pressed = (name) => one(`[data-rule="${name}"]`).getAttribute("aria-pressed") === "true";

  function plane({ keys, state, read }, before) {
    const size = Math.hypot(...state);
    const shrink = size > LENGTH ? LENGTH / size : 1; // a long state stays inside the picture
    one("[data-shrunk]").hidden = shrink === 1;
    const scaled = (point) => point.map((entry) => entry * shrink);
    const shapes = [svg("path", { class: "attn-zero", d: `M ${at([-2, 0])} L ${at([2, 0])} M ${at([0, -2])} L ${at([0, 2])}` })];
    for (const name of NAMES) {
      const foot = scaled(keys[name].map((entry) => entry * read[name]));
      if (size > 0) shapes.push(svg("path", { class: "attn-foot", d: `M ${at(scaled(state))} L ${at(foot)}` }));
      shapes.push(svg("path", { class: "attn-key", d: arrow(at([0, 0]), at(keys[name])) }));
      const [along, beside] = [1.08, name === "A" ? -0.2 : 0.2]; // off the key's line, where the dashed lines end
      const [x, y] = at([along * keys[name][0] - beside * keys[name][1], along * keys[name][1] + beside * keys[name][0]]);
      shapes.push(svg("text", { class: "attn-name", x, y }, name));
    }
    shapes.push(svg("path", { class: "attn-state", d: arrow(at([0, 0]), at(scaled(state))) }));
    if (before) shapes.push(svg("path", { class: "attn-write", d: arrow(at(scaled(before.state)), at(scaled(state))) }));
    one("[data-shapes]").replaceChildren(...shapes);
  }

  function table({ written, read }, before) {
    const rows = NAMES.map((name) => {
      const row = document.createElement("tr");
      const has = name in written;
      const cells = [
        name,
        has ? decimal(written[name], 0) : "\u2013",
        before ? decimal(before.read[name], 2) : "\u2013",
        decimal(read[name], 2),
        has ? decimal(read[name] - written[name], 2) : "\u2013",
      ];
      cells.forEach((words, column) => {
        const cell = document.createElement(column ? "td" : "th");
        if (!column) cell.scope = "row";
        cell.textContent = words;
        row.append(cell);
      });
      return row;
    });
    one(".attn-live tbody").replaceChildren(...rows);
  }

  function tape() {
    const items = writes.map(([name, value], n) => {
      const item = document.createElement("li");
      item.textContent = `${name} = ${decimal(value, 0)}`;
      item.className = n >= done ? "attn-next" : n === done - 1 ? "attn-last" : "";
      return item;
    });
    one(".attn-tape").replaceChildren(...items);
  }

  function draw() {
    const angles = { A: 0 };
    for (const slider of all("[data-angle]")) {
      angles[slider.dataset.angle] = Number(slider.value);
      slider.setAttribute("aria-valuetext", `${slider.value} degrees`);
      slider.nextElementSibling.textContent = `${slider.value}\u00b0`;
    }
    const rule = pressed("sums") ? "sums" : "delta";
    beta.disabled = rule === "sums";
    showBeside(beta, decimal(Number(beta.value), 1));
    const after = (count) => describe({ angles, writes: writes.slice(0, count), rule, beta: Number(beta.value) });
    const shown = after(done);
    const before = done > 0 ? after(done - 1) : null;
    plane(shown, before);
    table(shown, before);
    tape();
    speak(root, summary(shown, before, writes.slice(0, done), rule));
  }

  function write(list) {
    writes = list;
    done = list.length;
    draw();
  }

  function go(to) {
    if (to < 0 || to > writes.length) return false;
    done = to;
    draw();
    return true;
  }

  for (const slider of all("input")) slider.addEventListener("input", draw);
  for (const button of all("[data-rule]")) {
    button.addEventListener("click", () => {
      for (const other of all("[data-rule]")) other.setAttribute("aria-pressed", String(other === button));
      draw();
    });
  }
  for (const button of all("[data-write]")) {
    button.addEventListener("click", () => write([...writes.slice(0, done), [button.dataset.write, Number(button.dataset.value)]]));
  }
  one("[data-clear]").addEventListener("click", () => write([]));
  play(root, { every: 1200, move: (by) => go(done + by), rewind: () => go(0) });
  onReset(root, () => {
    writes = STORY;
    go(2);
  });
  root.explorable = { describe };
  draw();
}

// A line with a head, in the picture's own units; nothing where there is no way to go.
function arrow([x0, y0], [x1, y1]) {
  const length = Math.hypot(x1 - x0, y1 - y0);
  if (length < 0.5) return "";
  const [ux, uy, head] = [(x1 - x0) / length, (y1 - y0) / length, Math.min(10, length / 2)];
  const wing = (side) => `${x1 - head * (ux - side * 0.6 * uy)} ${y1 - head * (uy + side * 0.6 * ux)}`;
  return `M ${x0} ${y0} L ${x1} ${y1} M ${wing(1)} L ${x1} ${y1} L ${wing(-1)}`;
}

function summary({ written, read }, before, writes, rule) {
  if (!writes.length) return "Nothing is written yet: the state is zero, and every key reads 0.";
  const list = writes.map(([name, value]) => `${name} = ${decimal(value, 0)}`).join(", ");
  const reads = Object.keys(written).sort().map((name) => `${name} reads ${decimal(read[name], 2)} instead of ${decimal(written[name], 0)}`);
  const last = writes.at(-1)[0];
  const moved = Object.keys(written).sort().filter((name) => name !== last);
  const told = moved.map((name) => `what ${name} reads from ${decimal(before.read[name], 2)} to ${decimal(read[name], 2)}`);
  const side = told.length ? ` Writing ${last} last has moved ${told.join(" and ")}.` : "";
  return `Written by ${rule === "sums" ? "sums" : "the delta rule"}: ${list}. ${reads.join("; ")}.${side}`;
}
