import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { CommandFailed, type CommandRunner } from '../../../src/system/runner.ts'
import { createFakeHost, pamtester } from '../../support/fake-host.ts'
import { createTestEdge, currentPath, renewalPath, type TestEdge } from '../../support/test-edge.ts'

// A host whose groups come from a directory too, which does not answer.
let edge: TestEdge
let asked: string[]
beforeEach(async () => {
  asked = []
  const host = await createFakeHost()
  await writeFile(join(host.etc, 'nsswitch.conf'), 'passwd: files sss\ngroup: files sss\n')
  const played = host.runner
  const runner: CommandRunner = {
    run(program, args, options) {
      asked.push(program)
      return program === pamtester
        ? played.run(program, args, options)
        : Promise.reject(new CommandFailed(program, 'timed-out', '10000 ms'))
    },
  }
  edge = await createTestEdge({ host: Object.assign(host, { runner }) })
})
afterEach(async () => {
  await edge.stop()
  await edge.host.remove()
})

it('a local user logs in as a viewer; the daemon waits for the directory once, when PAM has answered', async () => {
  const { access } = await edge.login('bob')
  expect((await edge.get(currentPath, access)).json()).toMatchObject({ role: 'viewer' })
  expect(asked).toEqual([pamtester, 'id', 'getent'])
})

it('a local user whose account is locked renews nothing, and the daemon does not wait for the directory', async () => {
  const { refresh } = await edge.login('bob')
  asked.length = 0
  edge.host.accounts.get('bob')!.state = 'locked'
  await edge.host.write()
  await writeFile(join(edge.host.etc, 'nsswitch.conf'), 'passwd: files sss\ngroup: files sss\n')
  const reply = await edge.post(renewalPath, { refreshToken: refresh })
  expect(reply.statusCode).toBe(401)
  expect([asked, edge.sessions.list()]).toEqual([[], []])
})
