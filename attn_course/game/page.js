// The page: what goes in, what the machine and its twin make of it, and one panel that says what to do.
const BLIND = "Under this mask the first word may look at no key. It has nothing to share out, so the machine's row of weights is all 0.";
const QUIET_MS = 250; // a screen reader hears the count once the hand rests
const FIRST_SCORES = MACHINE.parts.find(({ role }) => role === "scores").name;

const copied = (inputs) => JSON.parse(JSON.stringify(inputs));
// The names of all places; three features are the first three of the sentence.
function labelsOf(name, inputs) {
  const found = MACHINE.labels(name, inputs);
  const small = inputs.X[0].length === SMALL.X[0].length;
  const ours = (label) => (small && /^x\d$/.test(label) ? MACHINE.features[label[1]] : label);
  return (Array.isArray(found) ? found : [found.rows, found.columns]).map((names) => names.map(ours));
}

// A place in words: "the weight `it` \u2192 `cat` in head 1", "V of `it`, 0".
function nameOf(part, index, inputs) {
  const names = labelsOf(part.name, inputs).map((names, n) => names[index[n]]);
  const head = part.axes[0] === "head" ? names.shift() : "", [one, other] = names;
  const pair = part.axes.at(-1) === "key" && other;
  const place = pair ? `the ${part.title.replace(/s$/, "")} \`${one}\` \u2192 \`${other}\`` : `${part.name} of \`${one}\`${other ? `, ${other},` : ""}`;
  return inputs.heads > 1 && head ? `${place} in ${head}` : place;
}

// How many key heads make what several heads share, or undefined where each has its own.
function sharedBy({ name }, inputs) {
  const heads = (inputs.W_K[0].length * inputs.heads) / inputs.W_Q[0].length;
  return ["K", "V"].includes(name) && heads < inputs.heads ? heads : undefined;
}

const partNamed = (name) => MACHINE.parts.find((part) => part.name === name);

// The parts in the rows in which they are drawn: what each word has, who looks at whom, what comes out.
function stages() {
  const pairs = MACHINE.parts.findIndex(({ role }) => role === "scores");
  const found = MACHINE.parts.findLastIndex(({ role }) => role === "weights") + 1;
  return [MACHINE.parts.slice(0, pairs), MACHINE.parts.slice(pairs, found), MACHINE.parts.slice(found)];
}

// The parts that count for what a twin makes; the others it never looks at.
function usedBy(twin) {
  const used = new Set(["Y"]);
  for (const { name } of MACHINE.parts.toReversed()) if (used.has(name)) MACHINE.uses(name, twin).forEach((other) => used.add(other));
  return used;
}

// The first number that two machines make differently, and how many there are.
function apart(inputs, first, second) {
  const [here, there] = [first, second].map((twin) => MACHINE.compute(inputs, twin));
  const found = MACHINE.parts.flatMap((part) =>
    entries(here[part.name]).flatMap(([index, value]) => {
      const other = at(there[part.name], index);
      return differs(value, other) ? [{ part, index, value, other }] : [];
    }),
  );
  return { count: found.length, first: found[0] };
}

function start(root) {
  const one = (name) => root.querySelector(`[data-${name}]`);
  const desk = { root, one, mode: "meet", level: 0, twin: null, inputs: {}, first: {}, about: null, head: 0, count: 0, apart: [], exposed: false };
  const inputs = [], results = [];
  const body = root.querySelector(".brk");
  let looks = [];
  let speaking = 0;

  desk.changes = () => Object.entries(desk.inputs).reduce((sum, [name, value]) => sum + changesOf(value, desk.first[name]), 0);

  // Begin with these numbers; the twin may be none.
  desk.begin = (given, twin) => {
    desk.first = copied(given);
    desk.inputs = copied(desk.first);
    desk.twin = twin;
    desk.about = null;
    desk.head = 0;
    buildInputs();
    buildBoard();
  };

  // Another twin for the same numbers.
  desk.pair = (twin) => {
    desk.twin = twin;
    buildBoard();
    desk.refresh();
  };

  desk.put = (name, index, value) => {
    if (index.length) at(desk.inputs[name], index.slice(0, -1))[index.at(-1)] = value;
    else desk.inputs[name] = value;
    desk.settle();
  };

  // Show what has changed, and leave the numbers where they are on the screen: the text above them may become longer.
  desk.settle = () => {
    const top = () => one("inputs").getBoundingClientRect().top, before = top();
    desk.refresh();
    for (let box = root; box && Math.abs(top() - before) > 1; box = box.parentElement) box.scrollTop += top() - before;
  };

  // What a number was at the start of a level.
  desk.restore = () => {
    desk.inputs = copied(desk.first);
    buildInputs();
    desk.refresh();
  };

  desk.say = (text) => {
    clearTimeout(speaking);
    speaking = setTimeout(() => (one("said").textContent = text), QUIET_MS);
  };

  desk.refresh = () => {
    // Without a twin two heads stand side by side, with one no more than one.
    const made = (desk.made = sides().map((twin) => MACHINE.compute(desk.inputs, twin)));
    if (shapesOf(made) !== desk.shapes) buildBoard();
    const head = made[0][WEIGHTS].length > 3 - made.length ? desk.head : undefined, far = made[0][WEIGHTS].map(() => 0);
    const used = sides().map(usedBy);
    desk.count = 0;
    desk.apart = [];
    desk.exposed = Boolean(desk.twin) && MACHINE.exposed(desk.inputs, desk.twin);
    results.forEach(({ views, side }) => {
      for (const view of views) {
        const name = view.part.name;
        const different = view.show(made[side][name], made[1 - side]?.[name], side ? "the machine has" : "the twin has", head);
        view.figure.hidden = repeats(view.part) || (view.part.role === "neutral" && !different && !body.hasAttribute("data-all"));
        view.figure.toggleAttribute("data-unused", !used[side].has(name));
        if (!side || !different || again(view.part)) continue;
        desk.count += different;
        desk.apart.push(name);
        if (view.heads) for (const { element, index } of view.cells) far[index[0]] += element.hasAttribute("data-differs");
      }
    });
    // What the twin uses is to be found.
    for (const { views, side } of results) for (const view of views) view.from(side ? ["?"] : sources(view.part.name));
    const looked = made.map((side) => (head === undefined ? side[WEIGHTS] : side[WEIGHTS][head]));
    looks.forEach((look, side) => {
      look.show(looked[side], looked[1 - side]);
      look.picture.parentElement.hidden = !used[side].has(WEIGHTS);
    });
    drawTabs(head, far);
    one("blind").hidden = desk.inputs.mask !== "past";
    for (const view of inputs) showInput(view);
    drawMission(desk);
    const here = desk.mode === "meet" ? placeToTry(desk) : [];
    for (const view of inputs) {
      for (const { element, index } of view.cells) element.toggleAttribute("data-here", view.part.name === here[0] && index[0] === here[1]);
    }
    drawAbout();
  };

  // The names of the matrices in sight that a part of the machine is made of.
  const hides = (name) => one("board").querySelector(`[data-part="${name}"]`)?.hidden;
  function sources(name) {
    const found = MACHINE.uses(name).flatMap((other) => (hides(other) ? sources(other) : other.replace("ahead", "the mask")));
    return [...new Set(found)].filter((other) => (other === "the mask" ? desk.inputs.mask !== "none" : partNamed(other) || other in desk.inputs));
  }

  // One head at a time, where there are many: which one, and in how many numbers the twin’s differs.
  function drawTabs(head, far) {
    const host = one("tabs"), shown = head === undefined ? [] : far;
    if (host.children.length !== shown.length) {
      const tab = (_, h) => make("button", { click: () => { desk.head = h; desk.refresh(); } });
      host.replaceChildren(...shown.map(tab));
    }
    shown.forEach((count, h) => {
      host.children[h].textContent = `head ${h}${count ? `: ${count} differ${count === 1 ? "s" : ""}` : ""}`;
      host.children[h].setAttribute("aria-pressed", String(h === head));
    });
  }

  // What only says again what the scores say, until somebody asks for every step.
  const again = ({ name, role, axes }) => role === "scores" && name !== FIRST_SCORES && (axes.at(-1) !== "key" || desk.inputs.mask === "none");
  const repeats = (part) => again(part) && !body.hasAttribute("data-all");
  const sides = () => (desk.twin ? [null, desk.twin] : [null]);
  const shapesOf = (made) => made.map((side) => MACHINE.parts.map(({ name }) => shapeOf(side[name]))).join();

  function buildInputs() {
    inputs.length = 0;
    const locked = desk.mode === "level" ? (MACHINE.levels[desk.level].locked ?? ["heads"]) : [];
    const open = MACHINE.inputs.filter(({ name }) => !locked.includes(name));
    const [matrices, options] = [open.filter(({ choices }) => !choices), open.filter(({ choices }) => choices)];
    one("inputs").replaceChildren(...matrices.map(grid), make("div", { class: "brk-options" }, ...options.map(option), make("p", { class: "brk-says", "data-blind": true }, BLIND)));
    stop.inputs();
  }

  function grid(spec) {
    const part = { ...spec, axes: [spec.name === "X" ? "token" : "row", "column"] };
    const field = ({ index, name }) => {
      const inputmode = COARSE ? "none" : "text";
      const cell = make("input", { type: "text", autocomplete: "off", tabindex: -1, inputmode, "aria-label": `${spec.name}, ${name}` });
      cell.addEventListener("focus", () => {
        cell.select();
        desk.about = { input: part, index, name, cell };
        drawAbout();
      });
      cell.addEventListener("click", () => cell.select());
      cell.addEventListener("input", () => {
        const value = typed(cell.value);
        cell.toggleAttribute("aria-invalid", value === undefined);
        if (value !== undefined) desk.put(spec.name, index, value);
      });
      cell.addEventListener("blur", () => {
        cell.removeAttribute("aria-invalid");
        desk.refresh();
      });
      cell.addEventListener("keydown", (event) => {
        const step = { PageUp: 1, PageDown: -1 }[event.key];
        if (event.key === "Escape") desk.put(spec.name, index, at(desk.first[spec.name], index));
        else if (step) desk.put(spec.name, index, at(desk.inputs[spec.name], index) + step);
        else if (event.key !== "Enter") return;
        event.preventDefault();
        cell.value = shown(at(desk.inputs[spec.name], index));
        cell.select();
      });
      return cell;
    };
    const view = new Matrix(part, desk.inputs[spec.name], labelsOf(spec.name, desk.inputs), field);
    inputs.push(view);
    return view.figure;
  }

  function option(spec) {
    const buttons = spec.choices.map((choice) => {
      const button = make("button", { click: () => desk.put(spec.name, [], choice) }, String(choice));
      button.dataset.choice = JSON.stringify([spec.name, choice]);
      return button;
    });
    const title = make("span", { "aria-hidden": "true" }, spec.title);
    return make("div", { class: "brk-option", role: "group", "aria-label": spec.title, "data-option": spec.name }, title, ...buttons);
  }

  function showInput(view) {
    const { name } = view.part;
    for (const { element, index } of view.cells) {
      const [now, then] = [desk.inputs, desk.first].map((all) => at(all[name], index));
      if (element !== element.getRootNode().activeElement || typed(element.value) !== now) {
        if (!element.hasAttribute("aria-invalid")) element.value = exact(now);
      }
      element.toggleAttribute("data-changed", differs(now, then));
    }
    for (const button of one("inputs").querySelectorAll("[data-choice]")) {
      const [option, choice] = JSON.parse(button.dataset.choice);
      button.setAttribute("aria-pressed", String(desk.inputs[option] === choice));
    }
  }

  function buildBoard() {
    const made = sides().map((twin) => MACHINE.compute(desk.inputs, twin));
    desk.shapes = shapesOf(made);
    results.length = 0;
    const rows = stages().map((parts) =>
      make("div", { class: "brk-stage" }, ...sides().map((_, side) => {
        const views = parts.map((part) => {
          const cell = ({ index, name }) => result(part, index, name, side);
          return new Matrix({ ...part, planes: sharedBy(part, desk.inputs) }, made[side][part.name], labelsOf(part.name, desk.inputs), cell);
        });
        results.push({ views, side });
        return make("div", { class: "brk-side" }, ...views.map(({ figure }) => figure));
      })),
    );
    for (const part of MACHINE.parts) inStep(results.flatMap(({ views }) => views.filter((view) => view.part.name === part.name)));
    looks = sides().map(() => new Looks(labelsOf("X", desk.inputs)[0]));
    const pictures = looks.map(({ picture }) => make("div", { class: "brk-side" }, picture));
    one("board").replaceChildren(make("div", { class: "brk-stage" }, ...pictures), ...rows);
    one("heads").hidden = !desk.twin;
    one("board").hidden = desk.mode === "orders";
    body.toggleAttribute("data-alone", !desk.twin);
    body.dataset.mode = desk.mode;
    stop.board();
  }

  function result(part, index, name, side) {
    const about = { part, index, name, side };
    const look = (event) => {
      desk.about = event.type === "focus" ? about : desk.about;
      drawAbout(about);
    };
    about.cell = make("span", { class: "brk-cell", role: "img", tabindex: -1, focus: look, pointerenter: look, pointerleave: () => drawAbout() });
    return about.cell;
  }

  // Say how a number was made, and light what it was made of.
  function drawAbout(about = desk.about) {
    drawDock(desk, about);
    const place = about?.index ? places((about.part ?? about.input).axes, about.index) : {};
    const used = new Set(about?.part ? lit(about.part.name, about.index, about.side ? desk.twin : null) : []);
    for (const look of looks) look.light(place);
    for (const view of inputs) view.light(used);
    for (const { views, side } of results) for (const view of views) view.light(side === about?.side ? used : new Set());
    body.querySelector("[data-at]")?.removeAttribute("data-at");
    about?.cell?.toggleAttribute("data-at", true);
  }

  // The numbers in sight that one was made of.
  const lit = (name, index, twin) =>
    MACHINE.reads(name, index, desk.inputs, twin).flatMap(([other, place]) => (hides(other) ? lit(other, place, twin) : [`${other} ${place}`]));

  const stop = { inputs: walk(one("inputs"), "input"), board: walk(one("board"), ".brk-cell") };
  one("every").addEventListener("click", (event) => {
    event.target.textContent = body.toggleAttribute("data-all") ? "Show fewer steps" : "Show every step";
    desk.refresh();
  });
  desk.look = () => drawAbout();
  root.explorable = desk;
  startGame(desk);
}

// Two matrices that stand for each other are scrolled together.
function inStep(views) {
  const boxes = views.map(({ figure }) => figure.querySelector(".brk-scroll"));
  for (const box of boxes) box.addEventListener("scroll", () => boxes.forEach((other) => (other.scrollLeft = box.scrollLeft)));
}

const shapeOf = (value) => (Array.isArray(value) ? `${value.length},${shapeOf(value[0])}` : "");
const exact = (value) => String(Number(value.toFixed(6))).replace("-", "\u2212");
const changesOf = (now, then) => entries(now).filter(([index, value]) => value !== at(then, index)).length;

// How the number was made that somebody looks at, or two large buttons for one that can be changed; and how many differ.
function drawDock(desk, about) {
  const [host, count] = [desk.one("about"), desk.one("count")];
  const counted = [String(desk.count), desk.count === 1 ? " number differs" : " numbers differ"];
  const [number, words] = desk.twin ? counted : ((desk.mode === "meet" && desk.now) || ["", ""]);
  count.toggleAttribute("data-none", desk.twin ? desk.count === 0 : !desk.met);
  count.replaceChildren(make("b", {}, number), make("span", { html: words }));
  host.dataset.role = (about?.part ?? about?.input)?.role ?? "neutral";
  if (about?.input && desk.shown === about) {
    host.querySelector(".brk-value").textContent = exact(at(desk.inputs[about.input.name], about.index));
  } else if (about?.input) host.replaceChildren(...editor(desk, about));
  else if (about?.said) host.replaceChildren(make("p", { class: "brk-told", "data-good": about.good, html: marked(about.said) }));
  else if (about) host.replaceChildren(...explained(desk, about));
  else {
    const help = `${COARSE ? "Tap a number" : "Point at a number, or move to it with the arrow keys"}, and read here how it was made.`;
    host.replaceChildren(make("p", { class: "brk-help" }, help));
  }
  desk.shown = about;
}

function explained(desk, { part, index, name }) {
  const html = formulaOf(desk, part);
  const twins = desk.twin ? [["machine", null], ["twin", desk.twin]] : [["", null]];
  // How the twin made its number is told once its mistake has a name.
  const told = (twin) => {
    if (!usedBy(twin).has(part.name)) return "does not use this";
    const text = MACHINE.explain(part.name, index, desk.inputs, twin);
    return twin && desk.mode === "level" && !desk.named ? text.split(" = ")[0] : text;
  };
  return [
    make("p", {}, make("span", { class: "brk-which" }, `${part.title}: ${name} `), make("span", { class: "brk-formula", html }), " ", legend(html)),
    ...twins.map(([who, twin]) => {
      const name = who ? [make("span", { class: "brk-who" }, who), " "] : [];
      return make("p", {}, ...name, told(twin));
    }),
  ];
}

function editor(desk, { input, index, name }) {
  const now = () => at(desk.inputs[input.name], index);
  const step = (by) => () => desk.put(input.name, index, Number((now() + by).toFixed(6)));
  return [
    make("div", { class: "brk-editor" },
      make("p", { class: "brk-which" }, make("span", { class: "brk-symbol", html: symbol(input.name) }), ` ${name}`),
      make(
        "span",
        { class: "brk-stepper" },
        make("button", { "aria-label": "one less", click: step(-1) }, "\u2212"),
        make("b", { class: "brk-value" }, exact(now())),
        make("button", { "aria-label": "one more", click: step(1) }, "+"),
      ),
      make("p", { class: "brk-says" }, "Type a number, or step with Page up and Page down. The arrow keys go to the next cell.")),
  ];
}
