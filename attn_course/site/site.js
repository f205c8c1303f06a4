// A number opens its formula in place; "Eq. (4.3)" shows it; the map marks what is joined; #wrong=2, or its name, opens a mistake.
"use strict";
(() => {
  const root = document.documentElement.dataset.content_root || "./";
  const folder = `${root}_static/alive/`;

  // Paper has letters that no screen needs, and a print does not wait for them.
  addEventListener("load", () => ["", "bold ", "italic "].forEach((style) => document.fonts.load(`${style}1em KaTeX_Main`)));

  function openMistake() {
    const wanted = decodeURIComponent(/wrong=(.*)/.exec(location.hash)?.[1] ?? "");
    for (const button of document.querySelectorAll(".attn-explorable [data-mistake]"))
      if ([button.dataset.form, button.textContent].includes(wanted)) button.click();
  }

  // ---- A number opens its formula in place, where that is alive
  function open(link) {
    const equation = link.closest(".eq");
    const there = equation.nextElementSibling;
    if (there && there.classList.contains("in-place")) { there.remove(); link.setAttribute("aria-expanded", "false"); return; }
    const label = link.dataset.label;
    const place = document.createElement("div");
    place.className = "in-place";
    place.innerHTML = `<div class="attn-explorable" id="attn-alive-${label}" data-explorable="alive-${label}"><div class="attn-words"></div></div>`;
    const script = document.createElement("script");
    script.src = `${folder}${label}.js`;
    script.onerror = () => { location.href = link.href; }; // it is still: its page shows it
    equation.after(place);
    place.append(script);
    link.setAttribute("aria-expanded", "true");
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.eq-number");
    if (!link || event.ctrlKey || event.metaKey || document.getElementById(`attn-alive-${link.dataset.label}`)?.closest(".in-place") === null) return;
    event.preventDefault();
    open(link);
  });

  // ---- A reference shows its equation
  const shown = document.createElement("div");
  shown.className = "eq-shown";
  shown.setAttribute("role", "tooltip");
  shown.id = "eq-shown";
  function show(link) {
    const name = decodeURIComponent(link.hash.slice(1));
    const equation = document.getElementById(name) || document.querySelector(`template[data-eq="${name}"]`)?.content.firstElementChild;
    if (!equation) return;
    const copy = equation.cloneNode(true);
    copy.removeAttribute("id");
    for (const number of copy.querySelectorAll("a")) number.replaceWith(number.textContent);
    shown.replaceChildren(copy);
    link.after(shown);
    link.setAttribute("aria-describedby", shown.id);
    const space = link.getBoundingClientRect();
    shown.style.top = `${space.bottom + scrollY + 4}px`;
    shown.style.left = `${Math.max(8, Math.min(space.left, innerWidth - shown.offsetWidth - 8))}px`;
    document.body.append(shown);
  }
  for (const kind of ["mouseover", "focusin"])
    document.addEventListener(kind, (event) => { const link = event.target.closest?.("a.eq-ref"); if (link) show(link); });
  for (const kind of ["mouseout", "focusout"])
    document.addEventListener(kind, (event) => { if (event.target.closest?.("a.eq-ref")) shown.remove(); });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") shown.remove(); });

  // ---- The map: below it stands what an equation rests on and what it is used by; a finger that taps once asks for this
  let marked;
  function mark(event) {
    const chip = event.target.closest?.(".map-fold .map-eq"), joined = document.querySelector(".map-joined");
    if (!chip || chip === marked) return;
    const all = [...document.querySelectorAll(".map-fold .map-eq")], uses = chip.dataset.uses.split(" ");
    const groups = [["rests-on", (one) => uses.includes(one.dataset.label)], ["used-by", (one) => one.dataset.uses.split(" ").includes(chip.dataset.label)]];
    groups.forEach(([name, belongs], column) => {
      for (const one of all) one.classList.toggle(name, belongs(one));
      const copies = all.filter(belongs).map((one) => one.cloneNode(true));
      joined.querySelectorAll(".map-lesson")[column].replaceChildren(...(copies.length ? copies : ["–"]));
    });
    marked?.classList.remove("marked");
    chip.classList.add("marked");
    marked = chip;
    if (joined.hidden) document.querySelector("article.bd-article").append(joined); // so that it stays in view
    joined.hidden = false;
  }
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, mark);
  // ... and above it one lesson's arcs stand out
  for (const kind of ["mouseover", "focusin"]) document.addEventListener(kind, (event) => {
    const place = event.target.closest?.(".map-arcs a")?.dataset.place;
    for (const arc of document.querySelectorAll(".map-arcs path")) arc.classList.toggle("own", arc.dataset.ends.split(" ").includes(place));
  });
  // ... and on a phone lessons are folded, all but the first and the one that an arc leads to
  function foldMap() {
    const folds = [...document.querySelectorAll(".map-fold")], own = () => document.getElementById(location.hash.slice(1))?.querySelector(".map-fold");
    if (matchMedia("(max-width: 600px)").matches) for (const fold of folds.slice(1)) fold.open = fold === own();
    addEventListener("hashchange", () => { const fold = own(); if (fold) fold.open = true; });
  }
  let before;
  document.addEventListener("pointerdown", () => { before = marked; }, true);
  document.addEventListener("click", (event) => {
    const chip = event.target.closest?.(".map-fold .map-eq");
    if (chip && event.pointerType === "touch" && chip !== before) { event.preventDefault(); mark(event); }
  });

  // ---- The search dialog shows the first five pages while one types: those whose title has the words, then those whose sentence has them
  const words = (text) => text.match(/[\p{L}\p{N}]{2,}/gu) ?? [];
  const found = (asked) => new RegExp(`(?<![\\p{L}\\p{N}])(${asked.join("|")})`, "iu");
  function shade(one, asked) { // what was looked for
    const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), all = [];
    while (asked.length && texts.nextNode()) if (!texts.currentNode.parentNode.closest(".katex, math")) all.push(texts.currentNode);
    for (const text of all) {
      const parts = text.data.split(found(asked));
      text.replaceWith(...parts.map((part, place) => (place % 2 ? Object.assign(document.createElement("mark"), { textContent: part }) : part)));
    }
  }
  const KINDS = ["Lesson", "", "Equation", "Exercises", "Task"];
  function best(asked) {
    const own = asked.map((word) => new RegExp(`(?<![\\p{L}\\p{N}])${word}`, "iu")), rated = [];
    for (const [page, [kind, said, title]] of Object.entries(ABOUT)) {
      const plain = said.replace(/<[^>]*>/g, ""), hits = own.map((one) => (one.test(title) ? 2 : one.test(plain) ? 1 : 0));
      if (hits.every(Boolean)) rated.push([hits.reduce((sum, hit) => sum + hit) * 10 - KINDS.indexOf(kind), page, kind, said, title]);
    }
    return rated.sort((a, b) => b[0] - a[0]).slice(0, 5);
  }
  function suggest() {
    const input = document.querySelector("#pst-search-dialog input");
    if (!input) return;
    const list = Object.assign(document.createElement("ul"), { className: "found" });
    list.setAttribute("aria-label", "Best results");
    input.form.after(list);
    const update = () => {
      const asked = words(input.value);
      list.replaceChildren(...(asked.length ? best(asked) : []).map(([, page, kind, said, title]) => {
        const item = document.createElement("li"), link = item.appendChild(Object.assign(document.createElement("a"), { href: `${root}${page}.html` }));
        link.append(Object.assign(document.createElement("b"), { textContent: title }), Object.assign(document.createElement("i"), { textContent: kind }));
        link.append(Object.assign(document.createElement("span"), { innerHTML: said }));
        shade(link.firstChild, asked);
        shade(link.lastChild, asked);
        return item;
      }));
    };
    input.addEventListener("input", () => {
      if (typeof ABOUT !== "undefined") { update(); return; }
      const script = document.querySelector("script[data-about]") ?? document.head.appendChild(document.createElement("script"));
      if (script.src) return; // on its way
      script.dataset.about = "";
      script.onload = update;
      script.src = `${root}_static/about.js`;
    });
  }

  // ---- What a search finds stands in a group for each kind of page, each page with one sentence of it, and the first five in view
  const GROUPS = { Lesson: "Lessons", Equation: "Equations", Task: "Tasks", Exercises: "Exercises", "": "To look things up" }, FIRST = 5;
  function groupResults() {
    const results = document.getElementById("search-results");
    if (!results) return;
    const messages = { "Search finished, found one page matching the search query.": ["1 page", "${resultCount} pages"] };
    Documentation.addTranslations({ messages, plural_expr: "n == 1 ? 0 : 1", locale: "en" });
    const asked = words(new URLSearchParams(location.search).get("q") ?? "");
    const groups = Object.entries(GROUPS).map(([kind, name]) => {
      const group = Object.assign(document.createElement("section"), { hidden: true });
      group.innerHTML = `<h2>${name} <span></span></h2><ul class="search"></ul><button type="button" class="more" hidden></button>`;
      group.lastChild.onclick = () => {
        group.classList.add("all");
        group.querySelectorAll("a")[FIRST].focus();
      };
      return [kind, group];
    }), group = Object.fromEntries(groups);
    const update = () => {
      const status = results.querySelector(".search-summary");
      if (!/\w/.test(status?.textContent ?? "")) return; // more are on their way
      if (/did not match/.test(status.textContent)) status.innerHTML = `No page has all these words. Look into the <a href="${root}glossary.html">glossary</a>, or at the <a href="${root}map.html">equations of all lessons</a>.`;
      for (const item of results.querySelectorAll(":scope > ul > li")) {
        const link = item.querySelector("a"), [kind, said] = ABOUT[link.getAttribute("href").replace(/\.html.*/, "")] ?? [""];
        if (said && !link.hash) link.after(Object.assign(document.createElement("p"), { innerHTML: said }));
        for (const one of item.children) shade(one, asked);
        const [head, list, more] = group[kind].children;
        list.append(item);
        head.lastChild.textContent = list.children.length;
        more.textContent = `Show all ${list.children.length}`;
        more.hidden = list.children.length <= FIRST;
        group[kind].hidden = false;
        if (!group[kind].isConnected) results.append(...groups.map(([, each]) => each));
      }
    };
    update();
    new MutationObserver(update).observe(results, { childList: true, subtree: true });
  }

  // ---- A line of code that is too long goes on further in (site.css)
  const LONG = /\S{30}/; // what has no blank for so long may also go on behind a sign of its own
  const breakable = (long) => (text) => text.replace(long ? /[.(,[/](?=[a-z_]|$)/gi : /[.(,[/](?=[a-z_])/gi, "$&<wbr>"); // where a name may go on in the next line
  function wrapCode() {
    for (const code of document.querySelectorAll(".cell_input pre, .output pre")) {
      if (code.closest(".output") && /\S {2,}\S.*\n.*\S {2,}\S/.test(code.textContent)) { code.classList.add("columns"); continue; } // which scroll
      const lines = code.innerHTML.replace(/\n$/, "").split("\n").map((line) => {
        line = line.replace(/<span class="o">-<\/span><span[^>]*>[^<]*<\/span>/g, '<span class="glued">$&</span>'); // a sign stays with its number
        line = line.replace(/<span class="c1">.*/, (said) => said.replace(/# (?:\([^()<]{1,30}\)|[^\s<]+)|\([^()<]{1,30}\)/g, '<span class="glued">$&</span>')); // nor is a shape broken, nor a # alone
        if (code.closest(".output")) line = line.replace(/\[[^[\]<]{1,30}\]/g, '<span class="glued">$&</span>'); // nor a row of numbers
        const inside = /^(?:<[^>]*>)*( *)/.exec(line)[1].length;
        return `<span class="code-line${line.trim() ? "" : " empty"}" style="--inside:${inside}ch">${line.replace(/[^<>]+(?=<|$)/g, breakable(LONG.test(line.replace(/<[^>]*>/g, ""))))}\n</span>`;
      });
      code.innerHTML = lines.join("");
    }
  }

  // ---- On a phone the machine goes from top to bottom, and another drawing is seen in pieces, so that its letters can be read
  function tallMachine(svg, whole) {
    const name = svg.getAttribute("aria-labelledby").slice("attn-machine-".length, -"-title".length), bits = TALL.lit[name], own = TALL.own[name];
    if (!bits && !own) return;
    const sheet = document.createElement("div");
    let shape = 0;
    sheet.className = "attn-sheet attn-piece";
    sheet.style.maxWidth = "400px";
    sheet.innerHTML = own ?? TALL.svg.replaceAll("attn-lit", () => (bits[shape++] === "1" ? "attn-lit" : "attn-unlit"));
    sheet.firstChild.setAttribute("aria-label", svg.querySelector("title").textContent);
    whole.querySelectorAll(".attn-link").forEach((link, place) => (sheet.appendChild(link.cloneNode()).style.cssText = TALL.places[place]));
    return sheet;
  }
  function cutDrawings() {
    for (const svg of document.querySelectorAll('svg:is([data-views], [aria-labelledby="attn-machine-backwards-title"])')) {
      const [, , width, height] = svg.getAttribute("viewBox").split(" ").map(Number), whole = svg.closest(".attn-sheet") ?? svg, tall = tallMachine(svg, whole);
      if (tall) whole.after(tall);
      else whole.after(...svg.dataset.views.split(";").map((view, place) => {
        const [left, top, wide, high] = view.split(" ").map(Number), sheet = document.createElement("div"), piece = svg.cloneNode(true);
        sheet.className = "attn-sheet attn-piece";
        sheet.style.maxWidth = `${wide}px`;
        for (const name of ["style", "data-views", "aria-labelledby"]) piece.removeAttribute(name);
        piece.setAttribute("viewBox", view);
        piece.setAttribute("aria-label", `${piece.querySelector("title").textContent}, part ${place + 1}`);
        piece.querySelector("title").remove();
        sheet.append(piece);
        for (const link of whole.querySelectorAll(".attn-link")) {
          const at = { left: [width, left, wide], top: [height, top, high], width: [width, 0, wide], height: [height, 0, high] };
          const copy = sheet.appendChild(link.cloneNode());
          for (const [side, [all, first, part]] of Object.entries(at)) copy.style[side] = `${(all * parseFloat(link.style[side]) - 100 * first) / part}%`;
          const middle = (from, size) => parseFloat(copy.style[from]) + parseFloat(copy.style[size]) / 2;
          if (![middle("left", "width"), middle("top", "height")].every((share) => share > 0 && share < 100)) copy.remove();
        }
        return sheet;
      }));
    }
  }

  // ---- Paper is white, also where the page is dark
  addEventListener("beforeprint", () => {
    const { dataset } = document.documentElement, chosen = dataset.theme;
    dataset.theme = "light";
    addEventListener("afterprint", () => { dataset.theme = chosen; }, { once: true });
  });

  // ---- On paper the title stands at the head of each page
  const foot = document.createElement("style");
  foot.textContent = `@page { @top-left { content: ${JSON.stringify(document.title.replace(/ — .*|^Own attention$/, ""))}; } @bottom-left { content: ${JSON.stringify(location.protocol === "https:" ? location.href.replace(/#.*/, "") : "")}; } } @page :first { @top-left { content: none; } } @page sheet { @top-left { content: none; } }`;
  document.head.append(foot);

  // ---- The first page leads back to the lesson that was read last
  function goOn() {
    const begin = document.querySelector("#own-attention .begin"), lesson = document.querySelector(".bd-docs-nav ul:not(:last-of-type) .current > a");
    const last = JSON.parse(localStorage.getItem("attn-last") ?? "null");
    if (lesson) localStorage.setItem("attn-last", JSON.stringify([lesson.href.replace(/#.*/, ""), lesson.textContent]));
    if (!begin || !last || last[0] === begin.firstElementChild.href) return;
    begin.append(Object.assign(document.createElement("a"), { href: last[0], textContent: `Go on with lesson ${last[1].slice(0, 2)}` }));
  }

  addEventListener("hashchange", openMistake);
  // ---- Deeper sections stand together in the contents
  function groupDeeper() {
    const links = [...document.querySelectorAll("#pst-page-toc-nav a")].filter((link) => / Deeper: /.test(link.textContent));
    links[0]?.parentNode.before(Object.assign(document.createElement("li"), { className: "toc-group", textContent: "Deeper" }));
    for (const link of links) {
      link.innerHTML = link.innerHTML.replace(/Deeper: (.)/, (_, first) => first.toUpperCase());
      link.parentNode.classList.add("toc-grouped");
    }
  }

  // ---- A fold is called what it says, not "Toggle hidden content"
  function nameFolds() {
    for (const fold of document.querySelectorAll("details.hide > summary")) fold.removeAttribute("aria-label");
  }

  // ---- Where something goes on beyond the edge, the edge is shaded (site.css)
  function shadeEdges() {
    const sizes = new ResizeObserver((changed) => {
      for (const { target } of changed) target.classList.toggle("scrolls", target.scrollWidth > target.clientWidth + 1);
    });
    for (const one of document.querySelectorAll(".attn-frame, .attn-plot, .eq-part, .cell_input pre, .output pre")) sizes.observe(one);
  }

  // ---- A formula that is a little too wide is set smaller, and columns, closer together, where they have room then; what remains scrolls
  function closer(text) {
    const lines = text.split("\n"), rows = lines.filter((line) => / {2,}\S/.test(line));
    const blank = (at) => rows.every((row) => (row[at] ?? " ") === " ");
    return lines.map((line) => (rows.includes(line) ? [...line].filter((_, at) => !blank(at) || !blank(at + 1)).join("") : line)).join("\n");
  }
  function fitWidths() {
    const fitted = new WeakMap(), sizes = new ResizeObserver((changed) => {
      for (const { target, contentRect: { width } } of changed) {
        if (fitted.get(target) === width) continue;
        fitted.set(target, width);
        for (const part of target.querySelectorAll(".eq-part, .columns")) {
          part.style.fontSize = "";
          if (part.matches(".columns") && part.scrollWidth > part.clientWidth) part.textContent = closer(part.textContent);
          const { fontSize, paddingLeft, paddingRight } = getComputedStyle(part), around = parseFloat(paddingLeft) + parseFloat(paddingRight);
          const share = (part.clientWidth - around) / (part.scrollWidth - around);
          if (share < 1 && (share > 0.8 || part.matches(".eq-part"))) part.style.fontSize = `${Math.max(0.8, share) * parseFloat(fontSize)}px`;
        }
      }
    });
    document.fonts.ready.then(() => { for (const one of document.querySelectorAll(".eq, .output:has(.columns)")) sizes.observe(one); });
  }

  // ---- Contents follow a jump: the theme sees only headings that pass by
  function followJumps() {
    const links = [...document.querySelectorAll("#pst-page-toc-nav a")];
    const place = (link) => document.getElementById(decodeURIComponent(link.hash.slice(1))).getBoundingClientRect();
    addEventListener("scrollend", () => {
      const lit = links.find((link) => link.classList.contains("active"));
      if (lit && place(lit).top < innerHeight && place(lit).bottom > 0) return;
      const now = links.findLast((link) => place(link).top < 0.3 * innerHeight);
      for (const link of links) {
        for (const one of [link, link.parentNode]) one.classList.toggle("active", link === now);
        if (link === now) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    });
  }

  addEventListener("DOMContentLoaded", followJumps);
  addEventListener("DOMContentLoaded", wrapCode);
  addEventListener("DOMContentLoaded", shadeEdges);
  addEventListener("DOMContentLoaded", fitWidths);
  addEventListener("DOMContentLoaded", groupResults);
  addEventListener("DOMContentLoaded", nameFolds);
  addEventListener("DOMContentLoaded", foldMap);
  addEventListener("DOMContentLoaded", suggest);
  addEventListener("DOMContentLoaded", groupDeeper);
  addEventListener("DOMContentLoaded", goOn);
  addEventListener("DOMContentLoaded", cutDrawings);
  addEventListener("load", openMistake);
})();
