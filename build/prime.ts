// Part of dist/main.cjs, for `main.cjs --prime-cache`: a daemon in a temporary folder, on a free port of the loopback,
// answers one request and reads the facts of the host once; the code that V8 has compiled by then is cached.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Script } from 'node:vm'
import { checksumOf } from './checksum.ts'

const deadlineMs = 30_000
// The daemon first reads the facts of the host a second after its start; that code belongs into the cache too. Where the facts
// cannot be read in this time, the cache is written without it.
const firstReadingMs = 3_000

/**
 * Sets this process's environment and arguments so that its daemon can start beside a running one. Without a folder it
 * never returns: it makes a folder and starts this program with it twice, so that the cache of the second start does not
 * contain the code that only a first start needs (making a certificate).
 */
export async function prepareDaemon(folder: string | undefined): Promise<void> {
  if (folder === undefined) return primeTwice()
  // Neither the environment of a unit nor the configuration of the host may reach this daemon.
  for (const name of Object.keys(process.env)) {
    if (/^(EDGEHOSTD_|LISTEN_|NOTIFY_|WATCHDOG_|RUNTIME_DIRECTORY)/.test(name))
      Reflect.deleteProperty(process.env, name)
  }
  writeFileSync(`${folder}/config.yaml`, '', { mode: 0o600 })
  process.argv.splice(
    2,
    Infinity,
    `--config=${folder}/config.yaml`,
    `--state.directory=${folder}`,
    '--api.address=127.0.0.1',
    '--api.socket.path=',
    '--host.console.issueFile=',
    `--api.port=${String(await findFreePort())}`,
    '--log.level=fatal',
  )
}

function primeTwice(): never {
  const folder = mkdtempSync(join(tmpdir(), 'edgehostd-prime-'))
  try {
    const args = [...process.execArgv, ...process.argv.slice(1, 3), folder]
    for (let times = 0; times < 2; times++)
      execFileSync(process.execPath, args, {
        // Its log and its audit trail are thrown away.
        stdio: ['ignore', 'ignore', 'inherit'],
      })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  process.exit(0)
}

/** Waits until the daemon has read the facts of the host, writes the cache and its checksum, and ends the process. */
export async function writeCache(script: Script, file: string): Promise<void> {
  const port = Number(process.argv.find((argument) => argument.startsWith('--api.port='))?.split('=')[1])
  if (!(await answersWithin(port, '/v1/ping', deadlineMs)))
    throw new Error(`the daemon did not answer within ${deadlineMs} ms`)
  await answersWithin(port, '/readyz', firstReadingMs)
  const data = script.createCachedData()
  const folder = dirname(file)
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${file}.new`, Buffer.concat([data, checksumOf(data)]), { mode: 0o644, flush: true })
  renameSync(`${file}.new`, file)
  for (const name of readdirSync(folder)) {
    if (/^daemon-.*\.cache/.test(name) && name !== basename(file)) rmSync(`${folder}/${name}`)
  }
  process.exit(0)
}

/** Repeats a request until the answer is 200. */
async function answersWithin(port: number, path: string, ms: number): Promise<boolean> {
  const giveUpAt = Date.now() + ms
  while (!(await isAnswering(port, path))) {
    if (Date.now() > giveUpAt) return false
    await sleep(20)
  }
  return true
}

function isAnswering(port: number, path: string): Promise<boolean> {
  return new Promise((resolve) => {
    // The peer is this process itself, so its certificate need not be verified.
    const options = { host: '127.0.0.1', port, path, rejectUnauthorized: false, agent: false }
    request(options, (reply) => {
      reply.resume()
      resolve(reply.statusCode === 200)
    })
      .on('error', () => resolve(false))
      .end()
  })
}

function findFreePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
