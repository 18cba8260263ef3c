// The compiled simulator: requests and replies as JSON, events of packets as numbers. crates/wasm lists the requests.

export const EVENT_VALUES = 7;

export class Engine {
  /** An engine from the bytes of the module. */
  static async from(bytes) {
    const { instance } = await WebAssembly.instantiate(bytes, {});
    return new Engine(instance.exports);
  }

  constructor(exports) {
    this.exports = exports;
  }

  /** The reply to a request, as text. */
  callText(request) {
    const given = new TextEncoder().encode(JSON.stringify(request));
    const at = this.exports.sojourn_input(given.length);
    new Uint8Array(this.exports.memory.buffer, at, given.length).set(given);
    const length = this.exports.sojourn_call();
    const reply = new Uint8Array(this.exports.memory.buffer, this.exports.sojourn_reply(), length);
    return new TextDecoder().decode(reply);
  }

  /** The reply to a request; a mistake is thrown, with its place in the file. */
  call(request) {
    const reply = JSON.parse(this.callText(request));
    if (reply.error) throw Object.assign(new Error(reply.error.message), reply.error);
    return reply;
  }

  /** What has happened to packets since the last call: EVENT_VALUES numbers each. */
  events() {
    const count = this.exports.sojourn_take_events();
    return new Float64Array(this.exports.memory.buffer, this.exports.sojourn_events(), count).slice();
  }
}
