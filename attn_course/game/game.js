// The game: a warm-up on the machine alone, levels in three steps, and a mode without a task.
const STORE = "attn-course-break";
const STEPS = [["find", "Find a difference"], ["prove", "Prove it"], ["name", "Name it"]];
// What the letters and signs of formulas stand for, some only beside another sign; matrices on the page have their names there.
const LETTERS = [
  ["s", "a score"], ["b", "a score with the mask added"], ["m", "the largest score so far", "\u2113"], ["m", "the largest score of the row"],
  ["\u2113", "the sum of exponentials so far"], ["a", "the sum of weighted values so far", "\u2113"], ["a", "the column within the head, counted from 1"],
  ["\u03c3", "the softmax"], ["w", "a weight before the mask"], ["p", "how far ahead a query may look", "+ p"], ["p", "a weight"],
  ["v", "a value"], ["z", "what was found"], ["x", "a number of X"], ["q", "a number of a query"],
  ["i", "the token that asks"], ["j", "the token that is found"], ["l", "each token in turn"], ["u", "each column of X in turn"],
  ["A", "the keys that may be looked at"], ["[", "1 if what is inside holds, else 0"], ["M", "0, or \u2212\u221e for a key that is hidden"], ["d_k", "how many numbers a query has"],
  ["h", "each head in turn; W_O^h: its rows of W_O", "W_O"], ["h", "the head, counted from 0; W_Q^h: its columns of W_Q", "W_Q h"],
  ["h", "the head, counted from 0"], ["r", "its key head: the remainder of h divided by H_kv; W_K^r or W_V^r: the columns of that key head", "r = h"],
  ["r", "its key head, counted from 0; W_K^r or W_V^r: the columns of that key head"],
  ["g", "how many heads share a key head"], ["H", "the number of heads"], ["H_kv", "the number of key heads"],
  ["'", "after the next key"], ["T", "the number of tokens"], ["T_k", "the number of tokens"], ["n", "the token that is taken, counted from 1"], ["c", "the column that is taken, counted from 1"],
  ["\u230a", "rounded down"],
];
const times = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

function stored() {
  try {
    return JSON.parse(localStorage.getItem(STORE)) ?? {};
  } catch {
    return {}; // no store, as in a frame without an origin: the game forgets
  }
}

function keep(name, value) {
  try {
    localStorage.setItem(STORE, JSON.stringify({ ...stored(), [name]: value }));
  } catch {
    // see above
  }
}

function startGame(desk) {
  const wanted = typeof DATA === "undefined" ? undefined : MACHINE.levels.findIndex(({ id }, n) => [id, n + 1].includes(DATA.level));
  desk.solved = stored();
  if (wanted >= 0) startLevel(desk, wanted);
  else if (Object.keys(desk.solved).length) startLevel(desk, Math.max(0, MACHINE.levels.findIndex(({ id }) => !(id in desk.solved))));
  else startMode(desk, "meet");
}

function startLevel(desk, n) {
  const level = MACHINE.levels[n];
  Object.assign(desk, { mode: "level", level: n, proved: false, named: false, hinted: false, tested: new Set(), fewest: Infinity });
  answer(desk, "");
  desk.begin(level.start, level.id);
  desk.refresh();
}

function startMode(desk, mode) {
  Object.assign(desk, { mode, hinted: false, tested: new Set(), task: 0 });
  answer(desk, "");
  desk.begin(mode === "free" ? ASKING : SMALL, mode === "free" ? MACHINE.twins[0].id : null);
  desk.refresh();
}

// Where a level stands; what has been proved stays proved, whatever is changed afterwards.
function stepOf(desk) {
  if (desk.named) return "done";
  if (desk.proved) return "name";
  return desk.exposed ? "prove" : "find";
}

const mathy = (text) => text.replace(/(^|[\s(])([XQKVPSZO])(?=[\s,.;:?)]|$)/g, "$1<i>$2</i>").replace(/(\w)'s\b/g, "$1’s").replace(/\b([WdHp])_(kv|ij|[a-zA-Z])(?=\b|\^)/g, "<i>$1<sub>$2</sub></i>").replace(/\^T\b/g, "<sup>\u22a4</sup>").replace(/\^([hr])\b/g, "<sup><i>$1</i></sup>");
const marked = (text) => mathy(text).replace(/`(.+?)`/g, "<q>$1</q>");
const hinted = (text) => `<span class="brk-hint">${marked(text)}</span>`;
const listed = (names) => (names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names[0]);

function answer(desk, text, good = false) {
  desk.one("answer").toggleAttribute("data-good", good);
  if (text === desk.answered) return;
  desk.answered = text;
  desk.one("answer").hidden = text === "";
  desk.one("answer").innerHTML = marked(text);
  if (text) desk.say(desk.one("answer").textContent);
}

// An answer to what was pressed far below: where somebody looks now.
function tell(desk, text, good = false) {
  desk.about = { said: text, good };
  desk.look();
  desk.say(desk.one("about").textContent);
}

function drawMission(desk) {
  const step = desk.mode === "level" ? stepOf(desk) : desk.mode;
  if (step !== "find" && desk.mode === "level") desk.fewest = Math.min(desk.fewest, desk.exposed ? desk.changes() : Infinity);
  if (step === "prove" && desk.step === "find" && desk.about?.said) desk.about = null; // it said what to find
  desk.step = step;
  drawNav(desk);
  desk.one("steps").hidden = desk.mode !== "level";
  const reached = STEPS.findIndex(([id]) => id === step);
  desk.one("steps").replaceChildren(
    ...STEPS.map(([id, title], n) =>
      make("li", { "aria-current": id === step ? "step" : undefined, "data-done": step === "done" || n < reached }, title),
    ),
  );
  const level = MACHINE.levels[desk.level], { name = level.title, task, tools, choice, short } = MISSIONS[step](desk, level);
  desk.one("short").innerHTML = desk.twin ? `<span class="brk-brief">${short}</span> ${leaving(desk)}` : short;
  desk.one("name").textContent = name;
  desk.one("task").innerHTML = task;
  // Buttons that were there stay, so that the focus is not lost.
  const bar = desk.one("tools");
  const key = `${desk.mode} ${desk.level} ${step} ${tools.map(([text]) => text)}`;
  const main = tools.find(([, , more]) => more?.class === "brk-main");
  if (bar.dataset.key !== key) {
    bar.replaceChildren(...(choice ? [chooser(desk)] : []), ...tools.map(([text, click, more]) => make("button", { click, ...more }, text)));
    const [text, click] = main ?? [];
    desk.one("next").replaceChildren(...(main ? [make("button", { click, class: "brk-main" }, text)] : []));
  }
  bar.dataset.key = key;
  drawLamps(desk, step);
  drawChoices(desk, step);
  drawEnd(desk, step);
  drawOrders(desk);
  const counted = desk.count ? `${times(desk.count, "number")} differ${desk.count === 1 ? "s" : ""}.` : "No number differs.";
  if (desk.twin && desk.count !== desk.said) desk.say(counted);
  desk.said = desk.count;
}

const goTo = (desk, name) => () => {
  const target = desk.one(name);
  target.scrollIntoView({ block: "center", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  target.querySelector("button, input, .brk-cell")?.focus({ preventScroll: true });
};

const onward = (desk, text, name) => [text, goTo(desk, name), { class: "brk-main" }];
const restart = (desk) => ["Back to the start", () => desk.restore()];

const mayChange = (locked) => (locked ? "numbers, the mask or the heads" : "numbers or the mask");
const hint = (desk) => ["Hint", () => { desk.hinted = true; desk.refresh(); }];
const MISSIONS = {
  find: (desk, { note = "", hint: advice, locked }) => ({
    short: `Task: change ${mayChange(locked)} until <i>O</i> differs. ${desk.apart.includes("O") ? inside(desk) : ""}`,
    task: `The twin is a copy of the machine with one mistake. Both get the same numbers, and with these both give the same <i>O</i>.
      ${mathy(note)}
      <b>Make as few changes as you can, to ${mayChange(locked)}, until the twin’s <i>O</i> differs.</b> ${inside(desk)}
      ${desk.hinted ? hinted(advice) : ""}`,
    tools: [hint(desk), restart(desk)],
  }),
  prove: (desk) => ({
    short: "Task: find the lamp that is lit for the machine and out for the twin.",
    task: `You made ${times(desk.changes(), "change")}, and now the two differ in ${times(desk.count, "place")}. A difference alone proves
      nothing. Each lamp below stands for a rule of attention, and is lit for whoever keeps that rule. The lamps are covered: press one
      to test its rule. <b>Find the lamp that is lit for the machine and out for the twin.</b>`,
    tools: [onward(desk, "To the lamps", "lamps"), restart(desk)],
  }),
  name: (desk) => ({
    short: "Task: choose the twin’s formula out of four.",
    task: "You have proved that the twin is wrong. <b>What does it compute? Choose its formula from the four below the lamps.</b>",
    tools: [onward(desk, "To the formulas", "choices"), restart(desk)],
  }),
  done: (desk) => ({
    name: allFound(desk) ? `All ${MACHINE.levels.length} mistakes found` : undefined,
    short: "You found, proved and named the mistake.",
    task: "You found, proved and named the mistake. Below you find what happened, and your numbers as a test.",
    tools: [onward(desk, "To the end", "end"), ...next(desk)],
  }),
  free: (desk) => ({
    name: "Any twin, any numbers",
    short: "Change what you like.",
    task: "Choose what is wrong with the twin, change what you like, and see where it shows.",
    tools: [restart(desk), ["Random numbers", () => byChance(desk)]],
    choice: true,
  }),
  orders: () => ({
    short: "",
    name: "The same numbers in four orders",
    task: `<b>Does the order of the steps change the result, and which order moves the fewest bytes?</b> The numbers lie in a large memory and are
      computed with in a small one. All that moves between them is counted, from <i>X</i> and the weight matrices to <i>Z</i>, with 4 bytes for each number.
      Guess first, then play all four orders to their ends. The total of an order appears when it has been played, and the answer after all four.`,
    tools: [],
  }),
  meet: (desk) => meetMission(desk),
};

// What differs while what leaves the machine does not, or too little.
function inside({ apart }) {
  if (!apart.length) return "";
  if (apart.includes("O")) return "<i>O</i> differs by too little to count: one number must differ by 0.005, and by a thousandth of the largest.";
  return `${listed(apart.map(letter))} ${apart.length > 1 ? "differ" : "differs"}, but <i>O</i> does not yet.`;
}

// What leaves both, in one row: the first that differs.
function leaving(desk) {
  const [machine, twin] = desk.made;
  const token = machine.O.findIndex((row, i) => row.some((x, j) => differs(x, twin.O[i][j])));
  if (token < 0) return inside(desk) || "Both give the same <i>O</i>.";
  const digits = digitsOf(machine.O[token].map((x, j) => [x, twin.O[token][j]]));
  const [here, there] = [machine, twin].map(({ O }, side, both) => `(${O[token].map((x, j) => even(x, both[1 - side].O[token][j], digits)).join(", ")})`);
  return `<i>O</i> of <q>${MACHINE.tokens[token]}</q>: machine ${here}, twin ${there}.`;
}

function next(desk) {
  const on = () => {
    startLevel(desk, desk.level + 1);
    desk.one("name").focus();
  };
  if (desk.level + 1 < MACHINE.levels.length) return [["Next level", on]];
  return ["Free", "Orders"].map((text) => [text, () => startMode(desk, text.toLowerCase())]);
}

const allFound = (desk) => MACHINE.levels.every(({ id }) => id in desk.solved);

function byChance(desk) {
  for (const { name, choices } of MACHINE.inputs) {
    if (!choices) desk.inputs[name] = desk.inputs[name].map((row) => row.map(() => Math.floor(Math.random() * 5) - 2));
  }
  desk.refresh();
}

function drawNav(desk) {
  const nav = desk.one("nav");
  const now = desk.mode === "level" ? `level ${desk.level}` : desk.mode;
  if (!nav.children.length) {
    const chip = (id, text, label, click) => make("button", { "data-id": id, "aria-label": label.includes(text) ? label : `${text}: ${label}`, click }, text);
    nav.append(
      chip("meet", "Meet it", "Meet the machine", () => startMode(desk, "meet")),
      ...MACHINE.levels.map(({ title }, n) => chip(`level ${n}`, String(n + 1), `Level ${n + 1}: ${title}`, () => startLevel(desk, n))),
      chip("free", "Free", "Any twin, any numbers", () => startMode(desk, "free")),
      chip("orders", "Orders", "The same numbers in four orders", () => startMode(desk, "orders")),
    );
    walk(nav, "button")();
  }
  for (const button of nav.children) {
    const level = MACHINE.levels[Number(button.dataset.id.split(" ")[1])];
    button.setAttribute("aria-pressed", String(button.dataset.id === now));
    button.toggleAttribute("data-solved", (level?.id ?? button.dataset.id) in desk.solved);
    if (button.dataset.id === now) nav.scrollLeft = button.offsetLeft - nav.offsetLeft - nav.clientWidth / 2; // on a phone it is one row
  }
}

// --- lamps ---------------------------------------------------------------------------------------------

function drawLamps(desk, step) {
  const host = desk.one("lamps");
  host.hidden = ["find", "meet", "orders"].includes(step);
  if (host.hidden) return;
  if (host.children.length !== MACHINE.lamps.length) {
    const lamp = ({ id, title }) =>
      make("button", { class: "brk-lamp", "data-id": id, click: () => press(desk, id) }, make("span"), make("b", { html: mathy(title) }), make("span"));
    host.replaceChildren(...MACHINE.lamps.map(lamp));
  }
  [...host.children].forEach((row, n) => {
    const lamp = MACHINE.lamps[n];
    const open = step === "free" || step === "done" || desk.tested.has(lamp.id);
    row.toggleAttribute("data-covered", !open);
    [[row.firstChild, null], [row.lastChild, desk.twin]].forEach(([bulb, twin], side) => {
      const { on, says } = open ? lamp.measure(desk.inputs, twin, changedIn(desk)) : { says: "press to test" };
      bulb.dataset.on = String(on);
      bulb.innerHTML = open ? marked(`${side ? "twin" : "machine"} ${on ? "lit" : "out"}: ${says}`) : says;
    });
  });
}

const changedIn = (desk) => Object.keys(desk.inputs).filter((name) => changesOf(desk.inputs[name], desk.first[name]));

function press(desk, id) {
  if (desk.mode !== "level" || stepOf(desk) === "done") return;
  const lamp = MACHINE.lamps.find((other) => other.id === id);
  desk.tested.add(id);
  const [machine, twin] = [null, desk.twin].map((which) => lamp.measure(desk.inputs, which, changedIn(desk)));
  if (machine.on && !twin.on) {
    desk.proved = true;
    tell(desk, `That proves it: \u201c${lamp.title}\u201d holds for the machine and not for the twin. Now choose the twin’s formula.`, true);
  } else if (machine.on) {
    const other = id === MACHINE.levels[desk.level].lamp ? " here, but with other numbers it can" : "";
    const tried = lamp.random ? `\u201c${lamp.title}\u201d is tested with random numbers, not with yours, and` : `With your numbers \u201c${lamp.title}\u201d`;
    tell(desk, `${tried} is lit for both. A lamp that is lit for both proves nothing${other}.`);
  } else tell(desk, `\u201c${lamp.title}\u201d is out for the machine too, so it is no rule that the machine keeps.`);
  desk.settle(); // the lamp stays in sight
}

const capital = (text) => text[0].toUpperCase() + text.slice(1);

// --- four formulas -------------------------------------------------------------------------------------

// The twin’s form among three others: wrong forms of the same part, then those that stand nearest in the list, none of a mask or of heads
// that the level does not have; a level keeps their order.
function formsOf(level) {
  const place = MACHINE.twins.findIndex(({ id }) => id === level.id), right = MACHINE.twins[place];
  const far = (form) => Math.abs(MACHINE.twins.indexOf(form) - place) + (form.part === right.part ? 0 : MACHINE.twins.length);
  const absent = ({ part, html, update }) =>
    update || (level.start.mask === "none" && (part === "A" || /\bA\b/.test(html))) || (level.start.heads === 1 && /\bH\b|<sup>1/.test(html));
  const others = MACHINE.twins.filter((form) => form.html !== right.html && !absent(form)).sort((a, b) => far(a) - far(b));
  return others.slice(0, 3).toSpliced([...level.id].reduce((sum, sign) => sum + sign.charCodeAt(), 0) % 4, 0, right);
}

function drawChoices(desk, step) {
  const host = desk.one("choices");
  host.hidden = step !== "name";
  const key = step === "name" ? `${MACHINE.levels[desk.level].id} ${desk.inputs.mask}` : "";
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  const button = (form) =>
    make(
      "button",
      { class: "brk-form", click: (event) => choose(desk, form, event.currentTarget) },
      make("span", { class: "brk-says", html: mathy(capital(form.title)) }),
      make("span", { class: "brk-formula", html: formulaOf(desk, form) }),
      legend(formulaOf(desk, form)),
    );
  host.replaceChildren(...(step === "name" ? formsOf(MACHINE.levels[desk.level]).map(button) : []));
}

// A formula without what is absent: the mask, and in the machine's own also the heads.
function formulaOf(desk, { name, html }) {
  const open = desk.inputs.mask === "none";
  let text = html.replace(/\{(0 if .*?\u221e); \((.*)\) if .*\}/, open ? "$2" : "$2, or $1");
  if (open && name !== "B") text = text.replace(/b(?=<sub>)/g, "s");
  if (name && desk.inputs.heads === 1) text = text.replace(/\u03a3<sub>h.*?<\/sub> |,\s+r = .*|<su([bp])>[hr]<\/su\1>/g, "");
  return text.split(/,\s{3}/).map((each) => `<span>${each}</span>`).join(", ");
}

// What the letters of a formula stand for.
function legend(html) {
  const named = html.replace(/<sup>⊤<\/sup>/g, " ").replace(/(?<=[HdTW])<sub>(kv|[kQKVO])<\/sub>/g, "_$1 ").replace(/<sub>([a-z]+)<\/sub>/g, (_, all) => ` ${[...all].join(" ")} `);
  const text = named.replace(/<[^>]+>|&\w+;/g, " ").replace(/\s+/g, " ");
  const signs = new Set(text.match(/[\p{L}_]+|[[\u230a']/gu)), found = new Map();
  for (const [sign, meaning, beside = ""] of LETTERS) {
    if (signs.has(sign) && text.includes(beside) && !found.has(sign)) found.set(sign, meaning);
  }
  const closed = { "[": "[ ]", "'": "\u2032", "\u230a": "\u230a \u230b" };
  return make("span", { class: "brk-legend", html: [...found].map(([sign, meaning]) => `${closed[sign] ?? letter(sign)}: ${mathy(meaning)}`).join("; ") });
}

function choose(desk, form, button) {
  if (form.id === desk.twin) {
    const level = MACHINE.levels[desk.level];
    desk.named = true;
    desk.solved = { ...desk.solved, [level.id]: Math.min(desk.solved[level.id] ?? Infinity, desk.fewest) };
    keep(level.id, desk.solved[level.id]);
    tell(desk, `That is it: ${form.title}.`, true);
    desk.refresh();
    return goTo(desk, "end")();
  }
  button.dataset.wrong = "true";
  const { count, first } = apart(desk.inputs, form.id, desk.twin);
  if (!count) {
    return tell(desk, "Your numbers cannot tell that form from the twin: both give the same. Change one more number.");
  }
  const place = capital(nameOf(first.part, first.index, desk.inputs));
  const [there, here] = shownApart(first.value, first.other);
  tell(desk, `No. ${place} would be ${there} with that formula, and the twin has ${here}.`);
}

// --- the end of a level, and the test ------------------------------------------------------------------

function drawEnd(desk, step) {
  const host = desk.one("end");
  const key = step === "done" ? MACHINE.levels[desk.level].id : step === "free" ? `free ${desk.twin}` : "";
  host.hidden = key === "";
  if (step === "free" && host.querySelector("textarea")) {
    host.querySelector("textarea").value = pythonOf(desk);
    host.querySelector(".brk-fails").textContent = failing(desk);
  }
  if (host.dataset.key === key) return;
  host.dataset.key = key;
  if (step === "done") host.replaceChildren(...ending(desk));
  else if (step === "free") host.replaceChildren(...exported(desk));
  else host.replaceChildren();
}

const pythonOf = (desk) => MACHINE.test(desk.inputs, desk.twin);
const failing = (desk) =>
  desk.exposed
    ? "Here are your numbers as a test of a function of your own. It fails if the function has this mistake, and passes if it is right."
    : "Here are your numbers as a test of a function of your own. It passes with this mistake too: with these numbers machine and twin agree, or nearly.";

function ending(desk) {
  const level = MACHINE.levels[desk.level];
  const twin = MACHINE.twins.find(({ id }) => id === level.id);
  const part = partNamed(twin.part);
  const rest = desk.fewest <= level.par ? ": no fewer would do." : `; ${level.par} would be enough.`;
  return [
    make("p", { class: "brk-name", html: mathy(capital(twin.title)) }),
    make("dl", {},
      ...[["machine", twin.beside ?? part.html], ["twin", twin.html]].flatMap(([who, text]) => {
        const html = formulaOf(desk, { html: text });
        return [make("dt", {}, who), make("dd", {}, make("span", { class: "brk-formula", html }), make("br"), legend(html))];
      })),
    make("p", { html: mathy(level.story) }),
    make("p", { class: "brk-score" }, `You made ${times(desk.fewest, "change")}${rest}`),
    ...exported(desk),
    make("div", { class: "attn-buttons" }, ...next(desk).map(([text, click]) => make("button", { class: "brk-main", click }, text))),
  ];
}

function exported(desk) {
  const text = make("textarea", { readonly: true, spellcheck: "false", rows: 8, "aria-label": "The test, as Python" });
  text.value = pythonOf(desk);
  const copy = async () => {
    text.select();
    try {
      await navigator.clipboard.writeText(text.value);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Now press Ctrl+C";
    }
    desk.say(button.textContent);
  };
  const button = make("button", { click: copy }, "Copy the test");
  return [make("p", { class: "brk-fails" }, failing(desk)), text, make("div", { class: "attn-buttons" }, button)];
}

function chooser(desk) {
  const apart = MACHINE.twins.filter(({ part }) => part !== "K"); // no key head is shared here
  const options = apart.map(({ id, title }) => make("option", { value: id, selected: id === desk.twin }, title));
  const list = make("select", { "aria-label": "What is wrong with the twin" }, ...options);
  list.addEventListener("change", () => desk.pair(list.value));
  return list;
}
