/** Why the scheduler did something: asked for when somebody wants to know. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { paths, words, type Client } from "../../core/service/api";
import { decisionOf, jobName, lostWork, priorityName } from "../../core/jobs/decisions";
import { trim } from "../../core/format/format";
import { orderWords } from "../../core/format/policy";
import { capital, reasonWords } from "../../core/format/reasons";
import { eventWord } from "../../core/format/words";
import type { Decision, Event as JobEvent } from "../../core/service/wire";
import { useId } from "../basics/hooks";
import { n, t } from "../../core/format/language";

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
      <button type="button" class="mlp-link" aria-expanded={open} aria-controls={id} aria-label={t("Why {what}?", { what: eventWord(event.kind) })} onClick={ask}>
        {t("why?")}
      </button>
      {open ? (
        <div id={id} class="mlp-decision" role="group" aria-label={t("Why {what}", { what: eventWord(event.kind) })}>
          {answer === "asking" ? <p class="mlp-dim" role="status">{t("Asking …")}</p> : null}
          {answer !== "asking" && "error" in answer ? <p class="mlp-decision-bad" role="alert">{words(answer.error)}</p> : null}
          {answer !== "asking" && "decision" in answer ? answer.decision ? <Story d={answer.decision} /> : <p>{t("The data behind this decision is no longer stored.")}</p> : null}
        </div>
      ) : null}
    </>
  );
}

const ended = (text: string): string => (/[.!?。！？]$/.test(text) ? text : t("{text}.", { text }));
const sentence = (text: string): string => ended(capital(text));

function passedWords(d: Decision): string {
  const named = d.passed.map((p) => t("{job} ({why})", { job: jobName(p), why: reasonWords(p.reason) }));
  const more = d.passed_count - named.length;
  return [...named, ...(more > 0 ? [n("1 more", "{n} more", more)] : [])].join(t(", "));
}

/** All that stands behind a decision. */
export function Story({ d }: { d: Decision }): JSX.Element {
  const chosen = d.nodes.filter((n) => n.chosen);
  const others = d.nodes.filter((n) => !n.chosen);
  return (
    <>
      <p>{sentence(d.summary)}</p>
      {d.waited_for ? <p title={d.waited_reason ?? undefined}><b>{t("Until then:")}</b> {ended(d.waited_for)}</p> : null}
      {d.changed.length ? <p><b>{t("Changes:")}</b> {ended(d.changed.join(t("; ")))}</p> : null}
      {d.passed.length ? <p><b>{t("Ahead of it, but could not start:")}</b> {ended(passedWords(d))}</p> : null}
      {chosen.length ? (
        <table class="mlp-table mlp-decision-table">
          <caption>{others.length ? t("The places with room, the best first") : t("Its placement")}</caption>
          <thead><tr><th scope="col">{t("Node")}</th><th scope="col">{t("Ranks")}</th><th scope="col">{t("Free after that")}</th></tr></thead>
          <tbody>
            {d.nodes.map((place) => (
              <tr key={`${place.node} ${place.chosen}`} class={place.chosen ? "mlp-selected" : ""}>
                <td>{place.node}{place.chosen ? <span class="mlp-dim">{" "}{t("chosen")}</span> : null}</td>
                <td>{place.ranks}</td>
                <td>{place.free_after}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {d.victims.length ? (
        <table class="mlp-table mlp-decision-table">
          <caption>{t("Jobs that could have been stopped, the cheapest first")}</caption>
          <thead><tr><th scope="col">{t("Job")}</th><th scope="col">{t("Priority")}</th><th scope="col" title={t("Seconds since its last checkpoint, times its GPUs (or cores, if it has no GPU); less if it saves when it is asked to end")}>{t("Work lost, at most")}</th><th scope="col">{t("Why")}</th></tr></thead>
          <tbody>
            {d.victims.map((v, i) => (
              <tr key={i} class={v.chosen ? "mlp-selected" : ""}>
                <td>{jobName(v)}{v.chosen ? <span class="mlp-dim">{" "}{v.gives ? n("gives up 1 worker", "gives up {n} workers", v.gives) : t("stopped")}</span> : null}</td>
                <td>{priorityName(v.priority)}</td>
                <td>{lostWork(v)}</td>
                <td>{v.over_nominal ? t("{why}; its team holds more than its own quota", { why: v.why }) : v.why}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
      {d.spared.length ? <p><b>{t("Could not be stopped:")}</b> {ended(d.spared.join(t("; ")))}</p> : null}
      <p class="mlp-dim">
        {[
          t("Policy {name}", { name: d.policy }),
          d.order !== null ? t("its queue order: {order}", { order: orderWords(d.order) }) : "",
          d.position !== null ? t("place {n} in its queue", { n: d.position }) : "",
          d.rule !== null ? t("nodes by {rule}", { rule: d.rule }) : "",
          d.share !== null ? t("its team held {percent} % of the cluster", { percent: trim(d.share * 100, 1) }) : "",
        ].filter(Boolean).join(" · ")}
      </p>
    </>
  );
}
