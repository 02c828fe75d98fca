// The recording: the events of each track, and what is computed from them once.

class Profile {
  constructor(facts, columns) {
    Object.assign(this, facts);
    this.columns = columns;
    this.count = columns.gap.length;
    this.duration = columns.duration;
    this.start = new Float64Array(this.count);
    this.self = new Float64Array(this.count);
    this.nameNumbers();
    let first = 0;
    for (const [number, track] of this.tracks.entries()) {
      Object.assign(track, { number, first, last: first + track.count });
      this.readTrack(track);
      first = track.last;
    }
    this.arrows = ["backward", "launch"].map((name) =>
      ({ name, from: columns[`${name}From`], to: columns[`${name}To`] }));
  }

  // Signatures of one operator share a name.
  nameNumbers() {
    const known = new Map();
    this.nameOfSignature = Uint32Array.from(this.signatures, ({ name }) => {
      if (!known.has(name)) known.set(name, known.size);
      return known.get(name);
    });
    this.names = [...known.keys()];
  }

  name(event) { return this.signatures[this.columns.signature[event]].name; }
  kind(event) { return this.kinds[this.columns.kind[event]]; }
  end(event) { return this.start[event] + this.duration[event]; }
  track(event) { return this.tracks.find((track) => event < track.last); }

  // Compute start times from gaps, own times without nested events, and the lane of each depth.
  readTrack(track) {
    const { gap, depth } = this.columns;
    const counts = [];
    const open = [];
    let time = 0;
    for (let event = track.first; event < track.last; event++) {
      time += gap[event];
      this.start[event] = time;
      this.self[event] = this.duration[event];
      const level = depth[event];
      open[level] = event;
      const outer = level ? open[level - 1] : undefined;
      if (outer !== undefined && time <= this.end(outer)) this.self[outer] -= this.duration[event];
      counts[level] = (counts[level] ?? 0) + 1;
    }
    const levels = Array.from(counts, (number) => new Uint32Array(number ?? 0));
    const filled = new Uint32Array(levels.length);
    for (let event = track.first; event < track.last; event++) {
      const level = depth[event];
      levels[level][filled[level]++] = event;
    }
    track.lanes = levels.map((events, level) => ({ events, level, track }));
  }

  // One flag for each kind. Steps and work of devices run beside the host: if no kind is
  // wanted, they are left out, so that own times add up to the time of the threads.
  kindsShown(wanted) {
    const shown = [];
    for (const [number, name] of Object.entries(this.kinds)) {
      shown[number] = wanted ? name === wanted : name !== "step" && name !== "device";
    }
    return shown;
  }

  // One entry for each name: how often, and nanoseconds. An event within one of its own name
  // counts in `calls` but not again in `total`.
  averages(wantedKind) {
    const rows = this.names.map((name) => ({ name, calls: 0, total: 0, self: 0, longest: 0 }));
    const { signature, kind } = this.columns;
    const wanted = this.kindsShown(wantedKind);
    for (const track of this.tracks) {
      const openUntil = new Float64Array(rows.length).fill(-1);
      for (let event = track.first; event < track.last; event++) {
        if (!wanted[kind[event]]) continue;
        const name = this.nameOfSignature[signature[event]];
        const row = rows[name];
        const length = this.duration[event];
        row.calls++;
        row.self += Math.max(0, this.self[event]);
        if (length > row.longest) row.longest = length;
        if (this.start[event] >= openUntil[name]) {
          row.total += length;
          openUntil[name] = this.start[event] + length;
        }
      }
    }
    return rows.filter((row) => row.calls);
  }

  // One flag for each signature: whether its name contains the text.
  matching(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return null;
    return Uint8Array.from(this.signatures, ({ name }) => name.toLowerCase().includes(wanted));
  }

  // The arrows from or to an event.
  linked(event) {
    const found = [];
    for (const { name, from, to } of this.arrows) {
      for (let i = 0; i < from.length; i++) {
        if (from[i] === event || to[i] === event) found.push({ name, from: from[i], to: to[i] });
      }
    }
    return found;
  }
}
