"use strict";
// What all parts use. No library, nothing is loaded.
document.documentElement.classList.add("js");
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const said = document.getElementById("said");
const say = text => { said.textContent = text; };
const between = (value, least, most) => Math.max(least, Math.min(most, value));
const SVG = "http://www.w3.org/2000/svg";

// Make an element of a picture, or of the page where `html` says so; texts are never markup.
function make(name, attributes = {}, text = "", html = false) {
  const made = html ? document.createElement(name) : document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(attribute, value);
  if (text !== "") made.textContent = text;
  return made;
}
const element = (name, attributes = {}, text = "") => make(name, attributes, text, true);
