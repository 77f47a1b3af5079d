/** Users: who waits for approval, who is active, their tenants. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../components/basics";
import { Confirm, Dialog } from "../components/Dialog";
import { signUpsChanged, useLoad } from "../components/hooks";
import { paths } from "../core/api";
import { plural } from "../core/format";
import type { Tenant, User } from "../core/wire";
import { useHub, useRun } from "./context";
import { leavesDefault } from "./Members";
import { PageHead, Select } from "./form";
import { href, Link } from "./router";

const EVERY = 6000;

type Asking = { kind: "deactivate" | "refuse" | "tenant"; user: User };

export function UsersPage(): JSX.Element {
  const { client, session } = useHub();
  const users = useLoad("users", () => client.list<User>("/users"), EVERY);
  const [asking, setAsking] = useState<Asking | null>(null);
  const [filter, setFilter] = useState("");
  const all = users.data?.items ?? [];
  const waiting = all.filter((u) => u.new);
  const rows = [...waiting, ...all.filter((u) => !u.new)].filter((u) => u.username.toLowerCase().includes(filter.toLowerCase()));
  const { run, busy, error, clear } = useRun(async () => {
    setAsking(null);
    signUpsChanged();
    await users.reload();
  });
  const close = (): void => {
    setAsking(null);
    clear();
  };
  const columns: Column<User>[] = [
    { title: "User", cell: (u) => <b class="mlp-plain">{u.username}</b>, kind: "name" },
    {
      title: "State",
      kind: "tight",
      cell: (u) => (
        <>
          {u.state === "Actived" ? <Chip kind="good">Active</Chip> : u.new ? <Chip kind="wait">Waits for approval</Chip> : <Chip kind="idle">Deactivated</Chip>}
          {u.admin ? <Chip kind="run">Admin</Chip> : null}
          {u.applied_for ? <span class="mlp-dim">{` applied for ${u.applied_for}`}</span> : null}
        </>
      ),
    },
    {
      title: "Tenants",
      kind: "grow",
      cell: (u) => u.tenants.map((t, i) => (
        <span key={t}>
          {i ? ", " : ""}
          <Link to={href("admin", "tenants", t)}>{t}</Link>
        </span>
      )),
    },
    {
      title: "",
      kind: "num",
      cell: (u) => (
        <span class="mlp-row-actions">
          {u.state === "NotActive" ? (
            <button type="button" class="mlp-button mlp-small mlp-primary" disabled={busy} aria-label={`Approve ${u.username}`} onClick={() => void run(() => client.put(paths.approve(u.username)), `${u.username} approved`)}>
              Approve
            </button>
          ) : null}
          {u.new ? (
            <button type="button" class="mlp-button mlp-small mlp-quiet-danger" aria-label={`Refuse ${u.username}`} onClick={() => setAsking({ kind: "refuse", user: u })}>
              Refuse
            </button>
          ) : null}
          <button type="button" class="mlp-button mlp-small" aria-label={`Add ${u.username} to a tenant`} onClick={() => setAsking({ kind: "tenant", user: u })}>
            Add to tenant
          </button>
          {u.state === "Actived" && u.username !== session.username ? (
            <button type="button" class="mlp-button mlp-small mlp-quiet-danger" aria-label={`Deactivate ${u.username}`} onClick={() => setAsking({ kind: "deactivate", user: u })}>
              Deactivate
            </button>
          ) : null}
        </span>
      ),
    },
  ];
  const box = error ? <ErrorBox error={error} /> : null;
  return (
    <>
      <PageHead title="Users" sub={users.data ? `${plural(all.length, "user")}${waiting.length ? `, ${waiting.length} waiting for approval` : ""}` : undefined}>
        <label class="mlp-inline">
          <span class="mlp-hidden">Find a user</span>
          <input class="mlp-input" type="search" placeholder="Find a user" value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        </label>
      </PageHead>
      {users.error ? <ErrorBox error={users.error} retry={() => void users.reload()} /> : null}
      {!asking ? box : null}
      {!users.data ? (
        users.error ? null : <Loading what="users" lines={5} />
      ) : rows.length ? (
        <Table stack caption="Users, those waiting for approval first" columns={columns} rows={rows} rowKey={(u) => u.username} />
      ) : (
        <Empty title={filter ? `No user's name holds "${filter}"` : "No users yet"} />
      )}
      {asking?.kind === "deactivate" ? (
        <Confirm
          title={`Deactivate ${asking.user.username}?`}
          text={<p>{`${asking.user.username} can no longer log in until approved again. Files and records stay.`}</p>}
          yes="Deactivate"
          busy={busy}
          error={box}
          onYes={() => void run(() => client.put(paths.user(asking.user.username)), `${asking.user.username} deactivated`)}
          onNo={close}
        />
      ) : null}
      {asking?.kind === "refuse" ? (
        <Confirm
          title={`Refuse ${asking.user.username}?`}
          text={<p>{`The account that ${asking.user.username} asked for is removed, and the name is free again. They are not told.`}</p>}
          yes="Refuse"
          no="Not now"
          busy={busy}
          error={box}
          onYes={() => void run(() => client.delete(paths.user(asking.user.username)), `${asking.user.username} refused`)}
          onNo={close}
        />
      ) : null}
      {asking?.kind === "tenant" ? (
        <AddToTenant
          user={asking.user}
          busy={busy}
          error={box}
          close={close}
          add={(tenant, role) => void run(() => client.put(paths.member(tenant, asking.user.username), { role }), `${asking.user.username} added to ${tenant}`)}
        />
      ) : null}
    </>
  );
}

function AddToTenant({ user, busy, error, close, add }: {
  user: User;
  busy: boolean;
  error: JSX.Element | null;
  close: () => void;
  add: (tenant: string, role: string) => void;
}): JSX.Element {
  const { client } = useHub();
  const tenants = useLoad("tenants", () => client.list<Tenant>(paths.tenants));
  const free = (tenants.data?.items ?? []).filter((t) => !user.tenants.includes(t.name)).map((t) => t.name);
  const [chosen, setChosen] = useState("");
  const [role, setRole] = useState("member");
  const tenant = chosen || (free[0] ?? "");
  return (
    <Dialog title={`Add ${user.username} to a tenant`} onClose={close}>
      {tenants.error ? <ErrorBox error={tenants.error} /> : null}
      {!tenants.data && !tenants.error ? <Loading what="tenants" lines={2} /> : null}
      {tenants.data && !free.length ? <p class="mlp-dialog-text">{`${user.username} is in every tenant already.`}</p> : null}
      {free.length ? (
        <div class="mlp-dialog-fields">
          <Select label="Tenant" name="tenant" value={tenant} options={free.map((t) => [t, t])} onChange={setChosen} />
          <Select label="Role" name="role" value={role} options={[["member", "Member"], ["admin", "Admin"]]} onChange={setRole} />
        </div>
      ) : null}
      {free.length && leavesDefault(user, tenant) ? <p class="mlp-dialog-text">{leavesDefault(user, tenant)}</p> : null}
      {error}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" onClick={close}>
          Close
        </button>
        <button type="button" class="mlp-button mlp-primary" disabled={busy || !tenant} onClick={() => add(tenant, role)}>
          Add
        </button>
      </div>
    </Dialog>
  );
}
