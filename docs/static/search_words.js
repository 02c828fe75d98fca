/* Searches of several words: a page need not have all of them.

   Sphinx's own search lists the pages that have every word. This one lists those with at least half
   of the words. A page's score is the mean over the words of where it has each: in a title or an
   entry of the index, or in its text, exactly or as a part of another word. A word weighs more the
   fewer pages have it; one that no page has is left out. */
"use strict";

Search.performTermsSearch = (searchTerms, excludedTerms) => {
  const { terms, titleterms, indexentries, docnames, filenames, titles } = Search._index;
  const files = (table, term) => (Object.hasOwn(table, term) ? [table[term]].flat() : []);

  // the words of the entries of the index, stemmed as those of texts are
  const stemmer = new Stemmer();
  const entryTerms = {};
  for (const [entry, places] of Object.entries(indexentries))
    for (const word of splitQuery(entry.toLowerCase()))
      if (!stopwords.has(word))
        (entryTerms[stemmer.stemWord(word)] ??= []).push(
          ...places.filter(([, , isMain]) => isMain).map(([file]) => file),
        );

  const sources = [
    [terms, Scorer.term, Scorer.partialTerm],
    [titleterms, Scorer.title, Scorer.partialTitle],
    [entryTerms, Scorer.title, Scorer.partialTitle],
  ];
  // "classifi" (classifier) and "classif" (classification) are the same word to a reader
  const isNear = (term, word) =>
    term.includes(word) ||
    (term.length >= 5 && word.startsWith(term) && word.length - term.length <= 3);

  // file -> score, for the pages that have the word
  const pagesOf = (word) => {
    const scores = new Map();
    const add = (file, score) => scores.set(file, Math.max(score, scores.get(file) ?? 0));
    for (const [table, exact, partial] of sources) {
      files(table, word).forEach((file) => add(file, exact));
      if (word.length > 2 && !Object.hasOwn(table, word))
        for (const term of Object.keys(table))
          if (isNear(term, word)) files(table, term).forEach((file) => add(file, partial));
    }
    return scores;
  };

  const words = [...searchTerms]
    .map(pagesOf)
    .filter((scores) => scores.size > 0)
    .map((scores) => ({ scores, weight: Math.log(1 + docnames.length / scores.size) }));
  const total = words.reduce((sum, { weight }) => sum + weight, 0);
  const found = new Map(); // file -> [number of its words, sum of their weighted scores]
  for (const { scores, weight } of words)
    for (const [file, score] of scores) {
      const [count, sum] = found.get(file) ?? [0, 0];
      found.set(file, [count + 1, sum + weight * score]);
    }
  const excluded = new Set(
    [...excludedTerms].flatMap((term) => [...files(terms, term), ...files(titleterms, term)]),
  );
  return [...found]
    .filter(([file, [count]]) => count >= words.length / 2 && !excluded.has(file))
    .map(([file, [, sum]]) => [
      docnames[file],
      titles[file],
      "",
      null,
      ((words.length > 1 ? Scorer.several : 1) * sum) / total,
      filenames[file],
      SearchResultKind.text,
    ]);
};
