import type { Machine } from '../schemas/machines.ts'

/** A read of the machines of a pool. */
export interface MachineRead {
  /** Ends it. */
  readonly signal: AbortSignal
  /**
   * Says how much memory what was read takes, as it grows, in bytes (`heapBytes`). Called before it is kept.
   * @throws AppError CloudUnavailable where the platform has not so much for it
   */
  hold(bytes: number): void
}

/** Where the machines of a pool are. A cloud is a further one of these, with credentials and pools of its own. */
export interface MachineProvider<Credentials, Pool, Item = Machine> {
  /** Checks that the credentials are accepted. @throws AppError why they are not; CloudUnavailable where that is not known now */
  validate(credentials: Credentials, signal: AbortSignal): Promise<void>
  /** The machines of a pool, in no order. @throws AppError CloudUnavailable where they are not known now; any other one is an answer */
  machines(pool: Pool, read: MachineRead): Promise<readonly Item[]>
}
