/** Members of a tenant: add, change the role, remove. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Confirm } from "../../components/basics/Dialog";
import { useLoad, useSettled } from "../../components/basics/hooks";
import { paths, words } from "../../core/service/api";
import { isProgram } from "../../core/teams/programs";
import { roleWord } from "../../core/format/words";
import type { Member, User } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { t } from "../../core/format/language";

/** How many known names are offered at once. */
const OFFERED = 100;
export const roles = (): [string, string][] => [["member", t("Member")], ["admin", t("Admin")]];

/** How a membership came about. */
const sourceWord = (of: Member): string => {
  if (of.managed_by) return t("managed by {provider}", { provider: of.managed_by });
  if (isProgram(of.user)) return t("account for a program");
  return of.source === "group" ? t("JupyterHub group") : t("manual");
};
/** Whether the place follows a group, so that it is changed where the groups are. */
const follows = (of: Member): boolean => of.source === "group";
/** Whether a member is left as it is here: its place is changed elsewhere. */
const stays = (of: Member): boolean => follows(of) || isProgram(of.user);

/** What else happens when somebody gets a first tenant of their own; empty when nothing does. */
export function leavesDefault(user: User | undefined, tenant: string): string {
  if (!user || tenant === "default" || user.tenants.join() !== "default") return "";
  const name = user.username;
  return t("{name} is in default only while {name} is in no other team. New work of {name} counts for {tenant}. Running work in default continues.", { name, tenant });
}

/** The same of anybody, for who may not see in which teams people are. */
export const leavesDefaultToo = (tenant: string): string =>
  tenant === "default" ? "" : t("A user who is only in default leaves it: their new work counts for {tenant}. Their work that runs in default continues.", { tenant });

/** What is said once somebody was put into a tenant. */
export function joined(made: Member): string {
  const said = { user: made.user, tenant: made.tenant, note: made.note };
  return made.note ? t("{user} added to {tenant}: {note}", said) : t("{user} added to {tenant}", said);
}

/** `taken`: how many were taken in elsewhere on the page. */
export function Members({ tenant, taken = 0 }: { tenant: string; taken?: number }): JSX.Element {
  const { client } = useHub();
  const members = useLoad(`members ${tenant} ${taken}`, () => client.all<Member>(paths.members(tenant)));
  const [removing, setRemoving] = useState<string | null>(null);
  const items = members.data?.items ?? [];
  const { run, busy, error, clear } = useRun(async () => {
    setRemoving(null);
    await members.reload();
  });
  const columns: Column<Member>[] = [
    { title: t("User"), kind: "name", cell: (m) => m.user },
    {
      title: t("Role"),
      cell: (m) => m.managed_by || isProgram(m.user) ? roleWord(m.role) : (
        <Select
          label={t("Role of {user}", { user: m.user })}
          name={`role-${m.user}`}
          hideLabel
          value={m.role}
          options={roles()}
          onChange={(role) => void run(() => client.put(paths.member(tenant, m.user), { role }), t("{user} is now {role} of {tenant}", { user: m.user, role: roleWord(role).toLowerCase(), tenant }))}
        />
      ),
    },
    // on a narrow page too where it says why there are no buttons
    { title: t("Source"), kind: items.some((m) => m.managed_by) ? "" : "low", cell: (m) => sourceWord(m) },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (m) => stays(m) ? null : (
        <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setRemoving(m.user)} aria-label={t("Remove {user}", { user: m.user })}>
          {t("Remove")}
        </button>
      ),
    },
  ];
  return (
    <section class="mlp-card" aria-label={t("Members")}>
      <div class="mlp-card-head">
        <h2>{t("Members")}</h2>
        {members.data ? <span class="mlp-dim">{items.length}</span> : null}
      </div>
      {members.error ? <ErrorBox error={members.error} retry={() => void members.reload()} /> : null}
      {!members.data && !members.error ? <Loading what={t("Loading members")} lines={3} /> : null}
      {members.data && !items.length ? <Empty title={t("No members yet")} /> : null}
      {items.length ? <Table stack caption={t("Members of {tenant}", { tenant })} columns={columns} rows={items} rowKey={(m) => m.user} /> : null}
      {error && !removing ? <ErrorBox error={error} /> : null}
      <AddMember tenant={tenant} known={items.map((m) => m.user)} added={() => void members.reload()} />
      {removing ? (
        <Confirm
          title={t("Remove {user} from {tenant}?", { user: removing, tenant })}
          text={<p>{t("{user} can start nothing more in {tenant}. Waiting jobs are suspended. Running jobs continue or end, as the team's settings say. The user's notebook server in {tenant} is stopped.", { user: removing, tenant })}</p>}
          yes={t("Remove")}
          busy={busy}
          error={error ? <ErrorBox error={error} /> : null}
          onYes={() => void run(() => client.delete(paths.member(tenant, removing)), t("{user} removed from {tenant}", { user: removing, tenant }))}
          onNo={() => {
            setRemoving(null);
            clear();
          }}
        />
      ) : null}
    </section>
  );
}

function AddMember({ tenant, known, added }: { tenant: string; known: string[]; added: () => void }): JSX.Element {
  const { client, session, say } = useHub();
  // only a platform admin may list people
  const [user, setUser] = useState("");
  const typed = useSettled(user.trim().toLowerCase());
  const users = useLoad(`users ${typed}`, () => (session.admin ? client.list<User>(paths.users(typed, OFFERED)) : Promise.resolve(null)));
  const [role, setRole] = useState("member");
  const [error, setError] = useState<string | null>(null);
  // what came with the last one who was added: a team's own admin could not be told before
  const [came, setCame] = useState("");
  const found = users.data?.items.find((u) => u.username === user.trim());
  const note = found ? leavesDefault(found, tenant) : leavesDefaultToo(tenant);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const name = user.trim();
    if (!name) return setError(t("a user name is needed"));
    if (known.includes(name)) return setError(t("{name} is a member already", { name }));
    try {
      const made = await client.put<Member>(paths.member(tenant, name), { role });
      say(joined(made));
      setCame(made.note ? joined(made) : "");
      setUser("");
      setError(null);
      added();
    } catch (e) {
      setError(words(e));
    }
  };
  return (
    <form class="mlp-add" onSubmit={(e) => void submit(e)} aria-label={t("Add a member to {tenant}", { tenant })} noValidate>
      <Field
        name="user"
        label={t("Add a user")}
        value={user}
        placeholder={t("user name")}
        choices={users.data?.items.map((u) => u.username).filter((name) => !known.includes(name))}
        error={error}
        onInput={(v) => {
          setUser(v);
          setCame("");
          setError(null);
        }}
      />
      <Select label={t("Role")} name="role" hideLabel value={role} options={roles()} onChange={setRole} />
      <button type="submit" class="mlp-button">
        {t("Add")}
      </button>
      {came || note ? <p class="mlp-dim mlp-add-note">{came || note}</p> : null}
    </form>
  );
}
