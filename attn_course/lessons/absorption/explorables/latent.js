const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const QUIET_MS = 250; // a screen reader hears the summary once the slider rests
const SHORTEST = 2 ** 10; // bytes at the left end of the bars
const DOUBLINGS = 14;

// Sizes from the published configurations; "uses" is the kind the model itself has, the rest of the sizes stay as they are.
const MODELS = {
  v2: { name: "DeepSeek-V2", uses: "latent", heads: 128, width: 128, latent: 512, rope: 64, layers: 60 },
  lite: { name: "DeepSeek-V2-Lite", uses: "latent", heads: 16, width: 128, latent: 512, rope: 64, layers: 27 },
  llama3: { name: "Llama 3 8B", uses: "grouped", heads: 32, width: 128, groups: 8, layers: 32 },
  llama2: { name: "Llama 2 7B", uses: "multi-head", heads: 32, width: 128, layers: 32 },
  falcon: { name: "Falcon 7B", uses: "multi-query", heads: 71, width: 64, layers: 32 },
};

// Bytes that each kind keeps for one token in all layers, with 2 bytes for a number, and how many groups the latent cache equals.
function describe({ heads, width, groups, latent, rope, layers }) {
  const pair = 2 * 2 * width * layers;
  const mla = 2 * layers * (latent + rope);
  return { mha: heads * pair, gqa: Math.min(groups, heads) * pair, mqa: pair, mla, equal: mla / pair };
}

function size(bytes) {
  let unit = 0;
  while (bytes >= 1024 && unit < UNITS.length - 1) {
    bytes /= 1024;
    unit += 1;
  }
  return `${decimal(bytes, bytes < 10 && unit > 0 ? 2 : bytes < 100 && unit > 0 ? 1 : 0)} ${UNITS[unit]}`;
}

function start(root) {
  const one = (selector) => root.querySelector(selector);
  const slider = (name) => one(`[data-size="${name}"]`);
  const names = ["heads", "width", "groups", "latent", "rope", "layers", "context"];
  let speaking = 0;

  function chosen() {
    const sizes = Object.fromEntries(names.map((name) => [name, Number(slider(name).value)]));
    return { ...sizes, context: 2 ** sizes.context };
  }

  function draw(model) {
    const sizes = chosen();
    const shown = describe(sizes);
    for (const name of names) {
      slider(name).setAttribute("aria-valuetext", String(sizes[name]));
      slider(name).nextElementSibling.textContent = String(sizes[name]);
    }
    for (const kind of ["mha", "gqa", "mqa", "mla"]) {
      const row = one(`[data-kind="${kind}"]`);
      const length = Math.log2(Math.max(1, shown[kind] / SHORTEST)) / DOUBLINGS;
      row.querySelector(".attn-rod").style.setProperty("--attn-length", Math.min(1, length));
      row.querySelector('[data-fact="token"]').textContent = size(shown[kind]);
      row.querySelector('[data-fact="whole"]').textContent = size(shown[kind] * sizes.context);
    }
    const equal = `The latent cache is as large as that of ${decimal(shown.equal, 2)} groups.`;
    one('[data-fact="equal"]').textContent = equal;
    const keyHeads = Math.min(sizes.groups, sizes.heads);
    const which = model ? `Sizes of ${model.name}, which uses ${model.uses} attention. ` : "";
    clearTimeout(speaking);
    speaking = setTimeout(() => {
      one(".attn-summary").textContent =
        `${which}For ${sizes.context} tokens: multi-head ${size(shown.mha * sizes.context)}, ${keyHeads} ${keyHeads === 1 ? "group" : "groups"} ` +
        `${size(shown.gqa * sizes.context)}, multi-query ${size(shown.mqa * sizes.context)}, latent ${size(shown.mla * sizes.context)}. ${equal}`;
    }, QUIET_MS);
  }

  for (const control of root.querySelectorAll("[data-size]")) control.addEventListener("input", () => draw());
  for (const button of root.querySelectorAll("[data-model]")) {
    button.addEventListener("click", () => {
      const model = MODELS[button.dataset.model];
      for (const name of names) if (name in model) slider(name).value = model[name];
      draw(model);
    });
  }
  root.explorable = { describe, size };
  draw();
}
