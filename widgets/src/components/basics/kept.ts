/** What this browser keeps for its user; one that keeps nothing is asked in vain, and nothing breaks. */
export function keptIn(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function keepIn(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // then it comes back with the next page
  }
}
