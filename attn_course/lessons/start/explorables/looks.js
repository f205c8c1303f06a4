// DATA: the tokens, the word to begin with, and for each head its queries, keys, values and scores. Scores are divided by 2.
const TOP = 32;
const BOTTOM = 138;
const vector = (entries, digits = 0) => `(${entries.map((entry) => decimal(entry, digits)).join(", ")})`;
const across = (place) => 96 + place * 65;

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const words = DATA.tokens.map((token, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = token;
    button.setAttribute("aria-pressed", String(place === DATA.first));
    button.dataset.word = place;
    return button;
  });
  one("[data-words]").append(...words);
  const heads = [...root.querySelectorAll("[data-head]")];
  const pressed = (buttons) => buttons.findIndex((button) => button.getAttribute("aria-pressed") === "true");

  function draw() {
    const asks = pressed(words);
    const head = attended(DATA.heads[pressed(heads)]);
    const lines = head.weights.flatMap((row, i) => row.map((weight, j) => line(i, j, weight, i === asks)));
    one("[data-lines]").replaceChildren(...lines.filter((path) => !path.matches(".attn-chosen")), ...lines.filter((path) => path.matches(".attn-chosen")));
    const most = Math.max(...head.weights[asks]) - 1e-9;
    one("[data-names]").replaceChildren(
      ...DATA.tokens.flatMap((token, place) => [
        name(token, place, TOP - 8, place === asks, { "data-asks": place }),
        name(token, place, BOTTOM + 16, head.weights[asks][place] > most, {}),
      ]),
    );
    one(".attn-asked caption").textContent = `The query of “${DATA.tokens[asks]}” is ${vector(head.query[asks])}`;
    one(".attn-asked tbody").replaceChildren(...DATA.tokens.map((token, j) => row(token, head.key[j], head.scores[asks][j], head.weights[asks][j])));
    speak(root, summary(head, asks));
  }

  function choose(buttons, chosen) {
    for (const button of buttons) button.setAttribute("aria-pressed", String(button === chosen));
    draw();
  }
  for (const button of words) button.addEventListener("click", () => choose(words, button));
  for (const button of heads) button.addEventListener("click", () => choose(heads, button));
  one("[data-names]").addEventListener("click", (event) => {
    const place = event.target.dataset.asks;
    if (place !== undefined) choose(words, words[Number(place)]);
  });
  onReset(root, draw);
  draw();
}

// The head with its weights, and with the average of the values that is the output of each word.
function attended(head) {
  const weights = head.scores.map((row) => {
    const powers = row.map((score) => Math.exp(score / 2));
    const total = powers.reduce((sum, power) => sum + power, 0);
    return powers.map((power) => power / total);
  });
  const output = weights.map((row) => head.value[0].map((_, a) => row.reduce((sum, weight, j) => sum + weight * head.value[j][a], 0)));
  return { ...head, weights, output };
}

function line(i, j, weight, chosen) {
  const [from, to, middle] = [across(i), across(j), (TOP + BOTTOM) / 2];
  return svg("path", {
    d: `M${from} ${TOP}C${from} ${middle} ${to} ${middle} ${to} ${BOTTOM}`,
    "stroke-width": (9 * weight).toFixed(2),
    class: chosen ? "attn-chosen" : "",
  });
}

function name(token, place, y, chosen, more) {
  return svg("text", { x: across(place), y, class: chosen ? "attn-name attn-chosen" : "attn-name", ...more }, token);
}

function row(token, key, score, weight) {
  const made = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  head.textContent = token;
  const bar = document.createElement("span");
  bar.className = "attn-share";
  bar.style.setProperty("--attn-part", weight);
  const cells = [vector(key), decimal(score, 0), decimal(weight, 2)].map((text) => {
    const cell = document.createElement("td");
    cell.append(text);
    return cell;
  });
  cells[2].prepend(bar);
  made.append(head, ...cells);
  return made;
}

function summary(head, asks) {
  const [weights, token] = [head.weights[asks], DATA.tokens[asks]];
  const largest = Math.max(...weights);
  const most = DATA.tokens.filter((_, j) => weights[j] > largest - 1e-9).map((word) => `“${word}”`);
  const found = most.length === weights.length ? "all words equally" : most.join(" and ");
  const shared = most.length > 1 ? "each of which gets" : "which gets";
  return `“${token}” looks most at ${found}, ${shared} the weight ${decimal(largest, 2)}. Its output is ${vector(head.output[asks], 2)}.`;
}
