// The tenant's API keys: list, create, rotate and revoke.

import { getJson, sendJson, session } from "../api.js";
import { supersedingSignals } from "../async.js";
import { copyButton } from "../clipboard.js";
import { badge, button, checkbox, field, form, formCard, input, select, statusBadge, viewHeader } from "../controls.js";
import { confirmAction, openDialog } from "../dialogs.js";
import { el, userText } from "../dom.js";
import { timestampOr } from "../format.js";
import { alertSlot, showToast } from "../messages.js";
import { loadTable, table } from "../tables.js";

const OVERLAPS = [["86400", "1 day"], ["3600", "1 hour"], ["604800", "7 days"], ["0", "No overlap"]];
const COLUMNS = [
  { label: "Name", kind: "lead" }, { label: "Key" }, { label: "Scopes" }, { label: "Created", kind: "nowrap" },
  { label: "Last used", kind: "nowrap" }, { label: "Expires", kind: "nowrap" }, { label: "Status" }, { label: "Actions", kind: "actions" },
];
const SCOPES = [
  ["events:write", "Send events", true],
  ["events:read", "View events and statistics", false],
  ["inbox:read", "View, poll and replay events", true],
  ["tenant:manage", "Manage keys and inboxes, erase events", false],
  ["admin", "Manage all tenants", false],
];
const DAY_MS = 86_400_000;
const LIFETIMES = [["", "Never"], ["7", "In 7 days"], ["30", "In 30 days"], ["90", "In 90 days"], ["365", "In 1 year"]];
const MAX_NAME_LENGTH = 200;

export function openKeys(root, { signal }) {
  const nextSignal = supersedingSignals(signal);
  const slot = alertSlot();
  const tableView = table("API keys", COLUMNS);
  root.append(
    viewHeader("Keys", "Create a separate key for each program, with only the scopes it needs. You can then revoke one without affecting the others."),
    slot, tableView.box, keyForm(showCreated, signal));
  tableView.show([], "Loading…");

  const refresh = () => loadTable(tableView, slot, nextSignal, async (runSignal) => {
    const newestFirst = (await getJson("/keys", runSignal)).reverse();
    const isActive = (key) => key.status === "active";
    tableView.show([...newestFirst.filter(isActive), ...newestFirst.filter((key) => !isActive(key))].map(row));
  });

  async function showCreated(key) {
    refresh();
    await showNewKey(key);
  }

  function row(key) {
    const canManage = !key.scopes.includes("admin") || session.hasScope("admin");
    return tableView.row(key.key_id, [
      el("span", { class: "line" }, key.name ? userText(key.name) : el("span", { class: "faint" }, "(no name)"), isOwn(key) && badge("this key", "accent")),
      el("span", { class: "mono small nowrap", title: key.key_id }, key.hint ?? key.key_id),
      el("div", { class: "chips" }, key.scopes.map((scope) => el("span", { class: "chip" }, scope))),
      timestampOr(key.created_at, "–", "day"), timestampOr(key.last_used_at, "never", "day"), timestampOr(key.expires_at, "never", "day"),
      statusBadge(key.status),
      key.status === "active" && canManage
        ? [button("Rotate", () => rotate(key), "small"), button("Revoke", () => revoke(key), "small danger")]
        : "",
    ]);
  }

  // Reads the session on every call, because the tab continues with another key after a rotation.
  const isOwn = (key) => key.key_id === session.me.key_id;

  async function rotate(key) {
    const own = isOwn(key);
    const overlap = select(OVERLAPS, "86400");
    let created;
    const done = await confirmAction(`Rotate ${keyLabel(key)}?`, ["This creates a new key with the same name, scopes and lifetime.",
      own && "You’re signed in with this key. This tab will switch to the new one."], "Rotate key", async () => {
      created = (await sendJson("POST", `/keys/${key.key_id}/rotate`, { overlap_seconds: Number(overlap.value) }, signal)).document;
    }, { extra: field("Keep the old key valid for", overlap), danger: false });
    if (!done) return;
    if (own) session.start(created.key, { ...session.me, key_id: created.key_id });
    await showCreated(created);
  }

  async function revoke(key) {
    const text = ["Programs that use this key will get errors shortly. You can’t undo this.",
      isOwn(key) && "You’re signed in with this key. You’ll have to sign in with another one."];
    if (!(await confirmAction(`Revoke ${keyLabel(key)}?`, text, "Revoke key", () => sendJson("DELETE", `/keys/${key.key_id}`, undefined, signal)))) return;
    showToast("Key revoked.");
    await refresh();
  }

  refresh();
}

// Keys can share a name, for example after a rotation.
function keyLabel(key) {
  const hint = key.hint ?? key.key_id;
  return key.name ? `${key.name} (${hint})` : hint;
}

function keyForm(oncreate, signal) {
  const name = input({ placeholder: "zapier", maxlength: MAX_NAME_LENGTH });
  const lifetime = select(LIFETIMES);
  // Only an admin key can grant `admin`.
  const offered = SCOPES.filter(([scope]) => scope !== "admin" || session.hasScope("admin"));
  const boxes = offered.map(([scope, hint, checked]) => checkbox(scope, { checked, hint, value: scope }));
  const error = el("p", { class: "field-error", "aria-live": "polite" });
  const scopeField = el("fieldset", { class: "field" }, el("legend", {}, "Scopes"), el("div", { class: "scopes" }, boxes), error);
  const selected = () => boxes.map((each) => each.box).filter((box) => box.checked).map((box) => box.value);
  scopeField.validate = () => {
    error.textContent = selected().length ? "" : "Select at least one scope.";
    return error.textContent && boxes[0].box;
  };

  async function create() {
    const expires = lifetime.value ? new Date(Date.now() + Number(lifetime.value) * DAY_MS).toISOString() : null;
    const { document } = await sendJson("POST", "/keys", { name: name.value.trim(), scopes: selected(), expires_at: expires }, signal);
    name.value = "";
    oncreate(document);
  }
  return formCard("Create a key", form("Create key", create,
    el("div", { class: "form-row" }, field("Name", name, { hint: "The program that uses the key." }), field("Expires", lifetime)), scopeField));
}

export function showNewKey({ key, name }) {
  return openDialog("New key", "", (close) => el("div", { class: "inside" },
    el("h3", {}, "Save your new key"),
    el("p", { class: "soft" }, name ? ["Copy the key ", userText(name), " now."] : "Copy the key now.", " You can’t view it again: the service stores only its hash."),
    el("p", { class: "secret" }, key),
    el("div", { class: "choices" },
      copyButton(() => key, { classes: "" }),
      button("I saved the key", () => close(), "primary"))), { locked: true });
}
