// Tooltips, for the pointer and for the keyboard.
const tip = document.getElementById("tip");
let tipOwner = null;
function show(target) {
  tipOwner = target;
  tip.textContent = target.dataset.tip;
  tip.hidden = false;
  placeTip();
}
function placeTip() {
  if (!tipOwner) return;
  const box = tipOwner.getBoundingClientRect(), size = tip.getBoundingClientRect();
  const left = Math.min(Math.max(box.left + Math.min(box.width, innerWidth) / 2 - size.width / 2, 6), innerWidth - size.width - 6);
  const topAbove = box.top - size.height - 8;
  tip.style.left = `${left}px`;
  tip.style.top = `${topAbove > 4 ? topAbove : Math.min(box.bottom + 8, innerHeight - size.height - 4)}px`;
}
const hide = () => { tip.hidden = true; tipOwner = null; };
const tipTarget = event => event.target instanceof Element ? event.target.closest("[data-tip]") : null;
// Moving the pointer or a tap opens a tooltip. An element that moves under a resting pointer does not: Escape would then
// close a tooltip that the reader did not open.
let lastTarget = null;
const point = event => {
  const target = tipTarget(event);
  if (target === lastTarget && event.type === "pointermove") return;
  lastTarget = target;
  if (target) show(target); else hide();
};
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", event => { if (event.pointerType !== "mouse") point(event); });
document.addEventListener("focusin", event => { const target = tipTarget(event); if (target && target.matches(":focus-visible")) show(target); });
document.addEventListener("focusout", hide);
document.addEventListener("scroll", placeTip, true);
document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
