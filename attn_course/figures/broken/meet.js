// The warm-up: three things to try on the machine alone, one for queries, one for keys, one for values.
const ASKED = "it", WANTED = "cat";
const ASKS = 3, FOUND = 1; // where they stand
// One head, so small that every product can be done in the head: who is open (waits for another word) asks for nothing yet.
const SMALL = {
  X: [[0, 0, 1], [2, 0, 0], [0, 2, 0], [0, 0, 2]],
  W_Q: [[0, 1], [1, 0], [0, 0]],
  W_K: [[1, 0], [0, 1], [0, 0]],
  W_V: [[1, 0], [0, 1], [0, 0]],
  W_O: [[1, 0, 0], [0, 1, 0]],
  mask: "none",
  heads: 1,
};
const ASKING = { ...SMALL, W_Q: [[0, 1], [1, 0], [2, 0]], mask: "causal" }; // with a question for those who are open
const WEIGHTS = MACHINE.parts.findLast(({ role }) => role === "weights").name;
const FINDS = MACHINE.parts[MACHINE.parts.findIndex(({ name }) => name === WEIGHTS) + 1].name;
const weightsOf = (made) => entries(made[WEIGHTS]);
const weightAt = (made, i, j) => made[WEIGHTS][0][i][j];
const columnOf = (made) => made[WEIGHTS][0].map((weights) => weights[FOUND]);

const TRIALS = [
  {
    name: "A query asks",
    task:
      "Each word asks a question, its row of <b>Q</b>. `it` waits for somebody and asks for nothing yet, so it looks at all words alike. " +
      "<b>Change a number until `it` gives `cat` more than 0.9.</b>",
    hint:
      "`it` is all `open`, so the row `open` of W<sub>Q</sub> makes its question. " +
      "The key of `cat` has its 2 in the first place: ask for that.",
    then: "The question of `it` now fits the key of `cat`. The score is that fit, and the weights share out a whole among the fits.",
    row: ["W_Q", 2],
    now: (made) => [shown(weightAt(made, ASKS, FOUND)), `${ASKED} \u2192 ${WANTED}`],
    done: (made) => weightAt(made, ASKS, FOUND) > 0.9,
  },
  {
    name: "A key is found",
    task: "Each word can be found by its key, its row of <b>K</b>. <b>Change a number until no word gives `cat` more than 0.1.</b>",
    hint: "`cat` is all `alive`, so the row `alive` of W<sub>K</sub> makes its key. Turn it away from the questions: make it negative.",
    then: "One key stands against every question: a whole column of the weights went down.",
    row: ["W_K", 0],
    now: (made) => [shown(Math.max(...columnOf(made))), `largest \u2192 ${WANTED}`],
    done: (made) => columnOf(made).every((weight) => weight < 0.1),
  },
  {
    name: "A value is handed on",
    task: "Who is found hands on its value, its row of <b>V</b>. <b>Change what `it` finds, and not a single weight.</b>",
    hint: "Only W<sub>V</sub> makes values. Change a row of a word at which `it` looks.",
    then: "Query and key decide where a word looks. The value is what it gets there, and has no say in who is looked at.",
    row: ["W_V", 0],
    now: (made) => [`(${made[FINDS][0][ASKS].map(shown).join(", ")})`, `${ASKED} finds`],
    done: (made, before) =>
      weightsOf(made).every(([index, value]) => !differs(value, at(before[WEIGHTS], index))) &&
      made[FINDS][0][ASKS].some((value, a) => differs(value, before[FINDS][0][ASKS][a])),
  },
];

const said = (text) => text.replace(/`(.+?)`/g, "<q>$1</q>");

// The row of numbers that glows: at once in the first trial, afterwards for those who ask.
function placeToTry(desk) {
  const trial = TRIALS[desk.task];
  return trial && !desk.met && (desk.task === 0 || desk.hinted) ? trial.row : [];
}

function meetMission(desk) {
  const trial = TRIALS[desk.task];
  if (!trial) {
    desk.now = undefined;
    return {
      name: "That is attention",
      task: "Queries ask, keys are found, values are handed on. Now somebody has built a copy of it, with one mistake.",
      tools: [["Break the machine", () => startLevel(desk, 0), { class: "brk-main" }]],
    };
  }
  const made = MACHINE.compute(desk.inputs, null);
  const met = (desk.met = trial.done(made, MACHINE.compute(desk.first, null)));
  desk.now = trial.now(made);
  const on = () => {
    desk.task += 1;
    desk.hinted = false;
    desk.first = copied(desk.inputs);
    if (desk.task === TRIALS.length) {
      desk.solved = { ...desk.solved, meet: TRIALS.length };
      keep("meet", TRIALS.length);
    }
    answer(desk, "");
    desk.refresh();
    desk.one("name").focus();
  };
  if (met) answer(desk, trial.then);
  else answer(desk, "");
  return {
    name: `${desk.task + 1} of ${TRIALS.length}: ${trial.name}`,
    task: said(`${trial.task} <span class="brk-now">now ${desk.now[0]}</span>` + (desk.hinted && !met ? ` <i>${trial.hint}</i>` : "")),
    tools: [
      met ? [desk.task + 1 < TRIALS.length ? "Go on" : "Done", on, { class: "brk-main" }, ["See why", goTo(desk, "answer")]] : hint(desk),
      restart(desk),
      ["Skip to the levels", () => startLevel(desk, 0)],
    ],
  };
}
