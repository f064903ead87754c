// The registry of tenants, for whoever runs the service.

import { get, send, withQuery } from "../api.js";
import { latest } from "../async.js";
import { busy, busyButton, check, field, form, input, select, statusBadge, submit, viewHead } from "../controls.js";
import { addressedDrawer } from "../dialogs.js";
import { el, fill, foreign } from "../dom.js";
import { time } from "../format.js";
import { alertSlot, attempt, say } from "../messages.js";
import { goOver, note } from "../router.js";
import { load, opening, table } from "../tables.js";
import { openTenant } from "./tenant_drawer.js";

const PAGE = 50;
const MOST_SHOWN = 500;
const STATUSES = ["UNVALIDATED", "VALIDATED", "REGISTERED", "SUSPENDED"];
const COLUMNS = [
  { label: "Id", kind: "lead" }, { label: "Name" }, { label: "Status" }, { label: "E-mail" }, { label: "Created", kind: "nowrap" },
];

export function openTenants(root, { query, signal }) {
  const turn = latest(signal);
  const slot = alertSlot();
  const moreSlot = alertSlot();
  const rows = table("Tenants", COLUMNS);
  const status = select([["", "any"], ...STATUSES.map((each) => [each, each])], query.status);
  const deleted = check("Show deleted ones");
  const more = busyButton("Load more", () => attempt(moreSlot, () => page(turn(), next)), "", { hidden: true });
  let tenants = [];
  let next = null;
  status.addEventListener("change", () => (note("tenants", { status: status.value }), reload()));
  deleted.box.addEventListener("change", reload);

  root.append(
    viewHead("Tenants", "Each tenant has its own keys, inboxes and events, and sees nothing of the others."),
    el("section", { class: "card filters", "aria-label": "Filters" }, field("Status", status), deleted),
    slot, rows.box, moreSlot, el("div", { class: "more" }, more), tenantCreation((id) => (reload(), open(id)), signal));
  rows.show([], "Loading …");

  const open = (id) => goOver("tenants", { status: status.value, tenant: id });
  const row = (tenant) => rows.row(tenant.tenant_id, [
    el("button", { type: "button", class: "link-button", onclick: () => open(tenant.tenant_id) }, tenant.tenant_id),
    tenant.organization_name ? foreign(tenant.organization_name) : el("span", { class: "faint" }, "–"),
    statusBadge(tenant.active ? tenant.status : "deleted"),
    tenant.email ? foreign(tenant.email) : el("span", { class: "faint" }, "–"),
    time(tenant.date_created, "day"),
  ], opening(() => open(tenant.tenant_id)));

  async function page(until, startAt) {
    const found = await get(withQuery("/admin/tenants", {
      status: status.value, includeInactive: deleted.box.checked ? "true" : "", pageSize: PAGE, startAt,
    }), until);
    tenants = [...(startAt ? tenants : []), ...found.tenants].slice(0, MOST_SHOWN);
    next = found.moreAvailable && tenants.length < MOST_SHOWN ? found.startAt : null;
    rows.show(tenants.map(row), "No tenant matches.");
    more.hidden = !next;
  }

  function reload() {
    fill(moreSlot);
    return load(rows, slot, turn, page);
  }

  const drawer = addressedDrawer(
    (id, leave) => openTenant(id, { changed: reload, leave }),
    () => note("tenants", { status: status.value }), signal);

  reload();
  drawer(query.tenant);
  return {
    update: ({ status: wanted = "", tenant }) => {
      const others = wanted !== status.value;
      status.value = wanted;
      if (others) reload();
      drawer(tenant);
    },
  };
}

function tenantCreation(made, signal) {
  const email = input({ type: "email", placeholder: "ops@acme.example" });
  const id = input({ class: "code", placeholder: "acme" });
  const name = input({ placeholder: "Acme Corp." });
  const emailField = field("E-mail", email);
  const slot = alertSlot();
  const make = submit("Create tenant");

  const entry = form(() => {
    emailField.fault(/^[^@\s]{1,64}@[^@\s]{1,189}$/.test(email.value.trim()) ? "" : "Has to be an e-mail address.");
    if (entry.querySelector("[aria-invalid]")) return email.focus();
    return busy(make, () => attempt(slot, async () => {
      const given = { email: email.value.trim(), tenant_id: id.value.trim(), organization_name: name.value.trim() };
      const filled = Object.fromEntries(Object.entries(given).filter(([, text]) => text));
      const { status, document } = await send("POST", "/admin/tenants", filled, signal);
      const words = status === 201 ? "The tenant is there." : "This tenant has the e-mail already. Nothing was made.";
      email.value = id.value = name.value = "";
      // In the drawer that opens with the address, since everything behind it is silent.
      addEventListener("hashchange", () => say(words), { once: true });
      made(document.tenant_id);
    }));
  },
  el("div", { class: "form-row" }, emailField, field("Tenant id", id, "Optional: without it the tenant gets one."), field("Organisation", name, "Optional.")),
  slot, el("div", {}, make));
  return el("section", { class: "card stack", "aria-labelledby": "create-tenant" }, el("h3", { id: "create-tenant" }, "Create a tenant"), entry);
}
