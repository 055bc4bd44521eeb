// SHA-256 (FIPS 180-4) of bytes that come in parts: the hash of the browser takes only whole files.
const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
const K = Int32Array.from(primes, (p) => fraction(Math.cbrt(p)));

export class Sha256 {
  #state = Int32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)));
  #words = new Int32Array(64);
  #rest = new Uint8Array(64);
  #kept = 0;
  #length = 0;

  update(bytes) {
    this.#length += bytes.length;
    let at = 0;
    if (this.#kept > 0) {
      at = Math.min(64 - this.#kept, bytes.length);
      this.#rest.set(bytes.subarray(0, at), this.#kept);
      this.#kept += at;
      if (this.#kept < 64) return;
      this.#block(this.#rest, 0);
      this.#kept = 0;
    }
    for (; at + 64 <= bytes.length; at += 64) this.#block(bytes, at);
    this.#rest.set(bytes.subarray(at));
    this.#kept = bytes.length - at;
  }

  hex() {
    const bits = this.#length * 8;
    const end = new Uint8Array(this.#kept < 56 ? 64 - this.#kept : 128 - this.#kept);
    end[0] = 0x80;
    const view = new DataView(end.buffer);
    view.setUint32(end.length - 8, Math.floor(bits / 2 ** 32));
    view.setUint32(end.length - 4, bits >>> 0);
    this.update(end);
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #block(bytes, at) {
    const w = this.#words;
    for (let i = 0; i < 16; i++, at += 4) {
      w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    }
    const turn = (x, n) => (x >>> n) | (x << (32 - n));
    for (let i = 16; i < 64; i++) {
      const [x, y] = [w[i - 15], w[i - 2]];
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.#state;
    for (let i = 0; i < 64; i++) {
      const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i]) | 0;
      const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    const s = this.#state;
    s[0] += a; s[1] += b; s[2] += c; s[3] += d; s[4] += e; s[5] += f; s[6] += g; s[7] += h;
  }
}
