// The tenant's own keys: listed, made, rotated, revoked.

import { get, send } from "../api.js";
import { badge, button, field, select, statusBadge } from "../controls.js";
import { confirm } from "../dialogs.js";
import { el, foreign } from "../dom.js";
import { latest } from "../latest.js";
import { load } from "../loading.js";
import { alertSlot, say } from "../messages.js";
import { timeOr } from "../moments.js";
import { session } from "../session.js";
import { table } from "../tables.js";
import { viewHead } from "../view_head.js";
import { keyCreation } from "./key_creation.js";
import { showNewKey } from "./new_key.js";

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
