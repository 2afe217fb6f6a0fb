// A link to a report unfolds it. Printing unfolds all reports.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target instanceof HTMLDetailsElement) target.open = true;
}
addEventListener("hashchange", unfold);
unfold();
let folded = [];
addEventListener("beforeprint", () => { folded = all("details.report:not([open]), .finding details:not([open])"); folded.forEach(report => { report.open = true; }); });
addEventListener("afterprint", () => { folded.forEach(report => { report.open = false; }); folded = []; });
