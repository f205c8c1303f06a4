const KEYS = [6, 9, 12, 18];
const VALUES = [8, 12, 18, 14];
const DOUBLED = 1; // the pair that the button notes a second time
const HOURS = Array.from({ length: 241 }, (_, n) => n / 10);
const FLOOR = 205; // where the picture has its lower axis

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

// The answer to every query of the day.
const overTheDay = (width, twice) => HOURS.map((hour) => describe(hour, width, twice).answer);

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const querySlider = one("[data-query]");
  const widthSlider = one("[data-width]");
  const picture = one(".attn-clock");
  const toggle = one("[data-toggle]");
  const across = drawAxis(picture, { side: "bottom", span: [44, 326], cross: FLOOR, ticks: [0, 6, 9, 12, 18, 24], label: "query, hour of the day" });
  const up = drawAxis(picture, { side: "left", span: [FLOOR, 25], cross: 44, ticks: [6, 8, 12, 14, 18, 20], label: "temperature, degrees" });

  const twice = () => toggle.getAttribute("aria-pressed") === "true";
  const widthOf = () => 2 ** Number(widthSlider.value);

  function draw() {
    const query = Number(querySlider.value);
    const width = widthOf();
    const shown = describe(query, width, twice());
    const day = overTheDay(width, twice());
    label(querySlider, decimal(query, 1));
    label(widthSlider, decimal(width, width < 10 ? 2 : 1));
    all(".attn-fill").forEach((fill, j) => fill.style.setProperty("--attn-share", shown.weights[j]));
    all("[data-weight]").forEach((text, j) => (text.textContent = decimal(shown.weights[j], 3)));
    all("[data-pair]").forEach((pair, j) => drawPair(pair, across(KEYS[j]), up(VALUES[j]), shown.weights[j]));
    one('[data-place="query"]').setAttribute("d", `M ${across(query)} ${FLOOR} V 25`);
    one('[data-place="curve"]').setAttribute("d", `M ${HOURS.map((hour, n) => `${across(hour)} ${up(day[n])}`).join(" L ")}`);
    const answer = one('[data-place="answer"]');
    answer.setAttribute("x", across(query) - 5.5);
    answer.setAttribute("y", up(shown.answer) - 5.5);
    const facts = { answer: shown.answer, lowest: Math.min(...day), highest: Math.max(...day) };
    for (const [fact, value] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = decimal(value, 2);
    one('[data-fact="similarity"]').textContent = shown.similarity < 5e-4 ? "below 0.001" : decimal(shown.similarity, 3);
    speak(root, summary(query, width, twice(), shown, facts));
  }

  function drag(event) {
    if (event.buttons === 0) return;
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(picture.getScreenCTM().inverse());
    querySlider.value = (24 * (point.x - across(0))) / (across(24) - across(0));
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
  onReset(root, draw);
  root.explorable = { describe, overTheDay };
  draw();
}

function label(slider, text) {
  slider.setAttribute("aria-valuetext", `${text} hours`);
  slider.nextElementSibling.textContent = text;
}

// A mark on the axis for the key, and above it the value, with an area that grows with the weight.
function drawPair(pair, x, y, weight) {
  const [mark, circle] = pair.children;
  mark.setAttribute("d", `M ${x} ${FLOOR} V ${FLOOR - 12}`);
  circle.setAttribute("cx", x);
  circle.setAttribute("cy", y);
  circle.setAttribute("r", 3.5 + 8 * Math.sqrt(weight));
}

function summary(query, width, twice, { weights, answer }, { lowest, highest }) {
  const most = Math.max(...weights);
  const winner = KEYS[weights.indexOf(most)];
  const noted = twice ? " The 9 o\u2019clock pair is noted twice." : "";
  return (
    `At ${decimal(query, 1)} o\u2019clock with h = ${decimal(width, 2)} the answer is ${decimal(answer, 2)} degrees; ` +
    `key ${winner} has the largest weight, ${decimal(most, 3)}. Whatever hour you ask for, the answer lies between ` +
    `${decimal(lowest, 2)} and ${decimal(highest, 2)} degrees.${noted}`
  );
}
