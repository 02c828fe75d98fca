// The selected event's details, and the table of averages.

const ROWS_SHOWN = 100;

class Details {
  constructor(profile, select) {
    Object.assign(this, { profile, select, box: document.getElementById("details") });
  }

  show(event) {
    if (event === null) {
      const text = "Select an event in the timeline.";
      this.box.replaceChildren(element("p", { class: "muted" }, text));
      return;
    }
    const { profile } = this;
    const list = element("dl");
    const add = (term, ...values) =>
      list.append(element("dt", {}, term), element("dd", {}, ...values));
    const track = profile.track(event);
    add("Kind", profile.kind(event));
    add("Begin", duration(profile.start[event]));
    add("Duration", duration(profile.duration[event]));
    if (!track.device) add("Own time", duration(Math.max(0, profile.self[event])));
    add("On", `${track.name}, process ${track.process}`);
    if (profile.columns.failed[event]) add("Failed", "yes");
    const { inputs } = profile.signatures[profile.columns.signature[event]];
    if (inputs) add("Inputs", inputs);
    const context = profile.contexts[profile.columns.context[event]];
    if (context?.module) add("Module", context.module);
    if (context?.stack.length) {
      add("Lines", element("ul", { class: "stack" },
        ...context.stack.map((line) => element("li", {}, line))));
    }
    for (const { name, from, to } of profile.linked(event)) {
      const other = event === from ? to : from;
      const roles = name === "backward" ? ["Forward call", "Backward node"] : ["Call", "On the device"];
      add(roles[event === from ? 1 : 0], this.button(other));
    }
    this.box.replaceChildren(element("p", { class: "event-name" }, profile.name(event)), list);
  }

  button(event) {
    const text = `${this.profile.name(event)} at ${duration(this.profile.start[event])}`;
    const onclick = () => this.select(event, true);
    return element("button", { type: "button", class: "link", onclick }, text);
  }
}

class Averages {
  constructor(profile, search) {
    Object.assign(this, { profile, search, sortedBy: "self", limit: ROWS_SHOWN });
    this.table = document.getElementById("averages");
    this.kind = document.getElementById("kind");
    this.more = document.getElementById("more");
    const present = new Set(profile.columns.kind);
    const names = Object.entries(profile.kinds).filter(([number]) => present.has(Number(number)));
    this.kind.append(element("option", { value: "" }, "all of the host"),
      ...names.map(([, name]) => element("option", { value: name }, name)));
    this.kind.addEventListener("change", () => this.read());
    this.more.addEventListener("click", () => { this.limit = Infinity; this.show(); });
    this.read();
  }

  read() {
    this.rows = this.profile.averages(this.kind.value);
    for (const row of this.rows) row.mean = row.total / row.calls;
    this.whole = this.rows.reduce((sum, row) => sum + row.self, 0) || 1;
    this.show();
  }

  show() {
    const columns = [
      ["name", "Name", (row) => row.name, ""],
      ["calls", "Calls", (row) => count(row.calls), ""],
      ["self", "Own", (row) => duration(row.self), ""],
      ["share", "Own %", (row) => ((100 * row.self) / this.whole).toFixed(1), "optional"],
      ["total", "Total", (row) => duration(row.total), ""],
      ["mean", "Mean", (row) => duration(row.mean), "optional"],
      ["longest", "Longest", (row) => duration(row.longest), "optional"],
    ];
    const by = this.sortedBy === "share" ? "self" : this.sortedBy;
    const rows = this.rows.sort((a, b) =>
      by === "name" ? a.name.localeCompare(b.name) : b[by] - a[by]);
    const heads = columns.map(([key, title, , kind]) => {
      const onclick = () => { this.sortedBy = key; this.show(); };
      const order = key === "name" ? "ascending" : "descending";
      return element("th", { scope: "col", class: kind, ...(key === this.sortedBy && { "aria-sort": order }) },
        element("button", { type: "button", onclick }, title));
    });
    const lines = rows.slice(0, this.limit).map((row) =>
      element("tr", { title: `Search ${row.name}`, onclick: () => this.search(row.name) },
        ...columns.map(([, , text, kind]) => element("td", { class: kind }, text(row)))));
    this.table.replaceChildren(element("thead", {}, element("tr", {}, ...heads)),
      element("tbody", {}, ...lines));
    this.more.hidden = rows.length <= this.limit;
    this.more.textContent = `Show all ${count(rows.length)} names`;
  }
}
