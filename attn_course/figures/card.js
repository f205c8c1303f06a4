// Every explorable starts here: find the cards of this name that are not alive yet and give each its controls.
// Controls and their look come as text and not as parts of the output, so that a page that runs no scripts shows only the words.
function mountExplorables(name, markup, look, start) {
  for (const root of document.querySelectorAll(`[data-explorable="${name}"]:not([data-alive])`)) {
    const words = root.querySelector(".attn-words");
    const live = document.createElement("div");
    live.className = "attn-live";
    live.innerHTML = markup;
    const style = document.createElement("style");
    style.textContent = look;
    live.append(style);
    root.append(live);
    try {
      start(root);
      // JupyterLab would take the arrow keys of a focused slider for moves between cells, and "d d" for a deletion.
      for (const control of live.querySelectorAll("input, button, select, [tabindex]")) control.dataset.lmSuppressShortcuts = "true";
      root.dataset.alive = "true";
      words.hidden = true;
    } catch (error) {
      live.remove(); // the words stay, which is better than dead controls
      console.error(error);
    }
  }
}
