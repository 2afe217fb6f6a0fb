// Tooltips, for the pointer and for the keyboard.
const tip = document.getElementById("tip");
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
// A tooltip is asked for by moving the pointer or by a tap, not by what comes to lie under a pointer at rest: there, Escape
// would close a tooltip that the reader did not ask for.
let pointed = null;
const point = event => {
  const target = talking(event);
  if (target === pointed && event.type === "pointermove") return;
  pointed = target;
  if (target) show(target); else hide();
};
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", event => { if (event.pointerType !== "mouse") point(event); });
document.addEventListener("focusin", event => { const target = talking(event); if (target && target.matches(":focus-visible")) show(target); });
document.addEventListener("focusout", hide);
document.addEventListener("scroll", place, true);
document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
