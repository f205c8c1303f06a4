// A slide whose content is taller or wider than the screen is drawn smaller, down to two fifths, below which it scrolls; a card, an
// equation or a question with room to spare is drawn larger, and first the numbers of a card. And again whenever something in it opens.
const LEAST = 0.4, MOST = { alive: 1.4, question: 1.4, equation: 1.2, end: 1.2 }, ROOM = { wide: 1168, tall: 720 - 72 };
function narrow(eq) { // a long equation is drawn smaller than the words beside it
  eq.style.zoom = 1;
  eq.style.zoom = Math.min(1, eq.clientWidth / Math.max(...[...eq.querySelectorAll(".eq-part")].map((part) => part.scrollWidth)));
}
function widen(numbers) { // those of a card fill their column
  Object.assign(numbers.style, { zoom: 1, width: "max-content" });
  const own = numbers.offsetWidth;
  numbers.style.width = "";
  numbers.style.zoom = Math.max(1, Math.min(MOST.alive, numbers.offsetWidth / own));
}
function fit(section) {
  const body = section?.querySelector(".body");
  if (!body) return;
  Object.assign(body.style, { zoom: 1, maxHeight: "", overflowY: "" });
  const head = section.querySelector("h1, h2");
  const style = getComputedStyle(head);
  const tall = ROOM.tall - head.offsetHeight - parseFloat(style.marginTop) - parseFloat(style.marginBottom);
  let scale = (Object.entries(MOST).find(([kind]) => section.classList.contains(kind))?.[1] ?? 1) * Math.min(1, ROOM.wide / body.scrollWidth);
  for (;; scale *= 0.96) { // text breaks anew at each size
    body.style.zoom = scale;
    body.querySelectorAll(".eq").forEach(narrow);
    section.matches(".alive") && body.querySelectorAll(".alv-given, .alv-sides").forEach(widen);
    body.querySelectorAll(".alv-forms, .alv-verdict, .alv-again").forEach((words) => (words.style.zoom = Math.max(1, 1 / scale)));
    if (body.offsetHeight * scale <= tall && body.scrollWidth * scale <= ROOM.wide + 1) return;
    if (scale < LEAST / 0.96) break;
  }
  Object.assign(body.style, { maxHeight: `${tall / scale}px`, overflowY: "auto" });
}
Reveal.initialize({
  width: 1280, height: 720, margin: 0, center: false, display: "flex", hash: true, slideNumber: true, transition: "none",
  controlsLayout: "edges", // in the margins, beside what a slide shows
  plugins: [RevealNotes], defaultTiming: 60, // with it the notes show how long a slide may take, its data-timing
}).then(() => document.fonts.ready).then(() => {
  fit(Reveal.getCurrentSlide());
  document.addEventListener("toggle", () => fit(Reveal.getCurrentSlide()), true);
});
Reveal.on("slidechanged", (event) => fit(event.currentSlide));
for (const moved of ["fragmentshown", "fragmenthidden"]) Reveal.on(moved, () => fit(Reveal.getCurrentSlide()));
