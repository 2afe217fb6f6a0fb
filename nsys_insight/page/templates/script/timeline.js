// The timeline: events as numbers, drawn for whatever piece of the run is looked at.
const LEAST_NS = 40, TEXT_PX = 34, LETTER_PX = 6.3;
const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");

function decoded(lane) {
  let at = 0;
  const from = Float64Array.from(lane.at, step => (at += step));
  const to = Float64Array.from(from, (start, place) => start + lane.lasts[place]);
  // The latest end so far: what begins before a moment is over by then if this says so.
  let latest = -Infinity;
  const reach = Float64Array.from(to, end => (latest = Math.max(latest, end)));
  return { ...lane, from, to, reach };
}

// The first place in sorted numbers whose value is more than `wanted`.
function after(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > wanted) high = middle; else low = middle + 1;
  }
  return low;
}

class Timeline {
  constructor(box, given) {
    Object.assign(this, { box, given, things: given.things, ns: given.ns, lanes: given.lanes.map(decoded) });
    this.svg = box.querySelector(".timeline");
    this.canvas = box.querySelector(".canvas");
    this.where = box.querySelector(".where");
    this.heard = [];
    this.found = null;
    this.here = null;
    this.home = given.view ?? given.first;
    this.view = [...(given.view ?? given.first)];
    this.zero = given.first[0];
    this.height = Number(this.svg.getAttribute("height"));
    this.top = this.lanes[0]?.top ?? 0;
    this.waiting = false;
    new ResizeObserver(() => this.later()).observe(this.canvas);
  }

  get width() { return this.canvas.clientWidth || 800; }
  get span() { return this.view[1] - this.view[0]; }
  moment(x) { return this.view[0] + x / this.width * this.span; }

  // Look at a piece of the run; what is wider than the run is the run.
  look(from, to) {
    this.moved = true;
    this.follow(from, to);
  }
  follow(from, to) {
    const span = between(to - from, LEAST_NS, this.ns);
    const start = between(from + (to - from - span) / 2, 0, this.ns - span);
    this.view = [start, start + span];
    this.later();
  }
  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    this.look(around - (around - this.view[0]) * factor, around + (this.view[1] - around) * factor);
  }
  pan(ns) { this.look(this.view[0] + ns, this.view[1] + ns); }

  // Load a step or a gap: it becomes what the button "Step" comes back to.
  load(from, to) {
    this.home = [from, to];
    this.here = null;
    this.look(from, to);
  }
  listen(heard) { this.heard.push(heard); }
  later() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { if (this.waiting) this.draw(); });
  }

  draw() {
    this.waiting = false;
    const made = make("g");
    this.zero = this.origin();
    this.axis(made);
    this.holes(made);
    this.lanes.forEach((lane, place) => made.append(this.drawn(lane, place)));
    const over = make("g", { class: "over" });
    made.append(over);
    this.svg.replaceChildren(made);
    if (about && !about.isConnected) hide();
    this.say();
    for (const heard of this.heard) heard(this);
  }

  percent(ns) { return `${((ns - this.view[0]) / this.span * 100).toFixed(4)}%`; }

  axis(made) {
    const { zero } = this;
    const rough = this.span / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(rough));
    const apart = [1, 2, 5, 10].map(one => one * power).find(one => one >= rough);
    const each = Math.max(1, apart);
    const [unit, divisor] = TIMES.find(([, least]) => each >= least) ?? TIMES[3];
    for (let at = zero + Math.ceil((this.view[0] - zero) / each) * each; at < this.view[1]; at += each) {
      const x = this.percent(at);
      made.append(make("line", { class: "grid", x1: x, x2: x, y1: 16, y2: "100%" }));
      if ((at - this.view[0]) / this.span * this.width < this.width - 46)
        made.append(make("text", { class: "tick", x, dx: 3, y: 12 }, at === zero ? "0" : `${grouped((at - zero) / divisor)} ${unit}`));
    }
  }

  // Where the page has no events.
  holes(made) {
    let before = 0;
    const windows = [...this.given.windows, [this.ns, this.ns]];
    for (const [from, to] of windows) {
      const [left, right] = [Math.max(before, this.view[0]), Math.min(from, this.view[1])];
      before = to;
      if (right <= left) continue;
      const x = this.percent(left), width = `${((right - left) / this.span * 100).toFixed(4)}%`;
      const hole = make("svg", { x, width, y: this.top, height: this.height - this.top, class: "hole" });
      hole.append(make("rect", { width: "100%", height: "100%" }));
      if ((right - left) / this.span * this.width > 150) hole.append(make("text", { x: "50%", y: "50%", "text-anchor": "middle" }, "not in this page"));
      made.append(hole);
    }
  }

  // A lane: what is narrower than a pixel is drawn together with what touches it.
  drawn(lane, place) {
    const group = make("g", { class: `lane ${lane.kind}`, "data-lane": place });
    const scale = this.width / this.span, last = after(lane.from, this.view[1]);
    let small = null;
    const together = () => {
      if (small) group.append(this.crowd(lane, small));
      small = null;
    };
    for (let at = after(lane.reach, this.view[0]); at < last; at++) {
      if (lane.to[at] < this.view[0]) continue;
      const x = (lane.from[at] - this.view[0]) * scale, wide = (lane.to[at] - lane.from[at]) * scale;
      if (wide >= 1.2) {
        together();
        group.append(this.bar(lane, place, at, wide));
      } else if (small && x - small.end < 1) {
        small.end = Math.max(small.end, x + wide);
        small.places.push(at);
      } else {
        together();
        small = { x, end: x + wide, places: [at] };
      }
    }
    together();
    return group;
  }

  bar(lane, place, at, wide) {
    const [look, label, , kernel] = this.things[lane.what[at]];
    const left = Math.max(lane.from[at], this.view[0]), right = Math.min(lane.to[at], this.view[1]);
    const shown = (right - left) / this.span * this.width;
    const attributes = {
      x: this.percent(left), y: lane.top, width: `${Math.max((right - left) / this.span * 100, 0.01).toFixed(4)}%`, height: lane.height,
      "data-tip": this.tip(lane, at), "data-at": at, "data-kernel": kernel < 0 ? null : kernel,
    };
    const state = `mark${this.isFound(lane, at) ? " found" : ""}${this.here?.[0] === place && this.here[1] === at ? " here" : ""}`;
    if (lane.kind === "idle" || shown < TEXT_PX) return make("rect", { ...attributes, class: `${state} ${look}` });
    const mark = make("svg", { ...attributes, class: state });
    mark.append(make("rect", { class: look, width: "100%", height: "100%" }));
    const room = Math.floor((shown - 8) / LETTER_PX);
    mark.append(make("text", { x: 4, y: lane.height / 2 + 4 }, label.length > room ? `${label.slice(0, room - 1)}…` : label));
    return mark;
  }

  // Many that are too small to be seen: the look of most of their time.
  crowd(lane, { x, end, places }) {
    if (places.length === 1) return this.bar(lane, this.lanes.indexOf(lane), places[0], 1.2);
    const times = new Map();
    let busy = 0;
    for (const at of places) {
      const ns = lane.to[at] - lane.from[at], look = this.things[lane.what[at]][0];
      times.set(look, (times.get(look) ?? 0) + ns);
      busy += ns;
    }
    const [look] = [...times].reduce((most, one) => one[1] > most[1] ? one : most);
    const found = places.some(at => this.isFound(lane, at));
    return make("rect", {
      class: `mark crowd ${look}${found ? " found" : ""}`, x: `${(Math.max(x, 0) / this.width * 100).toFixed(4)}%`, y: lane.top,
      width: `${(Math.max(end - Math.max(x, 0), 1) / this.width * 100).toFixed(4)}%`, height: lane.height,
      // As dense as it is, so that a few short kernels do not look like a busy GPU.
      "fill-opacity": between(busy * this.width / this.span / Math.max(end - x, 1), 0.22, 1).toFixed(2),
      "data-tip": `${count(places.length, lane.kind === "idle" ? "gap" : lane.kind === "host" ? "call" : lane.kind === "nvtx" ? "range" : "operation")}\n${time(busy)} in total; zoom in to see each`,
      "data-from": lane.from[places[0]], "data-to": lane.to[places.at(-1)],
    });
  }

  isFound(lane, at) { return this.found !== null && this.found.has(lane.what[at]); }

  tip(lane, at) {
    const [, label, more, , ...causes] = this.things[lane.what[at]];
    const start = lane.from[at] - this.zero, parts = lane.parts[at] ?? [lane.to[at] - lane.from[at]];
    const when = `${start < 0 ? "−" : ""}${start ? time(Math.abs(start)) : "0 ns"}`;
    const lines = [label, `${time(lane.to[at] - lane.from[at])}, at ${when}`];
    if (more) lines.push(more);
    causes.forEach((cause, place) => lines.push(`${cause}: ${time(parts[place])}`));
    return lines.join("\n");
  }

  // The step that is looked at, or a part of it.
  step() {
    const middle = (this.view[0] + this.view[1]) / 2;
    const found = this.given.steps.find(([, , from, wall]) => from <= middle && middle < from + wall);
    return found && this.span <= 2 * found[3] ? found : null;
  }
  // What times are counted from: the step that is looked at, else what was loaded, else the run.
  origin() {
    if (this.given.together) return this.home[0];
    return this.step()?.[2] ?? (this.span <= 4 * (this.home[1] - this.home[0]) ? this.home[0] : 0);
  }

  say() {
    if (!this.where) return;
    this.point();
    const step = this.step(), from = this.view[0] - (step ? step[2] : 0);
    const name = step ? this.name(step) : "The run";
    this.where.textContent = `${name}: ${time(this.span)} of it, from ${from < 0 ? "−" : ""}${from ? time(Math.abs(from)) : "0 ns"}`;
    if (!step && this.span === this.ns) this.where.textContent = `The run: ${time(this.ns)}`;
    if (step && from === 0 && this.span === step[3]) this.where.textContent = `${name}: ${time(this.span)}${step[5] ? `; ${step[5]}` : ""}`;
  }
  // What to type for a piece of the run that the page does not have.
  point() {
    const elsewhere = this.box.querySelector(".elsewhere"), middle = (this.view[0] + this.view[1]) / 2;
    if (!elsewhere || !this.given.command) return;
    elsewhere.hidden = this.span > 0.5 * this.ns || this.given.windows.some(([from, to]) => from <= middle && middle <= to);
    const ends = this.view.map(at => Math.round(this.given.origin + at));
    elsewhere.querySelector("code").textContent = `${this.given.command} --from ${ends[0]} --to ${ends[1]} -o piece.html`;
  }

  name([number, phase]) { return number === null ? phase[0].toUpperCase() + phase.slice(1) : `Step ${number}${phase === "steady" ? "" : `, ${phase}`}`; }
}
