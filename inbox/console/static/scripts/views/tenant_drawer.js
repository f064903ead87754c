// Details of one tenant, with its audit log and actions.

import { getJson, sendJson } from "../api.js";
import { asyncButton, statusBadge } from "../controls.js";
import { confirmAction, openDrawer } from "../dialogs.js";
import { el, fill, userText } from "../dom.js";
import { timestamp } from "../format.js";
import { alertSlot, runOrReport, showToast } from "../messages.js";
import { showNewKey } from "./keys.js";

const AUDIT_LIMIT = 50;
const SYSTEM = "system";
const FIRST_KEY = { name: "first key", scopes: ["events:write", "events:read", "inbox:read", "tenant:manage"] };

const VALIDATE = { verb: "Validate", to: "VALIDATED" };
const REGISTER = { verb: "Register", to: "REGISTERED" };
const SUSPEND = { verb: "Suspend", to: "SUSPENDED", confirmation: ["Its API keys stop working until you resume it. Its events are kept."] };

// Returns the status changes to offer: the button's label, the new status, and the text of the confirmation, if any.
function statusChanges(tenant) {
  if (tenant.status === "SUSPENDED") return [{ verb: "Resume", to: tenant.status_before_suspension }];
  const next = { UNVALIDATED: [VALIDATE], VALIDATED: [REGISTER], REGISTERED: [] }[tenant.status];
  return tenant.tenant_id === SYSTEM ? next : [...next, SUSPEND];
}

export function openTenant(id, { onchange, leave }) {
  const closing = new AbortController();
  const path = `/admin/tenants/${encodeURIComponent(id)}`;
  const slot = alertSlot();
  const facts = el("div", {});
  const audit = el("div", {});
  const { head, foot, opened } = openDrawer("Tenant", id, [slot, facts, audit], { onclose: () => closing.abort(), leave });

  async function load() {
    const [tenant, entries] = await Promise.all(
      [path, `${path}/audit?pageSize=${AUDIT_LIMIT}`].map((each) => getJson(each, closing.signal)));
    fill(head, el("h3", {}, userText(tenant.organization_name ?? tenant.tenant_id)), statusBadge(tenant.active ? tenant.status : "deleted"));
    fill(facts, factsList(tenant));
    fill(audit, auditLog(entries));
    fill(foot, actions(tenant));
  }

  function actions(tenant) {
    if (!tenant.active) return [asyncButton("Restore", restore, "primary")];
    return [
      ...statusChanges(tenant).map((change) => asyncButton(change.verb, () => changeStatus(tenant, change), change.confirmation ? "" : "primary")),
      tenant.status !== "SUSPENDED" && asyncButton("Create key", createKey),
      tenant.tenant_id !== SYSTEM && asyncButton("Delete", () => confirmDelete(tenant), "danger push"),
    ];
  }

  const send = (method, subpath, body) => sendJson(method, path + subpath, body, closing.signal);

  async function finish(message) {
    onchange();
    showToast(message);
    await runOrReport(slot, load);
  }

  async function changeStatus(tenant, { verb, to, confirmation }) {
    const change = () => send("PUT", "/status", { status: to });
    const changed = confirmation
      ? confirmAction(`${verb} ${tenant.tenant_id}?`, confirmation, `${verb} tenant`, change)
      : runOrReport(slot, change);
    if (await changed) await finish(`Tenant status: ${to.toLowerCase()}.`);
  }

  async function confirmDelete(tenant) {
    const text = ["Its API keys stop working, and it is hidden from the list. Its data is kept, so you can restore it."];
    if (await confirmAction(`Delete ${tenant.tenant_id}?`, text, "Delete tenant", () => send("DELETE", ""))) await finish("Tenant deleted.");
  }

  async function restore() {
    if (await runOrReport(slot, () => send("POST", "/restore"))) await finish("Tenant restored.");
  }

  async function createKey() {
    let key;
    if (!(await runOrReport(slot, async () => (key = (await send("POST", "/keys", FIRST_KEY)).document)))) return;
    await showNewKey(key.key, key.name);
    await runOrReport(slot, load);
  }

  runOrReport(slot, load);
  return opened;
}

function factsList(tenant) {
  const limit = { null: "service default", 0: "none" }[tenant.rate_limit] ?? `${tenant.rate_limit} requests per second`;
  const facts = [
    ["ID", el("span", { class: "mono" }, tenant.tenant_id)],
    ["Organization", tenant.organization_name && userText(tenant.organization_name)],
    ["Email", tenant.email && userText(tenant.email)],
    ["Destination email", tenant.destination_email && userText(tenant.destination_email)],
    ["Rate limit", limit],
    ["Created", timestamp(tenant.date_created)],
    ["Last changed", [timestamp(tenant.date_last_updated), ` by ${tenant.last_updated_by}`]],
  ];
  return el("dl", { class: "facts" }, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "–")]));
}

function auditLog(entries) {
  return el("section", { class: "stack-tight", "aria-label": "Audit log" }, el("h4", {}, "Audit log"),
    el("ol", { class: "timeline" }, entries.map((entry) => el("li", {},
      el("span", {}, `${entry.action.replaceAll("_", " ")}${entry.forced ? " (forced)" : ""} by ${entry.by}`),
      timestamp(entry.at),
      el("div", { class: "faint small" }, Object.entries(entry.changes).map(([name, { from, to }]) =>
        el("p", {}, `${name}: `, userText(String(from ?? "–")), " → ", userText(String(to ?? "–")))))))));
}
