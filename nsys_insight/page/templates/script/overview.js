// The whole run above a timeline: how busy the GPUs were, the steps, the longest gaps, and what is looked at. A click loads.
const BUSY = [14, 30], ROW = [47, 15];

function overview(line) {
  const svg = line.box.querySelector(".overview");
  if (!svg) return;
  const { steps, gaps, busy, ns } = line.given, percent = at => `${(at / ns * 100).toFixed(4)}%`;
  const wide = (from, to) => `${Math.max((to - from) / ns * 100, 0.05).toFixed(4)}%`;
  const stops = steps.map(([, , from, wall]) => [from, from + wall]);
  let now = stops.findIndex(([from]) => from === line.given.first[0]);

  if (busy) busy.pct.forEach((share, place) => {
    if (share > 0) svg.append(make("rect", {
      class: "busy", x: percent(busy.from + place * busy.each), width: wide(0, busy.each),
      y: BUSY[0] + BUSY[1] * (1 - share / 100), height: BUSY[1] * share / 100,
    }));
  });
  steps.forEach((step, place) => {
    const [, phase, from, wall, used, odd] = step, name = line.name(step);
    const mark = make("g", {
      class: `mark a-step ${phase === "steady" ? "steady" : "unsteady"}${odd ? " outlier" : ""}${steps.length > 150 ? " thin" : ""}`, "data-step": place,
      "data-tip": `${name}: ${time(wall)}\nGPU busy ${time(used)}${odd ? `\n${odd}` : ""}`,
    });
    mark.append(make("rect", { x: percent(from), width: wide(from, from + wall), y: ROW[0], height: ROW[1] }));
    if (odd) mark.append(make("text", { class: "odd", x: percent(from + wall / 2), y: 11 }, "▼"));
    svg.append(mark);
  });
  gaps.forEach(([from, to, cause], place) => {
    const mark = make("g", { class: "mark a-gap", "data-gap": place, "data-tip": `Gap ${place + 1} of the longest: ${time(to - from)}\nmainly ${cause}, at ${time(from)}` });
    mark.append(make("rect", { class: cause, x: percent(from), width: wide(from, to), y: BUSY[0], height: BUSY[1] }));
    mark.append(make("text", { class: "odd", x: percent((from + to) / 2), y: 73 }, "▲"));
    svg.append(mark);
  });
  const shown = make("rect", { class: "shown", y: 1, height: ROW[0] + ROW[1] + 1 });
  svg.append(shown);
  line.listen(() => {
    shown.setAttribute("x", percent(line.view[0]));
    shown.setAttribute("width", `${Math.max(line.span / ns * 100, 0.15).toFixed(4)}%`);
  });

  function load(place) {
    now = between(place, 0, stops.length - 1);
    const step = steps[now];
    line.load(...stops[now]);
    const text = `${line.name(step)}: ${time(step[3])}, GPU busy ${time(step[4])}`;
    svg.setAttribute("aria-valuenow", now + 1);
    svg.setAttribute("aria-valuetext", text);
    say(text);
  }
  function gap(place) {
    const [from, to] = gaps[place], around = (to - from) / 4;
    line.load(from, to);
    line.look(from - around, to + around);
    say(`Gap of ${time(to - from)}, mainly ${gaps[place][2]}`);
  }
  const moment = event => between((event.clientX - svg.getBoundingClientRect().left) / svg.clientWidth, 0, 1) * ns;
  svg.addEventListener("click", event => {
    const marked = event.target.closest("[data-gap]");
    if (marked) return gap(Number(marked.dataset.gap));
    const at = moment(event);
    if (!stops.length) return line.look(at - line.span / 2, at + line.span / 2);
    const apart = ([from, to]) => Math.max(from - at, at - to, 0);
    load(stops.reduce((best, stop, place) => apart(stop) < apart(stops[best]) ? place : best, 0));
  });
  let at = -1;
  const keys = {
    ArrowRight: () => load(now + 1), ArrowLeft: () => load(now - 1), ArrowUp: () => load(now + 1), ArrowDown: () => load(now - 1),
    PageDown: () => load(now + 10), PageUp: () => load(now - 10), Home: () => load(0), End: () => load(stops.length - 1),
  };
  svg.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "g" && gaps.length) gap(at = (at + 1) % gaps.length);
    else if (keys[event.key] && stops.length) keys[event.key]();
    else return;
    event.preventDefault();
  });
  all("[data-step-by]", line.box).forEach(button => button.addEventListener("click", () => load(now + Number(button.dataset.stepBy))));
}
