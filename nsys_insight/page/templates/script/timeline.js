// The timeline: events as numbers, drawn for the current view of the run.
const LEAST_NS = 40, TEXT_PX = 34, LETTER_PX = 6.3;
const data = JSON.parse(document.getElementById("data")?.textContent ?? "{}");

function decodeLane(lane) {
  let start = 0;
  const from = Float64Array.from(lane.at, offset => (start += offset));
  const to = Float64Array.from(from, (start, index) => start + lane.lasts[index]);
  // The running maximum of the ends: if it is before a time, all events up to this one have ended by then.
  let latest = -Infinity;
  const latestEnds = Float64Array.from(to, end => (latest = Math.max(latest, end)));
  let link = 0;
  const links = Float64Array.from(lane.links ?? [], offset => (link += offset));
  return { ...lane, from, to, latestEnds, links };
}

// The first index in sorted numbers whose value is above `limit`.
function firstAfter(values, limit) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] > limit) high = middle; else low = middle + 1;
  }
  return low;
}

class Timeline {
  constructor(box, timelineData) {
    Object.assign(this, { box, data: timelineData, things: timelineData.things, ns: timelineData.ns, lanes: timelineData.lanes.map(decodeLane) });
    this.svg = box.querySelector(".timeline");
    this.canvas = box.querySelector(".canvas");
    this.where = box.querySelector(".where");
    this.listeners = [];
    this.found = this.here = this.selection = null;
    this.home = timelineData.view ?? timelineData.first;
    this.view = [...(timelineData.view ?? timelineData.first)];
    this.zero = timelineData.first[0];
    this.height = Number(this.svg.getAttribute("height"));
    this.top = this.lanes[0]?.top ?? 0;
    this.waiting = false;
    this.linked = new Map();
    this.lanes.forEach((lane, index) => lane.links.forEach((link, at) => {
      const key = `${lane.process} ${link}`;
      this.linked.set(key, [...this.linked.get(key) ?? [], [index, at]]);
    }));
    new ResizeObserver(() => this.scheduleDraw()).observe(this.canvas);
  }

  get width() { return this.canvas.clientWidth || 800; }
  get span() { return this.view[1] - this.view[0]; }
  moment(x) { return this.view[0] + x / this.width * this.span; }

  // Set the view to a part of the run. It is at most as wide as the run.
  look(from, to) {
    this.moved = true;
    this.follow(from, to);
  }
  follow(from, to) {
    const span = between(to - from, LEAST_NS, this.ns);
    const start = between(from + (to - from - span) / 2, 0, this.ns - span);
    this.view = [start, start + span];
    this.scheduleDraw();
  }
  zoom(factor, around = (this.view[0] + this.view[1]) / 2) {
    this.look(around - (around - this.view[0]) * factor, around + (this.view[1] - around) * factor);
  }
  pan(ns) { this.look(this.view[0] + ns, this.view[1] + ns); }

  // Load a step or a gap. The button "Step" returns to it.
  load(from, to) {
    this.home = [from, to];
    this.here = null;
    this.look(from, to);
  }
  // Mark an event, and draw arrows to what launched it or what it launched.
  mark(lane, at) {
    this.here = [lane, at];
    say(this.tip(this.lanes[lane], at));
    this.scheduleDraw();
  }
  // Select a part of the time, for its totals. null ends the selection.
  select(selection) {
    this.selection = selection;
    const button = this.box.querySelector("[data-selection]");
    if (button) button.hidden = !selection;
    this.scheduleDraw();
  }
  isInView(lane, at) { return this.lanes[lane].to[at] >= this.view[0] && this.lanes[lane].from[at] <= this.view[1]; }
  // What the selection has: of each track the events in it, and their time, cut to the selection.
  totals() {
    const [from, to] = this.selection;
    return this.lanes.filter(lane => ["host", "gpu", "idle"].includes(lane.kind)).map(lane => {
      let ns = 0, number = 0;
      for (let at = firstAfter(lane.latestEnds, from); at < lane.from.length && lane.from[at] < to; at++) {
        const part = Math.min(lane.to[at], to) - Math.max(lane.from[at], from);
        if (part > 0) [ns, number] = [ns + part, number + 1];
      }
      return `${lane.name}: ${time(Math.round(ns))} in ${count(number, lane.kind === "idle" ? "gap" : lane.kind === "host" ? "call" : "operation")}`;
    });
  }
  listen(listener) { this.listeners.push(listener); }
  scheduleDraw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => { if (this.waiting) this.draw(); });
  }

  draw() {
    this.waiting = false;
    const picture = make("g");
    this.zero = this.origin();
    this.drawAxis(picture);
    this.drawHoles(picture);
    this.lanes.forEach((lane, index) => picture.append(this.drawLane(lane, index)));
    const over = make("g", { class: "over" });
    picture.append(over);
    this.drawSelection(over);
    this.drawArrows(over);
    this.svg.replaceChildren(picture);
    if (tipOwner && !tipOwner.isConnected) hide();
    this.describeView();
    for (const listener of this.listeners) listener(this);
  }

  percent(ns) { return `${((ns - this.view[0]) / this.span * 100).toFixed(4)}%`; }

  drawSelection(over) {
    if (!this.selection) return;
    const [from, to] = this.selection;
    over.append(make("rect", { class: "marking", x: this.percent(from), y: 0, width: `${((to - from) / this.span * 100).toFixed(4)}%`, height: "100%", "pointer-events": "none" }));
  }
  // From the end of a call to the start of each operation that it launched.
  drawArrows(over) {
    const lane = this.here && this.lanes[this.here[0]];
    if (!lane?.links.length) return;
    const linked = this.linked.get(`${lane.process} ${lane.links[this.here[1]]}`);
    const calls = linked.filter(([index]) => this.lanes[index].kind === "host");
    const operations = lane.kind === "host" ? linked.filter(([index]) => this.lanes[index].kind === "gpu") : [this.here];
    for (const [callLane, call] of calls) for (const [index, at] of operations.slice(0, 200)) {
      const source = this.lanes[callLane], target = this.lanes[index], x = this.percent(target.from[at]), y = target.top;
      over.append(make("line", { class: "arrow", x1: this.percent(source.to[call]), y1: source.top + source.height, x2: x, y2: y }));
      const head = make("svg", { x, y, overflow: "visible", width: 1, height: 1 });
      head.append(make("path", { class: "arrow-head", d: "M0 1L-4 -7L4 -7Z" }));
      over.append(head);
    }
  }

  drawAxis(picture) {
    const { zero } = this;
    const minInterval = this.span / Math.max(2, this.width / 110);
    const power = 10 ** Math.floor(Math.log10(minInterval));
    const interval = [1, 2, 5, 10].map(factor => factor * power).find(candidate => candidate >= minInterval);
    const tickNs = Math.max(1, interval);
    const [unit, divisor] = TIMES.find(([, least]) => tickNs >= least) ?? TIMES[3];
    for (let at = zero + Math.ceil((this.view[0] - zero) / tickNs) * tickNs; at < this.view[1]; at += tickNs) {
      const x = this.percent(at);
      picture.append(make("line", { class: "grid", x1: x, x2: x, y1: 16, y2: "100%" }));
      if ((at - this.view[0]) / this.span * this.width < this.width - 46)
        picture.append(make("text", { class: "tick", x, dx: 3, y: 12 }, at === zero ? "0" : `${grouped((at - zero) / divisor)} ${unit}`));
    }
  }

  // The parts of the run without events in this page.
  drawHoles(picture) {
    let before = 0;
    const windows = [...this.data.windows, [this.ns, this.ns]];
    for (const [from, to] of windows) {
      const [left, right] = [Math.max(before, this.view[0]), Math.min(from, this.view[1])];
      before = to;
      if (right <= left) continue;
      const x = this.percent(left), width = `${((right - left) / this.span * 100).toFixed(4)}%`;
      const hole = make("svg", { x, width, y: this.top, height: this.height - this.top, class: "hole" });
      hole.append(make("rect", { width: "100%", height: "100%" }));
      this.drawRough(hole, left, right);
      if (!this.data.rough && (right - left) / this.span * this.width > 150) hole.append(make("text", { x: "50%", y: "50%", "text-anchor": "middle" }, "not in this page"));
      picture.append(hole);
    }
  }

  // A part of the run at low detail: for each piece of time how busy the GPUs were, and mainly with what.
  drawRough(hole, left, right) {
    const rough = this.data.rough;
    if (!rough) return;
    const lane = this.lanes.find(({ kind }) => kind === "gpu") ?? this.lanes[0], top = lane.top - this.top;
    const first = Math.max(0, Math.floor((left - rough.from) / rough.each)), last = Math.min(rough.pct.length, Math.ceil((right - rough.from) / rough.each));
    // At most one bar for two pixels, so that a run of any length is quick to draw.
    const each = Math.max(1, Math.floor((last - first) / Math.max(1, (right - left) / this.span * this.width / 2)));
    for (let at = first; at < last; at += each) {
      const end = Math.min(at + each, last), buckets = [...Array(end - at).keys()].map(index => at + index);
      const share = buckets.reduce((sum, bucket) => sum + rough.pct[bucket], 0) / buckets.length;
      const operations = buckets.reduce((sum, bucket) => sum + rough.operations[bucket], 0);
      const main = buckets.find(bucket => rough.style[bucket]);
      const from = Math.max(left, rough.from + at * rough.each), to = Math.min(right, rough.from + end * rough.each);
      if (share <= 0 || to <= from) continue;
      hole.append(make("rect", {
        class: `mark rough ${main === undefined ? "busy" : rough.style[main]}`, x: `${((from - left) / (right - left) * 100).toFixed(4)}%`, width: `${((to - from) / (right - left) * 100).toFixed(4)}%`,
        y: top + lane.height * (1 - share / 100), height: lane.height * share / 100,
        "data-tip": `${time(Math.round(to - from))}: GPU busy ${share.toFixed(0)}%, ${count(operations, "operation")}\nlow detail: the events are not in this page`,
      }));
    }
  }

  // A lane. Events narrower than a pixel are drawn as one crowd with those that touch them.
  drawLane(lane, index) {
    const group = make("g", { class: `lane ${lane.kind}`, "data-lane": index });
    const scale = this.width / this.span, last = firstAfter(lane.from, this.view[1]);
    let small = null;
    const flushCrowd = () => {
      if (small) group.append(this.drawCrowd(lane, small));
      small = null;
    };
    for (let at = firstAfter(lane.latestEnds, this.view[0]); at < last; at++) {
      if (lane.to[at] < this.view[0]) continue;
      const x = (lane.from[at] - this.view[0]) * scale, wide = (lane.to[at] - lane.from[at]) * scale;
      if (wide >= 1.2) {
        flushCrowd();
        group.append(this.drawBar(lane, index, at, wide));
      } else if (small && x - small.end < 1) {
        small.end = Math.max(small.end, x + wide);
        small.indexes.push(at);
      } else {
        flushCrowd();
        small = { x, end: x + wide, indexes: [at] };
      }
    }
    flushCrowd();
    return group;
  }

  drawBar(lane, index, at, wide) {
    const [style, label, , kernel] = this.things[lane.what[at]];
    const left = Math.max(lane.from[at], this.view[0]), right = Math.min(lane.to[at], this.view[1]);
    const shown = (right - left) / this.span * this.width;
    const attributes = {
      x: this.percent(left), y: lane.top, width: `${Math.max((right - left) / this.span * 100, 0.01).toFixed(4)}%`, height: lane.height,
      "data-tip": this.tip(lane, at), "data-at": at, "data-kernel": kernel < 0 ? null : kernel,
    };
    const state = `mark${this.isFound(lane, at) ? " found" : ""}${this.here?.[0] === index && this.here[1] === at ? " here" : ""}`;
    if (lane.kind === "metric") {
      const height = Math.max(lane.height * parseFloat(label) / 100, 0.5);
      return make("rect", { ...attributes, y: lane.top + lane.height - height, height, class: `${state} metric` });
    }
    if (lane.kind === "idle" || shown < TEXT_PX) return make("rect", { ...attributes, class: `${state} ${style}` });
    const mark = make("svg", { ...attributes, class: state });
    mark.append(make("rect", { class: style, width: "100%", height: "100%" }));
    const room = Math.floor((shown - 8) / LETTER_PX);
    mark.append(make("text", { x: 4, y: lane.height / 2 + 4 }, label.length > room ? `${label.slice(0, room - 1)}…` : label));
    return mark;
  }

  // A crowd of events that are too narrow to draw. It has the style with the most time.
  drawCrowd(lane, { x, end, indexes }) {
    if (indexes.length === 1) return this.drawBar(lane, this.lanes.indexOf(lane), indexes[0], 1.2);
    const times = new Map();
    let busy = 0;
    for (const at of indexes) {
      const ns = lane.to[at] - lane.from[at], style = this.things[lane.what[at]][0];
      times.set(style, (times.get(style) ?? 0) + ns);
      busy += ns;
    }
    if (lane.kind === "metric") {
      const mean = indexes.reduce((sum, at) => sum + parseFloat(this.things[lane.what[at]][1]), 0) / indexes.length, height = Math.max(lane.height * mean / 100, 0.5);
      return make("rect", { class: "mark metric", x: `${(Math.max(x, 0) / this.width * 100).toFixed(4)}%`, width: `${(Math.max(end - Math.max(x, 0), 1) / this.width * 100).toFixed(4)}%`, y: lane.top + lane.height - height, height, "data-tip": `${lane.name}: mean ${mean.toFixed(1)}%` });
    }
    const [style] = [...times].reduce((longest, entry) => entry[1] > longest[1] ? entry : longest);
    const found = indexes.some(at => this.isFound(lane, at));
    return make("rect", {
      class: `mark crowd ${style}${found ? " found" : ""}`, x: `${(Math.max(x, 0) / this.width * 100).toFixed(4)}%`, y: lane.top,
      width: `${(Math.max(end - Math.max(x, 0), 1) / this.width * 100).toFixed(4)}%`, height: lane.height,
      // The opacity is the busy share, so that a few short kernels do not look like a busy GPU.
      "fill-opacity": between(busy * this.width / this.span / Math.max(end - x, 1), 0.22, 1).toFixed(2),
      "data-tip": `${count(indexes.length, lane.kind === "idle" ? "gap" : lane.kind === "host" ? "call" : lane.kind === "nvtx" ? "range" : "operation")}\n${time(busy)} in total; zoom in to see each`,
      "data-from": lane.from[indexes[0]], "data-to": lane.to[indexes.at(-1)],
    });
  }

  isFound(lane, at) { return this.found !== null && this.found.has(lane.what[at]); }

  tip(lane, at) {
    const [, label, more, , ...causes] = this.things[lane.what[at]];
    const start = lane.from[at] - this.zero, parts = lane.parts[at] ?? [lane.to[at] - lane.from[at]];
    const when = `${start < 0 ? "−" : ""}${start ? time(Math.abs(start)) : "0 ns"}`;
    const lines = [label, `${time(lane.to[at] - lane.from[at])}, at ${when}`];
    if (more) lines.push(more);
    causes.forEach((cause, index) => lines.push(`${cause}: ${time(parts[index])}`));
    return lines.join("\n");
  }

  // The step in the view, fully or in part.
  step() {
    const middle = (this.view[0] + this.view[1]) / 2;
    const found = this.data.steps.find(([, , from, wall]) => from <= middle && middle < from + wall);
    return found && this.span <= 2 * found[3] ? found : null;
  }
  // The origin of times: the step in the view, else the loaded step or gap, else the run.
  origin() {
    if (this.data.together) return this.home[0];
    return this.step()?.[2] ?? (this.span <= 4 * (this.home[1] - this.home[0]) ? this.home[0] : 0);
  }

  describeView() {
    if (!this.where) return;
    this.showCommand();
    if (this.selection) {
      this.where.textContent = `Selected ${time(Math.round(this.selection[1] - this.selection[0]))}. ${this.totals().join("; ")}`;
      return;
    }
    const step = this.step(), from = this.view[0] - (step ? step[2] : 0);
    const name = step ? this.name(step) : "The run";
    this.where.textContent = `${name}: ${time(this.span)} of it, from ${from < 0 ? "−" : ""}${from ? time(Math.abs(from)) : "0 ns"}`;
    if (!step && this.span === this.ns) this.where.textContent = `The run: ${time(this.ns)}`;
    if (step && from === 0 && this.span === step[3]) this.where.textContent = `${name}: ${time(this.span)}${step[5] ? `; ${step[5]}` : ""}`;
  }
  // The command for a page of a part of the run that this page does not have.
  showCommand() {
    const elsewhere = this.box.querySelector(".elsewhere"), middle = (this.view[0] + this.view[1]) / 2;
    if (!elsewhere || !this.data.command) return;
    elsewhere.hidden = this.span > 0.5 * this.ns || this.data.windows.some(([from, to]) => from <= middle && middle <= to);
    const ends = this.view.map(at => Math.round(this.data.origin + at)), step = this.step();
    const part = step && step[0] !== null ? `--step ${step[0]}` : `--from ${ends[0]} --to ${ends[1]}`;
    elsewhere.querySelector("code").textContent = `${this.data.command} ${part} -o piece.html`;
  }

  name([number, phase]) { return number === null ? phase[0].toUpperCase() + phase.slice(1) : `Step ${number}${phase === "steady" ? "" : `, ${phase}`}`; }
}
