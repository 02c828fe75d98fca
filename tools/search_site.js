// Answer searches as the site does: node search_site.js FOLDER < QUERIES > RESULTS
//
// FOLDER is the built site. QUERIES is a JSON list of texts; RESULTS is a list that has the pages of
// each, best first. The scripts of the page of results search, in its order, from Sphinx's own on;
// of a browser they get what they ask for here.
"use strict";

const fs = require("fs");
const path = require("path");
const vm = require("vm");

const folder = process.argv[2];
const context = vm.createContext({
  console,
  DOCUMENTATION_OPTIONS: {},
  SPHINX_HIGHLIGHT_ENABLED: false,
  _: (text) => text,
  _ready: () => {},
  document: { getElementById: () => null },
});
context.window = context;
const page = fs.readFileSync(path.join(folder, "search.html"), "utf-8");
const scripts = [...page.matchAll(/<script src="([^"?]+)/g)].map(([, name]) => name);
for (const name of scripts.slice(scripts.indexOf("_static/searchtools.js")))
  vm.runInContext(fs.readFileSync(path.join(folder, name), "utf-8"), context, name);
context.queries = JSON.parse(fs.readFileSync(0, "utf-8"));
const results = vm.runInContext(
  "queries.map((query) => Search._performSearch(...Search._parseQuery(query)).reverse())",
  context,
);
const pages = results.map((each) => [...new Set(each.map(([page]) => page))]);
process.stdout.write(JSON.stringify(pages));
