// DATA: the tokens, the word to begin with, and the weights: a row for each token that asks.
const TOP = 32;
const BOTTOM = 118;
const STEP = 424 / (DATA.tokens.length - 1);
const across = (place) => 80 + place * STEP;
const percent = (weight) => `${decimal(100 * weight, 0)} %`;

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const words = DATA.tokens.map((token, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = token;
    button.setAttribute("aria-pressed", String(place === DATA.first));
    button.dataset.word = place;
    button.addEventListener("click", () => choose(place));
    return button;
  });
  one("[data-words]").append(...words);

  function draw() {
    const asks = words.findIndex((button) => button.getAttribute("aria-pressed") === "true");
    const lines = DATA.weights.flatMap((row, i) => row.map((weight, j) => line(i, j, weight, i === asks)));
    one("[data-lines]").replaceChildren(...lines.filter((path) => !path.matches(".attn-chosen")), ...lines.filter((path) => path.matches(".attn-chosen")));
    const row = DATA.weights[asks];
    const most = Math.max(...row);
    one("[data-names]").replaceChildren(
      ...DATA.tokens.flatMap((token, j) => [
        svg("text", { x: across(j), y: TOP - 8, class: j === asks ? "attn-name attn-chosen" : "attn-name", "data-asks": j }, token),
        svg("text", { x: across(j), y: BOTTOM + 18, class: row[j] === most ? "attn-name attn-chosen" : "attn-name" }, token),
        svg("text", { x: across(j), y: BOTTOM + 38, class: "attn-percent" }, j > asks ? "" : percent(row[j])),
      ]),
    );
    speak(root, `“${DATA.tokens[asks]}” looks most at “${DATA.tokens[row.indexOf(most)]}”, which gets ${percent(most)} of its attention.`);
  }

  function choose(chosen) {
    for (const [place, button] of words.entries()) button.setAttribute("aria-pressed", String(place === chosen));
    draw();
  }
  one("[data-names]").addEventListener("click", (event) => {
    const place = event.target.dataset.asks;
    if (place !== undefined) choose(Number(place));
  });
  onReset(root, draw);
  draw();
}

function line(i, j, weight, chosen) {
  const [from, to, middle] = [across(i), across(j), (TOP + BOTTOM) / 2];
  return svg("path", {
    d: `M${from} ${TOP}C${from} ${middle} ${to} ${middle} ${to} ${BOTTOM}`,
    "stroke-width": (9 * weight).toFixed(2),
    class: chosen ? "attn-chosen" : "",
  });
}
