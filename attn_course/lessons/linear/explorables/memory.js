const QUIET_MS = 250; // a screen reader hears the summary once the slider rests
const NAMES = ["A", "B", "C"];

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
  const beta = one("[data-beta]");
  const svg = one(".attn-plane").namespaceURI;
  let writes = NAMES.map((name) => [name, 1]);
  let rule = "delta";
  let speaking = 0;

  function line(from, to, kind) {
    const shape = document.createElementNS(svg, "line");
    for (const [name, value] of Object.entries({ x1: from[0], y1: -from[1], x2: to[0], y2: -to[1], class: kind })) shape.setAttribute(name, value);
    return shape;
  }

  function label(at, words) {
    const shape = document.createElementNS(svg, "text");
    shape.setAttribute("x", at[0]);
    shape.setAttribute("y", -at[1]);
    shape.textContent = words;
    return shape;
  }

  function plane({ keys, state, read }) {
    const size = Math.hypot(...state);
    const shrink = size > 2.4 ? 2.4 / size : 1; // a long state stays inside the picture
    one("[data-shrunk]").hidden = shrink === 1;
    const end = state.map((entry) => entry * shrink);
    const shapes = [line([-2.5, 0], [2.5, 0], "attn-axis"), line([0, -2.5], [0, 2.5], "attn-axis")];
    for (const name of NAMES) {
      const key = keys[name];
      if (size > 0) shapes.push(line(end, key.map((entry) => entry * read[name] * shrink), "attn-foot"));
      shapes.push(line([0, 0], key, "attn-key-arrow"), label(key.map((entry) => entry * 1.25), name));
    }
    shapes.push(line([0, 0], end, "attn-state"));
    one(".attn-plane").replaceChildren(...shapes);
  }

  function table({ written, read }) {
    const rows = NAMES.map((name) => {
      const row = document.createElement("tr");
      const has = name in written;
      const cells = [name, has ? decimal(written[name], 0) : "\u2013", decimal(read[name], 2), has ? decimal(read[name] - written[name], 2) : "\u2013"];
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

  function draw() {
    const angles = { A: 0 };
    for (const slider of root.querySelectorAll("[data-angle]")) {
      angles[slider.dataset.angle] = Number(slider.value);
      slider.setAttribute("aria-valuetext", `${slider.value} degrees`);
      slider.nextElementSibling.textContent = `${slider.value}\u00b0`;
    }
    beta.disabled = rule === "sums";
    beta.setAttribute("aria-valuetext", decimal(Number(beta.value), 1));
    beta.nextElementSibling.textContent = decimal(Number(beta.value), 1);
    for (const button of root.querySelectorAll("[data-rule]")) button.setAttribute("aria-pressed", String(button.dataset.rule === rule));
    const shown = describe({ angles, writes, rule, beta: Number(beta.value) });
    plane(shown);
    table(shown);
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(shown, writes, rule)), QUIET_MS);
  }

  for (const slider of root.querySelectorAll("input")) slider.addEventListener("input", draw);
  for (const button of root.querySelectorAll("[data-rule]")) {
    button.addEventListener("click", () => {
      rule = button.dataset.rule;
      draw();
    });
  }
  for (const button of root.querySelectorAll("[data-write]")) {
    button.addEventListener("click", () => {
      writes.push([button.dataset.write, Number(button.dataset.value)]);
      draw();
    });
  }
  one("[data-clear]").addEventListener("click", () => {
    writes = [];
    draw();
  });
  root.explorable = { describe };
  draw();
}

function summary({ written, read }, writes, rule) {
  if (!writes.length) return "Nothing is written yet: the state is zero, and every key reads 0.";
  const list = writes.map(([name, value]) => `${name} = ${decimal(value, 0)}`).join(", ");
  const reads = Object.keys(written).sort().map((name) => `${name} reads ${decimal(read[name], 2)} instead of ${decimal(written[name], 0)}`);
  return `Written by ${rule === "sums" ? "sums" : "the delta rule"}: ${list}. ${reads.join("; ")}.`;
}
