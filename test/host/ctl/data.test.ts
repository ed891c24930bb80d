import { rmSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createCtl, type Ctl } from '../../support/ctl.ts'

let ctl: Ctl
beforeAll(() => {
  ctl = createCtl()
})
afterAll(() => rmSync(ctl.home, { recursive: true }))

const post = (file: string, input?: string) =>
  ctl.run([`--socket=${ctl.home}/none.sock`, 'api', 'post', '/v1/ping', `--data=${file}`], input)

describe.concurrent('the file of --data', () => {
  it.each([
    ['/dev/zero', /^edgehostctl: --data: \/dev\/zero has more than 16777216 bytes\n$/],
    [
      '/no/where',
      /^edgehostctl: --data: \/no\/where cannot be read: no such file or directory \(ENOENT\)\n$/,
    ],
    ['/etc', /^edgehostctl: --data: \/etc cannot be read: .*\(EISDIR\)\n$/],
  ])('the file of --data is named where it is %s', async (file, message) => {
    const ended = await post(file)
    expect(ended).toMatchObject({ exitCode: 2, stdout: '' })
    expect(ended.stderr).toMatch(message)
  })

  it('the file of --data may be standard input', async () => {
    expect((await post('-', '{}')).exitCode).toBe(3)
  })
})
