// Who looks at whom, as a picture: the words that ask above, the words that are found below, a line as thick as its weight.
const WIDE = 90, HIGH = 84, LEFT = 60, HALF = HIGH / 2 + 8;

function svg(tag, given, ...inside) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(given)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

class Looks {
  constructor(words) {
    const middle = (n) => LEFT + WIDE * (n + 0.5);
    const row = (y) => words.map((word, n) => svg("text", { x: middle(n), y, "text-anchor": "middle" }, word));
    this.lines = words.map((_, i) =>
      words.map((__, j) => svg("path", { d: `M${middle(i)} 22C${middle(i)} ${HALF} ${middle(j)} ${HALF} ${middle(j)} ${HIGH - 6}` })),
    );
    const sides = [["asks", 14], ["is found", HIGH + 9]].map(([word, y]) => svg("text", { class: "brk-what", x: 0, y }, word));
    this.mean = [34, 50].map((y) => svg("text", { class: "brk-what", x: 0, y }));
    const width = 2 * LEFT + WIDE * words.length;
    const look = { style: `max-width: ${width}px`, class: "brk-looks", viewBox: `0 0 ${width} ${HIGH + 14}`, "aria-hidden": "true" };
    this.picture = svg("svg", look, ...this.lines.flat(), ...row(14), ...row(HIGH + 9), ...sides, ...this.mean);
  }

  // Several heads are drawn as their mean.
  show(weights, other) {
    const several = Array.isArray(weights[0][0]) ? weights.length : 1;
    ["mean of", `${several} heads`].forEach((text, n) => (this.mean[n].textContent = several > 1 ? text : ""));
    const mean = (all, i, j) => (Array.isArray(all[0][0]) ? all.reduce((sum, head) => sum + head[i][j], 0) / all.length : all[i][j]);
    this.lines.forEach((row, i) => row.forEach((line, j) => {
      const weight = mean(weights, i, j);
      line.style.strokeWidth = Math.min(12, 10 * Math.abs(weight));
      line.classList.toggle("brk-far", other !== undefined && differs(weight, mean(other, i, j)));
    }));
  }

  // The lines of one asking word stand out.
  light(place) {
    const word = place.query ?? place.token;
    this.lines.forEach((row, i) => row.forEach((line) => line.classList.toggle("brk-dim", word !== undefined && word !== i)));
  }
}
