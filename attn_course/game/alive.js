// A formula that is alive: LIFE holds its inputs, what follows from them, and its forms, all written by `living.py`.
const same = (a, b) => a === b || (Number.isFinite(a - b) && Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b)));
const holds = (sign, a, b) => (sign === "equal" ? same(a, b) : sign === "unequal" ? !same(a, b) : (sign === "most" || sign === "least") && same(a, b) ? true : n[sign](a, b));
const G = (o, $, key, ...places) => o.entry(o.given($[key], key), ...places);
const every = (lists) => (lists.length ? lists[0].flatMap((x) => every(lists.slice(1)).map((rest) => [x, ...rest])) : [[]]);
const shapeIn = (x) => {
  if (Array.isArray(x)) return [x.length, ...(Array.isArray(x[0]) ? [x[0].length] : [])];
  return typeof x === "object" && x.column ? [x.column.length] : typeof x === "number" ? [] : null;
};

// All numbers, from those of the inputs, and of what stands still whatever it follows from: a derivative moves one symbol.
const numbersOf = (life, values, held) => {
  const $ = { ...life.fixed, ...values, ...held, moved: (more) => numbersOf(life, values, { ...held, ...more }) };
  for (const { key, make } of life.derived) $[key] = held?.[key] ?? make(n, $);
  return $;
};
// Every relation of a form: its cases, and for each the numbers of all sides (in one shape) and where they are as claimed.
const evaluated = (life, form, $) =>
  form.chains.map((chain) => {
    const cases = every(chain.runs).map((places) => {
      if (chain.where && !chain.where($, ...places)) return null;
      const values = chain.sides.map((side) => side(n, $, ...places));
      const whole = Math.max(0, values.findIndex((x) => (shapeIn(x) ?? []).length));
      const shape = shapeIn(values[whole]) ?? [];
      const sides = values.map((value, place) => (place === whole ? n.both(value, value) : n.both(value, values[whole]))[0]);
      if (sides.some((side) => side.length !== sides[0].length)) throw new Error(`the sides do not fit: they have ${sides.map((side) => side.length).join(" and ")} numbers`);
      const fits = sides[0].map((_, at) => chain.signs.map((sign, link) => holds(sign, sides[link][at], sides[link + 1][at])));
      return { places, shape, whole, sides, fits, stands: !chain.runs.length && values[whole].column !== undefined };
    });
    return { chain, cases };
  });
// How many numbers are claimed, how many are not as claimed (of the relations in which some are not), and whether all are numbers.
const counted = (found) => {
  const fitsOf = ({ cases }) => cases.flatMap((one) => (one ? one.fits : [])), failing = found.filter((one) => fitsOf(one).some((links) => links.includes(false)));
  const fits = (failing.length ? failing : found).flatMap(fitsOf);
  const numbers = found.flatMap(({ cases }) => cases.flatMap((one) => (one ? one.sides.flat() : [])));
  return { all: fits.length, fail: fits.filter((links) => links.includes(false)).length, defined: !numbers.some(Number.isNaN) };
};
// Relations that are the same for all values of their letters, such as those of Z beside those of each z_i: once.
const shownOnce = (found) => found.map(({ chain, cases }) => (chain.once ? { chain: { ...chain, letters: [], runs: [] }, cases: [cases.find(Boolean) ?? null] } : { chain, cases }));
// Whether sides agree only by rounding: exp(-99) is not 2 exp(-99), though both are 0 to all digits that are compared.
const nearly = (found) => found.some(({ chain, cases }) => cases.some((one) => one?.sides.some((side, link) => chain.signs[link] === "equal" && side.some((a, at) => {
  const b = one.sides[link + 1][at], size = Math.max(Math.abs(a), Math.abs(b)), gap = Math.abs(a - b);
  return gap > 1e-12 * Math.max(1, size) || (gap < 1e-20 && gap > 1e-9 * size);
}))));
const judged = (life, form, values) => {
  const $ = numbersOf(life, values);
  return { $, found: evaluated(life, form, $) };
};

// ---- Numbers that hide a mistake. Everybody gets the same, from one seed.
const seeded = (seed) => () => {
  seed = (seed + 1831565813) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
};
const POOLS = { set: [0, 1], share: [0.2, 0.4, 0.5, 0.6, 0.8], positive: [1, 2, 3, 0.5], whole: [1, 2, 3, 4], any: [1, 2, 3, -1, -2, 0] };
const PATTERNS = [(c, r) => r(), (c) => c, (c, r, i, j) => r(j), (c, r, i) => r(i), (c, r, i, j) => r(Math.min(i, j), Math.max(i, j)), (c, r, i, j) => (i === j ? c : 0)];
const NONZERO = { any: POOLS.any.slice(0, -1) }, FAR = { any: [0, 99, -99] };
const patterned = (one, value, random, pattern, pools) => {
  const some = pools?.[one.kind] ?? POOLS[one.kind], drawn = new Map(), any = () => some[Math.floor(random() * some.length)], c = any();
  const number = (...key) => (key.length ? (drawn.has(key.join()) ? drawn : drawn.set(key.join(), any())).get(key.join()) : any());
  const make = (x, places) => (x.column ? { column: make(x.column, places) } : Array.isArray(x) ? x.map((y, k) => make(y, [...places, k])) : PATTERNS[pattern](c, number, ...places.slice(-2)));
  const fits = one.kind === "any" || one.kind === "set" || pattern < PATTERNS.length - 1;
  return fits ? make(value, []) : value;
};
const others = (life, random, pools) => Object.fromEntries(life.inputs.map((one) => [one.key, patterned(one, life.values[one.key], random, Math.floor(random() * PATTERNS.length), pools)]));
// Numbers that tell most change one symbol, and none to 0. So these are tried first.
const another = (life, random, one) => ({ ...structuredClone(life.values), [one.key]: patterned(one, life.values[one.key], random, Math.floor(random() * PATTERNS.length), NONZERO) });
const sound = (found) => {
  const { all, fail, defined } = counted(found);
  return all > 0 && !fail && defined;
};
const TRIES = 1600;
// Numbers on which a wrong form agrees with the equation, or on which it does not; "nearly" if it agrees only by rounding; or null.
const searched = (life, form, hidden) => {
  const random = seeded(7);
  let close = null;
  for (let k = 0; k < TRIES; k++) {
    const values = k < 500 ? another(life, random, life.inputs[k % life.inputs.length]) : others(life, random, k < 1000 ? NONZERO : k < 1500 ? null : FAR);
    try {
      const { $, found } = judged(life, life.forms[0], values);
      if (!sound(found)) continue;
      const other = evaluated(life, form, $);
      if (sound(other) !== hidden) continue;
      if (!hidden || !nearly(other)) return values;
      close = "nearly";
    } catch {
      continue; // this form cannot be computed on these numbers
    }
  }
  return close;
};

// One number of a side in words: what it is computed from, and where that stands.
const keyed = (life, key) => [...life.derived, ...life.beside].find((one) => one.key === key.split(",")[0]);
const picked = (value, places) => places.reduce((inner, place) => (inner.column ?? inner)[place], value);
const worded = (life, $, chain, one, side, at) => {
  const values = chain.sides.map((make, place) => (place === side || place === one.whole ? make(words, $, ...one.places) : null));
  const word = words.both(values[side], values[one.whole])[0][at];
  return opened(life, $, word);
};
// A number that stands for itself, and follows from others, is written out by what it follows from.
const opened = (life, $, word) => {
  const from = word.from.map((key) => based(life, key)), maker = from.length === 1 && word.text === shown(word.value) ? keyed(life, from[0]) : undefined;
  if (!maker?.make) return { ...word, lit: from };
  const inner = picked(maker.make(words, $), placesOf(from[0]));
  return { ...inner, lit: [...from, ...inner.from.map((key) => based(life, key))] };
};
// Where a number of a symbol stands that is another one: the rows q of Q, or its columns.
const placesOf = (key) => key.split(",").slice(1).map(Number);
const based = (life, key) => {
  const maker = keyed(life, key), places = placesOf(key);
  return maker?.base ? based(life, [maker.base, ...(maker.turned ? places.reverse() : places)].join()) : key;
};

// ---- The card
const TAGS = "mi mo mn mrow msub msup msubsup mfrac munder mover munderover mtd mtr mtable msqrt math".split(" "), WHOLE = ['<mo stretchy="false">', '<mspace width="0.17em"/>', '<mo lspace="0" rspace="0">'];
const typeset = (text) => text.replace(/[\u0100-\u0122]/g, (letter) => {
  const code = letter.charCodeAt(0) - 256;
  return WHOLE[code - 2 * TAGS.length] ?? `<${code % 2 ? "/" : ""}${TAGS[code >> 1]}>`;
});
const cell = (value) => {
  const size = Math.abs(value);
  return size < 1e-12 ? "0" : size < 5e-4 ? value.toExponential(0).replace(/-/g, "−") : shown(+value.toFixed(3)); // three decimals, as all of a table
};
// The numbers of an entry on all sides: with more digits where two that differ would look the same.
const cells = (values, links) => {
  let texts = values.map(cell), digits = 4;
  while (digits < 18 && links.some((fits, k) => !fits && values[k] !== values[k + 1] && texts[k] === texts[k + 1])) texts = values.map((x) => `${+x.toPrecision(digits)}`.replace(/-/g, "−")), digits++;
  return texts;
};
const escaped = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt(0)};`);
// A table has as many decimals everywhere as where it has most, but for what is 0.
const evened = (markup) => {
  const digits = Math.min(3, Math.max(0, ...[...markup.matchAll(/>−?\d+\.(\d+)<\/td>/g)].map((found) => found[1].length)));
  return markup.replace(/>(−?)(\d+(?:\.\d+)?)<\/td>/g, (all, sign, size) => `>${sign && "<i>−</i>"}${+size && (size.split(".")[1] ?? "").length < digits ? (+size).toFixed(digits) : size}</td>`);
};
const grid = (rows, caption) => `<div class="alv-caption">${typeset(caption)}</div><table role="grid" aria-label="${typeset(caption).replace(/<[^>]*>/g, "")}"><tbody>${evened(rows.map((row) => `<tr>${row.join("")}</tr>`).join(""))}</tbody></table>`;
const start = (root) => {
  longest = 52; // characters of a part that a computation writes out; of a longer one it shows the number
  const life = LIFE, values = structuredClone(life.values);
  const all = (what) => root.querySelectorAll(what), find = (name) => root.querySelector(`.alv-${name}`), on = (what, then) => root.addEventListener(what, then);
  const formulas = find("formula"), some = find("some"), how = find("how");
  formulas.innerHTML = life.forms.map(({ math }) => `<div>${typeset(math).replace(/<math.*?\/math>/g, "<span>$&</span> ")}</div>`).join("");
  for (const sign of formulas.querySelectorAll("math > mo:not(:first-child)")) if (/[=≈≤≥]/.test(sign.textContent)) { // a line may end before it
    const line = sign.parentNode, rest = line.cloneNode();
    while (sign.nextSibling) rest.append(sign.nextSibling);
    rest.prepend(sign);
    // the first sign of a formula has no space of its own, and some letters lean towards it
    for (const side of "lr") sign.setAttribute(`${side}space`, side < "m" && /[FPTVWY]$/.test(line.textContent) ? ".42em" : ".28em");
    line.after(rest);
  }
  // What is still too wide for a phone is smaller there, and only then scrolls.
  new ResizeObserver(() => [...formulas.children].forEach((one) => ["", "alv-small", "alv-wide"].forEach((look, k) => (!k || one.scrollWidth > one.clientWidth) && (one.className = look)))).observe(formulas);
  // What the page says of numbers that hide a mistake, and of numbers that show it: only of those that can be changed here.
  const HIDING = {
    found: " Can you find numbers on which this mistake does not show?",
    none: " It shows on all numbers tried.",
    nearly: " None tried hide it; very large ones do, by rounding.",
  };
  const SHOWING = { found: " Can you find numbers on which it shows?", none: " None were found on which it shows." };
  const searches = {};
  // What a search has found, which takes a moment.
  const search = (hides) => {
    const asked = form;
    return (searches[[form, hides]] ??= setTimeout(() => {
      const values = searched(life, life.forms[asked], hides) ?? "none";
      searches[[asked, hides]] = typeof values === "string" ? { state: values } : { state: "found", values };
      if (asked === form) draw(false);
    }));
  };
  const first = { ...values };
  let form = 0, answer = null, at = null, lit = [], seen = 0, touched = false;

  // Tables: of an input with fields, of anything else with cells that can be pointed at. A table of more axes is several.
  const layers = (value, place = []) => {
    const inner = value.column ?? value;
    if (!Array.isArray(inner)) return [{ place: [], rows: [[[...place]]] }];
    const depth = (x) => (Array.isArray(x.column ?? x) ? 1 + depth((x.column ?? x)[0]) : 0);
    if (depth(value) > 2) return inner.flatMap((one, k) => layers(one, [...place, k]).map((layer) => ({ ...layer, place: [k, ...layer.place] })));
    if (depth(value) === 1) return [{ place: [], rows: value.column ? inner.map((_, k) => [[...place, k]]) : [inner.map((_, k) => [...place, k])] }];
    return [{ place: [], rows: inner.map((row, i) => (row.column ?? row).map((_, j) => [...place, i, j])) }];
  };
  const spoken = (name, places) => `${name}${places.length ? `, ${places.length > 1 ? "row " : "number "}${places.map((place) => place + 1).join(", column ")}` : ""}`;
  const field = (one, places) => {
    const value = picked(values[one.key], places), about = `data-at="${[one.key, ...places].join()}" aria-label="${escaped(spoken(one.spoken, places))}"`;
    if (one.kind === "set") return `<td><button type="button" class="alv-member" ${about} aria-pressed="${value === 1}">${value === 1 ? "✓" : "–"}</button></td>`;
    return `<td><input ${about} inputmode="decimal" autocomplete="off" value="${shown(value)}"></td>`;
  };
  const pointed = (about, text, extra = "") => `<td role="gridcell" tabindex="-1" ${about} class="${extra}">${text}</td>`;
  const small = (text) => (text ? ` <span class="alv-layer">${text}</span>` : "");
  const numbered = (places) => places.map((place) => place + 1).join(", ");
  const part = (one, value, make, look = "") => layers(value).map(({ place, rows }) =>
    `<div class="alv-part ${look}">${grid(rows.map((row) => row.map(make)), one.label + small(place.length && `block ${numbered(place)}`))}</div>`).join("");
  const beside = life.beside.filter(({ key }) => Array.isArray(flat(life.fixed[key])) && n.both(life.fixed[key], 0)[0].length <= 40);
  const sizes = life.beside.filter(({ key }) => typeof life.fixed[key] === "number").map(({ key, label }) => `${typeset(label)} = ${shown(life.fixed[key])}`);
  // Of more than four inputs two are in view, and the rest in a fold.
  const inputs = () => {
    const parts = life.inputs.map((one) => part(one, values[one.key], (places) => field(one, places), "alv-mine")), about = parts.length ? "<b>Yours to change.</b> " : "";
    const rest = parts.length > 4 ? parts.splice(2) : [], more = rest.length ? `<details class="alv-more"><summary>${rest.length} more</summary><div class="alv-given">${rest.join("")}</div></details>` : "";
    return `<p class="alv-layer">${about + sizes.join(", ")}</p>${parts.join("")}${more}`;
  };
  const derived = ($) => ($ ? [...beside, ...life.derived.filter((one) => !one.side)].map((one) => part(one, $[one.key], (places) => pointed(`data-at="${[one.key, ...places].join()}"`, cell(picked($[one.key], places))))).join("") : "");

  // A side as tables: its letters first, then the axes of its value. Marked are numbers that are not as claimed, on the sides that a mistake changes.
  const sided = (number, { chain, cases }, side) => {
    const open = cases.find(Boolean), shape = open?.shape ?? [], printed = life.forms[0].chains[number]?.sides ?? [];
    const changes = (k) => chain.sides[k] !== printed[k], marked = changes(side) || !chain.sides.some((_, k) => changes(k));
    const sizes = [...chain.runs.map((run) => run.length), ...shape], many = shape.reduce((a, b) => a * b, 1);
    const columns = sizes[sizes.length - 1] ?? 1, rows = sizes[sizes.length - 2] ?? 1, total = cases.length * many, tables = [];
    for (let first = 0; first < total; first += rows * columns) {
      const lines = n.run(0, rows - 1).map((i) => n.run(0, columns - 1).map((j) => {
        const flat = first + i * columns + j, place = Math.floor(flat / many), entry = flat % many, one = cases[place];
        if (!one) return `<td class="alv-none" aria-label="not claimed">·</td>`;
        return pointed(`data-cell="${[number, side, place, entry].join()}"`, cells(one.sides.map((values) => values[entry]), one.fits[entry])[side], marked && one.fits[entry].includes(false) ? "alv-bad" : "");
      }));
      const places = every(chain.runs)[Math.floor(first / many)].slice(0, Math.max(0, sizes.length - 2));
      const layer = total > rows * columns ? places.map((place, k) => `${chain.letters[k]} = ${place}`).join(", ") : "";
      tables.push(`<div class="alv-part">${grid(open?.stands ? lines[0].map((one) => [one]) : lines, `<span>${chain.labels[side]}</span>${small(layer)}`)}</div>`);
    }
    return tables.join("");
  };
  const relation = (number, one) => {
    const holding = (link) => one.cases.every((each) => !each?.fits.some((links) => !links[link]));
    const said = one.chain.signs.map((sign, link) => SIGNS[sign === "equal" && !holding(link) ? "unequal" : sign]);
    const tables = one.chain.sides.map((_, side) => sided(number, one, side));
    const rows = tables[0].split("</table>")[0].split("<tr>").length - 1; // a sign stands beside the middle one
    const both = (side) => one.chain.labels.slice(said.findLastIndex((sign, k) => k < side && sign !== "=") + 1, side + 1).map(typeset).join(" = ");
    return `<div class="alv-chain" style="--rows:${rows}">${tables.map((table, side) => `<div class="alv-side${said[side] === "=" ? " same" : ""}">${side ? `<span class="alv-sign">${said[side - 1]}</span>` : ""}<div class="alv-given"><p class="alv-both">${both(side)}</p>${table}</div></div>`).join("")}</div>`;
  };

  const verdict = (wrong, found, right) => {
    const { all, fail, defined } = counted(found), own = counted(right);
    const word = found.every(({ chain }) => chain.signs.every((sign) => sign === "equal")) ? "differ" : "fail";
    if (!own.defined) return ["lost", "On these numbers the equation is not defined: it divides by 0, takes a root or logarithm that is none, or overflows."];
    if (own.fail) return ["lost", `On these numbers the equation does not hold: they are not what it assumes${life.assumes ? ` (${life.assumes})` : ""}.`];
    if (!own.all) return ["lost", "On these numbers the equation claims nothing: what it assumes is not so."];
    if (!wrong) return ["held", `<b>${word === "differ" ? "The sides agree" : "What is claimed holds"} in ${all === 1 ? "the one number" : `all ${all} numbers`}.</b>`];
    if (!defined) return ["shown", `This form is not defined on these numbers.`];
    if (fail) {
      seen = form;
      const asks = !life.inputs.length ? " Its numbers belong together: none can be changed alone." : HIDING[search(true)?.state] ?? "";
      return ["shown", `<b>${fail} of ${all} ${word}${fail === 1 ? "s" : ""}.</b>${asks}`];
    }
    const asks = form === seen || !life.inputs.length ? "" : SHOWING[search(false)?.state] ?? "";
    if (nearly(found)) return ["hidden", `<b>Equal to the digits shown, not the same.</b> The mistake is too small to see.${asks}`];
    return ["hidden", `<b>${form === seen ? "Found: on" : "On"} these numbers the mistake does not show.</b> 0 of ${all} ${word}: no test on them tells the two apart.${asks}`];
  };

  const tell = (state, text) => {
    Object.assign(find("verdict"), { innerHTML: text }).dataset.state = state;
  };
  const draw = (renewed, focus) => {
    const wrong = form && life.forms[form];
    [...formulas.children].forEach((one, k) => (one.style.visibility = k === form ? "" : "hidden")); // and takes its room, so that nothing moves
    formulas.classList.toggle("alv-wrong", Boolean(wrong));
    for (const button of all("[data-form]")) button.setAttribute("aria-pressed", +button.dataset.form === form);
    find("named").textContent = wrong ? "Not the equation" : ""; // what it is, says the button
    let $, right, found, problem = wrong?.problem;
    try {
      ({ $, found: right } = judged(life, life.forms[0], values));
      right = shownOnce(right);
      if (!problem) found = shownOnce(evaluated(life, life.forms[form], $));
    } catch (error) {
      problem = error.message;
    }
    if (renewed) find("inputs").innerHTML = inputs(); // else a field would be taken away under the fingers
    const below = find("derived");
    below.parentNode.hidden = !(below.innerHTML = derived($));
    find("sides").innerHTML = found ? found.map((one, number) => relation(number, one)).join("") : "";
    const [state, text] = problem ? ["shown", `This form ${/ fit: /.test(problem) ? "never fits" : wrong?.problem ? "is never defined" : "cannot be computed on these numbers"}: ${escaped(problem.replace(/^.* fit: /, ""))}.`] : verdict(wrong, found, right);
    tell(state, text);
    find("again").hidden = !(touched ||= life.inputs.some(({ key }) => values[key] !== first[key])); // and stays, for it may have the focus
    some.hidden = !wrong || !life.inputs.length; // else always there: a button that goes takes the focus with it
    answer = !some.hidden && !problem && (state === "shown" || (state === "hidden" && form !== seen)) ? search(state === "shown")?.values : null;
    some.setAttribute("aria-disabled", !answer);
    if (at && (!found || !explain($, found))) at = null;
    if (!at) how.innerHTML = "";
    root.alive = { $, found };
    for (const table of all("table")) table.querySelector("td[tabindex]")?.setAttribute("tabindex", "0");
    if (focus) root.querySelector(focus)?.focus();
  };

  // What one number is made of, and where it stands.
  const line = (label, word) => {
    const text = word.text === shown(word.value) ? "" : `<code>${escaped(word.text)}</code> = `;
    return `<p>${label} = ${text}<b>${cell(word.value)}</b></p>`;
  };
  const explain = ($, found) => {
    const lines = [];
    lit = [];
    if (at.cell) {
      const [number, side, place, entry] = at.cell.split(",").map(Number), one = found[number]?.cases[place], chain = found[number]?.chain;
      if (!one || entry >= one.sides[side]?.length) return false;
      const where = (label) => chain.letters.reduce((text, letter, k) => text.replaceAll(`<mi>${letter}</mi>`, `<mn>${one.places[k]}</mn>`), typeset(label));
      const width = one.shape[1], entryOf = small(one.shape.length && `number ${width ? numbered([Math.floor(entry / width), entry % width]) : entry + 1}`);
      const said = new Set();
      for (const k of [side, ...chain.sides.keys()]) {
        const word = worded(life, $, chain, one, k, entry);
        if (k === side) lit = word.lit;
        if (said.has(k) || (said.size && word.text === shown(word.value) && same(word.value, one.sides[side][entry]))) continue;
        said.add(k);
        lines.push(line(where(chain.labels[k]) + entryOf, word));
      }
    } else {
      const maker = keyed(life, at.key), places = placesOf(at.key), value = picked($[maker.key], places);
      const word = opened(life, $, { text: shown(value), from: [at.key], value });
      lit = word.lit;
      lines.push(line(typeset(maker.label) + small(numbered(places)), word));
    }
    how.innerHTML = [...new Set(lines)].join("");
    how.style.minHeight = "3.2em"; // from now on, so that nothing below moves
    light();
    return true;
  };
  const light = () => {
    const from = new Set(at ? lit : []);
    for (const one of all("[data-at]")) one.closest("td").classList.toggle("alv-source", from.has(one.dataset.at));
    for (const one of all("td[data-cell], td[data-at]")) one.classList.toggle("alv-on", Boolean(at) && (one.dataset.cell ? one.dataset.cell === at.cell : one.dataset.at === at.key));
  };
  const point = (target) => {
    const one = target.closest?.("td[data-cell], td[data-at]");
    if (!one || !root.alive.found) return;
    at = one.dataset.cell ? { cell: one.dataset.cell } : { key: one.dataset.at };
    explain(root.alive.$, root.alive.found);
  };

  const change = (control, text, typing) => {
    const [key, ...places] = control.dataset.at.split(","), one = life.inputs.find((input) => input.key === key);
    const typed = text.trim().replace("−", "-").replace(",", "."), value = /^[-+]?(\d+\.?\d*|\.\d+)$/.test(typed) ? +typed : NaN;
    const wants = { whole: ["a whole number, 1 or more", Number.isInteger(value) && value > 0 && value <= 1e6], share: ["a number between 0 and 1", value >= 0 && value <= 1], positive: ["a number above 0", value > 0] }[one.kind] ?? ["a number, such as 0.5 or −2", true];
    if (!Number.isFinite(value) || !wants[1]) {
      if (typing) return false;
      control.setAttribute("aria-invalid", "true");
      tell("lost", `${escaped(one.spoken)} takes ${wants[0]}. All that is shown is still for ${shown(picked(values[key], places))}.`);
      return false;
    }
    control.removeAttribute("aria-invalid");
    if (!places.length) values[key] = value;
    else {
      values[key] = structuredClone(values[key]); // another matrix: products of one that was met before are known
      const inner = picked(values[key], places.slice(0, -1).map(Number));
      (inner.column ?? inner)[places[places.length - 1]] = value;
    }
    return true;
  };
  // What is typed counts at once: were it drawn as the field is left, the cell that Tab leads to would be gone.
  on("input", ({ target }) => target.matches("input[data-at]") && change(target, target.value, true) && draw(false));
  on("change", ({ target }) => target.matches("input[data-at]") && change(target, target.value));
  on("keydown", (event) => {
    const { key, target } = event, one = target.closest("td");
    const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[key] ?? [];
    const field = target.tagName === "INPUT";
    if (key === "Enter" && field) { // as in a sheet of numbers: on to the next
      if (!change(target, target.value)) return;
      const fields = [...all("input[data-at]")];
      fields[fields.indexOf(target) + 1]?.focus();
      return;
    }
    if (!one || down === undefined || (field && right)) return;
    const next = one.closest("tbody").rows[one.parentNode.rowIndex - one.closest("tbody").rows[0].rowIndex + down]?.cells[one.cellIndex + right];
    if (!next) return;
    event.preventDefault();
    (next.querySelector("input, button") ?? next).focus();
  });
  on("pointerover", ({ target }) => point(target));
  on("focusin", ({ target }) => {
    if (target.matches("input[data-at]")) target.select(); // typing replaces the number
    point(target);
  });
  on("click", ({ target }) => {
    const member = target.closest(".alv-member"), button = target.closest("[data-form]");
    const others = target.closest(".alv-again") ? life.values : target === some && answer;
    if (member) {
      change(member, member.getAttribute("aria-pressed") === "true" ? "0" : "1");
      draw(true, `[data-at="${member.dataset.at}"]`);
    } else if (button) {
      form = +button.dataset.form;
      draw(false);
    } else if (others) {
      Object.assign(values, structuredClone(others));
      draw(true);
    } else point(target);
  });
  const asked = /^#.*wrong=(\d+)/.exec(location.hash);
  if (asked && life.forms[asked[1]]) form = Number(asked[1]);
  draw(true);
};
