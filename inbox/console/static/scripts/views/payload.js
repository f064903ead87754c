// A payload as a tree to unfold. Branches are built when they are opened, a hundred members at a time, so that no
// payload is too large to look at.

import { button } from "../controls.js";
import { el, fill, foreign } from "../dom.js";
import { pretty, visible } from "../exact_json.js";
import { many } from "../format.js";

const AT_A_TIME = 100;
const LONG_TEXT = 600;
const OPEN_LEVELS = 2;
const OPEN_MEMBERS = 25;
const CLASSES = { string: "string", number: "numeral", literal: "literal" };

export function payloadTree(node) {
  return el("div", { class: "payload" }, branchOrLeaf(null, node, 0));
}

function branchOrLeaf(name, node, level) {
  const children = childrenOf(node);
  return children?.length ? branch(name, node, children, level) : leaf(name, node);
}

function childrenOf(node) {
  if (node.kind === "object") return node.members;
  return node.items?.map((item, place) => [String(place), item]);
}

function label(name) {
  return name === null ? [] : [foreign(visible(name), { class: "name" }), el("span", { class: "colon" }, ": ")];
}

function branch(name, node, children, level) {
  const members = el("div", { class: "members" });
  const amount = node.kind === "object" ? `{ ${many(children.length, "member")} }` : `[ ${many(children.length, "item")} ]`;
  const details = el("details", {}, el("summary", {}, ...label(name), el("span", { class: "count" }, amount)), members);
  const unfold = () => {
    if (details.open && !members.childNodes.length) addChildren(members, children, level, 0);
  };
  details.addEventListener("toggle", unfold);
  details.open = level < OPEN_LEVELS && (level === 0 || children.length <= OPEN_MEMBERS);
  unfold();
  return details;
}

function addChildren(members, children, level, from) {
  const until = from + AT_A_TIME;
  const added = children.slice(from, until).map(([name, child]) => branchOrLeaf(name, child, level + 1));
  members.append(...added);
  if (from > 0) goOnAt(added[0]);
  if (until >= children.length) return;
  const more = button(`Show more of ${many(children.length, "member")}`, () => {
    more.remove();
    addChildren(members, children, level, until);
  }, "small");
  members.append(more);
}

// The button that had the focus is gone: one reads on at what came in its place.
function goOnAt(element) {
  element.tabIndex = -1;
  element.focus({ preventScroll: true });
}

function leaf(name, node) {
  const text = visible(node.text ?? (node.kind === "object" ? "{}" : "[]"));
  const value = foreign(text.length > LONG_TEXT ? `${text.slice(0, LONG_TEXT)}…` : text, { class: CLASSES[node.kind] ?? "count" });
  const line = el("div", { class: "leaf" }, ...label(name), value);
  if (text.length > LONG_TEXT) {
    const whole = button(`Show all ${many(text.length, "character")}`, () => {
      value.textContent = text;
      whole.remove();
      goOnAt(value);
    }, "small");
    line.append(" ", whole);
  }
  return line;
}

// The payload, as a tree or as the JSON that it is: with every number as it came.

export function payloadSection(payload) {
  const shown = el("div", {});
  const ways = {
    Tree: () => payloadTree(payload),
    "Raw JSON": () => el("pre", { class: "code", tabindex: 0, role: "group", "aria-label": "Payload as JSON" }, pretty(payload)),
  };
  const buttons = Object.keys(ways).map((way) => el("button", { type: "button", onclick: () => show(way) }, way));
  function show(way) {
    for (const each of buttons) each.setAttribute("aria-pressed", String(each.textContent === way));
    fill(shown, ways[way]());
  }
  show("Tree");
  return el("section", { class: "stack-tight", "aria-label": "Payload" },
    el("div", { class: "line apart" }, el("h4", {}, "Payload"), el("div", { class: "segments", role: "group", "aria-label": "Show the payload as" }, buttons)),
    shown);
}
