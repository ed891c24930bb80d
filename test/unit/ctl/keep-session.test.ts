import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { keepSession, type Client } from '../../../src/ctl/client.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

it('a session is used every five minutes until it is let go, also while the host does not answer', async () => {
  const ask = vi.fn<Client['ask']>().mockRejectedValue(new Error('no answer'))
  const letGo = keepSession({ ask })
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(ask).toHaveBeenCalledTimes(12)
  // A route that needs a session: a refused token is renewed then.
  expect(ask).toHaveBeenLastCalledWith({ method: 'GET', path: '/v1/users/current' })
  letGo()
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(ask).toHaveBeenCalledTimes(12)
})
