// The clock of all pictures: virtual time that plays, pauses and jumps.

export class Clock {
  at = 0;
  begin = 0;
  end = 0;
  /** The time that was asked for, which may be beyond the end while simulations run. */
  wanted = 0;
  /** Virtual seconds for each second. */
  speed = 300;
  #playing = false;
  #listeners = new Set<() => void>();
  #last = 0;
  #frame = 0;

  get playing(): boolean {
    return this.#playing;
  }

  /** Calls a function at every change. Returns a function that ends this. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }

  /** What else a time that somebody picks in a chart changes. */
  onPick: () => void = () => undefined;

  /** Goes to a time that somebody has picked in a chart. */
  pick(at: number): void {
    this.onPick();
    this.pause();
    this.seek(Math.max(this.begin, at));
  }

  seek(at: number): void {
    this.wanted = Math.max(0, at);
    this.at = Math.min(this.end, this.wanted);
    this.#tell();
  }

  /** Sets where the clock ends, and goes to the time that was asked for. */
  setEnd(end: number): void {
    this.end = end;
    this.at = Math.min(end, this.#playing ? this.at : this.wanted);
    this.#tell();
  }

  /** Sets the first and the last time of which something is known. */
  setBounds(begin: number, end: number): void {
    this.begin = begin;
    this.setEnd(end);
  }

  setSpeed(speed: number): void {
    this.speed = speed;
    this.#tell();
  }

  play(): void {
    if (this.#playing || this.end <= 0) return;
    if (this.at >= this.end || this.at < this.begin) this.at = this.begin;
    this.#playing = true;
    this.#last = performance.now();
    const step = (now: number) => {
      if (!this.#playing) return;
      // A page that was hidden continues where it was.
      const passed = Math.min(0.1, (now - this.#last) / 1000);
      this.#last = now;
      this.at = Math.min(this.end, this.at + passed * this.speed);
      this.wanted = this.at;
      if (this.at >= this.end) this.#playing = false;
      else this.#frame = requestAnimationFrame(step);
      this.#tell();
    };
    this.#frame = requestAnimationFrame(step);
    this.#tell();
  }

  pause(): void {
    this.#playing = false;
    cancelAnimationFrame(this.#frame);
    this.#tell();
  }
}
