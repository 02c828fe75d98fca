// Reads the recording and connects the parts of the page.

function summary(profile) {
  const parts = [`${count(profile.count)} events`, `in ${duration(profile.length)}`];
  const processes = new Set(profile.tracks.map((track) => track.process)).size;
  if (processes > 1) parts.push(`of ${processes} processes`);
  const begun = new Date(profile.unixTime / 1e6);
  if (profile.unixTime > 1e18) parts.push(`from ${begun.toISOString().replace("T", " ").slice(0, 19)}`);
  return parts.join(" ");
}

function showDropped(dropped) {
  const lost = Object.entries(dropped).map(([kind, number]) => `${count(number)} of kind ${kind}`);
  if (!lost.length) return;
  const warning = document.getElementById("warning");
  warning.textContent = `Events that had no room and are missing here: ${lost.join(", ")}.`;
  warning.hidden = false;
}

function listenToKeys(view, timeline, actions) {
  const keys = {
    w: () => view.zoom(0.7), s: () => view.zoom(1 / 0.7),
    a: () => view.move(-0.15), d: () => view.move(0.15),
    ArrowLeft: () => view.move(-0.15), ArrowRight: () => view.move(0.15),
    0: () => view.all(),
    f: () => actions.focus(),
    n: () => actions.match(1), p: () => actions.match(-1),
    "/": () => document.getElementById("query").focus(),
    Escape: () => actions.select(null),
  };
  document.addEventListener("keydown", (key) => {
    if (key.ctrlKey || key.metaKey || key.altKey) return;
    if (key.target.closest("input, select")) {
      if (key.key === "Escape") key.target.blur();
      return;
    }
    const action = keys[key.key.length === 1 ? key.key.toLowerCase() : key.key];
    if (!action) return;
    key.preventDefault();
    action();
  });
}

function start(profile) {
  const view = new View(profile.length);
  let timeline;
  const theme = new Theme(() => {
    timeline.paint();
    memory.showLegend?.(memory.peakIndex ?? -1, "at the peak");
    view.show(view.from, view.to);
  });
  const query = document.getElementById("query");
  const matches = document.getElementById("matches");
  const actions = {
    select(event, reveal = false) {
      timeline.selected = event;
      details.show(event);
      if (event !== null && reveal) timeline.reveal(event);
      timeline.request();
    },
    search(text) {
      query.value = text;
      const found = timeline.search(text);
      matches.textContent = text.trim() ? `${count(found)} found` : "";
    },
    match(direction) {
      const event = timeline.match(direction);
      if (event !== null) actions.select(event, true);
    },
    focus() {
      if (timeline.selected === null) return;
      const [from, to] = [profile.start[timeline.selected], profile.end(timeline.selected)];
      const margin = Math.max((to - from) * 0.1, SHORTEST_VIEW / 2);
      view.show(from - margin, to + margin);
      timeline.reveal(timeline.selected);
    },
  };
  timeline = new Timeline(profile, view, theme, actions.select);
  const memory = new Memory(profile, view, theme);
  const details = new Details(profile, actions.select);
  new Averages(profile, actions.search);
  query.addEventListener("input", () => actions.search(query.value));
  document.getElementById("search").addEventListener("submit", (event) => {
    event.preventDefault();
    actions.match(1);
  });
  document.getElementById("previous").addEventListener("click", () => actions.match(-1));
  document.getElementById("fit").addEventListener("click", () => view.all());
  listenToKeys(view, timeline, actions);
  showDropped(profile.dropped);
  document.getElementById("summary").textContent = summary(profile);
  timeline.draw();
  if (memory.count) memory.draw();
  // For tests and measurements: what is shown, and when it was drawn first.
  window.shown = { profile, view, timeline, memory, actions, drawnAt: performance.now() };
}

const facts = JSON.parse(document.getElementById("facts").textContent);
readColumns(facts.columns).then((columns) => start(new Profile(facts, columns))).catch((error) => {
  document.getElementById("summary").textContent = typeof DecompressionStream === "undefined"
    ? "This browser is too old for the page: it has no DecompressionStream."
    : `The recording could not be shown: ${error.message}`;
  throw error;
});
