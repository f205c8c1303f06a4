// A slide whose content is taller or wider than its room is drawn smaller, down to 0.73, below which it scrolls; code keeps its size.
// What came out of a question has its room before it is seen. And again whenever a card changes, which makes nothing larger.
const LEAST = 0.73, MOST = 1.4, BROKEN = 0.75, BOTTOM = 720 - 42;
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
  let [scale, most] = section.fitted || [section.querySelector(".attn-panels") ? MOST : 1, MOST];
  for (; ; most > 1 ? (most -= 0.1) : (scale *= 0.97)) { // first numbers are drawn smaller, then all, and text breaks anew
    section.fitted = [scale, most];
    Object.assign(body.style, { zoom: scale, height: `${tall / scale}px` });
    body.querySelectorAll(".eq").forEach(narrow);
    section.querySelectorAll("table:not(.attn-explorable *, .plan)").forEach((table) => (table.style.zoom = Math.min(1, body.clientWidth / (table.offsetWidth * table.currentCSSZoom / scale))));
    if (!section.matches(".alive")) most = 1;
    else body.querySelectorAll(".alv-given, .alv-sides").forEach((numbers) => fill(numbers, most, scale < 0.9 ? 0 : BROKEN));
    body.querySelectorAll("pre").forEach((code) => (code.style.zoom = 1 / scale));
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
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, display: "flex", hash: true, slideNumber: true, transition: "none",
  controlsLayout: "edges", // in the margins, beside what a slide shows
  plugins: [RevealNotes], defaultTiming: 60, // with it the notes show how long a slide may take, its data-timing
}).then(() => document.fonts.ready).then(() => {
  fit(Reveal.getCurrentSlide());
  const cards = new MutationObserver(() => fit(Reveal.getCurrentSlide()));
  for (const card of document.querySelectorAll(".attn-live")) cards.observe(card, { subtree: true, childList: true, attributeFilter: ["hidden"] });
});
Reveal.on("slidechanged", (event) => fit(event.currentSlide));
