// Words have one size, and a larger one where a sentence stands alone. What has no room has smaller print, then it is drawn smaller as a whole, down to 0.73, below which it scrolls.
// What came out of a question has its room before it is seen. And again whenever a card changes, which makes nothing larger.
const LEAST = 0.73, MOST = 1.4, NUMBERS = 1.05, MARGIN = 24, BROKEN = 0.9, SMALL = 0.7, GAP = 14, BOTTOM = 720 - 42;
function narrow(eq) { // a long equation is drawn smaller than its words and its number; one that is much too long has its parts below each other
  const body = eq.querySelector(".eq-body"), number = eq.querySelector(".eq-number");
  const room = eq.clientWidth - (number ? number.offsetWidth + 32 : 0);
  Object.assign(body.style, { zoom: 1, flexDirection: "row" });
  if (room < BROKEN * body.offsetWidth) body.style.flexDirection = "column";
  body.style.zoom = Math.min(1, room / body.offsetWidth);
}
function shrink(formula) { // one of a table, to the width of its cell
  formula.style.zoom = 1;
  formula.style.zoom = Math.min(1, (0.99 * formula.closest("td").clientWidth) / formula.offsetWidth);
}
function count(card, most) { // the numbers of a card, all in one size, beside what is told and below the equation
  const parts = [...card.querySelectorAll(":scope > .alv-given, .alv-sides")], room = [most];
  let high = 0;
  for (const one of parts) {
    Object.assign(one.style, { zoom: 1, width: "max-content" });
    const own = one.offsetWidth;
    high += one.offsetHeight;
    one.style.width = "";
    room.push((0.99 * one.offsetWidth) / own);
  }
  const above = Math.max(0, ...Array.from(card.querySelectorAll(".eq, .alv-now"), (one) => one.offsetHeight));
  room.push((card.clientHeight - above - 3 * GAP) / high);
  parts.forEach((one) => (one.style.zoom = Math.min(...room)));
  return Math.min(...room);
}
function fit(section) { // a card has one size, in which there is room for each of its mistakes; the last of its forms is the equation
  const kinds = section && !section.fitted ? ["[data-mistake]", "[data-form]:not([data-mistake])"] : [];
  for (const form of kinds.flatMap((kind) => [...section.querySelectorAll(`.alive ${kind}`)])) {
    form.click();
    settle(section);
  }
  settle(section);
  const eq = section?.querySelector(".alive .eq");
  if (eq && section.fitted.most < SMALL) { // numbers that the last row cannot read
    section.classList.replace("alive", "equation");
    section.querySelector(".body").replaceChildren(eq);
    delete section.fitted;
    settle(section);
  }
}
function settle(section) {
  const body = section?.querySelector(".body");
  if (!body) return;
  Object.assign(body.style, { overflowY: "", zoom: 1 });
  body.querySelectorAll(".alv-side").forEach((one) => one.classList.toggle("same", one.nextSibling?.firstChild.textContent === "="));
  const tall = BOTTOM - body.offsetTop;
  let { scale, most, step } = section.fitted ||= { scale: section.querySelector(".attn-panels") ? MOST : 1, most: NUMBERS, step: 0 };
  for (; ; step < 2 ? step++ : (scale *= 0.97)) {
    section.fitted = { scale, most, step };
    body.classList.toggle("large", step < 1);
    body.classList.toggle("tight", step > 1);
    Object.assign(body.style, { zoom: scale, height: `${tall / scale}px` });
    body.querySelectorAll(".eq").forEach(narrow);
    section.querySelectorAll(".end td:nth-child(2) .katex").forEach(shrink);
    section.querySelectorAll("table:not(.attn-explorable *, .end *)").forEach((table) => (table.style.zoom = Math.min(1, body.clientWidth / (table.offsetWidth * table.currentCSSZoom / scale))));
    if (section.matches(".alive")) section.fitted.most = count(section.querySelector(".attn-live > div"), most);
    const wide = [body, ...body.querySelectorAll(".attn-panels > div")].some((one) => one.scrollWidth > one.clientWidth + 1);
    if (body.scrollHeight <= body.clientHeight + 1 && !wide) return;
    if (scale < LEAST / 0.97) {
      body.style.overflowY = "auto";
      return;
    }
  }
}
for (const card of document.querySelectorAll(".alive .attn-live > div")) { // its equation stands among its numbers, and a mistake in its place; at their left, what is pressed and told
  const eq = card.closest(".body").querySelector(".eq"), told = document.createElement("div");
  told.className = "told";
  told.append(...[".alv-forms", ".alv-said", ".alv-how"].map((part) => card.querySelector(part)));
  card.prepend(told, ...(eq ? [eq] : []));
}
function trim(svg) { // a drawing has no margins, and a name may reach into them
  const { x, y, width, height } = svg.getBBox(), now = svg.viewBox.baseVal;
  const [left, top] = [Math.max(x, now.x - MARGIN), Math.max(y, now.y - MARGIN)]; // what is drawn may be cut off further out
  const [right, bottom] = [Math.min(x + width, now.x + now.width + MARGIN), Math.min(y + height, now.y + now.height + MARGIN)];
  if (width) svg.setAttribute("viewBox", [left - 2, top - 2, right - left + 4, bottom - top + 4].join(" "));
}
document.body.classList.add("measured");
for (const svg of document.querySelectorAll(".body > figure svg")) trim(svg);
for (const plot of document.querySelectorAll(".body > img")) {
  const [kind, drawn] = plot.src.split(/,(.*)/s), page = document.body.appendChild(document.createElement("div"));
  page.innerHTML = decodeURIComponent(drawn);
  trim(page.firstChild);
  plot.src = `${kind},${encodeURIComponent(new XMLSerializer().serializeToString(page.firstChild))}`;
  page.remove();
}
document.body.classList.remove("measured");
const theme = document.documentElement.dataset;
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, display: "flex", hash: true, slideNumber: true, transition: "none",
  keyboard: { 68: () => (theme.theme = theme.theme === "dark" ? "light" : "dark") }, // D: a dark room
  controlsLayout: "edges", // in the margins, beside what a slide shows
  plugins: [RevealNotes], defaultTiming: 60, // with it the notes show how long a slide may take, its data-timing
}).then(() => document.fonts.ready).then(() => {
  fit(Reveal.getCurrentSlide());
  const cards = new MutationObserver(() => fit(Reveal.getCurrentSlide()));
  for (const card of document.querySelectorAll(".attn-live")) cards.observe(card, { subtree: true, childList: true, attributeFilter: ["hidden"] });
});
Reveal.on("slidechanged", (event) => fit(event.currentSlide));
