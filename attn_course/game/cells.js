// Matrices whose cells can be walked with the arrow keys: inputs, which can be changed, and results, which are looked at.
const NEAR = 1e-9;
const COARSE = matchMedia("(pointer: coarse)").matches;

// An element; JupyterLab leaves the keys to all that can be focused.
function make(tag, given = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (name === "html") element.innerHTML = value;
    else if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  if (["button", "input", "textarea", "select"].includes(tag) || "tabindex" in given) element.dataset.lmSuppressShortcuts = "true";
  if (tag === "button") element.type = "button";
  element.append(...inside);
  return element;
}

const symbol = (name) => name.replace(/_(.+)$/, "<sub>$1</sub>");
const letter = (name) => `<i>${symbol(name)}</i>`;
const near = (a, b) => Number.isFinite(a) && Number.isFinite(b) && Math.abs(a - b) <= NEAR * Math.max(1, Math.abs(a), Math.abs(b));
const differs = (a, b) => !(Object.is(a, b) || a === b || near(a, b));

// A number as short as a cell wants it.
function shown(value) {
  if (value === Infinity || value === -Infinity) return value > 0 ? "\u221e" : "\u2212\u221e";
  if (Number.isNaN(value)) return "NaN";
  if (Math.abs(value) >= 1e5) return value.toExponential(0).replace("e+", "e").replace("-", "\u2212");
  return decimal(value, Number.isInteger(value) ? 0 : Math.abs(value) >= 100 ? 1 : 2);
}

// Two numbers that differ, with as many digits as show it.
function shownApart(a, b) {
  if (![a, b].every(Number.isFinite)) return [a, b].map(shown);
  const texts = [(x) => shown(x).replace(/\.0+$/, ""), ...[3, 4, 5, 6].map((digits) => (x) => decimal(x, digits)), (x) => x.toExponential(3), (x) => decimal(x, 9)];
  const write = texts.find((text) => text(a) !== text(b)) ?? String;
  return (write === texts[0] ? [shown(a), shown(b)] : [write(a), write(b)]).map((text) => text.replaceAll("-", "\u2212"));
}

// How many digits stand after the point.
const decimals = (text) => text.match(/^\u2212?\d+\.(\d+)$/)?.[1].length ?? 0;

// How many digits after the point all pairs need to be seen to differ: 2 or more, and more than 6 in a cell of its own only.
const digitsOf = (pairs) =>
  Math.max(2, ...pairs.filter(([a, b]) => differs(a, b)).flatMap(([a, b]) => shownApart(a, b).map(decimals)).filter((digits) => digits <= 6));

// A number beside the other machine's, with as many digits as its neighbours have.
function even(value, other, digits) {
  const text = differs(value, other) ? shownApart(value, other)[0] : shown(value);
  return digits > 2 && decimals(text) > 0 && decimals(text) <= digits ? decimal(value, digits) : text;
}

// Read what somebody typed; undefined as long as it is no number.
function typed(text) {
  const value = Number(text.trim().replace("\u2212", "-").replace(",", "."));
  return text.trim() === "" || !Number.isFinite(value) ? undefined : value;
}

// Every number of a value with 1 to 3 axes, with its index.
function entries(value, index = []) {
  return Array.isArray(value) ? value.flatMap((inner, i) => entries(inner, [...index, i])) : [[index, value]];
}

const at = (value, index) => index.reduce((inner, i) => inner?.[i], value);

// Where a cell stands, by the names of the axes: {query: 1, key: 2}.
const places = (axes, index) => Object.fromEntries(axes.map((axis, n) => [axis, index[n]]));

// A matrix as a figure: the arrow that brings it, its name and shape, a table with words at its sides.
class Matrix {
  constructor(part, value, labels, cell) {
    this.part = part;
    this.axes = part.axes;
    this.heads = this.axes[0] === "head";
    const planes = this.heads ? value : [value];
    const rows = planes[0].map((row) => (Array.isArray(row) ? row : [row]));
    const [down, across] = this.axes.slice(this.heads ? 1 : 0);
    const [left, above] = labels.slice(this.heads ? 1 : 0);
    this.cells = [];
    this.tables = planes.map((plane, h) =>
      make(
        "table",
        { "aria-label": `${part.title}${planes.length > 1 ? `, head ${h}` : ""}` },
        ...(planes.length > 1 ? [make("caption", {}, `head ${h}`)] : []),
        make("thead", {}, make("tr", {}, make("td"), ...rows[0].map((_, j) => make("th", { scope: "col" }, above?.[j] ?? "")))),
        make(
          "tbody",
          {},
          ...rows.map((row, i) =>
            make(
              "tr",
              {},
              make("th", { scope: "row" }, left[i]),
              ...row.map((_, j) => {
                const index = [...(this.heads ? [h] : []), i, ...(across ? [j] : [])];
                const between = down === "query" && across === "key" ? " \u2192 " : ", ";
                const name = across ? `${left[i]}${between}${above[j]}` : left[i];
                const made = cell({ index, name: `${planes.length > 1 ? `head ${h}, ` : ""}${name}` });
                this.cells.push({ index, name, element: made });
                return make("td", {}, made);
              }),
            ),
          ),
        ),
      ),
    );
    const shape = [...(planes.length > 1 ? [part.planes ?? planes.length] : []), rows.length, ...(across ? [rows[0].length] : [])];
    this.figure = make(
      "figure",
      { class: "brk-part", "data-role": part.role ?? "neutral", "data-part": part.name },
      make("figcaption", {}, ...this.caption(shape)),
      make("div", { class: "brk-scroll" }, ...this.tables),
    );
  }

  caption(shape) {
    return [
      make("span", { class: "brk-arrow", "aria-hidden": "true" }, make("span")),
      make("span", { class: "brk-is" }, make("span", { class: "brk-symbol", html: symbol(this.part.name) }), ` ${this.part.title}${this.part.planes ? `, each for ${this.tables.length / this.part.planes} heads` : ""} `, make("span", { class: "brk-shape" }, shape.join(" \u00d7 "))),
    ];
  }

  // Show other numbers, of one head only or of all; `other` is the same matrix of the other machine, if there is one.
  show(value, other, compared, head) {
    const sizes = entries(value).map(([, x]) => (Number.isFinite(x) ? Math.abs(x) : 0));
    const top = Math.max(...sizes, this.part.role === "weights" ? 1 : 0) || 1;
    let different = 0, apart = false;
    const digits = other === undefined ? 2 : digitsOf(this.cells.map(({ index }) => [at(value, index), at(other, index)]));
    if (this.heads) this.tables.forEach((table, h) => (table.hidden = head !== undefined && h !== head));
    for (const cell of this.cells) {
      const now = at(value, cell.index);
      const far = other !== undefined && differs(now, at(other, cell.index));
      different += far;
      apart ||= far && !(this.heads && head !== undefined && cell.index[0] !== head);
      const then = far ? at(other, cell.index) : now, text = even(now, then, digits);
      cell.element.textContent = text;
      cell.element.style.setProperty("--share", Number.isFinite(now) ? Math.min(1, Math.abs(now) / top) : 0);
      cell.element.toggleAttribute("data-differs", far);
      cell.element.toggleAttribute("data-hidden", now === -Infinity);
      cell.element.toggleAttribute("data-below", now < 0);
      const beside = far ? `; ${compared} ${even(then, now, digits)}, differs` : "";
      cell.element.setAttribute("aria-label", `${this.part.title}, ${cell.name.replace("\u2192", "to")}: ${text}${beside}`);
    }
    this.figure.toggleAttribute("data-apart", apart);
    return different;
  }

  // Light the cells that were used to make one of another matrix.
  light(used) {
    for (const { element, index } of this.cells) element.toggleAttribute("data-used", used.has(`${this.part.name} ${index}`));
  }

  // Say which matrices it comes from.
  from(names) {
    this.figure.querySelector(".brk-arrow span").innerHTML = `from ${names.map((name) => (name === "the mask" ? name : letter(name))).join(", ")}`;
  }
}

// One stop of the Tab key for all cells of a group; the arrow keys go to the next cell in that direction, also in the next matrix.
function walk(group, selector) {
  const all = () => [...group.querySelectorAll(selector)].filter((cell) => cell.checkVisibility({ visibilityProperty: true }));
  const choose = (cell) => {
    for (const other of all()) other.tabIndex = other === cell ? 0 : -1;
  };
  group.addEventListener("focusin", (event) => event.target.matches(selector) && choose(event.target));
  group.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !event.target.matches(selector)) return;
    if (selector === "input" && step[0] && !atTheEdge(event.target, step[0])) return;
    event.preventDefault();
    nextCell(event.target, all(), step)?.focus();
  });
  return () => choose(all().find((cell) => cell.tabIndex === 0) ?? all()[0]);
}

// The left and right keys leave a text only where they would not move inside it; a text that is wholly chosen has no inside.
function atTheEdge(field, way) {
  const { selectionStart: from, selectionEnd: to, value } = field;
  return to - from === value.length || (from === to && from === (way < 0 ? 0 : value.length));
}

function nextCell(from, cells, [right, down]) {
  const middle = (cell) => {
    const box = cell.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const [x, y] = middle(from);
  let best, least = Infinity;
  for (const cell of cells) {
    const [dx, dy] = middle(cell).map((place, n) => place - [x, y][n]);
    const along = dx * right + dy * down;
    const aside = Math.abs(dx * down + dy * right);
    if (along < 4 || aside > (right ? 20 : 2 * along)) continue;
    if (along + 3 * aside < least) [best, least] = [cell, along + 3 * aside];
  }
  return best;
}
