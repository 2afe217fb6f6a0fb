"use strict";
// Tables sort and filter, what has more to say says it, the timeline is walked and zoomed. No library, nothing is loaded.
document.documentElement.classList.add("js");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];

// Sort by a column: numbers by value with the largest first, texts by the alphabet; what is unknown stays last.
function sort(head) {
  const table = head.closest("table"), body = table.tBodies[0], at = head.cellIndex;
  const cells = [...body.rows].map(row => row.cells[at]);
  const numeric = cells.some(cell => cell.dataset.v !== undefined);
  const before = head.getAttribute("aria-sort");
  const up = before ? before === "descending" : !numeric;
  const key = cell => numeric ? (cell.dataset.v ? Number(cell.dataset.v) : null) : cell.textContent.trim().toLowerCase();
  const order = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * (up ? 1 : -1);
  const keyed = [...body.rows].map((row, place) => [key(row.cells[at]), place, row]);
  keyed.sort((a, b) => order(a[0], b[0]) || a[1] - b[1]);
  body.append(...keyed.map(one => one[2]));
  all("th", table).forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", up ? "ascending" : "descending");
}
all("th button").forEach(button => button.addEventListener("click", () => sort(button.closest("th"))));

all(".table").forEach(box => {
  const rows = all("tbody tr", box), output = box.querySelector("output");
  const search = box.querySelector('input[type="search"]'), wide = box.querySelector(".all");
  if (search) search.addEventListener("input", () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every(word => text.includes(word));
      shown += !row.hidden;
    }
    output.textContent = words.length ? `${shown} of ${rows.length} rows` : "";
  });
  if (wide) wide.addEventListener("change", () => box.classList.toggle("wide", wide.checked));
});

// Tooltips, for the pointer and for the keyboard.
const tip = document.getElementById("tip"), said = document.getElementById("said");
let about = null;
function show(target) {
  about = target;
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  place();
}
function place() {
  if (!about) return;
  const at = about.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = Math.min(Math.max(at.left + Math.min(at.width, innerWidth) / 2 - size.width / 2, 6), innerWidth - size.width - 6);
  const above = at.top - size.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${above > 4 ? above : Math.min(at.bottom + 8, innerHeight - size.height - 4)}px`;
}
const hide = () => { tip.hidden = true; about = null; };
const talking = event => event.target instanceof Element ? event.target.closest("[data-tip]") : null;
document.addEventListener("pointerover", event => { const target = talking(event); if (target) show(target); else hide(); });
document.addEventListener("focusin", event => { const target = talking(event); if (target && target.matches(":focus-visible")) show(target); });
document.addEventListener("focusout", hide);
document.addEventListener("scroll", place, true);
document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });

// The timeline: left and right along a lane, up and down to what is there at the same time, + and - zoom.
all(".strip").forEach(strip => {
  const scroll = strip.querySelector(".scroll"), picture = strip.querySelector(".timeline");
  const lanes = all(".lane", picture).map(lane => [...lane.children]);
  const start = mark => parseFloat(mark.getAttribute("x")), end = mark => start(mark) + parseFloat(mark.getAttribute("width"));
  let zoom = 1, lane = Math.max(0, lanes.length - 2), at = -1;
  function zoomTo(wanted, around) {
    const middle = around ?? (scroll.scrollLeft + scroll.clientWidth / 2) / picture.clientWidth;
    zoom = Math.min(Math.max(wanted, 1), 64);
    picture.setAttribute("width", `${100 * zoom}%`);
    scroll.scrollLeft = middle * picture.clientWidth - scroll.clientWidth / 2;
  }
  function go(nextLane, next) {
    const mark = lanes[nextLane]?.[next];
    if (!mark) return;
    all(".here", picture).forEach(other => other.classList.remove("here"));
    [lane, at] = [nextLane, next];
    mark.classList.add("here");
    const x = (start(mark) + end(mark)) / 200 * picture.clientWidth;
    if (x < scroll.scrollLeft || x > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = x - scroll.clientWidth / 2;
    requestAnimationFrame(() => requestAnimationFrame(() => show(mark)));
    said.textContent = mark.dataset.tip;
  }
  function across(by) {
    const now = lanes[lane]?.[at];
    for (let other = lane + by; lanes[other]; other += by) {
      if (!lanes[other].length) continue;
      const middle = now ? (start(now) + end(now)) / 2 : 0;
      const near = lanes[other].map((mark, place) => [Math.max(start(mark) - middle, middle - end(mark), 0), place]);
      return go(other, near.reduce((best, one) => one[0] < best[0] ? one : best)[1]);
    }
  }
  const keys = {
    ArrowRight: () => go(lane, Math.min(at + 1, lanes[lane].length - 1)), ArrowLeft: () => go(lane, Math.max(at - 1, 0)),
    Home: () => go(lane, 0), End: () => go(lane, lanes[lane].length - 1),
    ArrowDown: () => across(1), ArrowUp: () => across(-1),
    "+": () => zoomTo(2 * zoom), "=": () => zoomTo(2 * zoom), "-": () => zoomTo(zoom / 2), "0": () => zoomTo(1),
  };
  scroll.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  all("[data-zoom]", strip).forEach(button => button.addEventListener("click", () =>
    zoomTo(Number(button.dataset.zoom) ? zoom * Number(button.dataset.zoom) : 1)));
});

// A link to a report unfolds it; paper shows everything.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", unfold);
unfold();
let folded = [];
addEventListener("beforeprint", () => { folded = all("details.report:not([open])"); folded.forEach(one => { one.open = true; }); });
addEventListener("afterprint", () => { folded.forEach(one => { one.open = false; }); folded = []; });
