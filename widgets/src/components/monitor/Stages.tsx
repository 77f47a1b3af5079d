/** Where the time of each attempt went: a bar of its parts, and what they are in words. */
import type { JSX } from "preact";
import { partWord, parts, spanWords, told, whole, widths, type Part } from "../../core/jobs/stages";
import type { JobAttempt } from "../../core/service/wire";
import { n, t } from "../../core/format/language";

/** More attempts than this are counted. */
const MOST = 5;

export function Stages({ attempts, now }: { attempts: JobAttempt[]; now: number }): JSX.Element | null {
  const shown = told(attempts);
  if (!shown.length) return null;
  return (
    <div class="mlp-stages" role="group" aria-label={t("Time to first output, by step")}>
      {shown.slice(0, MOST).map((attempt) => (
        <One key={attempt.attempt} attempt={attempt} alone={shown.length === 1} now={now} />
      ))}
      {shown.length > MOST ? <p class="mlp-dim">{n("and 1 earlier attempt", "and {n} earlier attempts", shown.length - MOST)}</p> : null}
    </div>
  );
}

function One({ attempt, alone, now }: { attempt: JobAttempt; alone: boolean; now: number }): JSX.Element | null {
  const way = parts(attempt, now);
  if (!way.length) return null;
  const wide = widths(way);
  return (
    <div class="mlp-stages-one">
      <p>
        {alone ? null : <b>{t("Attempt {n}", { n: attempt.attempt })}{" "}</b>}
        <span class="mlp-dim">{headline(attempt, way)}</span>
      </p>
      <div class="mlp-stages-bar" aria-hidden="true">
        {way.map((part, i) => (
          <span key={part.stage} class={`mlp-stage mlp-stage-${part.stage}${part.open ? " mlp-stage-open" : ""}`} style={{ width: `${wide[i]}%` }} title={words(part)} />
        ))}
      </div>
      <ul>
        {way.map((part) => (
          <li key={part.stage}>
            <span class={`mlp-stage mlp-stage-${part.stage}${part.open ? " mlp-stage-open" : ""}`} aria-hidden="true" />
            {words(part)}
          </li>
        ))}
      </ul>
    </div>
  );
}

const words = (part: Part): string =>
  part.open
    ? t("{what}: {span} so far", { what: partWord(part.stage), span: spanWords(part.seconds) })
    : t("{what}: {span}", { what: partWord(part.stage), span: spanWords(part.seconds) });

function headline(attempt: JobAttempt, way: Part[]): string {
  const span = spanWords(whole(way));
  const last = attempt.stages.at(-1)?.stage;
  if (last === "first-line") return t("{span} to first output", { span });
  if (last === "started") return t("{span} until it ran; it has written nothing yet", { span });
  return attempt.ended === null ? t("{span} so far", { span }) : t("{span}; it never ran", { span });
}
