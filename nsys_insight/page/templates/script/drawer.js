// The drawer of a kernel: its durations, launch shapes, callers, and bounds.
const drawer = document.getElementById("drawer");
const TABLES = {
  shapes: ["Launch shapes, by time", ["grid", "block", "launches", "mean", "registers", "shared", "occupancy", "waves"]],
  places: ["Call sites (median step)", ["place", "launches", "time"]],
  bound: ["What bounds it", ["grid", "block", "bound", "confidence", "evidence", "reason"]],
  ncu: ["What Nsight Compute measured", ["grid", "block", "bound", "ceiling", "used", "recoverable", "rule", "saving", "match"]],
};
let opener = null;

function histogram({ bins, least, most }) {
  const svg = make("svg", { width: "100%", height: 92, class: "histogram", role: "img", "aria-label": `Durations from ${time(least)} to ${time(most)}` });
  const largest = Math.max(...bins.map(([, calls]) => calls)), number = most > least ? 24 : 1, ratio = Math.max(most, 1) / Math.max(least, 1);
  for (const [bin, calls] of bins) {
    const from = Math.max(least, 1) * ratio ** (bin / number), to = Math.max(least, 1) * ratio ** ((bin + 1) / number), height = Math.max(70 * calls / largest, 1.5);
    svg.append(make("rect", { class: "mark busy", x: `${100 * bin / number}%`, width: `${96 / number}%`, y: 72 - height, height, "data-tip": `${count(calls, "launch", "launches")}\n${number > 1 ? `${time(Math.round(from))} to ${time(Math.round(to))}` : time(least)}` }));
  }
  svg.append(make("text", { x: 0, y: 88 }, time(least)));
  if (most > least) svg.append(make("text", { x: "100%", y: 88, "text-anchor": "end" }, time(most)));
  return svg;
}
function stepChart(steps) {
  const svg = make("svg", { width: "100%", height: 92, class: "histogram", role: "img", "aria-label": `Its time in steps ${steps[0][0]} to ${steps.at(-1)[1]}` });
  const most = Math.max(...steps.map(([, , ns]) => ns), 1), first = steps[0][0], all = steps.at(-1)[1] - first + 1;
  for (const [step, last, ns, calls] of steps) {
    const height = Math.max(70 * ns / most, 0.5);
    svg.append(make("rect", { class: "mark busy", x: `${100 * (step - first) / all}%`, width: `${Math.max(92 * (last - step + 1) / all, 0.2)}%`, y: 72 - height, height, "data-tip": `Step ${step}${last > step ? ` to ${last}, mean` : ""}: ${time(Math.round(ns))}\n${grouped(calls, Number.isInteger(calls) ? 0 : 1)} launches` }));
  }
  svg.append(make("text", { x: 0, y: 88 }, `step ${first}`), make("text", { x: "100%", y: 88, "text-anchor": "end" }, `step ${steps.at(-1)[1]}; max ${time(Math.round(most))}`));
  return svg;
}
function table([title, heads], rows) {
  const grid = element("table"), head = element("tr"), body = element("tbody"), top = element("thead");
  heads.forEach(text => head.append(element("th", { scope: "col" }, text)));
  for (const row of rows) {
    const line = element("tr");
    row.forEach(text => line.append(element("td", String(text).length > 30 ? { class: "long" } : {}, String(text))));
    body.append(line);
  }
  top.append(head);
  grid.append(top, body);
  const box = element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": title });
  box.append(grid);
  return [element("h3", {}, title), box];
}
function showCard(index) {
  const card = data.cards[index], body = drawer.querySelector(".card");
  drawer.querySelector("select").value = index;
  const facts = element("dl");
  card.facts.forEach(([label, text]) => facts.append(element("dt", {}, label), element("dd", {}, text)));
  body.replaceChildren(element("p", { class: "whole" }), facts, element("h3", {}, "Durations, on a logarithmic scale"), histogram(card));
  body.firstChild.append(element("code", {}, card.whole));
  if (card.steps.length > 1) body.append(element("h3", {}, "Time in each steady step"), stepChart(card.steps));
  for (const [part, heads] of Object.entries(TABLES)) if (card[part].length) body.append(...table(heads, card[part]));
  drawer.scrollTop = 0;
}
function openDrawer(index, origin) {
  opener = origin;
  if (drawer.hidden) document.body.classList.add("drawn");
  drawer.hidden = false;
  showCard(index);
  hide();
  drawer.querySelector(".close").focus();
}
function closeDrawer() {
  if (drawer.hidden) return;
  drawer.hidden = true;
  document.body.classList.remove("drawn");
  hide();
  opener?.focus();
}
if (drawer) {
  const select = drawer.querySelector("select");
  data.cards.forEach((card, index) => select.append(element("option", { value: index }, card.name)));
  select.addEventListener("change", () => showCard(Number(select.value)));
  drawer.querySelector(".close").addEventListener("click", closeDrawer);
  document.addEventListener("keydown", event => { if (event.key === "Escape" && tip.hidden) closeDrawer(); }, true);
  for (const line of lines) line.svg.addEventListener("click", event => {
    const mark = event.target.closest("[data-kernel]");
    const index = mark && line.data.cards?.[Number(mark.dataset.kernel)];
    if (index >= 0 && index !== null) openDrawer(index, line.canvas);
    else if (mark) say(`${line.things.find(thing => thing[3] === Number(mark.dataset.kernel))[1]} is not among the kernels that take the most time`);
  });
  all("[data-card]").forEach(link => {
    link.addEventListener("click", () => openDrawer(Number(link.dataset.card), link));
    link.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); openDrawer(Number(link.dataset.card), link); } });
  });
}
