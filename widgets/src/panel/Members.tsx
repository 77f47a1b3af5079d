/** Members of a tenant: add, change the role, remove. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, Table, type Column } from "../components/basics";
import { Confirm } from "../components/Dialog";
import { useLoad } from "../components/hooks";
import { paths, words } from "../core/api";
import type { Member, User } from "../core/wire";
import { useHub, useRun } from "./context";
import { Field, Select } from "./form";

const ROLES: [string, string][] = [["member", "Member"], ["admin", "Admin"]];

/** What else happens when somebody gets a first tenant of their own; empty when nothing does. */
export function leavesDefault(user: User | undefined, tenant: string): string {
  if (!user || tenant === "default" || user.tenants.join() !== "default") return "";
  const name = user.username;
  return `${name} is in default only as long as in no other tenant: what ${name} starts from then on counts for ${tenant}. What runs in default goes on.`;
}

export function Members({ tenant }: { tenant: string }): JSX.Element {
  const { client } = useHub();
  const members = useLoad(`members ${tenant}`, () => client.list<Member>(paths.members(tenant)));
  const [removing, setRemoving] = useState<string | null>(null);
  const items = members.data?.items ?? [];
  const { run, busy, error, clear } = useRun(async () => {
    setRemoving(null);
    await members.reload();
  });
  const columns: Column<Member>[] = [
    { title: "User", kind: "grow", cell: (m) => m.user },
    {
      title: "Role",
      cell: (m) => (
        <Select
          label={`Role of ${m.user}`}
          name={`role-${m.user}`}
          hideLabel
          value={m.role}
          options={ROLES}
          onChange={(role) => void run(() => client.put(paths.member(tenant, m.user), { role }), `${m.user} is now ${role} of ${tenant}`)}
        />
      ),
    },
    { title: "From", kind: "low", cell: (m) => (m.source === "group" ? "JupyterHub group" : m.source) },
    {
      title: "",
      kind: "num",
      cell: (m) => (
        <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setRemoving(m.user)} aria-label={`Remove ${m.user}`}>
          Remove
        </button>
      ),
    },
  ];
  return (
    <section class="mlp-card" aria-label="Members">
      <div class="mlp-card-head">
        <h2>Members</h2>
        {members.data ? <span class="mlp-dim">{items.length}</span> : null}
      </div>
      {members.error ? <ErrorBox error={members.error} retry={() => void members.reload()} /> : null}
      {!members.data && !members.error ? <Loading what="members" lines={3} /> : null}
      {members.data && !items.length ? <Empty title="No members yet" /> : null}
      {items.length ? <Table caption={`Members of ${tenant}`} columns={columns} rows={items} rowKey={(m) => m.user} /> : null}
      {error && !removing ? <ErrorBox error={error} /> : null}
      <AddMember tenant={tenant} known={items.map((m) => m.user)} added={() => void members.reload()} />
      {removing ? (
        <Confirm
          title={`Remove ${removing} from ${tenant}?`}
          text={<p>{`${removing} can start nothing more in ${tenant}. Jobs that run go on, those that wait are suspended, and a notebook server in ${tenant} is stopped.`}</p>}
          yes="Remove"
          busy={busy}
          error={error ? <ErrorBox error={error} /> : null}
          onYes={() => void run(() => client.delete(paths.member(tenant, removing)), `${removing} removed from ${tenant}`)}
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
  const users = useLoad("users", () => (session.admin ? client.list<User>(paths.users) : Promise.resolve({ items: [], next: null })));
  const [user, setUser] = useState("");
  const [role, setRole] = useState("member");
  const [error, setError] = useState<string | null>(null);
  const note = leavesDefault(users.data?.items.find((u) => u.username === user.trim()), tenant);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const name = user.trim();
    if (!name) return setError("a user name is needed");
    if (known.includes(name)) return setError(`${name} is a member already`);
    try {
      await client.put(paths.member(tenant, name), { role });
      say(`${name} added to ${tenant}`);
      setUser("");
      setError(null);
      added();
    } catch (e) {
      setError(words(e));
    }
  };
  return (
    <form class="mlp-add" onSubmit={(e) => void submit(e)} aria-label={`Add a member to ${tenant}`} noValidate>
      <Field
        name="user"
        label="Add a user"
        value={user}
        placeholder="user name"
        choices={users.data?.items.map((u) => u.username).filter((name) => !known.includes(name))}
        error={error}
        onInput={(v) => {
          setUser(v);
          setError(null);
        }}
      />
      <Select label="Role" name="role" hideLabel value={role} options={ROLES} onChange={setRole} />
      <button type="submit" class="mlp-button">
        Add
      </button>
      {note ? <p class="mlp-dim mlp-add-note">{note}</p> : null}
    </form>
  );
}
