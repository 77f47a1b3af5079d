/** Why the scheduler did something: asked for when somebody wants to know. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { paths, words, type Client } from "../core/api";
import { decisionOf, lostWork, priorityName, victimName } from "../core/decisions";
import { plural, trim } from "../core/format";
import { capital } from "../core/reasons";
import type { Decision, JobEvent } from "../core/wire";
import { useId } from "./hooks";

export interface Asks {
  client: Client;
  user: string;
  name: string;
}

type Answer = { decision: Decision | null } | { error: unknown } | "asking";

export function WhyButton({ event, timeline, asks }: { event: JobEvent; timeline: JobEvent[]; asks: Asks }): JSX.Element {
  const [open, setOpen] = useState(false);
  const [answer, setAnswer] = useState<Answer>("asking");
  const id = useId("decision");
  const ask = (): void => {
    setOpen(!open);
    if (open) return;
    setAnswer("asking");
    asks.client.get<Decision[]>(paths.decisions(asks.user, asks.name)).then(
      (found) => setAnswer({ decision: decisionOf(event, found, timeline) }),
      (error: unknown) => setAnswer({ error }),
    );
  };
  return (
    <>
      {" "}
      <button type="button" class="mlp-link" aria-expanded={open} aria-controls={id} aria-label={`Why ${event.kind}?`} onClick={ask}>
        why?
      </button>
      {open ? (
        <div id={id} class="mlp-decision" role="group" aria-label={`Why ${event.kind}`}>
          {answer === "asking" ? <p class="mlp-dim" role="status">Asking …</p> : null}
          {answer !== "asking" && "error" in answer ? <p class="mlp-decision-bad" role="alert">{words(answer.error)}</p> : null}
          {answer !== "asking" && "decision" in answer ? answer.decision ? <Story d={answer.decision} /> : <p>What stood behind it is not kept any more.</p> : null}
        </div>
      ) : null}
    </>
  );
}

const ended = (text: string): string => `${text}${/[.!?]$/.test(text) ? "" : "."}`;
const sentence = (text: string): string => ended(capital(text));

/** All that stands behind a decision. */
export function Story({ d }: { d: Decision }): JSX.Element {
  const chosen = d.nodes.filter((n) => n.chosen);
  const others = d.nodes.filter((n) => !n.chosen);
  return (
    <>
      <p>{sentence(d.summary)}</p>
      {d.waited_for ? <p title={d.waited_reason ?? undefined}><b>Until then:</b> {ended(d.waited_for)}</p> : null}
      {d.changed.length ? <p><b>What changed:</b> {ended(d.changed.join("; "))}</p> : null}
      {chosen.length ? (
        <table class="mlp-table mlp-decision-table">
          <caption>{others.length ? "The places with room, the best first" : "Where it was placed"}</caption>
          <thead><tr><th scope="col">Node</th><th scope="col">Ranks</th><th scope="col">Free after that</th></tr></thead>
          <tbody>
            {d.nodes.map((n) => (
              <tr key={`${n.node} ${n.chosen}`} class={n.chosen ? "mlp-selected" : ""}>
                <td>{n.node}{n.chosen ? <span class="mlp-dim"> chosen</span> : null}</td>
                <td>{n.ranks}</td>
                <td>{n.free_after}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {d.victims.length ? (
        <table class="mlp-table mlp-decision-table">
          <caption>Who could have been stopped, the cheapest first</caption>
          <thead><tr><th scope="col">Job</th><th scope="col">Priority</th><th scope="col" title="Seconds times GPUs, or cores where it has none, since its last checkpoint; less what it saves when it is asked to end">Work lost, at most</th><th scope="col">Why</th></tr></thead>
          <tbody>
            {d.victims.map((v, i) => (
              <tr key={i} class={v.chosen ? "mlp-selected" : ""}>
                <td>{victimName(v)}{v.chosen ? <span class="mlp-dim">{v.gives ? ` gives up ${plural(v.gives, "worker")}` : " stopped"}</span> : null}</td>
                <td>{priorityName(v.priority)}</td>
                <td>{lostWork(v)}</td>
                <td>{v.why}{v.over_nominal ? "; its tenant holds more than its own quota" : ""}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {d.spared.length ? <p><b>Could not be stopped:</b> {ended(d.spared.join("; "))}</p> : null}
      <p class="mlp-dim">
        {[
          `Policy ${d.policy}`,
          d.position !== null ? `place ${d.position} in its queue` : "",
          d.share !== null ? `its tenant held ${trim(d.share * 100, 1)} % of the cluster` : "",
        ].filter(Boolean).join(" · ")}
      </p>
    </>
  );
}
