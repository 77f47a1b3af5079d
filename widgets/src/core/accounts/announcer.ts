/**
 * Announcements as JupyterLab tells them, whatever is open in it: each once in a browser, also where it has several tabs or was loaded
 * anew, and none that was put away. Pure but for the client; when to ask is told by its clock, what is kept by its memory.
 */
import { AWAY, left, put, readAway } from "./announcements";
import { paths, type Client } from "../service/api";
import { t } from "../format/language";
import type { Clock, News } from "../jobs/watching";
import type { Announcement } from "../service/wire";

export const TOLD = "mlp-announcements-told";
/** Tuning: milliseconds between two looks; what is announced holds for hours, and every open page asks. */
const EVERY_MS = 60_000;
const FAULT_MS = 600_000;

export interface Memory {
  read: (key: string) => string | null;
  write: (key: string, value: string) => void;
}

export type Herald = Pick<News, "kind" | "text">;

const KINDS: Readonly<Record<Announcement["level"], News["kind"]>> = { info: "info", warning: "warning", critical: "error" };

const heraldOf = ({ level, tenant, text }: Announcement): Herald => ({
  kind: KINDS[level],
  text: tenant ? t("To team {name}: {text}", { name: tenant, text }) : text,
});

export class Announcer {
  /** For a browser that keeps nothing. */
  private told: number[] = [];
  private cancel: (() => void) | null = null;
  private asking: Promise<void> | null = null;
  private faults = 0;

  constructor(
    private readonly client: Pick<Client, "list">,
    private readonly clock: Clock,
    private readonly memory: Memory,
    private readonly tell: (news: Herald) => void,
  ) {}

  /** Ask now, and again and again from now on. While nobody looks nothing is asked: a notification that goes by itself would be missed. */
  hurry(): Promise<void> {
    this.cancel?.();
    this.cancel = null;
    this.asking ??= (this.clock.hidden() ? Promise.resolve() : this.ask()).finally(() => {
      this.asking = null;
      this.cancel?.();
      this.cancel = this.clock.later(() => void this.hurry(), Math.min(FAULT_MS, EVERY_MS * 2 ** this.faults));
    });
    return this.asking;
  }

  private async ask(): Promise<void> {
    let found: Announcement[];
    try {
      found = (await this.client.list<Announcement>(paths.announcements)).items;
      this.faults = 0;
    } catch {
      this.faults = Math.min(this.faults + 1, 4); // the side panel says what is wrong
      return;
    }
    // read anew each time: another tab may have told it, or it was put away there
    const known = new Set([...readAway(this.memory.read(TOLD)), ...this.told]);
    for (const one of left(found, readAway(this.memory.read(AWAY)))) {
      if (known.has(one.id)) continue;
      this.told = put(this.told, one.id);
      this.memory.write(TOLD, JSON.stringify(put(readAway(this.memory.read(TOLD)), one.id)));
      this.tell(heraldOf(one));
    }
  }
}
