// Creates elements and manages focus. Values from the API are only ever inserted as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...withoutEmpty(children));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...withoutEmpty(children));
}

function withoutEmpty(children) {
  return children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);
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

// Isolates the text, so that right-to-left characters in it do not reorder the text around it.
export function userText(text, attributes = {}) {
  return el("bdi", attributes, text);
}

let lastId = 0;
export function newId() {
  lastId += 1;
  return `id-${lastId}`;
}

export function topmostDialog() {
  return [...document.querySelectorAll("dialog:modal")].at(-1) ?? null;
}

// If the focused element was removed, moves the focus nearby, so that the next Tab does not start at the top of the page.
export function restoreFocus() {
  if (document.activeElement !== document.body) return;
  const target = topmostDialog()?.querySelector(".drawer-body") ?? document.querySelector("main h2");
  target.focus({ preventScroll: true });
}
