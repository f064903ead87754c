// The payload, as a tree or as the JSON that it is: with every number as it came.

import { el, fill } from "../dom.js";
import { pretty } from "../exact_json.js";
import { payloadTree } from "../payload_tree.js";

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
