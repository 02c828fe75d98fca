/* The order of results: a guide before the reference, and both before design notes and figures. */
var Scorer = (() => {
  const weights = [
    [/^(guides|tutorial|recipes)\//, 20],
    [/^(topics|examples)\//, 10],
    [/^(design|benchmarks)\//, -20],
    [/^(architecture|changelog|design_notes|genindex)/, -20],
  ];
  return {
    score: ([page, , , , score]) =>
      score + (weights.find(([pattern]) => pattern.test(page))?.[1] ?? 0),
    objNameMatch: 40,
    objPartialMatch: 6,
    objPrio: { 0: 15, 1: 5, 2: -5 },
    objPrioDefault: 0,
    title: 15,
    partialTitle: 7,
    term: 5,
    partialTerm: 2,
    // factor of the mean over the words of a query that has several (search_words.js)
    several: 3,
  };
})();
