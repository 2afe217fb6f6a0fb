// Search in a timeline: what has all the words in its name is marked; Enter goes to the next one in time, Shift and Enter back.
function search(line) {
  const input = line.box.querySelector(".find"), output = line.box.querySelector(".found-count");
  if (!input) return;
  let places = [], at = -1;
  function seek() {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    at = -1;
    places = [];
    line.found = words.length ? new Set(line.things.flatMap(([look, label, more], place) => {
      const text = `${label} ${more}`.toLowerCase();
      return label !== "idle" && words.every(word => text.includes(word)) ? [place] : [];
    })) : null;
    if (line.found) {
      line.lanes.forEach((lane, number) => lane.what.forEach((thing, place) => { if (line.found.has(thing)) places.push([lane.from[place], number, place]); }));
      places.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
    }
    line.svg.classList.toggle("searching", line.found !== null);
    output.textContent = line.found ? (places.length ? `${grouped(places.length)} found` : "nothing found") : "";
    line.later();
  }
  function next(by) {
    if (!places.length) return;
    if (at < 0) {
      const first = places.findIndex(([from]) => from >= line.view[0]);
      at = by > 0 ? (first < 0 ? 0 : first) : ((first < 0 ? 0 : first) - 1 + places.length) % places.length;
    } else at = (at + by + places.length) % places.length;
    const [from, number, place] = places[at], lane = line.lanes[number], wide = lane.to[place] - from;
    line.here = [number, place];
    // So near that the name has room, and what is around it is seen.
    const span = Math.min(Math.max(wide * 8, LEAST_NS), Math.max(line.span, wide * 2));
    const middle = from + wide / 2;
    if (from < line.view[0] || lane.to[place] > line.view[1] || wide / line.span * line.width < 8) line.look(middle - span / 2, middle + span / 2);
    line.later();
    output.textContent = `${grouped(at + 1)} of ${grouped(places.length)}`;
    say(line.tip(lane, place));
  }
  input.addEventListener("input", seek);
  input.addEventListener("keydown", event => {
    if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape" && input.value) { input.value = ""; seek(); }
  });
}
