/** What was asked of an app: the last hour as bars, how quickly it answered, how much went wrong. */
import type { JSX } from "preact";
import { ErrorBox } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { bytes, clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import type { AppUsage as Usage } from "../../core/service/wire";
import { useHub } from "../shared/context";

const EVERY = 5000;
const MINUTES = 60;
const MINUTE = 60_000;
const HIGH = 60;

interface Bar {
  requests: number;
  errors: number;
}

/** Each of the last minutes, the oldest first; those without a request are empty. */
export function barsOf(usage: Usage, now: number): Bar[] {
  const last = Math.floor(now / MINUTE);
  const bars: Bar[] = Array.from({ length: MINUTES }, () => ({ requests: 0, errors: 0 }));
  for (const minute of usage.minutes) {
    const bar = bars[MINUTES - 1 - (last - Math.floor(Date.parse(minute.time) / MINUTE))];
    if (bar) Object.assign(bar, { requests: minute.requests, errors: minute.errors });
  }
  return bars;
}

function Bars({ usage, now }: { usage: Usage; now: number }): JSX.Element {
  const bars = barsOf(usage, now);
  const busiest = Math.max(...bars.map((bar) => bar.requests));
  const most = Math.max(1, busiest);
  const total = bars.reduce((sum, bar) => sum + bar.requests, 0);
  const wrong = bars.reduce((sum, bar) => sum + bar.errors, 0);
  const words = t("In the last hour {requests}, {errors}", { requests: n("1 request", "{n} requests", total), errors: n("1 of them failed", "{n} of them failed", wrong) });
  return (
    <figure class="mlp-chart mlp-usage">
      <figcaption>
        <span class="mlp-chart-name">{words}</span>
        <span class="mlp-chart-value">{n("busiest minute: 1 request", "busiest minute: {n} requests", busiest)}</span>
      </figcaption>
      <svg viewBox={`0 0 ${MINUTES * 4} ${HIGH}`} width="100%" height={HIGH} preserveAspectRatio="none" role="img" aria-label={words}>
        {bars.map((bar, at) => {
          const high = (bar.requests / most) * HIGH;
          const bad = (bar.errors / most) * HIGH;
          return (
            <g key={at}>
              <rect x={at * 4} y={HIGH - high} width="3" height={high} fill="var(--mlp-accent)" />
              <rect x={at * 4} y={HIGH - bad} width="3" height={bad} fill="var(--mlp-bad)" />
            </g>
          );
        })}
      </svg>
    </figure>
  );
}

/** A bound of the histogram that so many answers kept. */
const within = (usage: Usage, ms: number | null): string => {
  if (ms !== null) return t("{ms} ms", { ms });
  return usage.requests ? t("over {ms} ms", { ms: usage.bounds_ms.at(-1) ?? 0 }) : "–";
};

export function AppUsage({ path, now }: { path: string; now: number }): JSX.Element {
  const { client } = useHub();
  const loaded = useLoad(`${path}/usage`, () => client.get<Usage>(`${path}/usage`), EVERY);
  const usage = loaded.data;
  if (!usage) return loaded.error ? <ErrorBox error={loaded.error} retry={() => void loaded.reload()} /> : <></>;
  return (
    <section class="mlp-card" aria-label={t("Requests")}>
      <div class="mlp-card-head">
        <h2>{t("Requests")}</h2>
      </div>
      <Bars usage={usage} now={now} />
      <dl class="mlp-numbers">
        <div>
          <dt>{t("Since")}</dt>
          <dd>{clock(usage.since, now)}</dd>
        </div>
        <div>
          <dt>{t("Requests")}</dt>
          <dd>{usage.requests}</dd>
        </div>
        <div>
          <dt>{t("Failed")}</dt>
          <dd>{usage.requests ? `${usage.errors} (${Math.round((usage.errors / usage.requests) * 1000) / 10} %)` : usage.errors}</dd>
        </div>
        <div>
          <dt>{t("Open now")}</dt>
          <dd>{usage.open}</dd>
        </div>
        <div>
          <dt>{t("Half were answered within")}</dt>
          <dd>{within(usage, usage.p50_ms)}</dd>
        </div>
        <div>
          <dt>{t("99 % were answered within")}</dt>
          <dd>{within(usage, usage.p99_ms)}</dd>
        </div>
        <div>
          <dt>{t("In and out")}</dt>
          <dd>{t("{in} in, {out} out", { in: bytes(usage.bytes_in), out: bytes(usage.bytes_out) })}</dd>
        </div>
      </dl>
    </section>
  );
}
