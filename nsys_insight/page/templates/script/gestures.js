// The pointer on a timeline: the wheel zooms, dragging pans, two fingers pinch, dragging with Shift adds up a selection.
function gestures(line) {
  const { canvas, svg } = line, pointers = new Map();
  let dragged = false, from = null;
  const pointerX = event => event.clientX - canvas.getBoundingClientRect().left;

  // Without Ctrl the wheel scrolls the page, unless the timeline has the focus. A touchpad's pinch sends Ctrl.
  canvas.addEventListener("wheel", event => {
    const isFocused = document.activeElement === canvas, x = pointerX(event);
    const across = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(across) > Math.abs(event.deltaY) || event.shiftKey) line.pan(across / line.width * line.span);
    else if (event.ctrlKey || event.metaKey || isFocused) line.zoom(1.0025 ** between(event.deltaY * (event.deltaMode ? 30 : 1) * (event.ctrlKey ? 2 : 1), -400, 400), line.moment(x));
    else return;
    event.preventDefault();
    hide();
  }, { passive: false });

  canvas.addEventListener("pointerdown", event => {
    if (event.button) return;
    pointers.set(event.pointerId, pointerX(event));
    dragged = pointers.size > 1;
    from = event.shiftKey ? { mark: pointerX(event) } : null;
  });
  canvas.addEventListener("pointermove", event => {
    if (!pointers.has(event.pointerId)) return;
    const before = pointers.get(event.pointerId), now = pointerX(event);
    if (!dragged && Math.abs(now - before) < 4) return;
    if (!dragged) { dragged = true; canvas.setPointerCapture(event.pointerId); hide(); }
    if (from) {
      const [left, right] = [Math.min(from.mark, now), Math.max(from.mark, now)];
      svg.querySelector(".over").replaceChildren(make("rect", { class: "marking", x: left, y: 0, width: right - left, height: "100%" }));
      from.to = now;
      return;
    }
    if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, x]) => x);
      const [old, wide] = [Math.abs(before - other), Math.abs(now - other)];
      if (old > 8 && wide > 8) line.zoom(old / wide, line.moment(other));
    } else line.pan((before - now) / line.width * line.span);
    pointers.set(event.pointerId, now);
  });
  const end = event => {
    if (!pointers.delete(event.pointerId)) return;
    if (from?.to !== undefined) {
      const [left, right] = [Math.min(from.mark, from.to), Math.max(from.mark, from.to)];
      line.select([line.moment(left), line.moment(right)]);
    }
    from = null;
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  // Ignore the click that ends a drag. A click on a crowd of events zooms to them.
  canvas.addEventListener("click", event => {
    if (dragged) { event.stopImmediatePropagation(); dragged = false; return; }
    const mark = event.target.closest("[data-at]"), crowd = event.target.closest(".crowd");
    if (mark) line.mark(Number(mark.closest("[data-lane]").dataset.lane), Number(mark.dataset.at));
    if (!crowd) return;
    const [left, right] = [Number(crowd.dataset.from), Number(crowd.dataset.to)];
    line.look(left - (right - left) / 4, right + (right - left) / 4);
  }, true);
}
