/** What policies and the orders of a tenant's line are called. Pure. */
import { t } from "./language";
import { ORDERS, POLICIES } from "./terms";

/** What a tenant's own jobs go by; an order that is newer than this page by its name. */
export const orderWords = (name: string): string => (Object.hasOwn(ORDERS, name) ? ORDERS[name]?.() : undefined) ?? name;

/** "fair (share of the machines, now and lately)"; one that is newer than this page by its name. */
export const policyWords = (name: string): string => (Object.hasOwn(POLICIES, name) ? t("{name} ({meaning})", { name, meaning: POLICIES[name]?.() ?? "" }) : name);
