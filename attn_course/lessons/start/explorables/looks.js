// DATA: the tokens, the word to begin with, and the weights: a row for each token that asks.
const WIDTHS = DATA.tokens.map((token) => token.length + 2);
const ALL = WIDTHS.reduce((sum, width) => sum + width);
const across = (place) => (100 * (WIDTHS.slice(0, place).reduce((sum, width) => sum + width, 0) + WIDTHS[place] / 2)) / ALL;

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
  for (const line of root.querySelectorAll(".attn-sentence")) line.style.gridTemplateColumns = WIDTHS.map((width) => `minmax(0, ${width}fr)`).join(" ");

  function draw() {
    const asks = words.findIndex((button) => button.getAttribute("aria-pressed") === "true");
    const lines = DATA.weights.flatMap((row, i) => row.map((weight, j) => line(i, j, weight, i === asks)));
    one("[data-lines]").replaceChildren(...lines.filter((path) => !path.matches(".attn-chosen")), ...lines.filter((path) => path.matches(".attn-chosen")));
    const shares = percents(DATA.weights[asks]);
    const most = shares.indexOf(Math.max(...shares));
    one("[data-names]").replaceChildren(
      ...DATA.tokens.map((token, j) => {
        const [name, share] = [document.createElement("span"), document.createElement("small")];
        name.append(token, share);
        name.className = j === most ? "attn-chosen" : j > asks ? "attn-later" : "";
        share.textContent = j > asks ? "" : `${shares[j] || "<1"} %`;
        return name;
      }),
    );
    speak(root, `“${DATA.tokens[asks]}” looks most at “${DATA.tokens[most]}”, which gets ${shares[most]} % of its attention.`);
  }

  function choose(chosen) {
    for (const [place, button] of words.entries()) button.setAttribute("aria-pressed", String(place === chosen));
    draw();
  }
  draw();
}

function line(i, j, weight, chosen) {
  const [from, to] = [across(i).toFixed(2), across(j).toFixed(2)];
  return svg("path", { d: `M${from} 0C${from} 50 ${to} 50 ${to} 100`, "stroke-width": (16 * weight).toFixed(2), class: chosen ? "attn-chosen" : "" });
}

// Rounded percentages, 0 for what is less than 1, that sum to no more than 100: those that gain most by rounding are rounded down.
function percents(row) {
  const whole = row.map((weight) => (weight < 0.01 ? 0 : Math.round(100 * weight)));
  const gain = (j) => whole[j] - 100 * row[j];
  const order = [...row.keys()].sort((a, b) => gain(b) - gain(a));
  for (const j of order.slice(0, Math.max(0, whole.reduce((sum, one) => sum + one) - 100))) whole[j] -= 1;
  return whole;
}
