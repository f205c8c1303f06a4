// What a reader would stumble over on a page, in the width and theme it has now: each function returns one line for each fault.
"use strict";
var Page = (() => { // every fold is opened
  const dot = document.createElement("canvas").getContext("2d", { willReadFrequently: true, colorSpace: "srgb" });
  const read = new Map();
  const channels = (text) => { // red, green, blue and alpha, from 0 to 1, of anything CSS calls a colour
    if (!read.has(text)) {
      dot.clearRect(0, 0, 1, 1);
      dot.fillStyle = text;
      dot.fillRect(0, 0, 1, 1);
      read.set(text, [...dot.getImageData(0, 0, 1, 1).data].map((part) => part / 255));
    }
    return read.get(text);
  };
  const over = (front, back, share = 1) => { // a colour laid on an opaque one
    const alpha = front[3] * share;
    return [0, 1, 2].map((n) => alpha * front[n] + (1 - alpha) * back[n]).concat(1);
  };
  const luminance = (colour) => {
    const [red, green, blue] = colour.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => {
    const [dark, light] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (light + 0.05) / (dark + 0.05);
  };
  const shares = new Map(), shapes = new Map(), grounds = new Map(); // of one look at the page
  const opacity = (element) => {
    if (!element) return 1;
    if (!shares.has(element)) shares.set(element, parseFloat(getComputedStyle(element).opacity) * opacity(element.parentElement));
    return shares.get(element);
  };
  const where = (element) => {
    const words = (element.textContent || element.getAttribute("aria-label") || "").trim().replace(/\s+/g, " ").slice(0, 40);
    const kind = element.getAttribute("class")?.trim().split(/\s+/)[0];
    const home = element.closest(".attn-explorable, .attn-diagram, [class^=attn-]");
    const part = element.closest("[id]:not([id^=MathJax])")?.id ?? "";
    return `${element.localName}${kind ? `.${kind}` : ""} "${words}"${home ? ` of ${home.getAttribute("class")}` : ""} in #${part}`;
  };
  const visible = (element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true, contentVisibilityAuto: true });

  // --- overflow
  const scrolls = (element) => ["auto", "scroll"].includes(getComputedStyle(element).overflowX);
  function overflow() {
    const room = document.documentElement.clientWidth, found = [];
    if (document.documentElement.scrollWidth > room) {
      const sticking = [...document.body.querySelectorAll("*")].filter((element) => {
        if (element.getBoundingClientRect().right <= room + 1 || !visible(element)) return false;
        for (let at = element.parentElement; at; at = at.parentElement) if (getComputedStyle(at).overflowX !== "visible") return false;
        return true;
      });
      const last = sticking.filter((element) => !sticking.some((other) => other !== element && element.contains(other)));
      found.push(...last.map((element) => `wider than the page: ${where(element)}`));
      if (!last.length) found.push(`the page is ${document.documentElement.scrollWidth - room} px wider than the window`);
    }
    for (const area of document.querySelectorAll(".jp-OutputArea")) { // a part of it may scroll, such as a table
      if (area.scrollWidth > area.clientWidth + 1) found.push(`an output scrolls as a whole: ${where(area)}`);
    }
    for (const element of document.body.querySelectorAll("*")) {
      const { overflowX, textOverflow } = getComputedStyle(element);
      const hides = ["hidden", "clip"].includes(overflowX) && textOverflow !== "ellipsis" && !element.closest(".MJX_Assistive_MathML");
      const cut = hides && element.scrollWidth > element.clientWidth + 1;
      if (cut && element.clientWidth > 2 && visible(element) && !scrolls(element)) found.push(`cut off: ${where(element)}`);
    }
    return found;
  }

  // --- contrast
  function ground(element) { // what lies behind an element's letters: its own background on those of its ancestors
    if (!element) return channels("Canvas");
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), share = parseFloat(style.opacity);
      grounds.set(element, over(channels(style.backgroundColor), ground(element.parentElement), share));
    }
    return grounds.get(element);
  }
  function filled(drawing) { // its shapes that can be seen, with their colour and the way from the page to their own coordinates
    if (!shapes.has(drawing)) {
      const all = [...drawing.querySelectorAll("rect, path, circle, ellipse, polygon")];
      const seen = all.filter((shape) => !shape.closest("defs") && visible(shape)).map((shape) => [shape, getComputedStyle(shape)]);
      const whole = seen.filter(([, { fill }]) => fill !== "none" && !fill.startsWith("url"));
      shapes.set(drawing, whole.map(([shape, style]) => ({
        shape, inverse: shape.getScreenCTM().inverse(), colour: channels(style.fill), share: parseFloat(style.fillOpacity) * opacity(shape),
      })));
    }
    return shapes.get(drawing);
  }
  function behind(text) { // what is drawn behind a text of an SVG: the shapes before it that hold its middle
    const drawing = text.ownerSVGElement, box = text.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    let colour = ground(drawing);
    for (const each of filled(drawing)) {
      if (!(each.shape.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING)) continue;
      const at = new DOMPoint(x, y).matrixTransform(each.inverse);
      if (each.shape.isPointInFill(at)) colour = over(each.colour, colour, each.share);
    }
    return colour;
  }
  function faint() {
    for (const known of [grounds, shares, shapes]) known.clear();
    const seen = new Set(), found = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const element = texts.currentNode.parentElement;
      if (seen.has(element) || !texts.currentNode.data.trim()) continue;
      seen.add(element);
      if (element.closest("script, style, noscript, title, :disabled") || !visible(element)) continue;
      const style = getComputedStyle(element), size = parseFloat(style.fontSize), drawn = element.closest("svg text");
      if (element.getBoundingClientRect().width < 2) continue; // for a screen reader only
      const colour = drawn ? style.fill : style.color, back = drawn ? behind(drawn) : ground(element);
      const front = over(channels(colour), back, opacity(element) * (drawn ? parseFloat(style.fillOpacity) : 1));
      const enough = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700) ? 3 : 4.5;
      const ratio = contrast(front, back);
      if (ratio >= enough - 0.005) continue;
      const pair = `${colour} at ${ratio.toFixed(2)}`;
      found.set(pair, [...(found.get(pair) ?? []), where(element)]);
    }
    return [...found].map(([pair, places]) => `faint text, ${pair}: ${places[0]}${places.length > 1 ? ` and ${places.length - 1} more` : ""}`);
  }

  // --- names
  const NATIVE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [contenteditable=true]";
  const INTERACTIVE = `${NATIVE}, [tabindex]`;
  const interactive = () => [...document.body.querySelectorAll(INTERACTIVE)].filter((one) => visible(one) && !one.disabled);
  function name(element) {
    const told = (element.getAttribute("aria-labelledby") ?? "").split(/\s+/).map((id) => document.getElementById(id)?.textContent ?? "");
    const own = element.matches("input, select, textarea") ? [...(element.labels ?? [])].map((label) => label.textContent) : [element.textContent];
    const pictures = [...element.querySelectorAll("img[alt], svg title")].map((one) => one.alt ?? one.textContent);
    return [...told, element.getAttribute("aria-label"), ...own, ...pictures, element.title].join("").trim();
  }
  function nameless() {
    const drawings = [...document.body.querySelectorAll("svg, canvas")].filter((one) => !one.parentElement.closest("svg") && visible(one));
    const silent = drawings.filter((one) => !one.closest("[aria-hidden=true]") && !one.closest("[role=img], [role=slider]") && !name(one));
    const pictures = [...document.images].filter((one) => !one.hasAttribute("alt") || (!one.alt.trim() && !one.closest("[aria-hidden=true]")));
    return [...interactive().filter((one) => !name(one)), ...silent, ...pictures].map((one) => `no name: ${where(one)}`);
  }

  // --- focus, which the test moves with the Tab key
  const reached = [];
  const passedOver = (one) => one.type === "radio" && !one.checked && document.querySelector(`[name="${one.name}"]:checked`); // Tab takes the chosen one
  const stops = () => interactive().filter((one) => one.tabIndex >= 0 && !passedOver(one));
  const longer = (one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight;
  function listen() { // returns how many stops there are: a box that scrolls can be one too
    document.addEventListener("focusin", ({ target }) => {
      const style = getComputedStyle(target), width = parseFloat(style.outlineWidth);
      const drawn = style.outlineStyle !== "none" && width >= 1;
      const ringed = style.outlineStyle === "auto" || (drawn && contrast(channels(style.outlineColor), ground(target.parentElement)) >= 3);
      reached.push([target, ringed]);
    });
    return stops().length + [...document.body.querySelectorAll("*")].filter((one) => scrolls(one) && longer(one)).length;
  }
  function focus() {
    const wanted = stops(), got = [...new Set(reached.map(([element]) => element))].filter((element) => wanted.includes(element));
    const out = got.find((element, n) => n && !(got[n - 1].compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING));
    return [
      ...interactive().filter((one) => one.tabIndex < 0 && !one.matches("[tabindex]")).map((one) => `cannot be reached by Tab: ${where(one)}`),
      ...wanted.filter((one) => !one.matches(`${NATIVE}, [role]`) && !(scrolls(one) && longer(one))).map((one) => `nothing to do at this stop of Tab: ${where(one)}`),
      ...wanted.filter((one) => !got.includes(one)).map((one) => `Tab never came to ${where(one)}`),
      ...(out ? [`Tab came out of order to ${where(out)}`] : []),
      ...reached.filter(([, ringed]) => !ringed).map(([one]) => `no outline to be seen: ${where(one)}`),
    ];
  }
  document.querySelectorAll("details").forEach((fold) => (fold.open = true));
  return { overflow, faint, nameless, listen, focus };
})();
