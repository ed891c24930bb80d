import type { Machine } from '../schemas/machines.ts'

/** Where the machines of a pool are. A cloud is a further one of these, with credentials and pools of its own. */
export interface MachineProvider<Credentials, Pool> {
  /** Checks that the credentials are accepted. @throws AppError why they are not; CloudUnavailable where that is not known now */
  validate(credentials: Credentials, signal: AbortSignal): Promise<void>
  /** The machines of a pool, in no order. @throws AppError CloudUnavailable where they are not known now; any other one is an answer */
  machines(pool: Pool, signal: AbortSignal): Promise<readonly Machine[]>
}
