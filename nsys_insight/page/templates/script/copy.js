// A button next to each command that copies it.
function copyCommand(button, text) {
  const showResult = ok => {
    button.textContent = ok ? "copied" : "not copied";
    say(ok ? "Copied" : "The browser does not let this page copy");
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  };
  // Pages opened from a file may have no clipboard access. Then copy a selection.
  const copySelection = () => {
    const area = element("textarea", { class: "unseen", readonly: "" });
    area.value = text;
    document.body.append(area);
    area.select();
    const ok = document.execCommand("copy");
    area.remove();
    button.focus();
    return ok;
  };
  if (navigator.clipboard) navigator.clipboard.writeText(text).then(() => showResult(true), () => showResult(copySelection()));
  else showResult(copySelection());
}
function addCopyButton(code) {
  const button = element("button", { type: "button", class: "copy-it", "aria-label": "Copy the command" }, "copy");
  button.addEventListener("click", () => copyCommand(button, code.textContent));
  code.after(" ", button);
}
all("main code").filter(code => code.closest(".elsewhere") || /^(nsys-insight|nsys|ncu) /.test(code.textContent) && !code.closest("table")).forEach(addCopyButton);
