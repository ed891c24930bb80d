// dist/main.cjs: runs daemon.cjs beside it, compiled from a V8 cache where there is one. Node's own compile cache
// holds only what was compiled at load; this one is taken from a daemon that has answered a request, which saves
// a third of the start. Without a cache, or with one of another Node, the daemon starts all the same.
import { readFileSync } from 'node:fs'
import { compileProgram, runProgram } from './cached-script.ts'
import { checksumBytes, checksumOf } from './checksum.ts'

declare const __BUNDLE_HASH__: string

const program = `${import.meta.dirname}/daemon.cjs`
// systemd names its CacheDirectory= in the environment, systemd.exec(5).
const cacheFile = `${process.env.CACHE_DIRECTORY ?? import.meta.dirname}/daemon-${__BUNDLE_HASH__}.cache`
const isPriming = process.argv[2] === '--prime-cache'

const cachedData = isPriming ? undefined : readCache()
const script = compileProgram(program, cachedData)
if (isPriming) void prime()
else runProgram(script, program)

async function prime(): Promise<void> {
  const { prepareDaemon, writeCache } = await import('./prime.ts')
  await prepareDaemon(process.argv[3])
  runProgram(script, program)
  await writeCache(script, cacheFile)
}

/** The cache without its checksum; a damaged one would crash V8, which does not look itself. */
function readCache(): Buffer | undefined {
  try {
    const file = readFileSync(cacheFile)
    const data = file.subarray(0, -checksumBytes)
    return checksumOf(data).equals(file.subarray(-checksumBytes)) ? data : undefined
  } catch {
    return undefined
  }
}
