// The keyboard on a timeline: left and right along a lane, up and down to another lane at the same time, + and - zoom.
function walk(line) {
  const lanes = line.lanes;
  let lane = Math.max(0, lanes.length - 2), at = -1;
  function go(nextLane, next) {
    if (!(next >= 0 && next < (lanes[nextLane]?.from.length ?? 0))) return;
    [lane, at] = [nextLane, next];
    line.here = [lane, at];
    const [from, to] = [lanes[lane].from[at], lanes[lane].to[at]];
    if (to < line.view[0] || from > line.view[1]) line.look((from + to - line.span) / 2, (from + to + line.span) / 2);
    line.draw();
    const mark = line.svg.querySelector(".here");
    if (mark) show(mark);
    say(line.tip(lanes[lane], at));
  }
  // Start at the marked event, or at the start of the view.
  function chooseStart() {
    // Search and clicks mark events, too. A marked event that is out of view is no place to go on from.
    if (line.here && !line.isInView(...line.here)) line.here = null;
    if (line.here) [lane, at] = line.here;
    else at = firstAfter(lanes[lane].latestEnds, line.view[0]) - 1;
  }
  function moveAcross(by) {
    chooseStart();
    const current = lanes[lane], middle = line.here ? (current.from[at] + current.to[at]) / 2 : line.view[0];
    for (let other = lane + by; lanes[other]; other += by) {
      const { from, to } = lanes[other];
      if (!from.length) continue;
      const near = between(firstAfter(from, middle) - 1, 0, from.length - 1);
      const next = Math.min(near + 1, from.length - 1);
      return go(other, to[near] >= middle || middle - to[near] <= from[next] - middle ? near : next);
    }
  }
  const visibleRange = () => [firstAfter(lanes[lane].latestEnds, line.view[0]), firstAfter(lanes[lane].from, line.view[1]) - 1];
  const keys = {
    ArrowRight: () => { chooseStart(); go(lane, Math.min(at + 1, lanes[lane].from.length - 1)); },
    ArrowLeft: () => { chooseStart(); go(lane, Math.max(at - 1, 0)); },
    Home: () => go(lane, Math.min(visibleRange()[0], lanes[lane].from.length - 1)), End: () => go(lane, visibleRange()[1]),
    ArrowDown: () => moveAcross(1), ArrowUp: () => moveAcross(-1),
    "+": () => line.zoom(0.5), "=": () => line.zoom(0.5), "-": () => line.zoom(2), "0": () => line.look(...line.home),
    w: () => line.zoom(0.5), s: () => line.zoom(2), a: () => line.pan(-line.span / 4), d: () => line.pan(line.span / 4),
    Escape: () => line.select(null),
    Enter: () => line.svg.querySelector(".here")?.dispatchEvent(new MouseEvent("click", { bubbles: true })),
  };
  line.canvas.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !lanes.length) return;
    if (event.key !== "Escape") event.preventDefault();
    keys[event.key]();
  });
  all("[data-zoom]", line.box).forEach(button => button.addEventListener("click", () => line.zoom(Number(button.dataset.zoom))));
  line.box.querySelector("[data-whole]")?.addEventListener("click", () => line.look(...line.home));
  line.box.querySelector("[data-run]")?.addEventListener("click", () => line.look(0, line.ns));
}
