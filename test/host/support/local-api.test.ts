import { expect, it } from 'vitest'
import { askDaemon } from '../../../src/support/sources.ts'
import { listen } from '../../support/daemon-listener.ts'

it('the reply of the daemon is read as text, also where a character arrives in two pieces', async () => {
  const socket = await listen((_request, response) => {
    const [start, end] = [Buffer.from('B\u00fchne').subarray(0, 2), Buffer.from('B\u00fchne').subarray(2)]
    response.write(start, () => response.end(end))
  })
  expect(await askDaemon(socket, '/')).toBe('B\u00fchne')
})

it('a status other than 200 is an error with the beginning of the reply', async () => {
  const socket = await listen((_request, response) => response.writeHead(503).end('not now'))
  await expect(askDaemon(socket, '/')).rejects.toThrow('the daemon answered with status 503: not now')
})

it('an endless reply is an error, and is not read further', async () => {
  let sent = 0
  const socket = await listen((_request, response) => {
    const more = () => {
      if (response.destroyed) return
      sent += 1
      response.write(Buffer.alloc(1_048_576, 'a'), more)
    }
    more()
  })
  await expect(askDaemon(socket, '/')).rejects.toThrow('the reply is larger than 16777216 bytes')
  expect(sent).toBeLessThan(100)
})
