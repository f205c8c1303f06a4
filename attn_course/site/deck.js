// Words alone are drawn larger, in one size, where they have room. A slide whose content is taller or wider than its room is drawn smaller, down to 0.73, below which it scrolls; code keeps its size.
// What came out of a question has its room before it is seen. And again whenever a card changes, which makes nothing larger.
const LEAST = 0.73, MOST = 1.4, LARGE = 1.25, MARGIN = 24, BROKEN = 0.75, BOTTOM = 720 - 42;
const LETTERS = 60; // of a line of print or code that is large
function narrow(eq) { // a long equation is drawn smaller than its words and its number; one that is much too long has its parts below each other
  const body = eq.querySelector(".eq-body"), number = eq.querySelector(".eq-number");
  const room = eq.clientWidth - (number ? number.offsetWidth + 32 : 0);
  Object.assign(body.style, { zoom: 1, flexDirection: "row" });
  if (room < BROKEN * body.offsetWidth) body.style.flexDirection = "column";
  body.style.zoom = Math.min(1, room / body.offsetWidth);
}
function fill(one, most, least = 0) { // one line of numbers takes the width that there is, unless it would be too small
  Object.assign(one.style, { zoom: 1, width: "max-content" });
  const own = one.offsetWidth;
  one.style.width = "";
  const size = Math.min(most, (0.99 * one.offsetWidth) / own);
  one.style.zoom = size < least ? 1 : size;
}
function fit(section) {
  const body = section?.querySelector(".body");
  if (!body) return;
  Object.assign(body.style, { overflowY: "", zoom: 1 });
  const tall = BOTTOM - body.offsetTop;
  const code = [...body.querySelectorAll("pre")], card = section.querySelector(".attn-panels");
  const longest = (one) => Math.max(...Array.from(one.children, (line) => line.textContent.length));
  const few = !card && !body.querySelector("img, figure, .attn-explorable") && !code.some((one) => !one.matches(".printed") && longest(one) > LETTERS);
  let [scale, most] = section.fitted || [card ? MOST : few ? LARGE : 1, MOST];
  for (; ; most > 1 ? (most -= 0.1) : (scale = scale > 1 && !card ? 1 : scale * 0.97)) { // first numbers are drawn smaller, then all, and text breaks anew
    section.fitted = [scale, most];
    Object.assign(body.style, { zoom: scale, height: `${tall / scale}px` });
    body.querySelectorAll(".eq").forEach(narrow);
    section.querySelectorAll("table:not(.attn-explorable *, .plan)").forEach((table) => (table.style.zoom = Math.min(1, body.clientWidth / (table.offsetWidth * table.currentCSSZoom / scale))));
    if (!section.matches(".alive")) most = 1;
    else body.querySelectorAll(".alv-given, .alv-sides").forEach((numbers) => fill(numbers, most, scale < 0.9 ? 0.6 : BROKEN));
    code.forEach((one) => (one.style.zoom = Math.max(1 / scale, Math.min(1, LETTERS / longest(one)))));
    const wide = [body, ...body.querySelectorAll(".attn-panels > div")].some((one) => one.scrollWidth > one.clientWidth + 1);
    if (body.scrollHeight <= body.clientHeight + 1 && !wide) return;
    if (scale < LEAST / 0.97) {
      body.style.overflowY = "auto";
      return;
    }
  }
}
for (const card of document.querySelectorAll(".alive .attn-live > div")) { // its equation stands among its numbers, and a mistake in its place
  const eq = card.closest(".body").querySelector(".eq");
  if (eq) card.prepend(eq);
}
function trim(svg) { // a drawing has no margins, and a name may reach into them
  const { x, y, width, height } = svg.getBBox(), now = svg.viewBox.baseVal;
  const [left, top] = [Math.max(x, now.x - MARGIN), Math.max(y, now.y - MARGIN)]; // what is drawn may be cut off further out
  const [right, bottom] = [Math.min(x + width, now.x + now.width + MARGIN), Math.min(y + height, now.y + now.height + MARGIN)];
  if (width) svg.setAttribute("viewBox", [left - 2, top - 2, right - left + 4, bottom - top + 4].join(" "));
}
document.body.classList.add("measured");
document.querySelectorAll(".body > figure svg").forEach(trim);
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
