import { vi } from 'vitest'

/** Waits until a check passes, as `vi.waitFor`, whose second is too short on a busy machine: what is waited for comes. */
export const waitFor: typeof vi.waitFor = (check, options = { timeout: 60_000 }) => vi.waitFor(check, options)
