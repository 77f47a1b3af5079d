/** Taking a node out of service: what runs there, whose it is, and what is to become of it; and putting it back. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox, Loading } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { clock, duration } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import type { NodeDrainPreview, NodeUser } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Field } from "../../components/basics/form";

function User({ of }: { of: NodeUser }): JSX.Element {
  const part = of.kind !== "server" && of.of > of.ranks ? t("{some} of its {all} ranks", { some: of.ranks, all: of.of }) : "";
  const saves = of.checkpoint_every ? t("saves a checkpoint every {span}", { span: duration(of.checkpoint_every) }) : "";
  const what = of.kind === "server" ? (of.name ? t("notebook server {name}", { name: of.name }) : t("notebook server")) : of.kind === "app" ? t("app {name}", { name: of.name }) : t("job {name}", { name: of.name });
  return (
    <li>
      {of.kind === "server" ? what : <Link to={of.kind === "app" ? href("app", of.user, of.name) : href("jobs", of.user, of.name)}>{what}</Link>}{" "}
      <span class="mlp-dim">{[t("of {user}, team {team}", { user: of.user, team: of.tenant }), part, saves, of.ending ? t("ending") : ""].filter(Boolean).join(" · ")}</span>
    </li>
  );
}

/** What the choice means for what runs there. */
function consequence(found: NodeDrainPreview, evict: boolean): string {
  if (!found.stops.length) return t("Nothing runs on it.");
  if (!evict) return t("All of this continues until it ends; no new work starts there.");
  return found.others
    ? t("Jobs are asked to end, can save a checkpoint, and continue elsewhere as soon as there is room. Notebook servers are stopped: saved files stay, running work in them is lost.")
    : t("Jobs are asked to end, can save a checkpoint, and wait until the node is back, because no other node accepts work. Notebook servers are stopped: saved files stay, running work in them is lost.");
}

export function Drain({ node, done, close }: { node: string; done: () => Promise<void>; close: () => void }): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const found = useLoad(`drain ${node}`, () => client.get<NodeDrainPreview>(paths.nodeDrain(node)), 5000);
  const [reason, setReason] = useState("");
  const [fault, setFault] = useState("");
  const [evict, setEvict] = useState(false);
  const { run, busy, error } = useRun(async () => {
    close();
    await done();
  });
  const drain = found.data?.drain ?? null;
  const takeOut = (): void => {
    if (!reason.trim()) return setFault(t("Enter a reason; owners of stopped work read it"));
    void run(() => client.put(paths.nodeAction(node, "drain"), { reason: reason.trim(), evict }), t("{name} accepts no new work", { name: node }));
  };
  return (
    <Dialog title={drain ? t("Node {name} is out of service", { name: node }) : t("Take {name} out of service?", { name: node })} onClose={close}>
      {found.error ? <ErrorBox error={found.error} /> : null}
      {!found.data && !found.error ? <Loading what={t("Checking what runs on {name}", { name: node })} lines={3} /> : null}
      {found.data ? (
        <div class="mlp-dialog-text">
          {drain ? <p>{t("{reason} · {actor}, since {time}", { reason: drain.reason, actor: drain.actor, time: clock(drain.since, now) })}</p> : null}
          {found.data.stops.length ? (
            <>
              <p>{n("1 workload runs on it:", "{n} workloads run on it:", found.data.stops.length)}</p>
              <ul class="mlp-drain-users">
                {found.data.stops.map((of) => (
                  <User key={`${of.kind} ${of.user}/${of.name}`} of={of} />
                ))}
              </ul>
            </>
          ) : null}
          <p>{consequence(found.data, drain ? drain.evict : evict)}</p>
        </div>
      ) : null}
      {found.data && !drain ? (
        <>
          <Field name="reason" label={t("Why")} value={reason} onInput={(typed) => { setReason(typed); setFault(""); }} hint={t("Owners of stopped work read it")} error={fault} autofocus />
          <label class="mlp-inline mlp-drain-evict">
            <input type="checkbox" name="evict" checked={evict} onChange={(e) => setEvict(e.currentTarget.checked)} /> {t("Move its work away")}
          </label>
        </>
      ) : null}
      {error ? <ErrorBox error={error} /> : null}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" onClick={close}>
          {t("Cancel")}
        </button>
        {drain && !drain.evict && found.data?.stops.length ? (
          <button type="button" class="mlp-button mlp-quiet-danger" disabled={busy} onClick={() => void run(() => client.put(paths.nodeAction(node, "drain"), { reason: drain.reason, evict: true }), t("Work on {name} is moved away", { name: node }))}>
            {t("Move its work away")}
          </button>
        ) : null}
        {drain ? (
          <button type="button" class="mlp-button mlp-primary" disabled={busy} onClick={() => void run(() => client.put(paths.nodeAction(node, "return")), t("{name} accepts work again", { name: node }))}>
            {t("Put back into service")}
          </button>
        ) : (
          <button type="button" class="mlp-button mlp-danger" disabled={busy || !found.data} onClick={takeOut}>
            {t("Take out of service")}
          </button>
        )}
      </div>
    </Dialog>
  );
}
