/** The machines as a map of who uses what. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, QuotaBar } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { capital } from "../../core/format/reasons";
import { cores, cpus, gpus, ram, sizeWords, trim } from "../../core/format/format";
import { alone } from "../../core/teams/sharing";
import { replicaName } from "../../core/jobs/runs";
import type { Holding, Node, NodeCondition } from "../../core/service/wire";
import { rich } from "../../components/basics/language";
import { useHub } from "../shared/context";
import { Drain } from "./Drain";
import { PageHead } from "../../components/basics/form";
import { n, t } from "../../core/format/language";

const EVERY = 5000;

/** One colour per user, the same on all nodes. */
function colorOf(users: string[], user: string): string {
  return `mlp-share-${users.indexOf(user) % 8}`;
}

const holderName = (h: Holding): string => (h.app ? replicaName(h.app, h.replica) : (h.job ?? h.holder));

function Shares({ node, users, what }: { node: Node; users: string[]; what: "cpu" | "ram" }): JSX.Element {
  const whole = what === "cpu" ? node.cpu_allocatable : node.ram_allocatable;
  const used = what === "cpu" ? node.cpu_inuse : node.ram_inuse;
  const show = what === "cpu" ? cpus : ram;
  const holders = node.holders.filter((h) => h[what] > 0);
  const name = what === "cpu" ? t("CPU") : t("Memory");
  return (
    <div class="mlp-shares">
      <span class="mlp-quota-name">{name}</span>
      <div class="mlp-shares-bar" aria-hidden="true">
        {holders.map((h) => (
          <span
            key={`${h.applier}${h.holder}${h.user}`}
            class={`mlp-share ${colorOf(users, h.user)}`}
            style={{ width: `${whole > 0 ? Math.min(100, (h[what] / whole) * 100) : 0}%` }}
            title={t("{holder} of {user}: {amount}", { holder: holderName(h), user: h.user, amount: show(h[what]) })}
          />
        ))}
      </div>
      <span class="mlp-quota-text">
        {t("{some} of {all}", { some: show(used), all: show(whole) })}
      </span>
    </div>
  );
}

/** Why more cores can be in use than there are. */
function Overcommit({ node }: { node: Node }): JSX.Element | null {
  if (node.cpu_allocatable <= node.cpu) return null;
  return (
    <p class="mlp-dim">
      {rich(
        n(
          "The hub gives out the 1 core {times} times, {all} in all, because most work leaves cores idle. Set by {setting}; memory is given out once.",
          "The hub gives out each of the {n} cores {times} times, {all} in all, because most work leaves cores idle. Set by {setting}; memory is given out once.",
          node.cpu, { times: trim(node.cpu_allocatable / node.cpu, 2), all: cpus(node.cpu_allocatable) },
        ),
        { setting: <code>MLP_NODE_CPU_OVERCOMMIT</code> },
      )}
    </p>
  );
}

/** What nobody here can be given, because others than the hub hold it. */
function Others({ node }: { node: Node }): JSX.Element | null {
  const held = { cpu: node.cpu_others, ram: node.ram_others, gpu: node.gpu_others };
  if (!held.cpu && !held.ram && !held.gpu) return null;
  return <p class="mlp-dim">{t("Workloads outside the hub use {amount}, which the hub does not give out.", { amount: sizeWords({ ...held, gpu_kind: node.gpu_kind }) })}</p>;
}

const CONDITIONS: Record<NodeCondition["kind"], () => string> = {
  NotReady: () => t("Down"),
  Cordoned: () => t("Cordoned"),
  MemoryPressure: () => t("Memory pressure"),
  DiskPressure: () => t("Disk pressure"),
  PIDPressure: () => t("Out of process ids"),
  Drained: () => t("Out of service"),
  Absent: () => t("Could be added"),
};

/** What is wrong with a node, in a word or two. */
export const conditionWord = (kind: NodeCondition["kind"]): string => CONDITIONS[kind]();

/** What is wrong with it, as a sentence; why it is drained, in the words of who drained it. */
export const conditionMessage = (one: Pick<NodeCondition, "kind" | "message">): string => (one.kind === "Drained" ? one.message : capital(one.message));

/** Whether it takes new ranks, and if not, why. */
function State({ node }: { node: Node }): JSX.Element {
  if (!node.conditions.length) return <Chip kind="good">{t("Up")}</Chip>;
  return <>{node.conditions.map((c) => <Chip key={c.kind} kind={c.kind === "NotReady" ? "bad" : "wait"}>{CONDITIONS[c.kind]()}</Chip>)}</>;
}

const isDrained = (node: Node): boolean => node.conditions.some((c) => c.kind === "Drained");

export function NodesPage(): JSX.Element {
  const { client } = useHub();
  const nodes = useLoad("nodes", () => client.list<Node>("/nodes"), EVERY);
  const [draining, setDraining] = useState("");
  const items = nodes.data?.items ?? [];
  const users = [...new Set(items.flatMap((node) => node.holders.map((h) => h.user)))].sort();
  return (
    <>
      <PageHead title={t("Nodes")} sub={nodes.data ? n("1 node, {up} up", "{n} nodes, {up} up", items.length, { up: items.filter((node) => node.up).length }) : undefined} />
      {nodes.error ? <ErrorBox error={nodes.error} retry={() => void nodes.reload()} /> : null}
      {!nodes.data && !nodes.error ? <Loading what={t("Loading nodes")} lines={5} /> : null}
      {nodes.data && !items.length ? <Empty title={t("No nodes")}><p>{t("The service has no machine to run jobs on.")}</p></Empty> : null}
      {users.length ? (
        <ul class="mlp-user-legend" aria-label={t("Users")}>
          {users.map((u) => (
            <li key={u}>
              <i class={`mlp-share ${colorOf(users, u)}`} />
              {u}
            </li>
          ))}
        </ul>
      ) : null}
      {draining ? <Drain node={draining} done={nodes.reload} close={() => setDraining("")} /> : null}
      <div class="mlp-nodes">
        {items.map((node) => (
          <section key={node.name} class="mlp-card" aria-label={t("Node {name}", { name: node.name })}>
            <div class="mlp-card-head">
              <h2>{node.name}</h2>
              <State node={node} />
              <button type="button" class="mlp-button mlp-small mlp-head-end" aria-label={isDrained(node) ? t("Put back into service …: {name}", { name: node.name }) : t("Take out of service: {name}", { name: node.name })} onClick={() => setDraining(node.name)}>
                {isDrained(node) ? t("Put back into service …") : t("Take out of service")}
              </button>
              <span class="mlp-dim">{[n("1 core", "{n} cores", node.cpu), ram(node.ram), ...(node.gpu ? [gpus(node.gpu, node.gpu_kind)] : [])].join(t(", "))}</span>
            </div>
            {node.conditions.filter((c) => c.message).map((c) => <p key={c.kind} class="mlp-dim">{conditionMessage(c)}</p>)}
            {node.taints.length ? <p class="mlp-dim">{node.taints.map((taint) => `${taint.key}=${taint.value}:${taint.effect}`).join(t(", "))}</p> : null}
            <Shares node={node} users={users} what="cpu" />
            <Shares node={node} users={users} what="ram" />
            <Overcommit node={node} />
            {node.gpu ? <QuotaBar name={t("GPU")} of={alone(node.gpu_inuse, node.gpu - node.gpu_others)} show={cores} /> : null}
            <Others node={node} />
            {node.holders.length ? (
              <ul class="mlp-holders">
                {node.holders.map((h) => (
                  <li key={`${h.applier}${h.holder}${h.user}`}>
                    <i class={`mlp-share ${colorOf(users, h.user)}`} />
                    <span class="mlp-holder-name">{holderName(h)}</span>
                    <span class="mlp-dim">{h.user}</span>
                    <span class="mlp-holder-need">{sizeWords(h)}</span>
                  </li>
                ))}
              </ul>
            ) : (
              <p class="mlp-dim">{t("Nobody uses it.")}</p>
            )}
          </section>
        ))}
      </div>
    </>
  );
}
