/** The service's answer to what a change of a tenant would mean, as lines to read. Pure. */
import { clock, withLocalTimes } from "../format/format";
import { t } from "../format/language";
import type { PreviewNote, TenantPreview } from "../service/wire";

export interface Line {
  tone: PreviewNote["tone"];
  text: string;
}

/** When a tenant that is over is inside its quota again; empty where it is inside it. */
export function backWords(p: TenantPreview | null, now: number): string {
  if (!p?.over.some((o) => o.tenant === p.tenant)) return "";
  return p.back_inside
    ? t("Expected to be inside the quota by {time}: {because}", { time: clock(p.back_inside, now), because: p.back_inside_because })
    : t("When it is inside the quota again: {because}", { because: p.back_inside_because });
}

export function previewLines(p: TenantPreview, now: number): Line[] {
  const lines: Line[] = p.notes.map((n) => ({ tone: n.tone, text: withLocalTimes(n.text, now) }));
  const text = backWords(p, now);
  if (text) {
    // after the amounts over the quota, before the first neutral note: it says that running work continues
    const at = lines.findIndex((l) => l.tone === "idle");
    lines.splice(at < 0 ? lines.length : at, 0, { tone: "idle", text });
  }
  return lines;
}

/** The tone of the whole box: its worst line's. */
export function toneOf(lines: Line[]): Line["tone"] {
  return (["bad", "wait", "good"] as const).find((t) => lines.some((l) => l.tone === t)) ?? "idle";
}
