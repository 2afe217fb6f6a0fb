"use strict";
// Helpers of all scripts. No library, nothing is loaded.
document.documentElement.classList.add("js");
const all = (selector, parent = document) => [...parent.querySelectorAll(selector)];
const announcer = document.getElementById("said");
const say = text => { announcer.textContent = text; };
const between = (value, least, most) => Math.max(least, Math.min(most, value));
const SVG = "http://www.w3.org/2000/svg";

// Make an SVG element, or with `html` an HTML element. Texts are never parsed as markup.
function make(name, attributes = {}, text = "", html = false) {
  const node = html ? document.createElement(name) : document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) if (value !== null) node.setAttribute(attribute, value);
  if (text !== "") node.textContent = text;
  return node;
}
const element = (name, attributes = {}, text = "") => make(name, attributes, text, true);
