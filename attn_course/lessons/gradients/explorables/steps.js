const VALUES = [-1, 0, 1, 2];
const MOST = 2000; // steps that are made at once
const FLOOR = 172; // where the picture has its lower axis

// What four scores give, and the step that each takes against the gradient of the loss -z: dS = -p (v - z).
function describe(scores) {
  const top = Math.max(...scores);
  const terms = scores.map((score) => Math.exp(score - top));
  const total = terms.reduce((sum, term) => sum + term, 0);
  const weights = terms.map((term) => term / total);
  const output = weights.reduce((sum, weight, j) => sum + weight * VALUES[j], 0);
  return { weights, output, steps: weights.map((weight, j) => weight * (VALUES[j] - output)) };
}

const stepped = (scores) => describe(scores).steps.map((step, j) => scores[j] + step);

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const slider = one("[data-score]");
  const chart = one(".attn-course");
  const across = drawAxis(chart, { side: "bottom", span: [44, 326], cross: FLOOR, ticks: [1, 10, 100, 1000, [MOST, ""]], label: "before step number", log: true });
  const up = drawAxis(chart, { side: "left", span: [FLOOR, 25], cross: 44, ticks: [0.001, 0.01, 0.1, 1], label: "weight", log: true });
  const rows = VALUES.map((value) => {
    const row = one(".attn-live tbody").insertRow();
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = decimal(value, 0);
    row.append(head);
    return Array.from({ length: 3 }, () => row.insertCell());
  });
  let scores, count, course; // and the weights before each step

  function draw() {
    const { weights, output, steps } = describe(scores);
    all(".attn-fill").forEach((fill, j) => fill.style.setProperty("--attn-share", weights[j]));
    all("[data-weight]").forEach((text, j) => (text.textContent = decimal(weights[j], 3)));
    for (const line of all("[data-course]")) line.setAttribute("d", path(Number(line.dataset.course)));
    const [x, y] = point(3, course.length - 1);
    one(".attn-now").setAttribute("cx", x);
    one(".attn-now").setAttribute("cy", y);
    const facts = { count: String(count), output: decimal(output, 3), loss: decimal(-output, 3) };
    for (const [fact, text] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = text;
    rows.forEach((cells, j) => [scores[j], VALUES[j] - output, steps[j]].forEach((entry, n) => (cells[n].textContent = decimal(entry, 3))));
    speak(root, summary(count, weights, output));
  }

  const point = (j, n) => [across(Math.min(n + 1, MOST)).toFixed(1), up(Math.max(course[n][j], 0.001)).toFixed(1)];
  const path = (j) => `M ${course.map((_, n) => point(j, n).join(" ")).join(" L ")}`;

  function restart() {
    scores = [0, 0, 0, Number(slider.value)];
    count = 0;
    course = [describe(scores).weights];
    showBeside(slider, decimal(scores[3], 1));
    draw();
  }

  function step() {
    scores = stepped(scores);
    count += 1;
    course.push(describe(scores).weights);
  }

  function move() {
    if (describe(scores).weights[3] > 0.999) return false;
    step();
    draw();
    return true;
  }

  one("[data-half]").addEventListener("click", () => {
    for (let made = 0; made < MOST && describe(scores).weights[3] <= 0.5; made++) step();
    draw();
  });
  slider.addEventListener("input", restart);
  play(root, { move, rewind: restart, every: 120 });
  onReset(root, restart);
  root.explorable = { describe };
  restart();
}

function summary(count, weights, output) {
  const made = count === 1 ? "1 step" : `${count} steps`;
  const half = weights[3] > 0.5 ? "more than half of the weight" : "the weight";
  return `${count === 0 ? "At the start" : `After ${made}`} the value 2 has ${half} ${decimal(weights[3], 3)}, and the output is ${decimal(output, 3)}.`;
}
