import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import { rateRows } from '../../src/platform/requests/rates.ts'
import { createTestPlatform } from '../support/test-platform.ts'

type Platform = Awaited<ReturnType<typeof createTestPlatform>>
let platform: Platform
let small: Platform
beforeAll(async () => {
  platform = await createTestPlatform({ rateLimits: { enabled: true } })
})
afterAll(() => platform.close())

let addresses = 0
const newAddress = () => `192.0.2.${(addresses += 1)}`
// A path of the row: each parameter has a value, another one each time.
let values = 0
const pathOf = (row: string) => row.replaceAll(/:\w+|\{\w+\}/g, () => `value-${(values += 1)}`)
const methods = ['GET', 'POST', 'PUT', 'DELETE'] as const

async function ask(
  url: string,
  remoteAddress: string,
  method: (typeof methods)[number] = 'GET',
  { app } = platform,
) {
  return (await app.inject({ method, url, remoteAddress })).statusCode
}

/** How many requests are accepted before one is refused; each with another method and another uid. */
async function countFree(row: string, address: string, of = platform): Promise<number> {
  for (let count = 0; count <= 1_000; count += 1)
    if ((await ask(pathOf(row), address, methods[count % methods.length], of)) === 429) return count
  return Infinity
}

/** Stops the clock until the test is over: no bucket gets a token, however long the requests take. */
function stopClock({ clock } = platform): void {
  const spy = vi.spyOn(clock, 'monotonic').mockReturnValue(clock.monotonic())
  onTestFinished(() => spy.mockRestore())
}

const most = ({ requestsPerSecond, burst }: (typeof rateRows)[number]) => requestsPerSecond * burst

it('has the 65 rows of the published table', () => {
  const of = (rate: number) => rateRows.filter(({ requestsPerSecond }) => requestsPerSecond === rate).length
  expect([of(10), of(2), of(50), rateRows.length]).toEqual([56, 1, 8, 65])
})

// Of each published rate the first row.
it.each([10, 2, 50].map((rate) => rateRows.find(({ requestsPerSecond }) => requestsPerSecond === rate)!))(
  '$path has its published rate',
  async (row) => {
    stopClock()
    expect(await countFree(row.path, newAddress())).toBe(most(row))
  },
)

describe('each row', () => {
  // Few requests fill a bucket: the rates themselves are in the table.
  const free = (index: number) => 2 + (index % 3)
  beforeAll(async () => {
    const paths = rateRows.map(({ path }, index) => `${path}=1/${free(index)}`)
    small = await createTestPlatform({ rateLimits: { enabled: true, paths } })
  })
  afterAll(() => small.close())

  it.each(rateRows.map((row, index) => [row.path, row, index] as const))(
    '%s has a bucket of its own for each address',
    async (path, row, index) => {
      const address = newAddress()
      stopClock(small)
      expect(await countFree(path, address, small)).toBe(free(index))
      // Other addresses are not touched, nor what is in no row.
      expect(await ask(pathOf(path), newAddress(), 'GET', small)).not.toBe(429)
      expect(await ask('/v1/in-no-row', address, 'GET', small)).not.toBe(429)
      // A row within this one, or around it, has another one.
      for (const other of rateRows)
        if (other !== row && (other.path.startsWith(`${path}/`) || path.startsWith(`${other.path}/`)))
          expect(await ask(pathOf(other.path), address, 'GET', small), other.path).not.toBe(429)
    },
  )
})

it('a row has the rate that the configuration gives it', async () => {
  const path = '/v1/edgehosts/:uid/health'
  const other = await createTestPlatform({ rateLimits: { enabled: true, paths: [`${path}=1/2`] } })
  const statuses = []
  for (let count = 0; count < 3; count += 1)
    statuses.push((await other.app.inject({ method: 'PATCH', url: pathOf(path) })).statusCode)
  await other.close()
  expect(statuses).toEqual([401, 401, 429])
})

it('paths in no row share one bucket', async () => {
  const address = newAddress()
  stopClock()
  let free = 0
  while ((await ask(`/v1/in-no-row-${free}`, address)) !== 429) free += 1
  expect(free).toBe(50)
})

it('limits the probes too, as the row of /v1/health says: more than monitors need', async () => {
  const address = newAddress()
  stopClock()
  let free = 0
  while (free < 100 && (await ask('/v1/health/ping', address)) === 200) free += 1
  expect(free).toBe(50)
  expect(await ask('/v1/health/ready', address)).toBe(429)
  expect(await ask('/v1/health/ready', newAddress())).toBe(200)
})
