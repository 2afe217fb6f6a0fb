// A button beside each command that copies it.
function copied(button, text) {
  const told = ok => {
    button.textContent = ok ? "copied" : "not copied";
    say(ok ? "Copied" : "The browser does not let this page copy");
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  // Pages from a file may lack the clipboard; then what is selected is copied.
  const selected = () => {
    const area = element("textarea", { class: "unseen", readonly: "" });
    area.value = text;
    document.body.append(area);
    area.select();
    const ok = document.execCommand("copy");
    area.remove();
    button.focus();
    return ok;
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => told(true), () => told(selected()));
  else told(selected());
}
function copyable(code) {
  const button = element("button", { type: "button", class: "copy-it", "aria-label": "Copy the command" }, "copy");
  button.addEventListener("click", () => copied(button, code.textContent));
  code.after(" ", button);
}
all("main code").filter(code => code.closest(".elsewhere") || /^(nsys-insight|nsys|ncu) /.test(code.textContent) && !code.closest("table")).forEach(copyable);
