/** Time left, from how progress grew lately in the present attempt. Pure. */

/**
 * Tuning: what an estimate needs: so many points of progress in so many milliseconds, the fewer points the longer. A job begins with what it
 * does once (imports, data, a graph that is compiled), of which the first points alone would make a quarter of an hour.
 */
const ENOUGH: readonly (readonly [points: number, time: number])[] = [[5, 10_000], [2, 60_000]];
const enough = (points: number, time: number): boolean => ENOUGH.some(([p, m]) => points >= p && time >= m);

interface Sample {
  at: number;
  progress: number;
}

export class Eta {
  private samples: Sample[] = [];
  private attempt = 0;

  /** Note the progress (0-100) of an attempt at a time in milliseconds; another attempt begins anew. */
  note(progress: number, at: number, attempt = 0): void {
    const last = this.samples.at(-1);
    if (attempt !== this.attempt || (last && progress < last.progress)) this.samples = []; // goes on from a checkpoint
    this.attempt = attempt;
    if (progress === this.samples.at(-1)?.progress) return;
    this.samples.push({ at, progress });
    if (this.samples.length > 30) this.samples.shift();
  }

  /** Milliseconds left at `now`, or null while nothing sound can be said. `began`: with what the attempt did, if known. */
  left(now: number, began: Sample | null): number | null {
    const last = this.samples.at(-1);
    if (!last || last.progress <= 0 || last.progress >= 100) return null;
    let rate = 0;
    for (const first of [this.samples[0] as Sample, began]) {
      if (rate > 0 || first === null || !enough(last.progress - first.progress, last.at - first.at)) continue;
      rate = (last.progress - first.progress) / (last.at - first.at);
    }
    if (rate <= 0) return null;
    return Math.max(0, (100 - last.progress) / rate - (now - last.at));
  }
}
