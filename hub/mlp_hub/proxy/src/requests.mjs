// Requests that no program sends which means well, and that no two programs read alike.

/** Return what is wrong with a request's address or Host, or nothing. */
export function faultOf(req) {
  if ((req.headersDistinct.host?.length ?? 0) > 1) return "There are two Host headers; one is wanted.";
  const shown = JSON.stringify(req.url.slice(0, 100));
  const path = req.url.replace(/^https?:\/\/[^/?#\\]*/i, "");
  // what begins with two of these is read as a host's name by some and as a path by others
  if (/^[/\\]{2}/.test(path)) return `The address ${shown} begins with two slashes; one is wanted.`;
  try {
    decodeURIComponent(new URL(req.url, "http://example.com").pathname);
  } catch {
    return `The address ${shown} cannot be read: a % stands before two hexadecimal digits, and together they are UTF-8.`;
  }
  return undefined;
}
