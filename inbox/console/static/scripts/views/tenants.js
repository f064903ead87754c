// The tenant registry, for admins: list and create tenants, and a drawer with a tenant's audit log and actions.

import { getJson, sendJson, withQuery } from "../api.js";
import { supersedingSignals } from "../async.js";
import { asyncButton, checkbox, field, form, formCard, input, select, statusBadge, viewHeader } from "../controls.js";
import { confirmAction, openDrawer, routedDrawer } from "../dialogs.js";
import { el, fill, userText } from "../dom.js";
import { timestamp } from "../format.js";
import { alertSlot, runOrReport, showToast } from "../messages.js";
import { openOverlay, replaceHash } from "../router.js";
import { loadTable, openOnClick, table } from "../tables.js";
import { showNewKey } from "./keys.js";

const PAGE_SIZE = 50;
const MAX_SHOWN = 500;
const STATUSES = ["UNVALIDATED", "VALIDATED", "REGISTERED", "SUSPENDED"];
const COLUMNS = [
  { label: "ID", kind: "lead" }, { label: "Organization" }, { label: "Status" }, { label: "Email" }, { label: "Created", kind: "nowrap" },
];

export function openTenants(root, { query, signal }) {
  const nextSignal = supersedingSignals(signal);
  const slot = alertSlot();
  const moreSlot = alertSlot();
  const tableView = table("Tenants", COLUMNS);
  const status = select([["", "Any"], ...STATUSES.map((each) => [each, each])], query.status);
  const deleted = checkbox("Show deleted");
  const more = asyncButton("Load more", () => runOrReport(moreSlot, () => loadPage(nextSignal(), nextStart)), "", { hidden: true });
  let tenants = [];
  let nextStart = null;
  status.addEventListener("change", () => (replaceHash("tenants", { status: status.value }), reload()));
  deleted.box.addEventListener("change", reload);

  root.append(
    viewHeader("Tenants", "Each tenant has its own keys, inboxes and events, isolated from all others."),
    el("section", { class: "card filters", "aria-label": "Filters" }, field("Status", status), deleted),
    slot, tableView.box, moreSlot, el("div", { class: "more" }, more), tenantForm((id) => (reload(), open(id)), signal));
  tableView.show([], "Loading…");

  const open = (id) => openOverlay("tenants", { status: status.value, tenant: id });
  const textOrDash = (text) => (text ? userText(text) : el("span", { class: "faint" }, "–"));
  const row = (tenant) => tableView.row(tenant.tenant_id, [
    el("button", { type: "button", class: "link-button", onclick: () => open(tenant.tenant_id) }, tenant.tenant_id),
    textOrDash(tenant.organization_name),
    statusBadge(tenant.active ? tenant.status : "deleted"),
    textOrDash(tenant.email),
    timestamp(tenant.date_created, "day"),
  ], openOnClick(() => open(tenant.tenant_id)));

  async function loadPage(runSignal, startAt) {
    const found = await getJson(withQuery("/admin/tenants", {
      status: status.value, includeInactive: deleted.box.checked ? "true" : "", pageSize: PAGE_SIZE, startAt,
    }), runSignal);
    tenants = [...(startAt ? tenants : []), ...found.tenants].slice(0, MAX_SHOWN);
    nextStart = found.moreAvailable && tenants.length < MAX_SHOWN ? found.startAt : null;
    tableView.show(tenants.map(row), "No tenants match these filters.");
    more.hidden = !nextStart;
  }

  function reload() {
    fill(moreSlot);
    return loadTable(tableView, slot, nextSignal, loadPage);
  }

  const showDrawer = routedDrawer(
    (id, leave) => openTenant(id, { onchange: reload, leave }),
    () => replaceHash("tenants", { status: status.value }), signal);

  reload();
  showDrawer(query.tenant);
  return {
    update: ({ status: wanted = "", tenant }) => {
      const changed = wanted !== status.value;
      status.value = wanted;
      if (changed) reload();
      showDrawer(tenant);
    },
  };
}

function tenantForm(oncreate, signal) {
  const email = input({ type: "email", placeholder: "ops@acme.example" });
  const id = input({ class: "code", placeholder: "acme" });
  const name = input({ placeholder: "Acme Corp." });
  const emailError = (text) => (/^[^@\s]{1,64}@[^@\s]{1,189}$/.test(text.trim()) ? "" : "Enter a valid email address.");

  async function create() {
    const { status, document } = await sendJson("POST", "/admin/tenants", {
      email: email.value.trim(), tenant_id: id.value.trim() || undefined, organization_name: name.value.trim() || undefined,
    }, signal);
    const message = status === 201 ? "Tenant created." : "A tenant with this email address already exists. Nothing was created.";
    email.value = id.value = name.value = "";
    // The toast must be in the drawer: screen readers do not announce changes behind a modal dialog.
    addEventListener("hashchange", () => showToast(message), { once: true });
    oncreate(document.tenant_id);
  }
  return formCard("Create a tenant", form("Create tenant", create, el("div", { class: "form-row" },
    field("Email", email, { check: emailError }),
    field("Tenant ID", id, { hint: "Optional. Generated if empty." }),
    field("Organization", name, { hint: "Optional." }))));
}

const AUDIT_LIMIT = 50;
const SYSTEM = "system";
const NEW_KEY = { name: "created in console", scopes: ["events:write", "events:read", "inbox:read", "tenant:manage"] };

const VALIDATE = { verb: "Validate", to: "VALIDATED" };
const REGISTER = { verb: "Register", to: "REGISTERED" };
const SUSPEND = { verb: "Suspend", to: "SUSPENDED", confirmation: ["Its API keys stop working until you resume it. Its events are kept."] };

// Returns the status changes to offer: the button's label, the new status, and the text of the confirmation, if any.
function statusChanges(tenant) {
  if (tenant.status === "SUSPENDED") return [{ verb: "Resume", to: tenant.status_before_suspension }];
  const next = { UNVALIDATED: [VALIDATE], VALIDATED: [REGISTER], REGISTERED: [] }[tenant.status];
  return tenant.tenant_id === SYSTEM ? next : [...next, SUSPEND];
}

function openTenant(id, { onchange, leave }) {
  const path = `/admin/tenants/${encodeURIComponent(id)}`;
  const slot = alertSlot();
  const facts = el("div", {});
  const audit = el("div", {});
  const { head, foot, opened } = openDrawer("Tenant", id, [slot, facts, audit], leave);

  async function load() {
    const [tenant, entries] = await Promise.all(
      [path, `${path}/audit?pageSize=${AUDIT_LIMIT}`].map((each) => getJson(each, opened.signal)));
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

  const send = (method, subpath, body) => sendJson(method, path + subpath, body, opened.signal);

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
    if (!(await runOrReport(slot, async () => (key = (await send("POST", "/keys", NEW_KEY)).document)))) return;
    await showNewKey(key);
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
