// Pictures that zoom by getting wider: flame, icicle.
all(".widening").forEach(box => {
  const scroll = box.querySelector(".scroll"), picture = scroll.querySelector("svg");
  let zoom = 1;
  function zoomTo(factor, x = scroll.clientWidth / 2) {
    const share = (scroll.scrollLeft + x) / picture.clientWidth;
    zoom = between(factor, 1, 64);
    picture.setAttribute("width", `${100 * zoom}%`);
    scroll.scrollLeft = share * picture.clientWidth - x;
  }
  all("[data-zoom]", box).forEach(button => button.addEventListener("click", () =>
    zoomTo(Number(button.dataset.zoom) ? zoom * Number(button.dataset.zoom) : 1)));
  scroll.addEventListener("wheel", event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoomTo(zoom * 1.003 ** -event.deltaY, event.clientX - scroll.getBoundingClientRect().left);
  }, { passive: false });
  const keys = { "+": 2, "=": 2, "-": 0.5, "0": 0 };
  scroll.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    zoomTo(keys[event.key] ? zoom * keys[event.key] : 1);
  });
});
