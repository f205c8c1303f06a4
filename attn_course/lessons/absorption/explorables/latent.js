// Sizes from the published configurations. A model without a latent vector is shown with that of DeepSeek-V2.
const MODELS = {
  v2: { name: "DeepSeek-V2", heads: 128, width: 128, layers: 60, latent: 512, rope: 64 },
  lite: { name: "DeepSeek-V2-Lite", heads: 16, width: 128, layers: 27, latent: 512, rope: 64 },
  llama3: { name: "Llama 3 8B", heads: 32, width: 128, layers: 32, keys: 8 },
  llama2: { name: "Llama 2 7B", heads: 32, width: 128, layers: 32, keys: 32 },
  falcon: { name: "Falcon 7B", heads: 71, width: 64, layers: 32, keys: 1 },
};
const LATENT = MODELS.v2;
const WAYS = { kept: ["keys, values", "key"], naive: ["naive", "small"], absorbed: ["absorbed", "small"] };
const STEPS = 32;
const BYTES = ["B", "KiB", "MiB", "GiB", "TiB"];
const FLOPS = ["FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP"];

// What each way keeps after so many tokens (bytes, all layers), makes for the step and drops (bytes, one layer), and computes in the step
// (FLOPs, all layers, from the queries to the outputs of the heads): Eq. latent-cache-bytes and latent-decoding-flops, with the
// rotary part of the scores. A number takes 2 bytes.
function describe({ heads, width, layers, keys, latent, rope, tokens }) {
  const small = 2 * layers * (latent + rope) * tokens;
  const one = 2 * layers * 2 * width * tokens;
  const pair = 2 * width; // a key and a value of one head
  return {
    kept: { stored: keys * one, made: 0, flops: layers * 2 * heads * tokens * pair },
    naive: { stored: small, made: 2 * heads * tokens * pair, flops: layers * 2 * heads * tokens * (latent * pair + pair + rope) },
    absorbed: { stored: small, made: 2 * heads * latent, flops: layers * 2 * heads * (latent * pair + tokens * (2 * latent + rope)) },
    equal: small / one,
  };
}

// The largest unit of which a number is at least one, and the number in it.
function inUnits(number, units, base) {
  let unit = 0;
  while (number >= base && unit < units.length - 1) [number, unit] = [number / base, unit + 1];
  return [number, units[unit]];
}

function written(number, row) {
  if (number === 0) return "nothing";
  const [value, unit] = row === "flops" ? inUnits(number, FLOPS, 1000) : inUnits(number, BYTES, 1024);
  return `${decimal(value, value >= 100 || Number.isInteger(value) ? 0 : value < 10 ? 2 : 1)} ${unit}`;
}

const divisors = (number) => Array.from({ length: number }, (_, n) => n + 1).filter((n) => number % n === 0);

function start(root) {
  const live = root.querySelector(".attn-live"); // the words have a table too
  const one = (selector) => live.querySelector(selector);
  const slider = (name) => one(`[data-size="${name}"]`);
  const chosen = () => one('[data-model][aria-pressed="true"]').dataset.model;

  function choose(id) {
    for (const button of live.querySelectorAll("[data-model]")) button.setAttribute("aria-pressed", String(button.dataset.model === id));
    const { heads, keys = heads, latent = LATENT.latent } = MODELS[id];
    slider("keys").max = divisors(heads).length - 1;
    slider("keys").value = divisors(heads).indexOf(keys);
    slider("latent").value = latent;
    draw();
  }

  function draw() {
    const model = { rope: LATENT.rope, ...MODELS[chosen()] };
    const [step, pace] = [Number(slider("step").value), 2 ** Number(slider("pace").value)];
    const sizes = { ...model, keys: divisors(model.heads)[Number(slider("keys").value)], latent: Number(slider("latent").value) };
    const [now, end] = [step, STEPS].map((count) => describe({ ...sizes, tokens: count * pace }));
    showBeside(slider("step"), `${step} of ${STEPS}`);
    for (const [name, value] of Object.entries({ pace, keys: sizes.keys, latent: sizes.latent })) showBeside(slider(name), value);
    one('[data-fact="source"]').textContent = source(MODELS[chosen()], sizes);
    for (const way of Object.keys(WAYS)) {
      drawLane(one(`[data-way="${way}"] svg`), way, sizes, step, pace);
      one(`[data-way="${way}"] [data-made]`).textContent = written(now[way].made, "made");
    }
    for (const row of ["stored", "flops"]) drawMeters(one(`[data-meter="${row}"]`), row, now, end);
    speak(root, summary(sizes, step * pace, now));
  }

  function move(by) {
    const before = slider("step").value;
    slider("step").value = Number(before) + by;
    draw();
    return slider("step").value !== before;
  }
  function rewind() {
    slider("step").value = 1;
    draw();
  }

  for (const input of live.querySelectorAll("[data-size]")) input.addEventListener("input", draw);
  for (const button of live.querySelectorAll("[data-model]")) button.addEventListener("click", () => choose(button.dataset.model));
  onReset(root, () => choose("v2"));
  play(root, { move, rewind, every: 300 });
  root.explorable = { describe, written };
  choose("v2");
}

// The cache as an area: as many columns as steps, as high as the numbers kept of a token. Outlined: what the naive way rebuilds.
function drawLane(chart, way, { heads, width, keys, latent, rope }, step, pace) {
  chart.replaceChildren();
  const all = Math.max(2 * heads * width, latent + rope);
  const ticks = [0, all / 2, all];
  const y = drawAxis(chart, { side: "left", span: [102, 24], cross: 46, ticks, label: "numbers of one token, one layer" });
  const x = drawAxis(chart, { side: "bottom", span: [46, 206], cross: 102, ticks: [0, (STEPS / 2) * pace, STEPS * pace], label: "tokens" });
  const column = (from, to, numbers, look) =>
    chart.append(svg("rect", { x: x(from), width: x(to) - x(from), y: Math.min(y(numbers), 101), height: Math.max(102 - y(numbers), 1), ...look }));
  if (way === "naive") column(0, step * pace, 2 * heads * width, { class: "attn-made" });
  for (let n = 0; n < step; n += 1) {
    const numbers = way === "kept" ? 2 * keys * width : latent + rope;
    column(n * pace, (n + 0.85) * pace, numbers, { class: "attn-kept", style: `--attn-hue: var(--attn-${WAYS[way][1]})` });
  }
}

// The axis reaches from 0 to what the largest of the three needs at the last step, so that the bars can be seen to grow.
function drawMeters(chart, row, now, end) {
  chart.replaceChildren();
  const most = Math.max(...Object.keys(WAYS).map((way) => end[way][row]));
  const [value, unit] = row === "flops" ? inUnits(most, FLOPS, 1000) : inUnits(most, BYTES, 1024);
  const rough = value / 4;
  const apart = [1, 2, 5, 10].map((n) => n * 10 ** Math.floor(Math.log10(rough))).find((n) => n >= rough);
  const ticks = [0, 1, 2, 3, 4].map((n) => [(n * apart * most) / value, String(Number((n * apart).toPrecision(3)))]);
  const place = drawAxis(chart, { side: "bottom", span: [92, 284], cross: 92, ticks, label: unit });
  chart.setAttribute("aria-label", Object.entries(WAYS).map(([way, [name]]) => `${name}: ${written(now[way][row], row)}`).join("; "));
  Object.entries(WAYS).forEach(([way, [name, role]], n) => {
    const width = Math.max(1, place(now[way][row]) - 92);
    chart.append(
      svg("text", { class: "attn-name", x: 86, y: 20 + 29 * n, "text-anchor": "end" }, name),
      svg("rect", { class: "attn-kept", x: 92, y: 5 + 29 * n, width, height: 22, style: `--attn-hue: var(--attn-${role})` }),
      svg("text", { class: "attn-name", x: 98 + width, y: 20 + 29 * n }, written(now[way][row], row)),
    );
  });
}

function source(model, { heads, width, layers, keys, latent, rope }) {
  const own = model.latent
    ? `a latent vector of ${model.latent} and a rotary key of ${rope} numbers (DeepSeek-AI 2024, arXiv:2405.04434, and its published config.json).`
    : `${model.keys} key head${model.keys === 1 ? "" : "s"} (its published config.json). It has no latent vector: that of DeepSeek-V2 is tried on it.`;
  const changed = [keys !== (model.keys ?? heads) && `${keys} key head${keys === 1 ? "" : "s"}`, latent !== LATENT.latent && `a latent width of ${latent}`].filter(Boolean);
  return `${model.name}: ${heads} heads of width ${width}, ${layers} layers, ${own}${changed.length > 0 ? ` Tried here: ${changed.join(" and ")}.` : ""}`;
}

function times(larger, smaller) {
  const ratio = larger / smaller;
  return `${decimal(ratio, ratio < 10 ? 2 : 0)} times`;
}

function summary({ keys }, tokens, { kept, naive, absorbed, equal }) {
  return (
    `After ${tokens} token${tokens === 1 ? "" : "s"}: keys and values of ${keys} head${keys === 1 ? "" : "s"} take ${written(kept.stored, "stored")}, ` +
    `${times(kept.stored, naive.stored)} the latent cache. The latent cache is as large as that of ${decimal(equal, 2)} key heads. ` +
    `To read it, this step computes ${times(naive.flops, absorbed.flops)} as much in the naive way as absorbed, and absorbed ` +
    `${times(absorbed.flops, kept.flops)} as much as with keys and values kept.`
  );
}
