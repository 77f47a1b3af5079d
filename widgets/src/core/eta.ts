/** Time left, from how progress grew lately. Pure. */

interface Sample {
  at: number;
  progress: number;
}

export class Eta {
  private samples: Sample[] = [];

  /** Note the progress (0-100) at a time in milliseconds. */
  note(progress: number, at: number): void {
    const last = this.samples.at(-1);
    if (last && progress < last.progress) this.samples = []; // restarted from a checkpoint
    if (last && progress === last.progress && this.samples.length) return;
    this.samples.push({ at, progress });
    if (this.samples.length > 30) this.samples.shift();
  }

  /** Milliseconds left at `now`, or null while nothing sound can be said. `started`: when the attempt began, if known. */
  left(now: number, started: number | null): number | null {
    const last = this.samples.at(-1);
    if (!last || last.progress <= 0 || last.progress >= 100) return null;
    const first = this.samples[0] as Sample;
    let rate = 0;
    if (last.progress - first.progress >= 2 && last.at - first.at >= 1000) {
      rate = (last.progress - first.progress) / (last.at - first.at);
    } else if (started !== null && last.progress >= 2 && last.at - started >= 3000) {
      rate = last.progress / (last.at - started);
    }
    if (rate <= 0) return null;
    return Math.max(0, (100 - last.progress) / rate - (now - last.at));
  }
}
