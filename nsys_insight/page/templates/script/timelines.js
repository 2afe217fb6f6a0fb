// Every timeline of the page, with what can be done to it.
const lines = all(".strip[data-line]").map(box => new Timeline(box, data.lines[Number(box.dataset.line)]));
for (const line of lines) {
  gestures(line);
  walk(line);
  search(line);
  overview(line);
  perfetto(line);
  line.draw();
}

// Two runs beside each other move together: the same piece of a step of both.
if (lines.length === 2 && lines[0].given.together) {
  const apart = line => line.view.map(at => at - line.home[0]);
  lines.forEach((line, place) => {
    const other = lines[1 - place];
    line.listen(() => {
      if (!line.moved) return;
      line.moved = false;
      const [from, to] = apart(line);
      other.follow(other.home[0] + from, other.home[0] + to);
    });
  });
}
