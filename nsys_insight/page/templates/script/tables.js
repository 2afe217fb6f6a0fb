// Sort by a column: numbers by value, the largest first; texts alphabetically. Unknown values are always last.
function sort(head) {
  const table = head.closest("table"), body = table.tBodies[0], column = head.cellIndex;
  const cells = [...body.rows].map(row => row.cells[column]);
  const numeric = cells.some(cell => cell.dataset.v !== undefined);
  const before = head.getAttribute("aria-sort");
  const isAscending = before ? before === "descending" : !numeric;
  const key = cell => numeric ? (cell.dataset.v ? Number(cell.dataset.v) : null) : cell.textContent.trim().toLowerCase();
  const order = (a, b) => a === b ? 0 : a === null ? 1 : b === null ? -1 : (a < b ? -1 : 1) * (isAscending ? 1 : -1);
  const keyed = [...body.rows].map((row, index) => [key(row.cells[column]), index, row]);
  keyed.sort((a, b) => order(a[0], b[0]) || a[1] - b[1]);
  body.append(...keyed.map(([, , row]) => row));
  all("th", table).forEach(other => other.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", isAscending ? "ascending" : "descending");
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
