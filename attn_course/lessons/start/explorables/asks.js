// DATA: the tokens, the word that asks, and for each key the part of its score (divided by 2 already) that stays, and the part that moves.
const [TOP, BOTTOM] = [34, 128];
const across = (place) => 44 + place * 72;

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const wish = one("[data-wish]");

  function draw() {
    const alive = -Number(wish.value); // the slider leads away from somebody alive
    const weights = looks(alive);
    const most = Math.max(...weights);
    one(".attn-number").textContent = `s = ${decimal(alive, 2)}`;
    wish.setAttribute("aria-valuetext", `${wanted(alive)}, ${decimal(alive, 2)}`);
    one("[data-lines]").replaceChildren(
      ...weights.map((weight, j) =>
        svg("path", { d: `M${across(3)} ${TOP}C${across(3)} 90 ${across(j)} 72 ${across(j)} ${BOTTOM}`, "stroke-width": Math.max(0.6, 16 * weight).toFixed(2) }),
      ),
    );
    one("[data-names]").replaceChildren(
      svg("text", { x: across(3), y: TOP - 10, class: "attn-name attn-chosen" }, DATA.tokens[DATA.asks]),
      ...DATA.tokens.flatMap((token, j) => [
        svg("text", { x: across(j), y: BOTTOM + 18, class: weights[j] > most - 1e-9 ? "attn-name attn-chosen" : "attn-name" }, token),
        svg("text", { x: across(j), y: BOTTOM + 38, class: "attn-percent" }, percent(weights[j])),
      ]),
    );
    speak(root, summary(alive, weights));
  }

  wish.addEventListener("input", draw);
  onReset(root, draw);
  draw();
}

function looks(wish) {
  const powers = DATA.still.map((still, j) => Math.exp(still + wish * DATA.moved[j]));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

const percent = (weight) => `${decimal(100 * weight, 0)} %`;

function wanted(wish) {
  if (wish === 0) return "neither somebody alive nor what somebody does";
  return wish > 0 ? "somebody alive" : "what somebody does";
}

function summary(wish, weights) {
  const most = Math.max(...weights);
  const found = DATA.tokens.filter((_, j) => weights[j] > most - 1e-9).map((token) => `“${token}”`);
  const [asks, each] = [DATA.tokens[DATA.asks], found.length > 1 ? "each of which gets" : "which gets"];
  return `“${asks}” looks for ${wanted(wish)}. It looks most at ${found.join(", ")}, ${each} ${percent(most)} of its attention.`;
}
