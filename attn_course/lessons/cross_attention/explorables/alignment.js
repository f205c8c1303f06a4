const QUIET_MS = 250; // a screen reader hears the summary once the slider rests

// Everything the card shows: one sign of one translation, with a share of the weight for each piece of the source.
function describe(model, example, sign) {
  const { text, pieces, written, rows } = DATA[model].examples[example];
  const shares = rows[sign].map((percent) => percent / 100);
  const most = Math.max(...shares);
  return { text, pieces, written, sign, shares, most, top: pieces[shares.indexOf(most)] };
}

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const slider = one("[data-sign]");
  let speaking = 0;

  const chosen = (name) => Number(one(`[data-${name}][aria-pressed="true"]`).dataset[name]);

  function draw() {
    const shown = describe(chosen("model"), chosen("example"), Number(slider.value) - 1);
    const sign = shown.written[shown.sign];
    slider.nextElementSibling.textContent = `${slider.value} of 10`;
    slider.setAttribute("aria-valuetext", `${slider.value} of 10, ${sign === "-" ? "hyphen" : sign}`);
    fill(one(".attn-signs"), [...shown.written], "attn-sign", (cell, text, n) => {
      cell.textContent = text;
      cell.dataset.chosen = String(n === shown.sign);
      cell.onpointerenter = () => choose(n);
      cell.onclick = () => choose(n);
    });
    fill(one(".attn-pieces"), shown.pieces, "attn-piece", (cell, text, n) => {
      cell.style.setProperty("--attn-share", shown.shares[n]);
      fill(cell, [text, `${Math.round(100 * shown.shares[n])} %`], "", (line, words) => (line.textContent = words));
    });
    clearTimeout(speaking);
    speaking = setTimeout(() => (one(".attn-summary").textContent = summary(shown)), QUIET_MS);
  }

  function choose(sign) {
    if (Number(slider.value) === sign + 1) return;
    slider.value = sign + 1;
    draw();
  }

  for (const button of all("[data-example]")) button.textContent = DATA[0].examples[Number(button.dataset.example)].text;
  for (const name of ["example", "model"]) {
    for (const button of all(`[data-${name}]`)) {
      button.addEventListener("click", () => {
        for (const other of all(`[data-${name}]`)) other.setAttribute("aria-pressed", String(other === button));
        draw();
      });
    }
  }
  slider.addEventListener("input", draw);
  root.explorable = { describe };
  draw();
}

// Keep as many children as there are texts, so that a pointer stays over the element that it entered.
function fill(parent, texts, className, dress) {
  while (parent.children.length > texts.length) parent.lastElementChild.remove();
  while (parent.children.length < texts.length) parent.append(document.createElement("span"));
  texts.forEach((text, n) => {
    if (className) parent.children[n].className = className;
    dress(parent.children[n], text, n);
  });
}

function summary({ text, written, sign, most, top }) {
  return `While it writes sign ${sign + 1} of ${written}, "${written[sign]}", the translator puts ${Math.round(100 * most)} % of the weight on "${top}" of "${text}".`;
}
