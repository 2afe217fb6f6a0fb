// The overview of the run above a timeline: GPU busy share, steps, the longest gaps, and the current view. A click loads.
const BUSY = [14, 30], ROW = [47, 15];

function overview(line) {
  const svg = line.box.querySelector(".overview");
  if (!svg) return;
  const { steps, gaps, busy, ns } = line.data, percent = at => `${(at / ns * 100).toFixed(4)}%`;
  const widthOf = (from, to) => `${Math.max((to - from) / ns * 100, 0.05).toFixed(4)}%`;
  const stops = steps.map(([, , from, wall]) => [from, from + wall]);
  let current = stops.findIndex(([from]) => from === line.data.first[0]);

  if (busy) busy.pct.forEach((share, index) => {
    if (share > 0) svg.append(make("rect", {
      class: "busy", x: percent(busy.from + index * busy.each), width: widthOf(0, busy.each),
      y: BUSY[0] + BUSY[1] * (1 - share / 100), height: BUSY[1] * share / 100,
    }));
  });
  steps.forEach((step, index) => {
    const [, phase, from, wall, busyNs, reason] = step, name = line.name(step);
    const mark = make("g", {
      class: `mark a-step ${phase === "steady" ? "steady" : "unsteady"}${reason ? " outlier" : ""}${steps.length > 150 ? " thin" : ""}`, "data-step": index,
      "data-tip": `${name}: ${time(wall)}\nGPU busy ${time(busyNs)}${reason ? `\n${reason}` : ""}`,
    });
    mark.append(make("rect", { x: percent(from), width: widthOf(from, from + wall), y: ROW[0], height: ROW[1] }));
    if (reason) mark.append(make("text", { class: "odd", x: percent(from + wall / 2), y: 11 }, "▼"));
    svg.append(mark);
  });
  gaps.forEach(([from, to, cause, style], index) => {
    const mark = make("g", { class: "mark a-gap", "data-gap": index, "data-tip": `Gap ${index + 1} of the longest: ${time(to - from)}\nmainly ${cause}, at ${time(from)}` });
    mark.append(make("rect", { class: style, x: percent(from), width: widthOf(from, to), y: BUSY[0], height: BUSY[1] }));
    mark.append(make("text", { class: "odd", x: percent((from + to) / 2), y: 73 }, "▲"));
    svg.append(mark);
  });
  const shown = make("rect", { class: "shown", y: 1, height: ROW[0] + ROW[1] + 1 });
  svg.append(shown);
  line.listen(() => {
    shown.setAttribute("x", percent(line.view[0]));
    shown.setAttribute("width", `${Math.max(line.span / ns * 100, 0.15).toFixed(4)}%`);
  });

  function load(index) {
    current = between(index, 0, stops.length - 1);
    const step = steps[current];
    line.load(...stops[current]);
    const text = `${line.name(step)}: ${time(step[3])}, GPU busy ${time(step[4])}`;
    svg.setAttribute("aria-valuenow", current + 1);
    svg.setAttribute("aria-valuetext", text);
    say(text);
  }
  function showGap(index) {
    const [from, to] = gaps[index], margin = (to - from) / 4;
    line.load(from, to);
    line.look(from - margin, to + margin);
    say(`Gap of ${time(to - from)}, mainly ${gaps[index][2]}`);
  }
  const moment = event => between((event.clientX - svg.getBoundingClientRect().left) / svg.clientWidth, 0, 1) * ns;
  svg.addEventListener("click", event => {
    const marked = event.target.closest("[data-gap]");
    if (marked) return showGap(Number(marked.dataset.gap));
    const at = moment(event);
    if (!stops.length) return line.look(at - line.span / 2, at + line.span / 2);
    const distance = ([from, to]) => Math.max(from - at, at - to, 0);
    load(stops.reduce((best, stop, index) => distance(stop) < distance(stops[best]) ? index : best, 0));
  });
  let gapIndex = -1;
  const keys = {
    ArrowRight: () => load(current + 1), ArrowLeft: () => load(current - 1), ArrowUp: () => load(current + 1), ArrowDown: () => load(current - 1),
    PageDown: () => load(current + 10), PageUp: () => load(current - 10), Home: () => load(0), End: () => load(stops.length - 1),
  };
  svg.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "g" && gaps.length) showGap(gapIndex = (gapIndex + 1) % gaps.length);
    else if (keys[event.key] && stops.length) keys[event.key]();
    else return;
    event.preventDefault();
  });
  all("[data-window]", line.box).forEach(button => button.addEventListener("click", () => {
    const [from, to] = button.dataset.window.split(" ").map(Number);
    line.load(from, to);
    say(`${button.textContent}: an iteration of ${time(to - from)}`);
  }));
  const zoomButton = line.box.querySelector("[data-selection]");
  zoomButton?.addEventListener("click", () => { line.look(...line.selection); line.select(null); });
  all("[data-step-by]", line.box).forEach(button => button.addEventListener("click", () => load(current + Number(button.dataset.stepBy))));
}
