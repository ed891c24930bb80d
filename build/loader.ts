// dist/main.cjs: runs daemon.cjs beside it, compiled from a V8 cache where there is one. Node's own compile cache
// contains only the code that was compiled at load; this one is taken from a daemon that has answered a request, which saves
// a third of the start. Without a cache, or with one of another Node, the daemon starts too, only more slowly.
import { readFileSync, statSync } from 'node:fs'
import type { Script } from 'node:vm'
import { createFailedStarts } from '../src/program/failed-starts.ts'
import { compileProgram, runProgram } from './cached-script.ts'
import { checksumBytes, checksumOf } from './checksum.ts'

declare const __BUNDLE_HASH__: string

const program = `${import.meta.dirname}/daemon.cjs`
// systemd names its CacheDirectory= in the environment, systemd.exec(5).
const cacheFile = `${process.env.CACHE_DIRECTORY ?? import.meta.dirname}/daemon-${__BUNDLE_HASH__}.cache`
const isPriming = process.argv[2] === '--prime-cache'

// Fastify loads node:dns, which opens this file at once. If it is a pipe without a writer, the open never returns.
const nameServers = '/etc/resolv.conf'

if (isPipe(nameServers))
  refuse(`${nameServers} is a named pipe, which the start would wait for: remove it with rm ${nameServers}`)
else start()

function start(): void {
  const cachedData = isPriming ? undefined : readCache()
  const script = compileProgram(program, cachedData)
  if (isPriming) void prime(script)
  else runProgram(script, program)
}

function isPipe(path: string): boolean {
  try {
    return statSync(path).isFIFO()
  } catch {
    return false
  }
}

function refuse(reason: string): void {
  // systemd reads the log level from the prefix, sd-daemon(3).
  process.stderr.write(`<2>${reason}\n`)
  setTimeout(() => process.exit(1), createFailedStarts(process.env.RUNTIME_DIRECTORY).add())
}

async function prime(script: Script): Promise<void> {
  const { prepareDaemon, writeCache } = await import('./prime.ts')
  await prepareDaemon(process.argv[3])
  runProgram(script, program)
  await writeCache(script, cacheFile)
}

/** The cache without its checksum, or undefined: V8 does not check a cache, and a damaged one would crash it. */
function readCache(): Buffer | undefined {
  try {
    const file = readFileSync(cacheFile)
    const data = file.subarray(0, -checksumBytes)
    return checksumOf(data).equals(file.subarray(-checksumBytes)) ? data : undefined
  } catch {
    return undefined
  }
}
