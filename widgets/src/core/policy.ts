/** The policies of the scheduler by the names of the settings, and what each goes by; the hub has the same table
 * (`scheduler/ordering.py`), and a test compares them. Pure. */

const WORDS: Record<string, string> = {
  fair: "share of the machines, now and lately",
  maxmin: "share of the machines, now alone",
  fifo: "first come, first served",
  priority: "priority, then age",
  finish: "who would be late first",
};

/** What the line of one tenant may go by, in words. */
const ORDER_WORDS: Record<string, string> = {
  priority: "priority, then age",
  fifo: "age alone",
  fair: "turns of its members, by what they use now and lately",
  maxmin: "turns of its members, by what they use now",
};
export const QUEUE_ORDERS = Object.keys(ORDER_WORDS);

/** What a tenant's own jobs go by; an order that is newer than this page by its name. */
export const orderWords = (name: string): string => ORDER_WORDS[name] ?? name;

/** Under these each tenant has a line of its own; the others put the jobs of all tenants into one. */
export const LINE_PER_TENANT = ["fair", "maxmin"];

export const POLICIES = Object.keys(WORDS);

/** "fair (share of the machines, now and lately)"; one that is newer than this page by its name. */
export const policyWords = (name: string): string => (Object.hasOwn(WORDS, name) ? `${name} (${WORDS[name]})` : name);
