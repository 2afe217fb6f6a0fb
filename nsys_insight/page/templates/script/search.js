// Search in a timeline: mark the events whose names have all words. Enter goes to the next one in time, Shift+Enter back.
function search(line) {
  const input = line.box.querySelector(".find"), output = line.box.querySelector(".found-count");
  if (!input) return;
  let matches = [], current = -1;
  // Mark the events of these descriptions, as a search does.
  line.find = things => {
    input.value = "";
    mark(things);
    next(1);
  };
  function seek() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    mark(words.length ? new Set(line.things.flatMap(([style, label, more], index) => {
      const text = `${label} ${more}`.toLowerCase();
      return label !== "idle" && words.every(word => text.includes(word)) ? [index] : [];
    })) : null);
  }
  function mark(things) {
    current = -1;
    matches = [];
    line.found = things;
    if (line.found) {
      line.lanes.forEach((lane, number) => lane.what.forEach((thing, index) => { if (line.found.has(thing)) matches.push([lane.from[index], number, index]); }));
      matches.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    }
    line.svg.classList.toggle("searching", line.found !== null);
    output.textContent = line.found ? (matches.length ? `${grouped(matches.length)} found` : "nothing found") : "";
    line.scheduleDraw();
  }
  function next(by) {
    if (!matches.length) return;
    if (current < 0) {
      const first = matches.findIndex(([from]) => from >= line.view[0]);
      current = by > 0 ? (first < 0 ? 0 : first) : ((first < 0 ? 0 : first) - 1 + matches.length) % matches.length;
    } else current = (current + by + matches.length) % matches.length;
    const [from, number, index] = matches[current], lane = line.lanes[number], wide = lane.to[index] - from;
    line.here = [number, index];
    // Zoom so that the name fits and the surroundings are visible.
    const span = Math.min(Math.max(wide * 8, LEAST_NS), Math.max(line.span, wide * 2));
    const middle = from + wide / 2;
    if (from < line.view[0] || lane.to[index] > line.view[1] || wide / line.span * line.width < 8) line.look(middle - span / 2, middle + span / 2);
    line.scheduleDraw();
    output.textContent = `${grouped(current + 1)} of ${grouped(matches.length)}`;
    say(line.tip(lane, index));
  }
  input.addEventListener("input", seek);
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape" && line.found) { input.value = ""; seek(); }
  });
}
