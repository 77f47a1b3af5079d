/** Users: who waits for approval, who is active, their tenants, and what may be done to an account. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Confirm, Dialog } from "../../components/basics/Dialog";
import { countChanged, useLoad, useSettled } from "../../components/basics/hooks";
import { paths, type Page } from "../../core/service/api";
import type { Member, Tenant, User } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { joined, leavesDefault, roles } from "../teams/Members";
import { Manage } from "./Account";
import { Import } from "./Import";
import { PageHead, Select } from "../../components/basics/form";
import { href, Link } from "../shared/address";
import { n, t } from "../../core/format/language";

const EVERY = 6000;
const PAGE = 100;
const MOST = 1000;

type Asking = { kind: "refuse" | "tenant" | "manage"; user: User };

function countWords(total: number, search: string, waiting: number): string {
  const all = search ? n('1 user with "{search}"', '{n} users with "{search}"', total, { search }) : n("1 user", "{n} users", total);
  return waiting ? t("{all}, {waiting} waiting for approval", { all, waiting }) : all;
}

export function UsersPage(): JSX.Element {
  const { client, say } = useHub();
  const [approving, setApproving] = useState(false);
  const [importing, setImporting] = useState(false);
  const [asking, setAsking] = useState<Asking | null>(null);
  const [filter, setFilter] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const search = useSettled(filter.trim().toLowerCase());
  const signUps = useLoad("sign-ups", () => client.list<User>(paths.waiting), EVERY);
  const users = useLoad(`users ${search} ${limit}`, () => client.list<User>(paths.users(search, limit)), EVERY);
  // while the next answer is awaited the last one stands
  const last = useRef<Page<User> | null>(null);
  last.current = users.data ?? last.current;
  const page = last.current;
  const waiting = (signUps.data?.items ?? []).filter((u) => u.new);
  const rows = [...waiting.filter((u) => u.username.includes(search)), ...(page?.items ?? []).filter((u) => !u.new)];
  const total = page?.total ?? page?.items.length ?? 0;
  const { run, busy, error, clear } = useRun(async () => {
    setAsking(null);
    setApproving(false);
    countChanged("sign-ups");
    await Promise.all([users.reload(), signUps.reload()]);
  });
  // one after another: each is somebody's, and who fails stays in the list with the others behind
  const approveAll = async (people: User[]): Promise<void> => {
    for (const one of people) await client.put(paths.userAction(one.username, "approve"));
  };
  const close = (): void => {
    setAsking(null);
    setApproving(false);
    clear();
  };
  const columns: Column<User>[] = [
    { title: t("User"), cell: (u) => (u.new ? <b class="mlp-plain">{u.username}</b> : <Link to={href("admin", "users", u.username)}>{u.username}</Link>), kind: "name" },
    {
      title: t("State"),
      kind: "tight",
      cell: (u) => (
        <>
          {u.state === "Actived" ? <Chip kind="good">{t("Active")}</Chip> : u.new ? <Chip kind="wait">{t("Waits for approval")}</Chip> : <Chip kind="idle">{t("Deactivated")}</Chip>}
          {u.admin ? <Chip kind="run">{t("Platform administrator")}</Chip> : null}
          {u.servers ? <Chip kind="good">{n("1 notebook", "{n} notebooks", u.servers)}</Chip> : null}
          {u.applied_for ? <span class="mlp-dim">{" "}{t("applied for {tenant}", { tenant: u.applied_for })}</span> : null}
        </>
      ),
    },
    {
      title: t("Teams"),
      kind: "grow",
      cell: (u) => u.tenants.map((name, i) => (
        <span key={name}>
          {i ? t(", ") : ""}
          <Link to={href("admin", "tenants", name)}>{name}</Link>
        </span>
      )),
    },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (u) => (
        <span class="mlp-row-actions">
          {u.state === "NotActive" ? (
            <button type="button" class="mlp-button mlp-small mlp-primary" disabled={busy} aria-label={t("Approve {name}", { name: u.username })} onClick={() => void run(() => client.put(paths.userAction(u.username, "approve")), u.applied_for ? t("{name} approved, and added to {tenant} instead of default", { name: u.username, tenant: u.applied_for }) : t("{name} approved", { name: u.username }))}>
              {t("Approve")}
            </button>
          ) : null}
          {u.new ? (
            <button type="button" class="mlp-button mlp-small mlp-quiet-danger" aria-label={t("Refuse {name}", { name: u.username })} onClick={() => setAsking({ kind: "refuse", user: u })}>
              {t("Refuse")}
            </button>
          ) : null}
          <button type="button" class="mlp-button mlp-small" aria-label={t("Add to team: {name}", { name: u.username })} onClick={() => setAsking({ kind: "tenant", user: u })}>
            {t("Add to team")}
          </button>
          {u.new ? null : (
            <button type="button" class="mlp-button mlp-small" aria-label={t("Manage {name}", { name: u.username })} onClick={() => setAsking({ kind: "manage", user: u })}>
              {t("Manage")}
            </button>
          )}
        </span>
      ),
    },
  ];
  const box = error ? <ErrorBox error={error} /> : null;
  return (
    <>
      {importing ? (
        <Import
          done={async () => {
            await Promise.all([users.reload(), signUps.reload()]);
          }}
          close={() => setImporting(false)}
        />
      ) : null}
      <PageHead title={t("Users")} sub={page ? countWords(total, search, waiting.length) : undefined}>
        {waiting.length > 1 ? (
          <button type="button" class="mlp-button" disabled={busy} onClick={() => setApproving(true)}>
            {t("Approve all {n}", { n: waiting.length })}
          </button>
        ) : null}
        <button type="button" class="mlp-button" onClick={() => setImporting(true)}>
          {t("Import people")}
        </button>
        <label class="mlp-inline">
          <span class="mlp-hidden">{t("Find a user")}</span>
          <input class="mlp-input" type="search" placeholder={t("Find a user")} value={filter} onInput={(e) => setFilter(e.currentTarget.value)} />
        </label>
      </PageHead>
      {users.error ? <ErrorBox error={users.error} retry={() => void users.reload()} /> : null}
      {!asking && !approving ? box : null}
      {!page ? (
        users.error ? null : <Loading what={t("Loading users")} lines={5} />
      ) : rows.length ? (
        <>
          <Table stack caption={t("Users, those waiting for approval first")} columns={columns} rows={rows} rowKey={(u) => u.username} />
          {page.next && limit < MOST ? (
            <p class="mlp-more">
              <button type="button" class="mlp-button" onClick={() => setLimit((shown) => Math.min(MOST, shown + PAGE))}>
                {t("Show more")}
              </button>
            </p>
          ) : null}
          {page.next && limit >= MOST ? <p class="mlp-dim mlp-more">{t("The first {n} by name; search for a part of a name to find others.", { n: MOST })}</p> : null}
        </>
      ) : (
        <Empty title={filter ? t('No user name contains "{filter}"', { filter }) : t("No users yet")} />
      )}
      {asking?.kind === "manage" ? <Manage user={asking.user} run={run} busy={busy} error={box} close={close} /> : null}
      {approving ? (
        <Confirm
          title={t("Approve all who wait?")}
          text={
            <ul>
              {waiting.map((one) => (
                <li key={one.username}>
                  {one.username} {one.applied_for ? <span class="mlp-dim">{t("applied for {tenant}", { tenant: one.applied_for })}</span> : null}
                </li>
              ))}
            </ul>
          }
          yes={t("Approve all {n}", { n: waiting.length })}
          no={t("Not now")}
          busy={busy}
          error={box}
          onYes={() => void run(() => approveAll(waiting), n("1 approved", "{n} approved", waiting.length))}
          onNo={close}
        />
      ) : null}
      {asking?.kind === "refuse" ? (
        <Confirm
          title={t("Refuse {name}?", { name: asking.user.username })}
          text={<p>{t("The account that {name} asked for is removed, and the name is free again. The person is not notified.", { name: asking.user.username })}</p>}
          yes={t("Refuse")}
          no={t("Not now")}
          busy={busy}
          error={box}
          onYes={() => void run(() => client.delete(paths.user(asking.user.username)), t("{name} refused", { name: asking.user.username }))}
          onNo={close}
        />
      ) : null}
      {asking?.kind === "tenant" ? (
        <AddToTenant
          user={asking.user}
          busy={busy}
          error={box}
          close={close}
          add={(tenant, role) => void run(async () => say(joined(await client.put<Member>(paths.member(tenant, asking.user.username), { role }))))}
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
  const tenants = useLoad("tenants", () => client.all<Tenant>(paths.tenants));
  const free = (tenants.data?.items ?? []).filter((one) => !user.tenants.includes(one.name)).map((one) => one.name);
  const [chosen, setChosen] = useState("");
  const [role, setRole] = useState("member");
  const tenant = chosen || (free[0] ?? "");
  return (
    <Dialog title={t("Add {name} to a team", { name: user.username })} onClose={close}>
      {tenants.error ? <ErrorBox error={tenants.error} /> : null}
      {!tenants.data && !tenants.error ? <Loading what={t("Loading teams")} lines={2} /> : null}
      {tenants.data && !free.length ? <p class="mlp-dialog-text">{t("{name} is in every team already.", { name: user.username })}</p> : null}
      {free.length ? (
        <div class="mlp-dialog-fields">
          <Select label={t("Team")} name="tenant" value={tenant} options={free.map((name) => [name, name])} onChange={setChosen} />
          <Select label={t("Role")} name="role" value={role} options={roles()} onChange={setRole} />
        </div>
      ) : null}
      {free.length && leavesDefault(user, tenant) ? <p class="mlp-dialog-text">{leavesDefault(user, tenant)}</p> : null}
      {error}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" onClick={close}>
          {t("Close")}
        </button>
        <button type="button" class="mlp-button mlp-primary" disabled={busy || !tenant} onClick={() => add(tenant, role)}>
          {t("Add")}
        </button>
      </div>
    </Dialog>
  );
}
