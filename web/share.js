// A link that carries the experiment: the file compressed in the fragment, which no server sees.

const bytesOf = async (stream) => new Uint8Array(await new Response(stream).arrayBuffer());

const encoded = (bytes) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

const decoded = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));

/** The fragment for a text. */
export async function fragment(text) {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return `#file=${encoded(await bytesOf(packed))}`;
}

/** The text that a fragment carries; null if it carries none. */
export async function carriedBy(hash) {
  const found = hash.match(/^#file=([\w-]+)$/);
  if (!found) return null;
  try {
    const stream = new Blob([decoded(found[1])]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    return new TextDecoder().decode(await bytesOf(stream));
  } catch {
    throw new Error("The link is damaged: what it carries cannot be read.");
  }
}
