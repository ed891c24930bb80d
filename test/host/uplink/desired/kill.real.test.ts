import { createHash } from 'node:crypto'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, it, onTestFinished } from 'vitest'
import type { KeptOrder } from '../../../../src/uplink/desired/desired-store.ts'
import { bundleProgram } from '../../../support/bundle-program.ts'
import { deliveryOf, playDownload } from '../../../support/played-download.ts'
import { createRandom, noise } from '../../../support/random.ts'

it('a daemon that is killed at any moment of a download and of what follows it loses nothing, and applies nothing twice', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-killed-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const [program, state, ca] = ['driver.cjs', 'state', 'ca.pem'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  bundleProgram('../test/support/following-driver', program)
  mkdirSync(state)
  const wishes = [1, 2].map((number) => ({ number, definition: noise(6_000_000) }))
  const platform = await playDownload(deliveryOf(wishes[0]))
  writeFileSync(ca, platform.ca)
  // A reply is cut now and then too.
  platform.cutAfter = 2_500_000
  const kept = () => {
    const file = join(state, 'platform/wanted.json')
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as KeptOrder) : undefined
  }
  const random = createRandom(1)
  let kills = 0
  for (const wish of wishes) {
    platform.delivery = deliveryOf(wish)
    for (;;) {
      const child = spawn(process.execPath, [program, state, platform.url, ca, platform.delivery.header], {
        stdio: 'inherit',
      })
      const ended = once(child, 'exit')
      // The first kills come early, the later ones when it is further; in the end it has all the time that it needs.
      const done = async () => {
        while (kept()?.number !== wish.number) await sleep(5)
      }
      const isOver = await Promise.race([
        done().then(() => true),
        ended.then(() => false),
        sleep(kills >= 24 ? 15_000 : 80 + random.below(1 + 40 * (kills % 12)), false),
      ])
      kills += 1
      child.kill('SIGKILL')
      await ended
      if (isOver || kept()?.number === wish.number) break
      if (kills > 30) throw new Error(`it does not come: ${JSON.stringify(kept())}`)
    }
  }
  expect(
    readFileSync(join(state, 'ledger'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' ').slice(2)),
  ).toEqual(
    wishes.map(({ number, definition }) => [
      String(number),
      createHash('sha256').update(definition).digest('hex'),
    ]),
  )
  expect(kept()).toMatchObject({ outcome: 'applied', number: 2, accepted: 2, revision: 2 })
  // It went on where it was.
  expect(platform.asked.some(({ range }) => range !== undefined)).toBe(true)
  expect(kills).toBeGreaterThan(2)
})
