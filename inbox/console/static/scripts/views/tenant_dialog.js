// One tenant: what is known of it, who changed it, and the next steps of its life.

import { get, send } from "../api.js";
import { button, closeButton, statusBadge } from "../controls.js";
import { confirm, open } from "../dialogs.js";
import { el, fill, foreign } from "../dom.js";
import { alertSlot, attempt, say } from "../messages.js";
import { time } from "../moments.js";
import { showNewKey } from "./new_key.js";

const AUDIT_SHOWN = 50;
const SYSTEM = "system";
const FIRST_KEY = { name: "first key", scopes: ["events:write", "inbox:read", "tenant:manage"] };

// The one step that leads on from each status: its name, where it leads, and whether it is asked about.
const STEPS = {
  UNVALIDATED: { verb: "Validate", to: "VALIDATED" },
  VALIDATED: { verb: "Register", to: "REGISTERED" },
  REGISTERED: { verb: "Suspend", to: "SUSPENDED", words: ["Its keys are refused until it is resumed. Its events are kept."] },
  SUSPENDED: { verb: "Resume", to: "REGISTERED" },
};

export function openTenant(id, { changed, closed }) {
  const leave = new AbortController();
  const path = `/admin/tenants/${encodeURIComponent(id)}`;
  const slot = alertSlot();
  const head = el("div", {}, el("h3", {}, id));
  const facts = el("div", {});
  const trail = el("div", {});
  const foot = el("div", { class: "drawer-foot" });

  const opened = open("Tenant", "drawer", (shut) => [
    el("div", { class: "drawer-head" }, head, closeButton(() => shut())),
    el("div", { class: "drawer-body", tabindex: 0, role: "group", "aria-label": "Details" }, slot, facts, trail),
    foot,
  ], { onclose: () => (leave.abort(), closed()) });

  async function load() {
    const [tenant, audit] = await Promise.all([get(path, leave.signal), get(`${path}/audit?pageSize=${AUDIT_SHOWN}`, leave.signal)]);
    fill(head, el("h3", {}, foreign(tenant.organization_name ?? tenant.tenant_id)), statusBadge(tenant.active ? tenant.status : "deleted"));
    fill(facts, factsOf(tenant));
    fill(trail, trailOf(audit));
    fill(foot, buttonsOf(tenant));
  }

  async function act(words, method, tail, body) {
    await send(method, path + tail, body, leave.signal);
    changed();
    await load();
    say(words);
  }

  function buttonsOf(tenant) {
    if (!tenant.active) return [button("Restore", () => attempt(slot, () => act("The tenant is back.", "POST", "/restore")), "primary")];
    const step = tenant.tenant_id === SYSTEM && tenant.status === "REGISTERED" ? null : STEPS[tenant.status];
    return [
      step && button(step.verb, () => go(tenant, step), step.words ? "" : "primary"),
      tenant.status !== "SUSPENDED" && button("Create a key for it", makeKey),
      tenant.tenant_id !== SYSTEM && button("Delete", () => remove(tenant), "danger push"),
    ];
  }

  function go(tenant, { verb, to, words }) {
    const change = () => act(`The tenant is ${to.toLowerCase()}.`, "PUT", "/status", { status: to });
    return words ? confirm(`${verb} ${tenant.tenant_id}?`, words, `${verb} tenant`, change) : attempt(slot, change);
  }

  function remove(tenant) {
    const words = ["Its keys are refused and it is no longer listed. Nothing of it is removed: it can be restored."];
    return confirm(`Delete ${tenant.tenant_id}?`, words, "Delete tenant", () => act("The tenant is deleted.", "DELETE", ""));
  }

  function makeKey() {
    return attempt(slot, async () => {
      const { document: key } = await send("POST", `${path}/keys`, FIRST_KEY, leave.signal);
      await showNewKey(key.key, key.name);
      await load();
    });
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
