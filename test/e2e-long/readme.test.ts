import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { eventually } from '../e2e/host/eventually.ts'
import { output, run } from '../e2e/host/process.ts'
import { enterFreshDebian, type FreshDebian } from './fresh-debian.ts'
import { commandBlocks } from '../support/document-commands.ts'
import { freePort } from '../support/free-port.ts'

const checkout = join(import.meta.dirname, '../..')
const minutes = 60_000

let fresh: FreshDebian
let commands: readonly string[]

beforeAll(async () => {
  fresh = await enterFreshDebian()
  const readme = await readFile(join(checkout, 'README.md'), 'utf8')
  const block = commandBlocks(readme).find(({ heading }) => heading === 'Try it')
  commands = (block?.script ?? '').split('\n').flatMap((line) => line.replace(/ +#.*/, '') || [])
}, 10 * minutes)
afterAll(() => fresh.unplug())

describe('a Debian with nothing but a minimal system', () => {
  it('the minimal system has neither Node nor make', async () => {
    expect(await fresh.sh('command -v node npm make git || true', minutes)).toBe('')
  })

  it(
    'the packages of the README can be installed, and the last commit cloned',
    async () => {
      expect(commands[0]).toBe('apt-get install git make npm')
      await fresh.sh(`export DEBIAN_FRONTEND=noninteractive; apt-get update; ${commands[0]} -y`, 20 * minutes)
      // A bundle, since nothing inside can reach a repository of this machine.
      const bundle = join(fresh.root, 'root/edgehostd.bundle')
      await output('git', ['-C', checkout, 'bundle', 'create', '--quiet', bundle, 'HEAD'])
      await fresh.sh('git clone --quiet edgehostd.bundle edgehostd; rm edgehostd.bundle', minutes)
    },
    25 * minutes,
  )

  it(
    'the first command of the README runs the daemon',
    async () => {
      expect(commands[1]).toBe('make run')
      const port = await freePort()
      const command = `cd edgehostd; export EDGEHOSTD_API_PORT=${port}; ${commands[1]}`
      const running = fresh.start(command, '/root/run.log')
      const certificate = join(fresh.root, 'root/edgehostd/.run/state/tls/certificate.pem')
      const ask = () =>
        run('curl', [
          '--silent',
          '--show-error',
          '--fail',
          '--cacert',
          certificate,
          `https://localhost:${port}/v1/ping`,
        ])
      const log = () => readFile(join(fresh.root, 'root/run.log'), 'utf8')
      try {
        await eventually(async () => {
          if (running.hasEnded()) return
          const { exitCode, stderr } = await ask()
          if (exitCode !== 0) throw new Error(`${stderr}\n${await log()}`)
          // The commands to try follow once the daemon replies.
          if (!(await log()).includes(`https://0.0.0.0:${port}`)) throw new Error(await log())
        }, 10 * minutes)
        expect(running.hasEnded(), await log()).toBe(false)
      } finally {
        await running.pressCtrlC()
      }
    },
    12 * minutes,
  )

  it(
    'the second command of the README runs the tests, which pass',
    async () => {
      expect(commands.slice(2)).toEqual(['make test'])
      const said = await fresh.sh(
        `cd edgehostd; ${commands[2]} 2>&1 || { echo; echo ended with $?; }`,
        30 * minutes,
      )
      expect(said).not.toContain('ended with')
      expect(said).toMatch(/Test Files +\d+ passed/)
    },
    35 * minutes,
  )
})
