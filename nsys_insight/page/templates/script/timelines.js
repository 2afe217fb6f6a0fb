// All timelines of the page, with their controls.
const lines = all(".strip[data-line]").map(box => new Timeline(box, data.lines[Number(box.dataset.line)]));
for (const line of lines) {
  gestures(line);
  walk(line);
  search(line);
  overview(line);
  perfetto(line);
  line.draw();
}
if (lines.length === 1) {
  moments(lines[0]);
  places(lines[0]);
}

// The timelines of two runs move together: both show the same part of a step.
if (lines.length === 2 && lines[0].data.together) {
  const relativeView = line => line.view.map(at => at - line.home[0]);
  lines.forEach((line, index) => {
    const other = lines[1 - index];
    line.listen(() => {
      if (!line.moved) return;
      line.moved = false;
      const [from, to] = relativeView(line);
      other.follow(other.home[0] + from, other.home[0] + to);
    });
  });
}
