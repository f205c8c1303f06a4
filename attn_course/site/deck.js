// Words have one size, and a larger one where a sentence stands alone. What has no room has smaller print and numbers, then it is drawn smaller as a whole, down to 0.73, below which it scrolls.
// What came out of a question has its room before it is seen. And again whenever a card changes, which makes nothing larger.
const LEAST = 0.73, MOST = 1.4, NUMBERS = 1.5, MARGIN = 24, BROKEN = 0.9, SMALL = 0.75, BOTTOM = 720 - 42, SHAPE = 2, EDGE = 12;
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
function fill(one, most) { // one line of numbers takes the width that there is
  Object.assign(one.style, { zoom: 1, width: "max-content" });
  const own = one.offsetWidth;
  one.style.width = "100%";
  one.style.zoom = Math.min(most, (0.99 * one.offsetWidth) / own);
  one.style.width = "";
}
function fit(section) {
  const body = section?.querySelector(".body");
  if (!body) return;
  Object.assign(body.style, { overflowY: "", zoom: 1 });
  body.querySelectorAll(".alv-side").forEach((one) => one.classList.toggle("same", one.nextSibling?.firstChild.textContent === "="));
  const tall = BOTTOM - body.offsetTop;
  let { scale, most, step } = section.fitted ||= { scale: section.querySelector(".attn-panels") ? MOST : 1, most: NUMBERS, step: 0 };
  for (; ; step < 2 ? step++ : most > 1 ? (most -= 0.1) : (scale *= 0.97)) {
    section.fitted = { scale, most, step };
    body.classList.toggle("large", step < 1);
    body.classList.toggle("tight", step > 1);
    Object.assign(body.style, { zoom: scale, height: `${tall / scale}px` });
    body.querySelectorAll(".eq").forEach(narrow);
    section.querySelectorAll(".end td:nth-child(2) .katex").forEach(shrink);
    section.querySelectorAll("table:not(.attn-explorable *, .plan, .end *)").forEach((table) => (table.style.zoom = Math.min(1, body.clientWidth / (table.offsetWidth * table.currentCSSZoom / scale))));
    if (!section.matches(".alive")) most = 1;
    else body.querySelectorAll(".alv-given, .alv-sides, .alv-formula").forEach((one) => fill(one, one.matches(".alv-formula") ? 1 : most));
    const [eq, sides] = [".eq", ".alv-sides"].map((part) => body.querySelector(part));
    if (eq && sides?.style.zoom < SMALL) { // numbers that the last row cannot read
      section.classList.replace("alive", "equation");
      body.replaceChildren(...body.querySelectorAll(":scope > p"), eq);
    }
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
function crop(svg) { // the machine to what is lit, in the shape of a slide, without what that would cut through
  const boxes = [...svg.querySelectorAll(".attn-lit:not(.attn-wire, .attn-tip)")].map((part) => part.getBBox()), { width, height } = svg.viewBox.baseVal;
  const ends = (at, size) => [Math.min(...boxes.map((box) => box[at])) - EDGE, Math.max(...boxes.map((box) => box[at] + box[size])) + EDGE];
  const [[left, right], [top, bottom]] = [ends("x", "width"), ends("y", "height")];
  const high = Math.min(height, Math.max(bottom - top, (right - left) / SHAPE, height / 2)), wide = Math.min(width, high * SHAPE);
  const from = (middle, size, all) => Math.min(Math.max(0, middle - size / 2), all - size);
  const x = from((left + right) / 2, wide, width), y = from((top + bottom) / 2, high, height);
  for (const part of svg.querySelectorAll("rect, text, circle, path, polygon")) {
    const box = part.getBBox();
    if (!part.matches(".attn-lit") && (box.x < x || box.y < y || box.x + box.width > x + wide || box.y + box.height > y + high)) part.remove();
  }
  svg.setAttribute("viewBox", [x, y, wide, high].join(" "));
}
document.body.classList.add("measured");
for (const svg of document.querySelectorAll(".body > figure svg")) (svg.querySelector(".attn-lit") ? crop : trim)(svg);
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
