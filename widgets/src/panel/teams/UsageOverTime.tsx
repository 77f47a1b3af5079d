/** What a team held in the last week, an hour a bar, below the line of its quota. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty } from "../../components/basics/basics";
import { useNow } from "../../components/basics/hooks";
import { DIMENSIONS, heldOf, quotaOf, ROWS } from "../../core/format/dimensions";
import { clock, cores, trim } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { label } from "../../core/teams/team";
import { heldBy, HOURS, hoursOf, sumOf, type Held, type Sum } from "../../core/teams/usage";
import type { Tenant, UsageHour, UsageTotal } from "../../core/service/wire";

const MINUTE = 60_000;
const HIGH = 90;
const WIDE = 4;

const show: Record<Held, (amount: number) => string> = {
  ...(Object.fromEntries(DIMENSIONS.map((d) => [d, ROWS[d].show])) as Record<Held, (amount: number) => string>),
  cpu: (amount) => n("1 core", "{n} cores", amount, { n: cores(amount) }),
  gpu: (amount) => n("1 GPU", "{n} GPUs", amount, { n: cores(amount) }),
};

function summed(of: Held, { most, hours }: Sum, quota: number | null): string {
  const peak = quota === null ? t("at most {most}", { most: show[of](most) }) : t("at most {most} of {quota}", { most: show[of](most), quota: show[of](quota) });
  if (of === "cpu") return t("{hours} core-hours of jobs, {peak}", { hours: trim(hours, 2), peak });
  if (of === "gpu") return t("{hours} GPU-hours of jobs, {peak}", { hours: trim(hours, 2), peak });
  return peak;
}

export function UsageOverTime({ tenant, history, jobs }: { tenant: Tenant; history: UsageHour[]; jobs: UsageTotal }): JSX.Element {
  const [of, setOf] = useState<Held>("cpu");
  const now = useNow(MINUTE);
  const quota = quotaOf(tenant, of);
  const hours = hoursOf(history, now);
  const sum = sumOf(hours.filter((hour) => hour !== null), of, jobs);
  const words = summed(of, sum, quota);
  const top = Math.max(quota ?? 0, sum.most) || 1;
  const high = (amount: number): number => (amount / top) * (HIGH - 2);
  return (
    <section class="mlp-card" aria-label={t("Use in the last 7 days")}>
      <div class="mlp-card-head">
        <h2>{t("Use in the last 7 days")}</h2>
        {history.length ? (
          <select class="mlp-select mlp-head-end" aria-label={t("Shown resource")} value={of} onChange={(event) => setOf(event.currentTarget.value as Held)}>
            {heldBy(tenant, history).map((each) => (
              <option key={each} value={each}>
                {label(each)}
              </option>
            ))}
          </select>
        ) : null}
      </div>
      {history.length ? (
        <figure class="mlp-chart mlp-usage">
          <figcaption>
            <span class="mlp-chart-name">{words}</span>
          </figcaption>
          <svg viewBox={`0 0 ${HOURS * WIDE} ${HIGH}`} width="100%" height={HIGH} preserveAspectRatio="none" role="img" aria-label={words}>
            {hours.map((hour, at) =>
              hour ? (
                <rect key={at} x={at * WIDE} y={HIGH - high(heldOf(hour, of))} width={WIDE - 0.5} height={high(heldOf(hour, of))} fill="var(--mlp-accent)">
                  <title>{t("{time}: {amount}; jobs: {running} running, {waiting} waiting", { time: clock(hour.time, now), amount: show[of](heldOf(hour, of)), running: hour.running, waiting: hour.waiting })}</title>
                </rect>
              ) : null,
            )}
            {quota !== null ? <line x1="0" x2={HOURS * WIDE} y1={HIGH - high(quota)} y2={HIGH - high(quota)} stroke="var(--mlp-dim)" stroke-dasharray="6 4" vector-effect="non-scaling-stroke" /> : null}
          </svg>
          <div class="mlp-usage-ends mlp-dim">
            <span>{t("7 days ago")}</span>
            <span>{quota !== null ? t("dashed: the quota now") : ""}</span>
            <span>{t("now")}</span>
          </div>
        </figure>
      ) : (
        <Empty title={t("Nothing is known yet; the first hour comes within minutes")} />
      )}
    </section>
  );
}
