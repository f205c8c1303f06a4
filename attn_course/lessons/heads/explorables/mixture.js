const PAIRS = [[0, 0], [0, 1], [1, 0], [1, 1]]; // the colours before and after; red is 0, blue is 1
const ROWS = { before: 52, after: 124 }; // where the line of each lies in the picture

// The mixtures of the four pairs, and for each place where a threshold can lie that has its red below and its blue above.
function describe(before) {
  const mixtures = PAIRS.map(([first, second]) => before * first + (1 - before) * second);
  const gap = (place) => {
    const of = (colour) => mixtures.filter((_, n) => PAIRS[n][place] === colour);
    const [red, blue] = [Math.max(...of(0)), Math.min(...of(1))];
    return blue - red > 1e-9 ? [red, blue] : null;
  };
  return { mixtures, before: gap(0), after: gap(1) };
}

function start(root) {
  const slider = root.querySelector("[data-before]");
  const chart = root.querySelector(".attn-mixtures");
  const wide = Math.max(320, chart.clientWidth || 400), right = wide - 15; // so letters have one size on a phone and on a page
  chart.setAttribute("viewBox", `0 18 ${wide} 194`);
  const across = drawAxis(chart, { side: "bottom", span: [60, right], cross: 168, ticks: [0, 0.2, 0.4, 0.6, 0.8, 1], label: "mixture" });
  const moving = chart.appendChild(svg("g", {}));

  function draw() {
    const weight = Number(slider.value);
    const shown = describe(weight);
    showBeside(slider, decimal(weight, 2));
    moving.replaceChildren();
    Object.entries(ROWS).forEach(([name, y], place) => {
      moving.append(svg("text", { x: 2, y: y + 4 }, name), svg("path", { class: "attn-axis", d: `M60 ${y}H${right}` }));
      const named = [-99, -99];
      shown.mixtures.forEach((mixture, n) => drawMixture(moving, across(mixture), y, PAIRS[n][place], named));
      const gap = shown[name];
      if (gap) moving.append(svg("path", { class: "attn-threshold", d: `M${across((gap[0] + gap[1]) / 2)} ${y - 30}v60` }));
      root.querySelector(`[data-fact="${name}"]`).textContent = gap ? `a threshold between ${decimal(gap[0], 2)} and ${decimal(gap[1], 2)}` : "no threshold";
    });
    const told = Object.keys(ROWS).filter((name) => shown[name]);
    speak(root, `With the weights ${decimal(weight, 2)} and ${decimal(1 - weight, 2)}, a threshold tells ${told.length ? `the colour ${told[0]}` : "neither colour"}.`);
  }

  slider.addEventListener("input", draw);
  for (const button of root.querySelectorAll("[data-put]")) {
    button.addEventListener("click", () => {
      slider.value = button.dataset.put;
      draw();
    });
  }
  onReset(root, draw);
  root.explorable = { describe };
  draw();
}

// Red stands above its line and blue below, so that equal mixtures do not hide each other; its name tells it without colours, of two that are near once.
function drawMixture(chart, x, y, colour, named) {
  const [name, side] = colour ? ["blue", 1] : ["red", -1];
  chart.append(svg("circle", { cx: x, cy: y + 9 * side, r: 6, "data-colour": name }));
  if (x - named[colour] < 30) return;
  named[colour] = x;
  chart.append(svg("text", { x, y: y + (colour ? 28 : -20), "text-anchor": "middle", "data-colour": name }, name));
}
