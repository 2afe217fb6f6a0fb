// A link to a part of the run: #t=FROM-TO, in ns of the trace. It follows the view, and opening it shows the part.
function moments(line) {
  const { origin } = line.data;
  let timer = 0;
  function open() {
    const found = /^#t=(\d+)-(\d+)$/.exec(location.hash);
    if (!found) return;
    line.look(Number(found[1]) - origin, Number(found[2]) - origin);
    line.moved = false;
    line.box.scrollIntoView();
  }
  line.listen(() => {
    if (!line.moved) return;
    line.moved = false;
    clearTimeout(timer);
    timer = setTimeout(() => history.replaceState(null, "", `#t=${line.view.map(at => Math.round(origin + at)).join("-")}`), 300);
  });
  addEventListener("hashchange", open);
  open();
}
// A finding whose place is in the timeline: a button marks the events there.
function places(line) {
  const words = place => place.split(/, |\/| \[/).map(word => word.trim().toLowerCase()).filter(Boolean);
  all("[data-place]").forEach(button => {
    const names = words(button.dataset.place), things = line.things.flatMap(([, label], index) => names.includes(label.toLowerCase()) ? [index] : []);
    if (!things.length) return;
    button.hidden = false;
    button.addEventListener("click", () => {
      line.box.scrollIntoView();
      line.find(new Set(things));
    });
  });
}
