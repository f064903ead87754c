// The tenant's own keys: listed, made, rotated, revoked.

import { get, send } from "../api.js";
import { latest } from "../async.js";
import { copyButton } from "../clipboard.js";
import { badge, busy, button, check, field, form, input, select, statusBadge, submit, viewHead } from "../controls.js";
import { confirm, open } from "../dialogs.js";
import { el, foreign } from "../dom.js";
import { timeOr } from "../format.js";
import { alertSlot, attempt, say } from "../messages.js";
import { session } from "../session.js";
import { load, table } from "../tables.js";

const OVERLAPS = [["86400", "1 day"], ["3600", "1 hour"], ["604800", "7 days"], ["0", "no longer: refuse it at once"]];
const COLUMNS = [
  { label: "Name", kind: "lead" }, { label: "Key" }, { label: "Scopes" }, { label: "Created", kind: "nowrap" },
  { label: "Last used", kind: "nowrap" }, { label: "Expires", kind: "nowrap" }, { label: "Status" }, { label: "What to do", kind: "actions" },
];

export function openKeys(root, { signal }) {
  const turn = latest(signal);
  const slot = alertSlot();
  const rows = table("API keys", COLUMNS);
  root.append(
    viewHead("Keys", "Give each program a key of its own, with no more than it needs: then one can be revoked without the others noticing."),
    slot, rows.box, keyCreation(made, signal));
  rows.show([], "Loading …");

  const refresh = () => load(rows, slot, turn, async (until) => {
    const keys = await get("/keys", until);
    const working = keys.filter((key) => key.status === "active").reverse();
    rows.show([...working, ...keys.filter((key) => key.status !== "active").reverse()].map(row));
  });

  async function made(key) {
    refresh();
    await showNewKey(key.key, key.name);
  }

  function row(key) {
    const powerless = key.scopes.includes("admin") && !session.may("admin");
    return rows.row(key.key_id, [
      el("span", { class: "line" }, key.name ? foreign(key.name) : el("span", { class: "faint" }, "(no name)"), isOwn(key) && badge("this key", "accent")),
      el("span", { class: "mono small nowrap", title: key.key_id }, key.hint ?? key.key_id),
      el("div", { class: "chips" }, key.scopes.map((scope) => el("span", { class: "chip" }, scope))),
      timeOr(key.created_at, "–", "day"), timeOr(key.last_used_at, "never", "day"), timeOr(key.expires_at, "never", "day"),
      statusBadge(key.status),
      key.status === "active" && !powerless
        ? [button("Rotate", () => rotate(key), "small"), button("Revoke", () => revoke(key), "small danger")]
        : "",
    ]);
  }

  // Asked when it matters: the buttons of a row stay while the tab goes on with another key.
  const isOwn = (key) => key.key_id === session.me.key_id;

  async function rotate(key) {
    const own = isOwn(key);
    const overlap = select(OVERLAPS, "86400");
    let made;
    const done = await confirm(`Rotate ${called(key)}?`, ["A new key with the same name, scopes and length of life takes its place.",
      own ? "It is the key that you are signed in with: this tab goes on with the new one." : null].filter(Boolean), "Rotate key", async () => {
      made = (await send("POST", `/keys/${key.key_id}/rotate`, { overlap_seconds: Number(overlap.value) }, signal)).document;
    }, { extra: field("The old key works for", overlap), harmless: true });
    if (!done) return;
    if (own) session.begin(made.key, { ...session.me, key_id: made.key_id });
    refresh();
    await showNewKey(made.key, made.name);
  }

  async function revoke(key) {
    const words = ["Whatever uses it is refused, everywhere within half a minute or so. This cannot be undone.",
      isOwn(key) ? "It is the key that you are signed in with: you will have to sign in with another one." : null].filter(Boolean);
    if (!(await confirm(`Revoke ${called(key)}?`, words, "Revoke key", () => send("DELETE", `/keys/${key.key_id}`, undefined, signal)))) return;
    say("The key is revoked.");
    await refresh();
  }

  refresh();
}

// After a rotation there are two of one name.
function called(key) {
  const mark = key.hint ?? key.key_id;
  return key.name ? `${key.name} (${mark})` : mark;
}

// The form that makes a key.

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

// A key that was just made: shown this once.

export function showNewKey(key, name) {
  return open("New key", "", (shut) => el("div", { class: "inside" },
    el("h3", {}, "New key"),
    el("p", { class: "soft" }, name ? `The key ${name}, shown this once. ` : "Shown this once. ", "Only its hash is stored: nobody can show it again."),
    el("p", { class: "secret" }, key),
    el("div", { class: "choices" },
      copyButton(key, { classes: "button" }),
      button("I have saved it", () => shut(), "primary"))), { stays: true });
}
