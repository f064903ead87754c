// The tenant registry, for admins: list and create tenants.

import { getJson, sendJson, withQuery } from "../api.js";
import { supersedingSignals } from "../async.js";
import { asyncButton, checkbox, disableDuring, field, form, input, select, statusBadge, submitButton, viewHeader } from "../controls.js";
import { routedDrawer } from "../dialogs.js";
import { el, fill, userText } from "../dom.js";
import { timestamp } from "../format.js";
import { alertSlot, runOrReport, showToast } from "../messages.js";
import { openOverlay, replaceHash } from "../router.js";
import { loadTable, openOnClick, table } from "../tables.js";
import { openTenant } from "./tenant_drawer.js";

const PAGE = 50;
const MAX_SHOWN = 500;
const STATUSES = ["UNVALIDATED", "VALIDATED", "REGISTERED", "SUSPENDED"];
const COLUMNS = [
  { label: "ID", kind: "lead" }, { label: "Organization" }, { label: "Status" }, { label: "Email" }, { label: "Created", kind: "nowrap" },
];

export function openTenants(root, { query, signal }) {
  const nextSignal = supersedingSignals(signal);
  const slot = alertSlot();
  const moreSlot = alertSlot();
  const rows = table("Tenants", COLUMNS);
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
    slot, rows.box, moreSlot, el("div", { class: "more" }, more), tenantForm((id) => (reload(), open(id)), signal));
  rows.show([], "Loading…");

  const open = (id) => openOverlay("tenants", { status: status.value, tenant: id });
  const optional = (text) => (text ? userText(text) : el("span", { class: "faint" }, "–"));
  const row = (tenant) => rows.row(tenant.tenant_id, [
    el("button", { type: "button", class: "link-button", onclick: () => open(tenant.tenant_id) }, tenant.tenant_id),
    optional(tenant.organization_name),
    statusBadge(tenant.active ? tenant.status : "deleted"),
    optional(tenant.email),
    timestamp(tenant.date_created, "day"),
  ], openOnClick(() => open(tenant.tenant_id)));

  async function loadPage(current, startAt) {
    const found = await getJson(withQuery("/admin/tenants", {
      status: status.value, includeInactive: deleted.box.checked ? "true" : "", pageSize: PAGE, startAt,
    }), current);
    tenants = [...(startAt ? tenants : []), ...found.tenants].slice(0, MAX_SHOWN);
    nextStart = found.moreAvailable && tenants.length < MAX_SHOWN ? found.startAt : null;
    rows.show(tenants.map(row), "No tenants match these filters.");
    more.hidden = !nextStart;
  }

  function reload() {
    fill(moreSlot);
    return loadTable(rows, slot, nextSignal, loadPage);
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
  const emailField = field("Email", email);
  const slot = alertSlot();
  const submit = submitButton("Create tenant");

  const entry = form(() => {
    emailField.setError(/^[^@\s]{1,64}@[^@\s]{1,189}$/.test(email.value.trim()) ? "" : "Enter a valid email address.");
    if (entry.querySelector("[aria-invalid]")) return email.focus();
    return disableDuring(submit, () => runOrReport(slot, async () => {
      const values = { email: email.value.trim(), tenant_id: id.value.trim(), organization_name: name.value.trim() };
      const given = Object.fromEntries(Object.entries(values).filter(([, text]) => text));
      const { status, document } = await sendJson("POST", "/admin/tenants", given, signal);
      const message = status === 201 ? "Tenant created." : "A tenant with this email already exists. Nothing was created.";
      email.value = id.value = name.value = "";
      // Opening the tenant changes the URL. The toast must appear in its drawer, which silences the page behind it.
      addEventListener("hashchange", () => showToast(message), { once: true });
      oncreate(document.tenant_id);
    }));
  },
  el("div", { class: "form-row" }, emailField, field("Tenant ID", id, "Optional. Generated if empty."), field("Organization", name, "Optional.")),
  slot, el("div", {}, submit));
  return el("section", { class: "card stack", "aria-labelledby": "create-tenant" }, el("h3", { id: "create-tenant" }, "Create a tenant"), entry);
}
