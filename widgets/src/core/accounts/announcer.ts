/**
 * Announcements as JupyterLab tells them, whatever is open in it: each once in a browser, also where it has several tabs or was loaded
 * anew, and none that was put away. Pure but for the client; when to ask is told by its clock, what is kept by its memory.
 */
import { AWAY, left, put, readAway } from "./announcements";
import { paths, type Client } from "../service/api";
import { Repeated } from "./repeated";
import { t } from "../format/language";
import type { Clock, News } from "../jobs/watching";
import type { Announcement } from "../service/wire";

export const TOLD = "mlp-announcements-told";
/** Tuning: milliseconds between two looks; what is announced holds for hours, and every open page asks. */
const EVERY_MS = 60_000;

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
  private readonly repeated: Repeated;

  constructor(
    private readonly client: Pick<Client, "list">,
    clock: Clock,
    private readonly memory: Memory,
    private readonly tell: (news: Herald) => void,
  ) {
    this.repeated = new Repeated(clock, EVERY_MS, () => this.ask());
  }

  /** Ask now, and repeat from now on. */
  hurry(): Promise<void> {
    return this.repeated.hurry();
  }

  private async ask(): Promise<number> {
    const found = (await this.client.list<Announcement>(paths.announcements)).items;
    // read anew each time: another tab may have told it, or it was put away there
    const known = new Set([...readAway(this.memory.read(TOLD)), ...this.told]);
    for (const one of left(found, readAway(this.memory.read(AWAY)))) {
      if (known.has(one.id)) continue;
      this.told = put(this.told, one.id);
      this.memory.write(TOLD, JSON.stringify(put(readAway(this.memory.read(TOLD)), one.id)));
      this.tell(heraldOf(one));
    }
    return EVERY_MS;
  }
}
