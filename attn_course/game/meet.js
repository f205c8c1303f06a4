// The warm-up: six things to try on the machine alone: queries, keys, values, the softmax, the mask, heads.
const ASKS = 3, FOUND = 1; // where `it` and `cat` stand
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
const ASKS_CAT = { ...SMALL, W_Q: [[0, 1], [1, 0], [2, 0]] }; // with a question for those who are open
const ASKING = { ...ASKS_CAT, mask: "causal" };
const WEIGHTS = MACHINE.parts.findLast(({ role }) => role === "weights").name;
const FINDS = MACHINE.parts[MACHINE.parts.findIndex(({ name }) => name === WEIGHTS) + 1].name;
const sameWeights = (made, before) => entries(made[WEIGHTS]).every(([index, value]) => !differs(value, at(before[WEIGHTS], index)));
const weightAt = (made, i, j) => made[WEIGHTS][0][i][j];
const bothOf = (made) => [FOUND, FOUND + 1].map((j) => Math.max(...made[WEIGHTS].map((head) => head[ASKS][j]))); // `cat` and `sat`, each from the better head
const columnOf = (made) => made[WEIGHTS][0].map((weights) => weights[FOUND]);

const TRIALS = [
  {
    name: "A query asks",
    task:
      "Each row of X is a word, and its columns say what kind of word: `alive` is a living thing, `tells` says what happens, and `open` waits for another " +
      "word. Each word asks a question with its <b>query</b>, its row of Q, which is X times W_Q. The query of `it` is all zeros at first, so `it` looks at all words equally: " +
      "each gets the weight 0.25. <b>Change a number until `it` gives `cat` more than 0.9.</b>",
    hint:
      "`it` is all `open`, so the row `open` of W_Q makes its query. " +
      "The key of `cat` has its 2 in column 0: ask for that.",
    yet: (made) => {
      if (made.Q[0][ASKS].every((x) => !x)) return "Not yet: the query of `it` is still all zeros, so its scores are 0, whatever the keys are.";
      return `Not yet: the scores of \`it\` are ${made.S[0][ASKS].map(shown).join(", ")}, and that of \`cat\` must be by far the largest.`;
    },
    then: "The query of `it` now has its largest score at the key of `cat`. A score compares a query with a key, and the scores in each row become weights that sum to 1. The row of `the` moved as well, because `the` is `open` too.",
    row: ["W_Q", 2],
    now: (made) => [shown(weightAt(made, ASKS, FOUND)), "<q>it</q> \u2192 <q>cat</q>"],
    done: (made) => weightAt(made, ASKS, FOUND) > 0.9,
  },
  {
    name: "A key is found",
    task:
      "Each word can be found by its <b>key</b>, its row of K. A score is large where a query and a key have large numbers in the same places, " +
      "and opposite signs make it negative. <b>Make a number negative, so that no word gives `cat` more than 0.1.</b>",
    hint: "`cat` is all `alive`, so the row `alive` of W_K makes its key. Make its first number negative.",
    yet: (made, before, inputs) => {
      const column = columnOf(made), most = column.indexOf(Math.max(...column));
      const why = `the query of \`${MACHINE.tokens[most]}\` and the key of \`cat\` have the score ${shown(made.S[0][most][FOUND])}, and so the weight ${shown(column[most])}`;
      const twice = [inputs.X[FOUND], inputs.W_K.flat()].every((some) => some.some((x) => x < 0)) ? " X and W_K both have a minus: minus times minus is plus." : "";
      return `Not yet: ${made.K[0][FOUND].join() === before.K[0][FOUND].join() ? "the key of `cat` is as it was" : why}.${twice}`;
    },
    then: "Every word now gives `cat` less than 0.1: a key is compared with every query, so it counts in a whole column of the weights.",
    row: ["W_K", 0],
    now: (made) => [shown(Math.max(...columnOf(made))), "most for <q>cat</q>"],
    done: (made) => columnOf(made).every((weight) => weight < 0.1),
  },
  {
    name: "A value is handed on",
    task:
      "A word that is found hands on its <b>value</b>, its row of V. What a word finds, its row of Z, is the sum of all values, each times its weight. " +
      "<b>Change what `it` finds, and not a single weight.</b>",
    yet: (made, before) => {
      if (!sameWeights(made, before)) return "Not yet: a weight changed as well. X, W_Q and W_K make the weights. Take that back, and change W_V.";
      return "Not yet: what `it` finds must change by at least 0.1. `it` hardly looks at `cat`, but it looks at `sat`: change what `sat` hands on.";
    },
    hint: "Only W_V makes values. Change the row `tells`: `sat` has it, and `it` looks at `sat`.",
    then: "Query and key decide where a word looks. The value is what it gets there, and has no say in who is looked at.",
    row: ["W_V", 1],
    now: (made) => [`(${made[FINDS][0][ASKS].map(shown).join(", ")})`, "<q>it</q> finds"],
    done: (made, before) =>
      sameWeights(made, before) && made[FINDS][0][ASKS].some((value, a) => Math.abs(value - before[FINDS][0][ASKS][a]) >= 0.1),
  },
  {
    name: "The softmax shares out",
    task:
      "The numbers are back at the start, but `it` asks for `cat` again. " +
      "A score is a sum of d_k products, where d_k is how many numbers a query has. It is divided by the <em>scale</em>, \u221ad_k (here \u221a2), so that scores do not spread further where d_k is larger. " +
      "The <em>softmax</em> then turns each row of scores into weights that sum to 1, and a larger score gets more. " +
      "<b>Change a number until no weight of `it` exceeds 0.9.</b>",
    hint: "The row `open` of W_Q makes the query of `it`. A smaller query makes smaller scores.",
    then: "Only the differences between scores count: the smaller they are, the more equal are the weights. The sum of the row is still 1.",
    row: ["W_Q", 2],
    given: ASKS_CAT,
    now: (made) => [shown(Math.max(...made[WEIGHTS][0][ASKS])), "most from <q>it</q>"],
    done: (made) => Math.max(...made[WEIGHTS][0][ASKS]) < 0.9,
  },
  {
    name: "A mask hides keys",
    task:
      "A <em>mask</em> says who may look at whom: a hidden key gets the weight 0. Under the <em>causal</em> mask a word sees itself and earlier words, " +
      "under the mask <em>past</em> earlier words only. <b>Choose the mask with which `the` looks at itself only.</b>",
    hint: "The buttons of the mask stand above the matrices. The first word has no earlier one, so it must see itself.",
    then: "No word sees a later one now. The weights of each row still sum to 1, over the keys that are seen.",
    now: (made) => [shown(weightAt(made, 0, 0)), "<q>the</q> \u2192 <q>the</q>"],
    done: (made, before, inputs) => inputs.mask === "causal",
  },
  {
    name: "Heads look separately",
    task:
      "The numbers are back at the start, `it` asks for `cat`, and the mask is off. A <em>head</em> has queries, keys and values of its own, made by its own columns of W_Q, W_K and W_V, " +
      "and so weights of its own: two heads can look at different words. " +
      "<b>Make `it` give more than 0.9 to `cat` with one head, and more than 0.9 to `sat` with the other.</b>",
    hint: "Choose two heads. Head 0 asks with the column q0 of W_Q, and head 1 with q1. The key of `sat` has its 2 in column 1.",
    yet: (made) => `Not yet: \`it\` gives ${bothOf(made).map(shown).join(" to `cat` and ")} to \`sat\`. ${made[WEIGHTS].length > 1 ? "Each head asks with a column of W_Q of its own." : "The weights of one head sum to 1: choose two."}`,
    then: "Each head has one column of queries, keys and values now, so the scale is \u221a1, and weights of its own. W_O turns what both found into O, and Y = X + O is the output.",
    row: ["W_Q", 2],
    given: ASKS_CAT,
    now: (made) => [bothOf(made).map(shown).join(", "), "<q>cat</q>, <q>sat</q>"],
    done: (made) => Math.min(...bothOf(made)) > 0.9,
  },
];

// The row of numbers that glows: at once in the first trial, afterwards for those who ask.
function placeToTry(desk) {
  const trial = TRIALS[desk.task];
  return trial?.row && !desk.met && (desk.task === 0 || desk.hinted) ? trial.row : [];
}

function meetMission(desk) {
  const trial = TRIALS[desk.task];
  desk.root.querySelector(".brk").dataset.trial = desk.task;
  if (!trial) {
    desk.now = undefined;
    return {
      name: "That is attention",
      task: "A query says what a word looks for, a key what it can be found by, and a value what it hands on to those who find it. The softmax turns scores into weights, a mask hides keys, and heads look separately. Now somebody has built a copy of this machine, its twin, and made one mistake.",
      tools: [["Break the machine", () => startLevel(desk, 0), { class: "brk-main" }]],
    };
  }
  const made = MACHINE.compute(desk.inputs, null);
  const before = MACHINE.compute(desk.first, null);
  const met = (desk.met = trial.done(made, before, desk.inputs));
  const yet = (!met && desk.changes() && trial.yet?.(made, before, desk.inputs)) || "";
  desk.now = trial.now(made);
  const on = () => {
    desk.task += 1;
    desk.hinted = false;
    const { given } = TRIALS[desk.task] ?? {};
    if (given) desk.begin(given, null);
    else desk.first = copied(desk.inputs);
    if (desk.task === TRIALS.length) {
      desk.solved = { ...desk.solved, meet: TRIALS.length };
      keep("meet", TRIALS.length);
    }
    desk.about = null;
    answer(desk, "");
    desk.refresh();
    desk.one("name").focus();
  };
  const told = met ? trial.then : yet, wanted = (trial.task.match(/<b>([^<]{9,})<\/b>/) ?? [])[1] ?? trial.name;
  answer(desk, told, met);
  // A wide page shows the answer above the numbers; on a narrow one only the strip is in sight.
  const brief = `<span class="brk-wide">${met ? "You have done it." : marked(wanted)}</span><span class="brk-narrow">${marked(told || wanted)}</span>`;
  return {
    short: brief,
    name: `${desk.task + 1} of ${TRIALS.length}: ${trial.name}`,
    task: marked(trial.task) + (desk.hinted ? hinted((!met && changesOf(desk.inputs.X, desk.first.X) ? "Go back to the start first. " : "") + trial.hint) : ""),
    tools: [
      met ? [desk.task + 1 < TRIALS.length ? "Go on" : "Done", on, { class: "brk-main" }] : hint(desk),
      restart(desk),
      ["Skip to the levels", () => startLevel(desk, 0), { class: "brk-skip" }],
    ],
  };
}
