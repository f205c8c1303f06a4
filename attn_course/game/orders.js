// The same numbers in four orders: what each step moves, and that the output stays the same.
const PACE_MS = 1000; // a sentence of a step is read
const CALM = matchMedia("(prefers-reduced-motion: reduce)");

function drawOrders(desk) {
  const host = desk.one("orders");
  const key = desk.mode === "orders" ? JSON.stringify(desk.inputs) : "";
  host.hidden = key === "";
  if (host.dataset.key === key) return;
  const again = Boolean(key && host.dataset.key && desk.guess !== undefined);
  host.dataset.key = key;
  clearInterval(Number(host.dataset.clock));
  host.replaceChildren();
  if (key && desk.guess === undefined) askOrders(desk, host);
  else if (key) showOrders(desk, host, again);
}

// The guess comes first: the bars would answer the question.
function askOrders(desk, host) {
  const guess = (n) => () => {
    desk.guess = n;
    delete host.dataset.key;
    drawOrders(desk);
    host.querySelector("button").focus();
  };
  host.replaceChildren(
    make("p", { class: "brk-name" }, "Your guess: which order moves the fewest bytes?"),
    make("div", { class: "brk-choices", role: "group", "aria-label": "Guess" }, ...MACHINE.orders.map(({ title, says }, n) =>
      make("button", { class: "brk-form", click: guess(n) }, make("b", { html: mathy(title) }), make("span", { class: "brk-legend", html: mathy(says) })))),
  );
}

function showOrders(desk, host, again) {
  const replays = MACHINE.orders.map(({ id, title, replay }) => {
    const { steps, output } = replay(desk.inputs);
    let bytes = 0;
    return { id, title: mathy(title), output, steps: steps.map((step) => ({ ...step, bytes: (bytes += step.bytes) })) };
  });
  const played = new Set();
  const output = partNamed(FINDS);
  const whole = replays[0].output;
  const most = Math.max(...replays.map(({ steps }) => steps.at(-1).bytes));
  let chosen = Math.max(0, replays.findIndex(({ id }) => id === host.dataset.order)), step = 0;

  const choices = replays.map(({ title }, n) => make("button", { click: () => go(n, 0), html: title }));
  const slider = make("input", { type: "range", min: 0, step: 1, "aria-label": "step", input: () => go(chosen, Number(slider.value)) });
  const play = make("button", { class: "brk-main", click: () => (host.dataset.clock ? stop() : run()) }, "Play");
  const says = make("p", { class: "brk-doing" });
  const cell = () => make("span", { class: "brk-cell" });
  const table = new Matrix(output, whole, labelsOf(FINDS, desk.inputs), cell);
  const groove = () => make("div", { class: "brk-groove" }, make("div"));
  const number = () => make("span", { class: "attn-number" });
  const mark = (n) => (n === desk.guess ? " (your guess)" : "");
  const meters = replays.map(({ title }, n) => make("div", { class: "brk-meter" }, make("span", { html: title + mark(n) }), groove(), number()));
  const heading = make("p", { class: "attn-heading" }, "Bytes moved in all");
  const same = make("p", { class: "brk-same", "aria-live": "polite" }), end = make("p", { class: "brk-score" });
  host.append(
    make("div", { class: "attn-buttons", role: "group", "aria-label": "Order" }, ...choices),
    make("div", { class: "brk-player" }, play, slider, make("button", { click: () => go(chosen, replays[chosen].steps.length - 1) }, "To its end")),
    says,
    same,
    end,
    make("div", { class: "brk-race" }, table.figure, make("div", { class: "brk-meters" }, heading, ...meters)),
  );

  function go(order, place) {
    stop();
    [chosen, step] = [order, place];
    draw();
  }

  function stop() {
    clearInterval(Number(host.dataset.clock));
    delete host.dataset.clock;
    play.textContent = "Play";
  }

  function run() {
    const { steps } = replays[chosen];
    if (CALM.matches) step = step < steps.length - 1 ? step + 1 : 0; // one step a press, nothing moves by itself
    else {
      if (step === steps.length - 1) step = 0;
      play.textContent = "Pause";
      host.dataset.clock = setInterval(() => {
        step += 1;
        if (step >= replays[chosen].steps.length - 1) stop();
        draw();
      }, PACE_MS);
    }
    draw();
  }

  function draw() {
    const { id, steps, output: made, title } = replays[chosen];
    const { says: doing, done, ready, bytes: moved } = steps[step], last = step === steps.length - 1;
    host.dataset.order = replays[chosen].id;
    choices.forEach((button, n) => button.setAttribute("aria-pressed", String(n === chosen)));
    slider.max = steps.length - 1;
    slider.value = step;
    slider.setAttribute("aria-valuetext", `step ${step + 1} of ${steps.length}`);
    says.innerHTML = marked(`Step ${step + 1} of ${steps.length}: ${doing} ${moved - (steps[step - 1]?.bytes ?? 0)} bytes move, ${moved} so far.`);
    for (const { element, index } of table.cells) {
      const value = index.reduce((inner, i) => inner?.[i], done) ?? undefined;
      element.textContent = Number.isFinite(value) ? shown(value) : "";
      element.toggleAttribute("data-hidden", !Number.isFinite(value));
      element.toggleAttribute("data-unfinished", index[1] >= ready);
    }
    if (last) played.add(id);
    meters.forEach((meter, n) => {
      const known = played.has(replays[n].id), bytes = known ? replays[n].steps.at(-1).bytes : n === chosen ? moved : 0; // a bar grows while it is played
      meter.querySelector(".brk-groove > div").style.width = `${(100 * bytes) / most}%`;
      meter.lastChild.textContent = known ? bytes.toLocaleString("en") : "?";
      meter.toggleAttribute("data-chosen", n === chosen);
    });
    const finished = entries(done).filter(([index]) => index[1] < ready);
    const off = finished.filter(([index, value]) => differs(value, at(whole, index))).length;
    const rows = made[0].length;
    const agree = `${off} of the ${finished.length} finished numbers ${off === 1 ? "differs" : "differ"} from those of whole matrices.`;
    const begun = entries(done).some(([index, value]) => index[1] >= ready && Number.isFinite(value));
    const compared = chosen ? (finished.length ? agree : "There is nothing to compare yet.") : "";
    same.innerHTML = `${title}: ${ready} of ${rows} rows of <i>Z</i> are finished. ${begun ? "Numbers in italics are not finished." : ""} ${compared}`;
    const anew = again && !played.size ? "With other numbers the orders begin again. " : "";
    end.toggleAttribute("data-open", played.size < replays.length);
    end.innerHTML = played.size < replays.length ? `${anew}You have played ${played.size} of ${replays.length} orders to the end.` : concluded();
  }

  // The answer to the question at the top, from what was counted.
  function concluded() {
    const total = ({ steps }) => steps.at(-1).bytes;
    const least = Math.min(...replays.map(total)), best = replays.filter((one) => total(one) === least).map(({ title }) => title);
    const off = replays.flatMap(({ output }) => entries(output)).filter(([index, value]) => differs(value, at(whole, index))).length;
    desk.solved = { ...desk.solved, orders: replays.length };
    keep("orders", replays.length);
    drawNav(desk);
    const result = off ? `${off} numbers of the results differ.` : "The order does not change the result.";
    const guessed = replays[desk.guess], right = total(guessed) === least ? "as you guessed" : `and not by your guess, ${guessed.title}, with ${total(guessed)}`;
    const room = (queries) => queries * (2 + whole[0][0].length);
    return `Answer: ${result} The fewest bytes, ${least}, are moved by ${listed(best)}, ${right}. Orders that write all scores and weights down must
      read them again. The others keep a largest score, a sum and a partial output of each query in the small memory: tiles for two queries at a time
      (${room(2)} numbers for each head), one key after the other for all at once (${room(whole[0].length)}).`;
  }
  draw();
}
