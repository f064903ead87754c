// Builds elements. Whatever comes from the API goes in as text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...present(children));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

function present(children) {
  return children.flat().filter((child) => child !== undefined && child !== null && child !== false);
}

export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `/console/icons.svg#${name}`);
  svg.append(use);
  return svg;
}

// Somebody else's words, which may be written from right to left or turn the direction round.
export function foreign(text, attributes = {}) {
  return el("bdi", attributes, text);
}

let made = 0;
export function newId() {
  made += 1;
  return `made-${made}`;
}

// Where the keyboard is.

export function topmostDialog() {
  return [...document.querySelectorAll("dialog:modal")].at(-1) ?? null;
}

// What had the focus is gone, so that the next key would begin at the top of the page: it goes on nearby instead.
export function keepFocus() {
  if (document.activeElement !== document.body) return;
  const near = topmostDialog()?.querySelector(".drawer-body") ?? document.querySelector("main h2");
  near.focus({ preventScroll: true });
}
