/** Names of the contract, and what they are called: made by `make docs`, not by hand. */
import { t } from "./language";

type Words = Readonly<Record<string, () => string>>;

export const REASONS: Words = {
  Invalid: () => t("not allowed"),
  NotFound: () => t("not found"),
  Conflict: () => t("already exists"),
  WrongState: () => t("not in this state"),
  Forbidden: () => t("no permission"),
  LoginTooOld: () => t("asks for the password again"),
  ExceedsMaxQuota: () => t("more than the whole quota"),
  WaitingForQuota: () => t("waits for quota"),
  NoMatchingFlavor: () => t("device not available"),
  WaitingForResources: () => t("waits for room on the nodes"),
  TopologyPlacementFailed: () => t("waits for room in the right place"),
  WaitingForPreempted: () => t("waits for others to stop"),
  Reserved: () => t("the free room is reserved"),
  DiskFull: () => t("waits for room on the disk"),
  TenantMoves: () => t("waits while its team's files are moved"),
  BudgetSpent: () => t("waits for budget"),
  Suspended: () => t("suspended"),
  StoppedEarly: () => t("stopped early"),
  IdleGpus: () => t("GPUs not used"),
  Gated: () => t("held back"),
};

export const POLICIES: Words = {
  fair: () => t("share of the machines, current and recent use"),
  maxmin: () => t("share of the machines, current use only"),
  fifo: () => t("first come, first served"),
  priority: () => t("priority, then age"),
  finish: () => t("jobs that would be late first"),
};

export const ORDERS: Words = {
  priority: () => t("priority, then age"),
  fifo: () => t("age alone"),
  fair: () => t("turns of its members, by current and recent use"),
  maxmin: () => t("turns of its members, by current use"),
};

/** Under these each tenant has a line of its own; the others put the jobs of all tenants into one. */
export const LINE_PER_TENANT: readonly string[] = ["fair", "maxmin"];

/** What of a job somebody may be told. */
export const NOTICE_EVENTS = ["started", "finished", "failed", "preempted", "late", "asked", "answered", "idle", "idle_job", "idle_team", "alert", "resolved", "budget"] as const;

/** What a job asks for that says nothing else. */
export const SUBMIT = {"workers": 1, "ps": 0, "cpu": 1.0, "gpu": 0, "ram": 1024, "priority": "normal", "retries": 0, "tensorboard": "on"} as const;

/** All that quotas count: rows of the hub's table. */
export const DIMENSIONS = ["cpu", "gpu", "ram", "rom", "shm"] as const;

/** Of which amounts can be kept free on nodes. */
export const ON_NODES: readonly string[] = ["cpu", "gpu", "ram"];

/** All that a tenant is configured by. */
export const TENANT_FIELDS = ["name", "cpu", "gpu", "ram", "rom", "amounts", "gpu_kinds", "weight", "cohort", "parent", "borrowing_limit", "lending_limit", "reserved", "queue_order", "isolation", "data_root", "network", "leavers", "datasets", "joining", "description"] as const;
