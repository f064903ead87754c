// One tenant: what is known of it, who changed it, and what an admin can do with it.

import { get, send } from "../api.js";
import { busyButton, statusBadge } from "../controls.js";
import { confirm, openDrawer } from "../dialogs.js";
import { el, fill, foreign } from "../dom.js";
import { time } from "../format.js";
import { alertSlot, attempt, say } from "../messages.js";
import { showNewKey } from "./keys.js";

const AUDIT_SHOWN = 50;
const SYSTEM = "system";
const FIRST_KEY = { name: "first key", scopes: ["events:write", "events:read", "inbox:read", "tenant:manage"] };

const VALIDATE = { verb: "Validate", to: "VALIDATED" };
const REGISTER = { verb: "Register", to: "REGISTERED" };
const SUSPEND = { verb: "Suspend", to: "SUSPENDED", words: ["Its keys are refused until it is resumed. Its events are kept."] };

// Returns the status changes to offer: the button's label, the new status, and the words of the confirmation, if any.
function changesOf(tenant) {
  if (tenant.status === "SUSPENDED") return [{ verb: "Resume", to: tenant.status_before_suspension }];
  const next = { UNVALIDATED: [VALIDATE], VALIDATED: [REGISTER], REGISTERED: [] }[tenant.status];
  return tenant.tenant_id === SYSTEM ? next : [...next, SUSPEND];
}

export function openTenant(id, { changed, leave }) {
  const closing = new AbortController();
  const path = `/admin/tenants/${encodeURIComponent(id)}`;
  const slot = alertSlot();
  const facts = el("div", {});
  const trail = el("div", {});
  const { head, foot, opened } = openDrawer("Tenant", id, [slot, facts, trail], { onclose: () => closing.abort(), leave });

  async function load() {
    const [tenant, audit] = await Promise.all(
      [path, `${path}/audit?pageSize=${AUDIT_SHOWN}`].map((each) => get(each, closing.signal)));
    fill(head, el("h3", {}, foreign(tenant.organization_name ?? tenant.tenant_id)), statusBadge(tenant.active ? tenant.status : "deleted"));
    fill(facts, factsOf(tenant));
    fill(trail, trailOf(audit));
    fill(foot, buttonsOf(tenant));
  }

  function buttonsOf(tenant) {
    if (!tenant.active) return [busyButton("Restore", restore, "primary")];
    return [
      ...changesOf(tenant).map((change) => busyButton(change.verb, () => go(tenant, change), change.words ? "" : "primary")),
      tenant.status !== "SUSPENDED" && busyButton("Create a key for it", makeKey),
      tenant.tenant_id !== SYSTEM && busyButton("Delete", () => remove(tenant), "danger push"),
    ];
  }

  const ask = (method, tail, body) => send(method, path + tail, body, closing.signal);

  // Whether it was done is known by now: what comes in the way of the next look is another matter.
  async function done(words) {
    changed();
    say(words);
    await attempt(slot, load);
  }

  async function go(tenant, { verb, to, words }) {
    const change = () => ask("PUT", "/status", { status: to });
    const changes = words ? confirm(`${verb} ${tenant.tenant_id}?`, words, `${verb} tenant`, change) : attempt(slot, change);
    if (await changes) await done(`The tenant is ${to.toLowerCase()}.`);
  }

  async function remove(tenant) {
    const words = ["Its keys are refused and it is no longer listed. Nothing of it is removed: it can be restored."];
    if (await confirm(`Delete ${tenant.tenant_id}?`, words, "Delete tenant", () => ask("DELETE", ""))) await done("The tenant is deleted.");
  }

  async function restore() {
    if (await attempt(slot, () => ask("POST", "/restore"))) await done("The tenant is back.");
  }

  async function makeKey() {
    let key;
    if (!(await attempt(slot, async () => (key = (await ask("POST", "/keys", FIRST_KEY)).document)))) return;
    await showNewKey(key.key, key.name);
    await attempt(slot, load);
  }

  attempt(slot, load);
  return opened;
}

function factsOf(tenant) {
  const limit = { null: "the service's own", 0: "none" }[tenant.rate_limit] ?? `${tenant.rate_limit} requests a second`;
  const facts = [
    ["Id", el("span", { class: "mono" }, tenant.tenant_id)],
    ["Name", tenant.organization_name && foreign(tenant.organization_name)],
    ["E-mail", tenant.email && foreign(tenant.email)],
    ["Destination e-mail", tenant.destination_email && foreign(tenant.destination_email)],
    ["Rate limit", limit],
    ["Created", time(tenant.date_created)],
    ["Last changed", [time(tenant.date_last_updated), ` by ${tenant.last_updated_by}`]],
  ];
  return el("dl", { class: "facts" }, facts.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value ?? "–")]));
}

function trailOf(audit) {
  return el("section", { class: "stack-tight", "aria-label": "Audit trail" }, el("h4", {}, "Audit trail"),
    el("ol", { class: "timeline" }, audit.map((entry) => el("li", {},
      el("span", {}, `${entry.action.replaceAll("_", " ")}${entry.forced ? " (forced)" : ""} by ${entry.by}`),
      time(entry.at),
      el("div", { class: "faint small" }, Object.entries(entry.changes).map(([name, { from, to }]) =>
        el("p", {}, `${name}: `, foreign(String(from ?? "–")), " → ", foreign(String(to ?? "–")))))))));
}
