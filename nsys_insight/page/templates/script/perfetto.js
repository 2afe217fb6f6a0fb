// The current view as a file for Perfetto: the trace event format, with times of the trace in µs.
function traceEvents(line) {
  const { origin, steps } = line.data, events = [];
  const addName = (pid, tid, what, name) => events.push({ ph: "M", pid, tid, name: what, args: { name } });
  addName(1, 0, "process_name", "Host");
  addName(2, 0, "process_name", "GPU");
  let thread = 0;
  line.lanes.forEach(lane => {
    const pid = lane.kind === "nvtx" || lane.kind === "host" ? 1 : 2;
    // Nested ranges are on the same Perfetto thread as the outer ranges.
    if (lane.name) addName(pid, ++thread, "thread_name", lane.name);
    for (let at = firstAfter(lane.latestEnds, line.view[0]); at < lane.from.length && lane.from[at] < line.view[1]; at++) {
      if (lane.to[at] < line.view[0]) continue;
      const [style, label, more, , ...causes] = line.things[lane.what[at]];
      if (lane.kind === "metric") {
        events.push({ ph: "C", pid, name: lane.name, ts: (origin + lane.from[at]) / 1000, args: { percent: parseFloat(label) } });
        continue;
      }
      const args = more ? { about: more } : causes.length ? { causes: causes.join("; ") } : {};
      const name = lane.kind === "idle" ? `idle: ${style}` : label;
      events.push({ ph: "X", pid, tid: thread, cat: lane.kind, name, ts: (origin + lane.from[at]) / 1000, dur: (lane.to[at] - lane.from[at]) / 1000, args });
    }
  });
  addName(1, ++thread, "thread_name", "steps");
  for (const step of steps) {
    const [, phase, from, wall] = step;
    if (from < line.view[1] && from + wall > line.view[0]) events.push({ ph: "X", pid: 1, tid: thread, cat: "step", name: line.name(step), ts: (origin + from) / 1000, dur: wall / 1000, args: { phase } });
  }
  return { displayTimeUnit: "ns", traceEvents: events };
}
function perfetto(line) {
  const button = line.box.querySelector("[data-perfetto]");
  button?.addEventListener("click", () => {
    const step = line.step(), name = `${line.data.file}-${step ? line.name(step).toLowerCase().replace(/\W+/g, "-") : "timeline"}.json`;
    const link = element("a", { download: name });
    link.href = URL.createObjectURL(new Blob([JSON.stringify(traceEvents(line))], { type: "application/json" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    line.where.textContent = `${name} is saved: open ui.perfetto.dev and drag it there. Nothing was sent anywhere.`;
    say(line.where.textContent);
  });
}
