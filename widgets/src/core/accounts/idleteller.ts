/** Countdowns of one's own notebook servers as JupyterLab tells them, whatever is open in it: once each, and taken back where they end. */
import { idleWords } from "./idleservers";
import { paths, type Client } from "../service/api";
import { Repeated } from "./repeated";
import type { Clock } from "../jobs/watching";
import type { ServerCountdown } from "../service/wire";

/** Tuning: milliseconds between two requests; a server reports its use each minute. */
const EVERY_MS = 60_000;
/** Tuning: milliseconds where no team has a policy for these servers, as by default. */
const SELDOM_MS = 600_000;

export class IdleTeller {
  private readonly told = new Map<string, () => void>();
  private readonly repeated: Repeated;

  /** `tell` shows a countdown, and returns what takes it back. */
  constructor(
    private readonly client: Pick<Client, "list">,
    clock: Clock,
    private readonly user: () => string,
    private readonly tell: (text: string, server: string) => () => void,
  ) {
    this.repeated = new Repeated(clock, EVERY_MS, () => this.ask());
  }

  /** Ask now, and repeat from now on. */
  hurry(): Promise<void> {
    return this.repeated.hurry();
  }

  private async ask(): Promise<number> {
    const user = this.user();
    if (!user) return EVERY_MS;
    const found = (await this.client.list<ServerCountdown>(paths.idleServers(user))).items;
    const counted = new Map(found.filter((one) => one.left_s !== null).map((one) => [one.server, one]));
    for (const [server, end] of this.told)
      if (!counted.has(server)) {
        end();
        this.told.delete(server);
      }
    for (const [server, one] of counted) if (!this.told.has(server)) this.told.set(server, this.tell(idleWords(one), server));
    return found.length ? EVERY_MS : SELDOM_MS;
  }
}
