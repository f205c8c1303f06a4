const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const QUIET_MS = 250; // a screen reader hears the summary once the slider rests

// Everything the card shows. The model's width is that of all query heads together; a step reads all weights and all of the cache.
function describe({ heads, keys, width, layers, context, bytes }) {
  const model = heads * width;
  const weights = layers * 2 * model * width * (heads + keys) * bytes;
  const token = layers * 2 * keys * width * bytes;
  const cache = token * context;
  return { model, group: heads / keys, weights, token, cache, share: cache / (cache + weights) };
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
  const eight = one('[data-toggle="eight"]');
  let speaking = 0;

  function chosen() {
    const power = (name) => 2 ** Number(slider(name).value);
    return {
      heads: power("heads"),
      keys: power("keys"),
      width: power("width"),
      layers: Number(slider("layers").value),
      context: power("context"),
      bytes: eight.getAttribute("aria-pressed") === "true" ? 1 : 2,
    };
  }

  function fill(selector, count, span, heads) {
    const row = one(selector);
    row.style.setProperty("--attn-heads", heads);
    row.replaceChildren(
      ...Array.from({ length: count }, () => {
        const block = document.createElement("span");
        block.style.gridColumn = `span ${span}`;
        return block;
      }),
    );
  }

  // There are never more key heads than query heads: whichever is moved takes the other along.
  function draw(moved) {
    const [asking, answering] = [slider("heads"), slider("keys")];
    if (Number(answering.value) > Number(asking.value)) {
      if (moved === answering) asking.value = answering.value;
      else answering.value = asking.value;
    }
    const sizes = chosen();
    const shown = describe(sizes);
    for (const name of ["heads", "keys", "width", "layers", "context"]) {
      slider(name).setAttribute("aria-valuetext", String(sizes[name]));
      slider(name).nextElementSibling.textContent = String(sizes[name]);
    }
    fill(".attn-asking", sizes.heads, 1, sizes.heads);
    fill(".attn-answering", sizes.keys, shown.group, sizes.heads);
    one(".attn-cache").style.setProperty("--attn-share", shown.share);
    const facts = { weights: size(shown.weights), token: size(shown.token), cache: size(shown.cache), share: `${decimal(100 * shown.share, 1)} %` };
    for (const [fact, text] of Object.entries(facts)) one(`[data-fact="${fact}"]`).textContent = text;
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(sizes, shown, facts)), QUIET_MS);
  }

  for (const control of root.querySelectorAll("[data-size]")) control.addEventListener("input", () => draw(control));
  for (const button of root.querySelectorAll("[data-preset]")) {
    button.addEventListener("click", () => {
      const heads = Number(slider("heads").value);
      slider("keys").value = { multi: heads, grouped: Math.min(3, heads), one: 0 }[button.dataset.preset];
      draw();
    });
  }
  eight.addEventListener("click", () => {
    eight.setAttribute("aria-pressed", String(eight.getAttribute("aria-pressed") !== "true"));
    draw();
  });
  root.explorable = { describe, size };
  draw();
}

function summary(sizes, shown, facts) {
  const kind = shown.group === 1 ? "multi-head" : sizes.keys === 1 ? "multi-query" : "grouped";
  const served = shown.group === 1 ? "each query head has its own key head" : `each key head serves ${shown.group} query heads`;
  return (
    `${sizes.heads} query heads and ${sizes.keys} key head${sizes.keys === 1 ? "" : "s"}, ${kind}: ${served}. ` +
    `Cache: ${facts.token} for one token, ${facts.cache} for ${sizes.context} tokens, ` +
    `${shown.cache > shown.weights ? "more" : "less"} than the attention weights (${facts.weights}).`
  );
}
