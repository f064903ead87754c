// Shows a payload as a collapsible tree or as raw JSON.

import { button } from "../controls.js";
import { el, fill, userText } from "../dom.js";
import { escapeInvisible, pretty } from "../exact_json.js";
import { pluralize } from "../format.js";

// Branches are rendered when they are opened, in pages, so that payloads of any size stay responsive.
const PAGE = 100;
const MAX_TEXT_LENGTH = 600;
const OPEN_LEVELS = 2;
const MAX_OPEN_MEMBERS = 25;
const CLASSES = { string: "string", number: "numeral", literal: "literal" };

export function payloadSection(payload) {
  const content = el("div", {});
  const modes = {
    Tree: () => el("div", { class: "payload" }, branchOrLeaf(null, payload, 0)),
    "Raw JSON": () => el("pre", { class: "code", tabindex: 0, role: "group", "aria-label": "Payload as JSON" }, pretty(payload)),
  };
  const buttons = Object.keys(modes).map((mode) => el("button", { type: "button", onclick: () => show(mode) }, mode));
  function show(mode) {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === mode));
    fill(content, modes[mode]());
  }
  show("Tree");
  return el("section", { class: "stack-tight", "aria-label": "Payload" },
    el("div", { class: "line apart" }, el("h4", {}, "Payload"), el("div", { class: "segments", role: "group", "aria-label": "Payload format" }, buttons)),
    content);
}

function branchOrLeaf(name, node, level) {
  return node.children?.length ? branch(name, node, level) : leaf(name, node);
}

function label(name) {
  return name === null ? [] : [userText(escapeInvisible(name), { class: "name" }), el("span", { class: "colon" }, ": ")];
}

function branch(name, { kind, children }, level) {
  const members = el("div", { class: "members" });
  const size = kind === "object" ? `{ ${pluralize(children.length, "member")} }` : `[ ${pluralize(children.length, "item")} ]`;
  const details = el("details", {}, el("summary", {}, ...label(name), el("span", { class: "count" }, size)), members);
  const render = () => {
    if (details.open && !members.childNodes.length) addChildren(members, children, level, 0);
  };
  details.addEventListener("toggle", render);
  details.open = level < OPEN_LEVELS && (level === 0 || children.length <= MAX_OPEN_MEMBERS);
  render();
  return details;
}

function addChildren(members, children, level, start) {
  const end = start + PAGE;
  const added = children.slice(start, end).map(([name, child]) => branchOrLeaf(name, child, level + 1));
  members.append(...added);
  if (start > 0) focus(added[0]);
  if (end >= children.length) return;
  const more = button(`Show more of ${pluralize(children.length, "member")}`, () => {
    more.remove();
    addChildren(members, children, level, end);
  }, "small");
  members.append(more);
}

// The button that had the focus was replaced, so the focus moves to the first new element.
function focus(element) {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

function leaf(name, node) {
  const text = escapeInvisible(node.text ?? (node.kind === "object" ? "{}" : "[]"));
  const isLong = text.length > MAX_TEXT_LENGTH;
  const value = userText(isLong ? `${text.slice(0, MAX_TEXT_LENGTH)}…` : text, { class: CLASSES[node.kind] ?? "count" });
  const line = el("div", { class: "leaf" }, ...label(name), value);
  if (isLong) {
    const showAll = button(`Show all ${pluralize(text.length, "character")}`, () => {
      value.textContent = text;
      showAll.remove();
      focus(value);
    }, "small");
    line.append(" ", showAll);
  }
  return line;
}
