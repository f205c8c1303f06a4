// Lessons stand before equations, and these before tasks; the rest as Sphinx has it.
var Scorer = {
  score: ([page, , , , found]) => found + (/^(task\/|(sheet|map|glossary|break|index)$)/.test(page) ? 0 : page.startsWith("eq/") ? 100 : page.endsWith("-exercises") ? 50 : 200),
  objNameMatch: 11, objPartialMatch: 6, objPrio: { 0: 15, 1: 5, 2: -5 }, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
};
