// Workers with engines, and the runs of a file shared among them.

/** Text that the page carries. */
const carried = (id) => document.getElementById(id).textContent;

let bytes;

/** The bytes of the compiled simulator, which the page carries compressed. */
async function compiled() {
  const packed = Uint8Array.from(atob(carried("engine")), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** A worker with an engine of its own. */
export class Worked {
  static async create() {
    bytes ??= compiled();
    const worked = new Worked();
    await worked.ask("start", { bytes: await bytes });
    return worked;
  }

  constructor() {
    const url = URL.createObjectURL(new Blob([carried("worker")], { type: "text/javascript" }));
    this.worker = new Worker(url);
    URL.revokeObjectURL(url);
    this.asked = new Map();
    this.next = 0;
    this.worker.onmessage = ({ data }) => {
      const asked = this.asked.get(data.id);
      if ("share" in data) return asked.report?.(data.share);
      this.asked.delete(data.id);
      if (data.error) asked.reject(Object.assign(new Error(data.error.message), data.error));
      else asked.resolve(data.reply);
    };
    // A module that traps is a defect of ours; it must not look like a run that takes long.
    this.worker.onerror = (event) => {
      for (const asked of this.asked.values()) asked.reject(new Error(event.message || "the simulator stopped"));
      this.asked.clear();
    };
  }

  ask(job, given = {}, report = undefined) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.asked.set(id, { resolve, reject, report });
      this.worker.postMessage({ id, job, ...given });
    });
  }

  call(request) {
    return this.ask("call", { request });
  }

  end() {
    this.worker.terminate();
    for (const asked of this.asked.values()) asked.reject(new Stopped());
    this.asked.clear();
  }
}

/** The user has stopped it. */
export class Stopped extends Error {}

/** Executes all runs of a file on several workers. */
export class Batch {
  constructor(file, count) {
    this.file = file;
    this.count = count;
    this.workers = [];
    this.stopped = false;
  }

  /** The results in the order of runs. `onProgress` hears a share from 0 to 1, `onResult` each result as it comes. */
  async run(onProgress, onResult) {
    const results = new Array(this.count);
    const shares = new Float64Array(this.count);
    let sum = 0;
    let next = 0;
    const tell = (index, share) => {
      sum += share - shares[index];
      shares[index] = share;
      onProgress(sum / this.count);
    };
    const work = async () => {
      if (this.stopped) throw new Stopped();
      const worked = await Worked.create();
      this.workers.push(worked);
      if (this.stopped) worked.end();
      await worked.call({ do: "read", ...this.file });
      while (next < this.count) {
        const index = next++;
        results[index] = await worked.ask("run", { index }, (share) => tell(index, share));
        tell(index, 1);
        onResult?.(index, results[index]);
      }
    };
    const width = Math.min(this.count, Math.max(1, (navigator.hardwareConcurrency || 2) - 1), 8);
    try {
      await Promise.all(Array.from({ length: width }, work));
    } finally {
      this.stop();
    }
    return results;
  }

  stop() {
    this.stopped = true;
    for (const worked of this.workers) worked.end();
    this.workers = [];
  }
}
