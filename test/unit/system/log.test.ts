import { expect, it } from 'vitest'
import { captureLog } from '../../support/https-server.ts'

it('an error is written without the bytes that Node puts beside it, and with all else', () => {
  const { log, lines } = captureLog()
  const rawPacket = Buffer.from('HTTP/1.1 201\r\nX-Subject-Token: a-token\r\n')
  log.warn({ err: Object.assign(new Error('Parse Error'), { code: 'HPE_INVALID', rawPacket }) }, 'failed')
  expect(lines).toEqual([
    expect.objectContaining({
      err: {
        ...{ type: 'Error', message: 'Parse Error', code: 'HPE_INVALID' },
        stack: expect.stringContaining('log.test') as string,
      },
    }),
  ])
})
