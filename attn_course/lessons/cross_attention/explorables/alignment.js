// Everything the card shows: one sign of one translation, with a share of the weight for each piece of the source, and the piece that
// was read most for this sign and each sign before it (the first, if two have the same share).
function describe(model, example, sign) {
  const { text, pieces, written, rows } = DATA[model].examples[example];
  const read = rows.slice(0, sign + 1).map((row) => row.indexOf(Math.max(...row)));
  const shares = rows[sign].map((percent) => percent / 100);
  return { text, pieces, written, sign, shares, most: Math.max(...shares), read };
}

function start(root) {
  const all = (selector) => [...root.querySelectorAll(selector)];
  const one = (selector) => root.querySelector(selector);
  const slider = one("[data-sign]");

  const chosen = (name) => Number(one(`[data-${name}][aria-pressed="true"]`).dataset[name]);

  function draw() {
    const shown = describe(chosen("model"), chosen("example"), Number(slider.value) - 1);
    const sign = shown.written[shown.sign];
    slider.nextElementSibling.textContent = `${slider.value} of 10`;
    slider.setAttribute("aria-valuetext", `${slider.value} of 10, ${sign === "-" ? "hyphen" : sign}`);
    fill(one(".attn-signs"), [...shown.written], "attn-sign", (cell, text, n) => {
      cell.textContent = text;
      cell.dataset.time = n < shown.sign ? "before" : n === shown.sign ? "now" : "later";
      cell.onpointerenter = () => root.hasAttribute("data-playing") || choose(n);
      cell.onclick = () => choose(n);
    });
    fill(one(".attn-pieces"), shown.pieces, "attn-piece", (cell, text, n) => {
      cell.style.setProperty("--attn-share", shown.shares[n]);
      fill(cell, [text, `${Math.round(100 * shown.shares[n])} %`], "", (line, words) => (line.textContent = words));
    });
    readings(one(".attn-readings tbody"), shown);
    speak(root, summary(shown));
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
  play(root, {
    every: 900,
    move(by) {
      const sign = Number(slider.value) - 1 + by;
      if (sign < 0 || sign > 9) return false;
      choose(sign);
      return true;
    },
    rewind: () => choose(0),
  });
  onReset(root, draw);
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

// Above each other the signs that are written, and the piece read most for each.
function readings(body, { written, pieces, read, sign }) {
  const lines = [
    ["sign", (n) => written[n]],
    ["piece", (n) => pieces[read[n]]],
  ];
  const rows = lines.map(([name, text]) => {
    const row = document.createElement("tr");
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = name;
    const cells = read.map((_, n) => {
      const cell = document.createElement("td");
      cell.textContent = text(n);
      if (n === sign) cell.dataset.time = "now";
      return cell;
    });
    row.append(head, ...cells);
    return row;
  });
  body.replaceChildren(...rows);
}

function summary({ text, pieces, written, sign, most, read }) {
  const backwards = read.filter((piece, n) => n > 0 && piece < read[n - 1]).length;
  const jumped = backwards === 0 ? "never jumped backwards" : `jumped backwards ${backwards === 1 ? "once" : `${backwards} times`}`;
  const order = sign === 0 ? "" : ` So far the place it reads most has ${jumped}.`;
  return (
    `While it writes sign ${sign + 1} of ${written}, "${written[sign]}", the translator puts ${Math.round(100 * most)} % of the weight on ` +
    `"${pieces[read[sign]]}" of "${text}".${order}`
  );
}
