const KEYS = [6, 9, 12, 18];
const VALUES = [8, 12, 18, 14];
const DOUBLED = 1; // the pair that the button notes a second time
const QUIET_MS = 250; // a screen reader hears the summary once the slider rests
const FLOOR = -4.5; // where the picture has its lower axis

// Everything the card shows. Exponents are taken relative to the largest, so that far queries do not become 0 / 0.
function describe(query, width, twice) {
  const exponents = KEYS.map((key) => -((query - key) ** 2) / (2 * width ** 2));
  const top = Math.max(...exponents);
  const terms = exponents.map((exponent, j) => Math.exp(exponent - top) * (twice && j === DOUBLED ? 2 : 1));
  const total = terms.reduce((sum, term) => sum + term, 0);
  const weights = terms.map((term) => term / total);
  const answer = weights.reduce((sum, weight, j) => sum + weight * VALUES[j], 0);
  return { weights, answer, similarity: Math.exp(top) };
}

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const querySlider = one("[data-query]");
  const widthSlider = one("[data-width]");
  const picture = one(".attn-clock");
  const toggle = one("[data-toggle]");
  let speaking = 0;

  const twice = () => toggle.getAttribute("aria-pressed") === "true";
  const widthOf = () => 2 ** Number(widthSlider.value);

  function draw() {
    const query = Number(querySlider.value);
    const width = widthOf();
    const shown = describe(query, width, twice());
    label(querySlider, decimal(query, 1));
    label(widthSlider, decimal(width, width < 10 ? 2 : 1));
    all(".attn-fill").forEach((fill, j) => fill.style.setProperty("--attn-share", shown.weights[j]));
    all("[data-weight]").forEach((text, j) => (text.textContent = decimal(shown.weights[j], 3)));
    all("[data-pair]").forEach((pair, j) => drawPair(pair, j, shown.weights[j]));
    one('[data-place="query"]').setAttribute("d", `M ${query} ${FLOOR} V -20.5`);
    one('[data-place="curve"]').setAttribute("d", curve(width, twice()));
    const answer = one('[data-place="answer"]');
    answer.setAttribute("x", query - 0.45);
    answer.setAttribute("y", -shown.answer - 0.45);
    one('[data-fact="answer"]').textContent = decimal(shown.answer, 2);
    one('[data-fact="similarity"]').textContent = shown.similarity < 5e-4 ? "below 0.001" : decimal(shown.similarity, 3);
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(query, width, twice(), shown)), QUIET_MS);
  }

  function drag(event) {
    if (event.buttons === 0) return;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    querySlider.value = point.x;
    draw();
  }

  for (const slider of [querySlider, widthSlider]) slider.addEventListener("input", draw);
  for (const button of all("[data-place-query]")) {
    button.addEventListener("click", () => {
      querySlider.value = button.dataset.placeQuery;
      draw();
    });
  }
  for (const button of all("[data-place-width]")) {
    button.addEventListener("click", () => {
      widthSlider.value = button.dataset.placeWidth;
      draw();
    });
  }
  toggle.addEventListener("click", () => {
    toggle.setAttribute("aria-pressed", String(!twice()));
    draw();
  });
  picture.addEventListener("pointerdown", (event) => {
    picture.setPointerCapture(event.pointerId);
    drag(event);
  });
  picture.addEventListener("pointermove", drag);
  root.explorable = { describe };
  draw();
}

function label(slider, text) {
  slider.setAttribute("aria-valuetext", `${text} hours`);
  slider.nextElementSibling.textContent = text;
}

// A mark on the axis for the key, and above it the value, with an area that grows with the weight.
function drawPair(pair, j, weight) {
  const [mark, circle] = pair.children;
  mark.setAttribute("d", `M ${KEYS[j]} ${FLOOR + 0.5} V ${FLOOR - 0.5}`);
  circle.setAttribute("cx", KEYS[j]);
  circle.setAttribute("cy", -VALUES[j]);
  circle.setAttribute("r", 0.3 + 0.75 * Math.sqrt(weight));
}

function curve(width, twice) {
  const points = Array.from({ length: 241 }, (_, n) => n / 10);
  return points.map((query, n) => `${n ? "L" : "M"} ${query} ${-describe(query, width, twice).answer}`).join(" ");
}

function summary(query, width, twice, { weights, answer }) {
  const most = Math.max(...weights);
  const winner = KEYS[weights.indexOf(most)];
  const noted = twice ? " The 9 o\u2019clock pair is noted twice." : "";
  return (
    `At ${decimal(query, 1)} o\u2019clock with h = ${decimal(width, 2)} the answer is ${decimal(answer, 2)} degrees; ` +
    `key ${winner} has the largest weight, ${decimal(most, 3)}.${noted}`
  );
}
