// Text with a real minus sign, and no sign on zero.
function decimal(value, digits) {
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? (0).toFixed(digits) : text).replace("-", "\u2212");
}

// The number beside a slider, which a screen reader hears too.
function showBeside(slider, text) {
  slider.setAttribute("aria-valuetext", String(text));
  slider.nextElementSibling.textContent = String(text);
}

// What the card says in one sentence or two: a screen reader hears it once the controls have rested for a moment.
function speak(root, text) {
  const [timer, before] = SPOKEN.get(root) ?? [];
  clearTimeout(timer);
  const words = text ?? before;
  SPOKEN.set(root, [setTimeout(() => (root.querySelector(".attn-summary").replaceChildren(words)), 250), words]);
}
const SPOKEN = new WeakMap(); // card: its timer and its last words

// The button [data-reset] puts every slider, choice and pressed button back to what the markup says, and then draws. It shows once one was used.
function onReset(root, draw) {
  const pressed = Array.from(root.querySelectorAll("[aria-pressed]"), (button) => [button, button.getAttribute("aria-pressed")]);
  for (const kind of ["input", "click"]) root.addEventListener(kind, () => (root.dataset.used = ""), { once: true });
  root.querySelector("[data-reset]").addEventListener("click", () => {
    for (const input of root.querySelectorAll("input")) [input.value, input.checked] = [input.defaultValue, input.defaultChecked];
    for (const option of root.querySelectorAll("option")) option.selected = option.defaultSelected;
    for (const [button, state] of pressed) button.setAttribute("aria-pressed", state);
    draw();
  });
}

// Play, and steps by hand. The card has a button [data-play], and may have [data-step="1"] and [data-step="-1"].
//   move(by)  goes on or back and returns whether it could;  rewind()  goes to the start, for a play begun at the end;
//   every     milliseconds between two moves.
// Any other control stops it, and so does the card when it is no longer to be seen. Who asks for less motion gets one move for each
// press of Play. Returns stop().
function play(root, { move, rewind, every }) {
  const button = root.querySelector("[data-play]");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const [idle, said] = [button.textContent, root.querySelector(".attn-summary")];
  let running = 0;

  function show(playing) {
    button.textContent = playing ? "Pause" : idle;
    said.setAttribute("aria-live", playing ? "off" : "polite"); // nobody is read every frame
    root.toggleAttribute("data-playing", playing);
  }
  function stop() {
    if (running === 0) return;
    cancelAnimationFrame(running);
    running = 0;
    show(false);
    speak(root);
  }
  function begin() {
    if (!move(1)) rewind();
    if (still.matches) return;
    let last = performance.now();
    const frame = (now) => {
      if (!root.isConnected) return stop();
      if (now - last >= every) {
        last = now;
        if (!move(1)) return stop();
      }
      running = requestAnimationFrame(frame);
    };
    running = requestAnimationFrame(frame);
    show(true);
  }

  button.addEventListener("click", () => (running === 0 ? begin() : stop()));
  for (const step of root.querySelectorAll("[data-step]")) step.addEventListener("click", () => move(Number(step.dataset.step)));
  root.addEventListener("input", stop);
  root.addEventListener("click", (event) => event.target.closest("button") !== button && stop(), true);
  new IntersectionObserver((seen) => seen.at(-1).isIntersecting || stop()).observe(root);
  return stop;
}

// An SVG element with attributes and, if given, a text.
function svg(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// One axis of a chart, and the place of each value along it. `span` holds the places of the first and the last tick, `cross` the place
// of the axis in the other direction; `label` names what is measured and its unit. Ticks are values, or pairs of a value and its text.
function drawAxis(chart, { side, span, cross, ticks, label, log = false }) {
  const pairs = ticks.map((tick) => (Array.isArray(tick) ? tick : [tick, String(tick).replace("-", "\u2212")]));
  const [at, below] = [log ? Math.log : (value) => value, side === "bottom"];
  const [low, high] = [at(pairs[0][0]), at(pairs.at(-1)[0])];
  const place = (value) => span[0] + ((at(value) - low) / (high - low)) * (span[1] - span[0]);
  const group = svg("g", { "aria-hidden": "true" });
  const line = (x1, y1, x2, y2) => group.append(svg("path", { class: "attn-axis", d: `M${x1} ${y1}L${x2} ${y2}` }));
  if (below) line(span[0], cross, span[1], cross);
  else line(cross, span[0], cross, span[1]);
  for (const [value, text] of pairs) {
    const p = place(value);
    if (below) line(p, cross, p, cross + 4);
    else line(cross, p, cross - 4, p);
    group.append(below ? svg("text", { x: p, y: cross + 17, "text-anchor": "middle" }, text) : svg("text", { x: cross - 7, y: p + 4, "text-anchor": "end" }, text));
  }
  const middle = (span[0] + span[1]) / 2;
  group.append(
    below
      ? svg("text", { x: middle, y: cross + 34, "text-anchor": "middle" }, label)
      : svg("text", { x: cross - 30, y: Math.min(...span) - 10, "text-anchor": "start" }, label),
  );
  chart.append(group);
  return place;
}
