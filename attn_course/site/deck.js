// A slide whose content is taller or wider than the screen is drawn smaller, down to half, below which it scrolls; what came out
// of a question has its room before it is seen. And again whenever a card changes.
const LEAST = 0.5, MOST = 1.4, BROKEN = 0.75, ROOM = { wide: 1168, tall: 720 - 72 };
function narrow(eq) { // a long equation is drawn smaller than its words and its number; one that is much too long has its parts below each other
  const body = eq.querySelector(".eq-body"), number = eq.querySelector(".eq-number");
  const room = eq.clientWidth - (number ? number.offsetWidth + 32 : 0);
  Object.assign(body.style, { zoom: 1, flexDirection: "row" });
  if (room < BROKEN * body.offsetWidth) body.style.flexDirection = "column";
  body.style.zoom = Math.min(1, room / body.offsetWidth);
}
function fill(one, most, least = 0) { // one line of numbers, or code, takes the width that there is, unless it would be too small
  Object.assign(one.style, { zoom: 1, width: "max-content" });
  const own = one.offsetWidth;
  one.style.width = "";
  const size = Math.min(most, one.offsetWidth / own);
  one.style.zoom = size < least ? 1 : size;
}
function fit(section) {
  const body = section?.querySelector(".body");
  if (!body) return;
  Object.assign(body.style, { zoom: 1, maxHeight: "", overflowY: "" });
  const head = section.querySelector("h1, h2");
  const style = getComputedStyle(head);
  const tall = ROOM.tall - head.offsetHeight - parseFloat(style.marginTop) - parseFloat(style.marginBottom);
  for (let scale = 1; ; scale *= 0.96) { // text breaks anew at each size
    body.style.zoom = scale;
    body.querySelectorAll(".eq").forEach(narrow);
    body.querySelectorAll("pre:not(.beside pre)").forEach((code) => fill(code, 1));
    section.matches(".alive") && body.querySelectorAll(".alv-given, .alv-sides").forEach((numbers) => fill(numbers, MOST, BROKEN));
    body.querySelectorAll(".alv-forms, .alv-verdict, .attn-buttons, .alv-how").forEach((words) => (words.style.zoom = 1 / scale));
    if (body.offsetHeight * scale <= tall + 1 && body.scrollWidth * scale <= ROOM.wide + 1) return;
    if (scale < LEAST / 0.96) {
      Object.assign(body.style, { maxHeight: `${tall / scale}px`, overflowY: "auto" });
      return;
    }
  }
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
