/** Returns the content of a text in base64 that is compressed with gzip. */
export function unpacked(text: string): Response {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}
