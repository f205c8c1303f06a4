// Pages whose title or sentence has all words come first; then lessons before equations, and these before tasks; the rest as Sphinx has it.
const ASKED = (new URLSearchParams(location.search).get("q") ?? "").match(/[\p{L}\p{N}]{2,}/gu)?.map((word) => new RegExp(word, "iu")) ?? [];
var Scorer = {
  score: ([page, , , , found]) => {
    const [, said, title] = ABOUT[page] ?? ["", "", ""], has = (text) => ASKED.length && ASKED.every((word) => word.test(text));
    const kind = /^(task\/|(sheet|map|glossary|break|index)$)/.test(page) ? 0 : page.startsWith("eq/") ? 100 : page.endsWith("-exercises") ? 50 : 200;
    return found + kind + (has(title) ? 600 : has(said.replace(/<[^>]*>/g, "")) ? 300 : 0);
  },
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
