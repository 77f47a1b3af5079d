/** Requests that an open page repeats: gently, later and later after faults, and none while nobody looks. Pure but for what it is given. */
import type { Clock } from "../jobs/watching";

const FAULT_MS = 600_000;

export class Repeated {
  private cancel: (() => void) | null = null;
  private asking: Promise<void> | null = null;
  private faults = 0;

  /** `ask` returns the milliseconds until the next request, and throws if there was no answer; `first` is their number after one fault. */
  constructor(
    private readonly clock: Clock,
    private readonly first: number,
    private readonly ask: () => Promise<number>,
  ) {}

  /** Ask now, and repeat from now on. While nobody looks nothing is asked: a notification that goes by itself would be missed. */
  hurry(): Promise<void> {
    this.cancel?.();
    this.cancel = null;
    this.asking ??= (this.clock.hidden() ? Promise.resolve(this.wait()) : this.once()).then((ms) => {
      this.asking = null;
      this.cancel?.();
      this.cancel = this.clock.later(() => void this.hurry(), ms);
    });
    return this.asking;
  }

  private wait(): number {
    return Math.min(FAULT_MS, this.first * 2 ** this.faults);
  }

  private async once(): Promise<number> {
    try {
      const ms = await this.ask();
      this.faults = 0;
      return ms;
    } catch {
      this.faults = Math.min(this.faults + 1, 4); // the side panel says what is wrong
      return this.wait();
    }
  }
}
