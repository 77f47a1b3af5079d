/** The machines as a map of who uses what. */
import type { JSX } from "preact";
import { Chip, Empty, ErrorBox, Loading, QuotaBar } from "../components/basics";
import { useLoad } from "../components/hooks";
import { cores, plural, ram, trim } from "../core/format";
import { alone } from "../core/sharing";
import type { Holding, Node } from "../core/wire";
import { useHub } from "./context";
import { PageHead } from "./form";

const EVERY = 5000;

/** One colour per user, the same on all nodes. */
function colorOf(users: string[], user: string): string {
  return `mlp-share-${users.indexOf(user) % 8}`;
}

function Shares({ node, users, what }: { node: Node; users: string[]; what: "cpu" | "ram" }): JSX.Element {
  const whole = what === "cpu" ? node.cpu_allocatable : node.ram_allocatable;
  const used = what === "cpu" ? node.cpu_inuse : node.ram_inuse;
  const show = what === "cpu" ? (n: number) => `${cores(n)} cpu` : ram;
  const holders = node.holders.filter((h) => h[what] > 0);
  const name = what === "cpu" ? "CPU" : "Memory";
  return (
    <div class="mlp-shares">
      <span class="mlp-quota-name">{name}</span>
      <div class="mlp-shares-bar" aria-hidden="true">
        {holders.map((h) => (
          <span
            key={`${h.applier}${h.holder}${h.user}`}
            class={`mlp-share ${colorOf(users, h.user)}`}
            style={{ width: `${whole > 0 ? Math.min(100, (h[what] / whole) * 100) : 0}%` }}
            title={`${h.holder} of ${h.user}: ${show(h[what])}`}
          />
        ))}
      </div>
      <span class="mlp-quota-text">
        {show(used)} of {show(whole)}
      </span>
    </div>
  );
}

/** Why more cores can be in use than there are. */
function Overcommit({ node }: { node: Node }): JSX.Element | null {
  if (node.cpu_allocatable <= node.cpu) return null;
  return (
    <p class="mlp-dim">
      {`Each of the ${plural(node.cpu, "core")} is given out ${trim(node.cpu_allocatable / node.cpu, 2)} times, because most work leaves cores idle: ${cores(node.cpu_allocatable)} cpu in all. `}
      Set by <code>MLP_NODE_CPU_OVERCOMMIT</code>; memory is given out once.
    </p>
  );
}

function holderText(h: Holding): string {
  return [`${cores(h.cpu)} cpu`, h.gpu ? `${cores(h.gpu)} gpu` : "", ram(h.ram)].filter(Boolean).join(", ");
}

export function NodesPage(): JSX.Element {
  const { client } = useHub();
  const nodes = useLoad("nodes", () => client.list<Node>("/nodes"), EVERY);
  const items = nodes.data?.items ?? [];
  const users = [...new Set(items.flatMap((n) => n.holders.map((h) => h.user)))].sort();
  return (
    <>
      <PageHead title="Nodes" sub={nodes.data ? `${plural(items.length, "node")}, ${items.filter((n) => n.up).length} up` : undefined} />
      {nodes.error ? <ErrorBox error={nodes.error} retry={() => void nodes.reload()} /> : null}
      {!nodes.data && !nodes.error ? <Loading what="nodes" lines={5} /> : null}
      {nodes.data && !items.length ? <Empty title="No nodes"><p>The service knows of no machine to run jobs on.</p></Empty> : null}
      {users.length ? (
        <ul class="mlp-user-legend" aria-label="Users">
          {users.map((u) => (
            <li key={u}>
              <i class={`mlp-share ${colorOf(users, u)}`} />
              {u}
            </li>
          ))}
        </ul>
      ) : null}
      <div class="mlp-nodes">
        {items.map((n) => (
          <section key={n.name} class="mlp-card" aria-label={`Node ${n.name}`}>
            <div class="mlp-card-head">
              <h2>{n.name}</h2>
              <Chip kind={n.up ? "good" : "bad"}>{n.up ? "Up" : "Down"}</Chip>
              <span class="mlp-dim">{`${plural(n.cpu, "core")}, ${ram(n.ram)}${n.gpu ? `, ${cores(n.gpu)} gpu ${n.gpu_kind ?? ""}` : ""}`}</span>
            </div>
            <Shares node={n} users={users} what="cpu" />
            <Shares node={n} users={users} what="ram" />
            <Overcommit node={n} />
            {n.gpu ? <QuotaBar name="GPU" of={alone(n.gpu_inuse, n.gpu)} show={cores} /> : null}
            {n.holders.length ? (
              <ul class="mlp-holders">
                {n.holders.map((h) => (
                  <li key={`${h.applier}${h.holder}${h.user}`}>
                    <i class={`mlp-share ${colorOf(users, h.user)}`} />
                    <span class="mlp-holder-name">{h.holder}</span>
                    <span class="mlp-dim">{h.user}</span>
                    <span class="mlp-holder-need">{holderText(h)}</span>
                  </li>
                ))}
              </ul>
            ) : (
              <p class="mlp-dim">Nobody uses it.</p>
            )}
          </section>
        ))}
      </div>
    </>
  );
}
