/** What an administrator looks for among the runs of everybody: filters as terms of a search. Pure. */

/** A value as a term has it; a name with a blank in it stands in quotes. */
const quoted = (text: string): string => (/\s/.test(text) ? `"${text}"` : text);

export function searchOf(words: string, state: string, team: string, user: string): string {
  const terms = [words.trim(), state ? `state=${state}` : "", team ? `tenant=${quoted(team)}` : "", user.trim() ? `user=${quoted(user.trim().replaceAll('"', ""))}` : ""];
  return terms.filter(Boolean).join(" ");
}
