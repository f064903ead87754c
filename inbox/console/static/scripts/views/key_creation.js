// The form that makes a key.

import { send } from "../api.js";
import { busy, check, field, form, input, select, submit } from "../controls.js";
import { el } from "../dom.js";
import { alertSlot, attempt } from "../messages.js";
import { session } from "../session.js";

const SCOPES = [
  ["events:write", "send events", true],
  ["events:read", "look at events and figures only", false],
  ["inbox:read", "look at, poll and replay events", true],
  ["tenant:manage", "manage keys and inboxes, erase events", false],
];
// Only a key that has it can pass it on, and only the tenant system has any.
const ADMIN = ["admin", "manage all tenants", false];
const DAY_MS = 86_400_000;
const LIVES = [["", "never"], ["7", "7 days"], ["30", "30 days"], ["90", "90 days"], ["365", "a year"]];
const LONGEST_NAME = 200;

export function keyCreation(made, signal) {
  const name = input({ placeholder: "zapier", maxlength: LONGEST_NAME });
  const life = select(LIVES);
  const offered = session.may("admin") ? [...SCOPES, ADMIN] : SCOPES;
  const boxes = offered.map(([scope, hint, checked]) => check(scope, { checked, hint, value: scope }));
  const fault = el("p", { class: "fault", "aria-live": "polite" });
  const slot = alertSlot();
  const make = submit("Create key");

  const entry = form(() => {
    const scopes = boxes.map((each) => each.box).filter((box) => box.checked).map((box) => box.value);
    fault.textContent = scopes.length ? "" : "Choose one scope at least.";
    if (!scopes.length) return boxes[0].box.focus();
    const expires = life.value ? new Date(Date.now() + Number(life.value) * DAY_MS).toISOString() : null;
    return busy(make, () => attempt(slot, async () => {
      const { document } = await send("POST", "/keys", { name: name.value.trim(), scopes, expires_at: expires }, signal);
      name.value = "";
      made(document);
    }));
  },
  el("div", { class: "form-row" }, field("Name", name, "What it is for."), field("Expires in", life)),
  el("fieldset", { class: "field" }, el("legend", {}, "Scopes"), el("div", { class: "scopes" }, boxes), fault),
  slot, el("div", {}, make));
  return el("section", { class: "card stack", "aria-labelledby": "create-key" }, el("h3", { id: "create-key" }, "Create a key"), entry);
}
