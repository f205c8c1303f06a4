// The attention viewer: one query's row over the text, the map of one head, all heads small. DATA (viewer.py): `texts`, each with `name`,
// `tokens`, `weights` (a letter for each weight: layer, head, query, key) and `norms` (head of all layers, key; or null); the numbers of
// `layers` and `heads`; and `layer`, `head`, `query`, the places where it opens.
const ZERO = 0xa1; // the letter of weight 0; each further one is a ten-thousandth more
const BEST = 5; // the most heads that are marked for a pair
const MOST = 8; // keys of a row that have a line in the table
const [LARGE, SMALL] = [240, 24]; // the most pixels of the map, and of a small one
const LABELLED = 20; // tokens that can be named beside the map
const PAINT = [[184, 93, 144], [0, 146, 106]]; // weights; what is brought: both to be seen on light and dark paper

// A weight as NumPy rounds it: the letter is chosen so that three digits of it are those of the weight itself.
const three = (weight) => decimal(Math.floor((Math.round(weight * 1e4) + 5) / 10) / 1e3, 3);
const percent = (share) => (share > 0 && share < 0.005 ? "<1 %" : `${Math.round(100 * share)} %`);
const readable = (token) => (token.trim() ? token : token.replace(/\n/g, "\u21b5").replace(/\t/g, "\u21e5").replace(/ /g, "\u2423"));
const ordinal = (n) => `${n}${(n % 100 < 11 || n % 100 > 13) && ["", "st", "nd", "rd"][n % 10] || "th"}`;
const quoted = (token) => `\u201c${readable(token).trim()}\u201d`;

function element(name, attributes, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const [live, list, map, heads] = [".attn-live", ".view-text", ".view-map", ".view-heads"].map(one);
  const [layerCount, headCount] = [DATA.layers.length, DATA.heads.length];
  const at = { text: 0, layer: DATA.layer, head: DATA.head, query: DATA.query, key: 0, brought: 0 };
  const drawn = { text: "", map: "", heads: "" }; // what each part shows now
  const search = { pair: "", place: 0 };
  let [text, sink] = [DATA.texts[0], ""];

  // ---- Numbers
  const size = () => text.tokens.length;
  const place = () => at.layer * headCount + at.head;
  const weight = (head, query, key) => (text.weights.charCodeAt((head * size() + query) * size() + key) - ZERO) / 1e4;
  function row(head, query, brought = at.brought) { // weights; or of what the query is brought, each key's part: weight times norm
    const found = new Float64Array(size());
    let sum = 0;
    for (let key = 0; key < found.length; key++) sum += found[key] = weight(head, query, key) * (brought ? text.norms[head][key] : 1);
    return brought && sum ? found.map((part) => part / sum) : found;
  }
  function ranked() { // the heads by the weight of this pair, the best first
    const given = Array.from({ length: layerCount * headCount }, (_, head) => weight(head, at.query, at.key));
    return [...given.keys()].sort((a, b) => given[b] - given[a] || a - b);
  }
  const largest = (numbers) => numbers.indexOf(Math.max(...numbers));

  // ---- Pictures: the stronger, the larger; the root of a number, so that small ones can be seen
  function picture(sheet, width, height) {
    const canvas = sheet.querySelector("canvas"), pen = canvas.getContext("2d"), image = pen.createImageData(width, height);
    Object.assign(canvas, { width, height });
    return [image, () => pen.putImageData(image, 0, 0)];
  }
  function paint(image, head, side, left, top, least) { // where several numbers fall on one pixel, it shows the largest
    const n = size(), pixels = new Float32Array(side * side).fill(least);
    for (let query = 0; query < n; query++) {
      const line = Math.floor((query * side) / n) * side;
      row(head, query).forEach((share, key) => {
        const pixel = line + Math.floor((key * side) / n);
        if (share > pixels[pixel]) pixels[pixel] = share;
      });
    }
    const colours = new Uint32Array(image.data.buffer), [red, green, blue] = PAINT[at.brought];
    pixels.forEach((share, pixel) => {
      const at = (top + Math.floor(pixel / side)) * image.width + left + (pixel % side);
      colours[at] = (Math.round(255 * Math.sqrt(share)) << 24) | (blue << 16) | (green << 8) | red;
    });
  }
  function drawMap() {
    const n = size(), side = Math.min(n, LARGE), [image, put] = picture(map, side, side);
    paint(image, place(), side, 0, 0, 0);
    put();
    const later = text.tokens.slice(1).map((_, before) => before + 1), sums = [0, 0];
    for (const query of later) {
      sums[0] += weight(place(), query, 0);
      if (text.norms) sums[1] += row(place(), query, 1)[0];
    }
    const [taken, brought] = sums.map((sum) => percent(sum / later.length));
    const also = text.norms ? `, and is ${brought} of what they are brought` : "";
    sink = n > 1 ? ` Sink: on average over the other queries, the first token gets ${taken} of this head\u2019s weight${also}.` : "";
  }
  const side = () => Math.min(size(), SMALL);
  const span = (count) => count * (side() + 1) - 1; // pixels of all heads, with one between two
  function drawHeads() {
    const [image, put] = picture(heads, span(layerCount), span(headCount)), step = side() + 1;
    for (let head = 0; head < layerCount * headCount; head++) {
      paint(image, head, side(), Math.floor(head / headCount) * step, (head % headCount) * step, 0.002);
    }
    put();
    heads.style.setProperty("--layers", layerCount);
  }
  function frame(mark, left, top, width, height) {
    const share = (number) => `${100 * number}%`;
    Object.assign(mark.style, { left: share(left), top: share(top), width: share(width), height: share(height) });
  }
  function keepInSight(box, { offsetTop: top, offsetHeight: height, offsetLeft: left, offsetWidth: width }) {
    if (top < box.scrollTop || top + height > box.scrollTop + box.clientHeight) box.scrollTop = top - (box.clientHeight - height) / 2;
    if (left < box.scrollLeft || left + 2 * width > box.scrollLeft + box.clientWidth) box.scrollLeft = left - (box.clientWidth - width) / 2;
  }

  // ---- Words
  function newText() {
    text = DATA.texts[at.text];
    const id = (key) => `${list.getAttribute("aria-labelledby")}-${key}`;
    list.replaceChildren(...text.tokens.flatMap((token, key) => {
      const shown = token.includes("\n") ? token.replace(/\n/g, "\u21b5\n") : token.trim() ? token : readable(token);
      const blank = /^ ?/.exec(shown)[0]; // it stands between the words, not within a frame
      return [blank, element("span", { role: "option", id: id(key) }, shown.slice(blank.length))];
    }));
    const names = () => (size() > LABELLED ? [] : text.tokens.map((token) => element("span", {}, readable(token).trim())));
    for (const side of [".view-top", ".view-side"]) one(side).replaceChildren(...names());
    const some = (all, step) => all.map((name, n) => element("span", {}, n % step ? "" : `${name}`));
    heads.querySelector(".view-top").replaceChildren(...some(DATA.layers, 5));
    heads.querySelector(".view-side").replaceChildren(...some(DATA.heads, 4));
    const heading = ["key (position)", "weight", ...(text.norms ? ["norm", "brings"] : [])];
    one(".view-row thead tr").replaceChildren(...heading.map((words) => element("th", { scope: "col" }, words)));
    for (const valued of root.querySelectorAll("[data-shade], [data-valued]")) valued.hidden = !text.norms;
    if (!text.norms) at.brought = 0;
    turnNames();
  }
  function turnNames() { // above the map they stand upright where none touches the next
    const top = one(".view-top"), room = 2 * (map.querySelector("canvas").offsetWidth / size() - 2);
    top.toggleAttribute("data-turned", false);
    const wide = [...top.children].map((name) => name.offsetWidth);
    top.toggleAttribute("data-turned", wide.some((width, n) => width + (wide[n - 1] ?? 0) > room));
  }
  function drawTable(found) {
    const order = [...found.keys()].sort((a, b) => found[b] - found[a] || a - b);
    const shown = order.slice(0, MOST).filter((key) => found[key] > 0);
    if (!shown.includes(at.key)) shown.push(at.key);
    const [taken, parts] = [row(place(), at.query, 0), text.norms && row(place(), at.query, 1)];
    const rest = (numbers) => numbers.reduce((sum, number, key) => sum + (shown.includes(key) ? 0 : number), 0);
    function line(name, share, cells, attributes) {
      const head = element("th", { scope: "row", style: `--share: ${share < 0.01 ? 0 : 100 * share}%` }, name);
      return element("tr", attributes, head, ...cells.map((cell) => element("td", {}, cell)));
    }
    const rows = shown.map((key) => {
      const cells = [three(taken[key]), ...(parts ? [String(text.norms[place()][key]), percent(parts[key])] : [])];
      return line(`${readable(text.tokens[key]).trim()} (${key})`, found[key], cells, { "data-key": key === at.key ? "" : null });
    });
    if (shown.length < size()) {
      rows.push(line(`the other ${size() - shown.length}`, 0, [three(rest(taken)), ...(parts ? ["", percent(rest(parts))] : [])], {}));
    }
    one(".view-row tbody").replaceChildren(...rows);
    one(".view-row caption").textContent = `What the query ${quoted(text.tokens[at.query])} (${at.query}) looks at`;
  }

  // ---- All of it
  function draw() {
    if (drawn.text !== `${at.text}`) newText();
    const found = row(place(), at.query), [query, key] = [text.tokens[at.query], text.tokens[at.key]];
    const [now, then] = [{ text: `${at.text}`, map: `${[at.text, at.brought, place()]}`, heads: `${[at.text, at.brought]}` }, { ...drawn }];
    if (now.map !== then.map) drawMap();
    if (now.heads !== then.heads) drawHeads();
    Object.assign(drawn, now);
    live.toggleAttribute("data-brought", Boolean(at.brought));
    one("[data-shade]").setAttribute("aria-pressed", String(Boolean(at.brought)));
    for (const pick of root.querySelectorAll("[data-pick]")) pick.value = at[pick.dataset.pick];
    [...list.children].forEach((token, n) => {
      token.style.setProperty("--share", `${100 * Math.sqrt(found[n])}%`);
      token.setAttribute("aria-selected", String(n === at.query));
      token.toggleAttribute("data-key", n === at.key);
    });
    const chosen = list.children[at.query];
    list.setAttribute("aria-activedescendant", chosen.id);
    keepInSight(list, chosen);
    drawTable(found);
    const n = size(), step = side() + 1, [wide, high] = [span(layerCount), span(headCount)];
    frame(map.querySelector(".view-band"), 0, at.query / n, 1, 1 / n);
    frame(map.querySelector(".view-cell"), at.key / n, at.query / n, 1 / n, 1 / n);
    const order = ranked(), rank = order.indexOf(place()) + 1;
    const frameHead = (mark, head) =>
      frame(mark, (Math.floor(head / headCount) * step) / wide, ((head % headCount) * step) / high, side() / wide, side() / high);
    frameHead(heads.querySelector(".view-cell"), place());
    keepInSight(heads, heads.querySelector(".view-cell"));
    heads.querySelectorAll(".view-best").forEach((mark, nth) => {
      mark.hidden = !weight(order[nth], at.query, at.key);
      frameHead(mark, order[nth]);
    });
    const ranks = order.length > 1 && weight(order[0], at.query, at.key);
    const rankedAs = ranks ? `, ${ordinal(rank)} of ${order.length} for this pair` : "";
    const part = text.norms && `${percent(row(place(), at.query, 1)[at.key])} of what the query is brought.`;
    const brings = text.norms ? ` Times the norm of its value, ${text.norms[place()][at.key]}, that is ${part}` : "";
    const where = `Layer ${DATA.layers[at.layer]}, head ${DATA.heads[at.head]}`;
    const taken = three(weight(place(), at.query, at.key));
    const said = `: the query ${quoted(query)} gives the key ${quoted(key)} the weight ${taken}.${brings}`;
    one("[data-says]").replaceChildren(element("b", {}, where + rankedAs), said, sink);
    speak(root, where + said);
  }
  const bounded = (number, count) => Math.max(0, Math.min(count - 1, number));
  const looksHardest = () => (at.key = largest(row(place(), at.query, 0)));
  function set(changes) {
    Object.assign(at, changes);
    draw();
  }
  function setHead(head) {
    set({ layer: Math.floor(head / headCount), head: head % headCount });
  }
  function setQuery(query) {
    at.query = bounded(query, size());
    looksHardest();
    draw();
  }
  function find(by) { // the best head for this pair, or from there the next
    const pair = `${[at.text, at.query, at.key]}`, order = ranked(), count = order.length;
    const from = search.pair === pair ? search.place : order[0] === place() ? 0 : -by;
    Object.assign(search, { pair, place: (from + by + count) % count });
    setHead(order[search.place]);
  }

  // ---- Keys, clicks and choices
  const letters = {
    h: (by) => setHead((place() + by + layerCount * headCount) % (layerCount * headCount)),
    l: (by) => set({ layer: (at.layer + by + layerCount) % layerCount }),
    b: find,
    v: () => text.norms && set({ brought: 1 - at.brought }),
  };
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-Infinity, 0], End: [Infinity, 0] };
  const boxes = {
    text: ([x, y], shift) => (shift ? set({ key: bounded(at.key + x + y, size()) }) : setQuery(at.query + x + y)),
    map: ([x, y]) => set({ key: bounded(at.key + x, size()), query: bounded(at.query + y, size()) }),
    heads: ([x, y]) => set({ layer: bounded(at.layer + x, layerCount), head: bounded(at.head + y, headCount) }),
  };
  live.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [letter, arrow] = [letters[event.key.toLowerCase()], ARROWS[event.key]], box = boxes[event.target.dataset.box];
    if (letter) letter(event.shiftKey ? -1 : 1);
    else if (arrow && box) box(arrow, event.shiftKey);
    else return;
    event.preventDefault();
  });
  list.addEventListener("click", (event) => {
    const chosen = [...list.children].indexOf(event.target);
    if (chosen >= 0) event.shiftKey ? set({ key: chosen }) : setQuery(chosen);
  });
  function pointed(box, across, down, act) {
    const canvas = box.querySelector("canvas");
    const cell = (at, length, count) => bounded(Math.floor((at / length) * count), count);
    canvas.addEventListener("click", ({ offsetX, offsetY }) =>
      act(cell(offsetX, canvas.offsetWidth, across()), cell(offsetY, canvas.offsetHeight, down())));
  }
  pointed(map, size, size, (key, query) => set({ key, query }));
  pointed(heads, () => layerCount, () => headCount, (layer, head) => set({ layer, head }));
  one("[data-find]").addEventListener("click", () => find(1));
  one("[data-shade]").addEventListener("click", () => letters.v());
  one(".view-help").addEventListener("click", ({ currentTarget: help }) => {
    help.setAttribute("aria-expanded", String(one(".view-keys").toggleAttribute("hidden") === false));
  });
  const names = { text: DATA.texts.map(({ name }) => name), layer: DATA.layers, head: DATA.heads };
  for (const pick of root.querySelectorAll("[data-pick]")) {
    pick.append(...names[pick.dataset.pick].map((name, value) => element("option", { value }, name)));
    pick.addEventListener("input", () => {
      at[pick.dataset.pick] = Number(pick.value);
      text = DATA.texts[at.text];
      if (pick.dataset.pick === "text") setQuery(size() - 1);
      else draw();
    });
  }
  const marks = { length: Math.min(BEST, Math.ceil((layerCount * headCount) / 4)) };
  heads.querySelector(".view-cell").before(...Array.from(marks, () => element("i", { class: "view-best" })));
  one("[data-texts]").hidden = DATA.texts.length < 2;
  looksHardest();
  draw();
  new ResizeObserver(turnNames).observe(map);
}
